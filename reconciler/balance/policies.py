"""Policies asked in Spark SQL over a plan's tables: each row that a query returns is a violation."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.local_files import read_parquet
from reconciler.balance.schemas import LOADS
from reconciler.model.policy import Policy
from reconciler.model.problem import InvalidInput, Location, Problem, Severity

if TYPE_CHECKING:
    from reconciler.files.arrow_tables import ArrowTable

BROKEN = "KR430"
MORE = "KR431"
NOT_ASKED = "KR183"
MOST_ROWS = 20
_LONGEST_ROW = 400
_MESSAGE = "message"
_WRAP = "SELECT * FROM (\n"
# Spark: `(line 2, pos 7)`, `line 2 pos 7` or `== SQL (line 2, position 8) ==`
_PLACE = re.compile(r"line (\d+),? pos(?:ition)? \d+")
_NOISE = re.compile(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+.*$")


def violations(
    spark: SparkSession,
    policies: Sequence[Policy],
    tables: Mapping[str, "ArrowTable"],
    cluster: str,
    loads: str | None = None,
) -> tuple[Problem, ...]:
    """Return one violation for each row that a policy returns, policies in their order, rows sorted by their columns.

    `loads` is the folder of measured loads, of which the table `loads` has that cluster's rows; without it the table is
    empty. Of a policy MOST_ROWS rows are told, and how many more there are. Raises InvalidInput with every policy that
    Spark cannot ask, in Spark's words.
    """
    session = _session(spark)
    for name, table in tables.items():
        session.createDataFrame(table).createOrReplaceTempView(name)
    _loads(session, cluster, loads).createOrReplaceTempView("loads")
    found: list[Problem] = []
    wrong: list[Problem] = []
    with _quiet():
        for policy in policies:
            try:
                found += _rows(session, policy)
            except (PySparkException, Py4JError) as error:
                wrong.append(_not_asked(policy, str(getattr(error, "java_exception", error))))
    if wrong:
        raise InvalidInput(wrong)
    return tuple(found)


def _session(spark: SparkSession) -> SparkSession:
    """Return a session whose tables and settings are its own: no file can be read as a table."""
    session = spark.newSession()
    for name, value in (
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.runSQLOnFiles", "false"),
        ("spark.sql.shuffle.partitions", "4"),
        ("spark.sql.sources.partitionColumnTypeInference.enabled", "false"),
    ):
        session.conf.set(name, value)
    return session


def _loads(session: SparkSession, cluster: str, folder: str | None) -> DataFrame:
    """Return the loads of that cluster with the columns of `schemas.LOADS`; one that the folder lacks is null."""
    if folder is None:
        return session.createDataFrame([], LOADS)
    read = read_parquet(session, folder)
    columns = [
        (F.col(field.name) if field.name in read.columns else F.lit(None)).cast(field.dataType).alias(field.name)
        for field in LOADS.fields
    ]
    return read.where(F.col("cluster") == cluster).select(*columns)


def _rows(session: SparkSession, policy: Policy) -> Iterator[Problem]:
    # Only a query can stand in parentheses: whatever else a file holds is an error of syntax.
    answer = session.sql(f"{_WRAP}{policy.query}\n)")
    told = _told(answer)
    rows = [row["told"] for row in told.take(MOST_ROWS + 1)]
    for row in rows[:MOST_ROWS]:
        yield _broken(policy, row if len(row) <= _LONGEST_ROW else f"{row[:_LONGEST_ROW]}…")
    if len(rows) > MOST_ROWS:
        more = f"{policy.title}: {answer.count() - MOST_ROWS:,} more rows"
        yield Problem(MORE, more, policy.at, Severity.VIOLATION)


def _told(answer: DataFrame) -> DataFrame:
    """Return the rows in words, in the order of their columns: `topic orders, partition 3`."""
    names = [name.lower() for name in answer.columns]
    numbered = answer.toDF(*(f"c{number}" for number in range(len(names))))
    columns = [F.col(name) for name in numbered.columns]
    words = F.concat_ws(", ", *(_words(name, column) for name, column in zip(names, columns, strict=True)))
    sortable = [F.col(name) for name, kind in numbered.dtypes if not re.search(r"map<|variant|interval", kind)]
    return numbered.withColumn("told", words).orderBy(*sortable, "told").select("told")


def _words(name: str, value: Column) -> Column:
    said = F.coalesce(value.cast("string"), F.lit("unknown"))
    return said if name == _MESSAGE else F.concat(F.lit(f"{name} "), said)


def _broken(policy: Policy, row: str) -> Problem:
    return Problem(BROKEN, f"{policy.title}: {row}", policy.at, Severity.VIOLATION)


def _not_asked(policy: Policy, said: str) -> Problem:
    """Return what Spark said in one sentence, at the line that it names."""
    place = _PLACE.search(said)
    line = max(1, int(place[1]) - 1) if place else policy.at.line
    first = next(filter(None, (each.strip() for each in said.split("\n"))), "no reason given")
    reason = _NOISE.sub("", first).rstrip(". ;")
    return Problem(NOT_ASKED, f"Spark cannot ask this policy: {reason}", Location(policy.at.file, line))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PySpark from logging, with the whole Java trace, an error that we tell in a sentence."""
    logger = logging.getLogger("SQLQueryContextLogger")
    was = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = was
