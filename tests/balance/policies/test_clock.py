"""Whatever a policy writes, no answer has today's date in it: texts that Spark takes for the clock, in every form.

Spark itself says what today is, so that the test reads no clock.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reconciler.balance.policies.closed_query import Refused, refuse_analysed, refuse_parsed

WORDS = ("now", "today", "tomorrow", "yesterday", "NOW", " Today ", "today UTC", "now Europe/Berlin")
TEXTS = (
    "'{}'",
    '"{}"',
    "r'{}'",
    "concat(left('{}', 2), substr('{}', 3))",
    "left('{}', 1) || substr('{}', 2)",
    "reverse(reverse('{}'))",
    "lower(upper('{}'))",
    "coalesce(NULL, '{}')",
    "if(true, '{}', 'x')",
    "CASE WHEN true THEN '{}' END",
    "array('{}')[0]",
    "decode(encode('{}', 'UTF-8'), 'UTF-8')",
    "cast(X'{hex}' AS string)",
    "unhex('{hex}')::string",
    "translate('{}', '', '')",
    "(SELECT '{}')",
    "(SELECT max('{}'))",
    "element_at(transform(array('{}'), x -> x), 1)",
)
CASTS = (
    "CAST({} AS DATE)",
    "CAST({} AS TIMESTAMP)",
    "CAST({} AS TIMESTAMP_NTZ)",
    "CAST({} AS TIMESTAMP_LTZ)",
    "TRY_CAST({} AS TIMESTAMP)",
    "{}::date",
    "date({})",
    "timestamp({})",
    "to_date({})",
    "try_to_date({})",
    "to_timestamp({})",
    "to_timestamp_ltz({})",
    "to_timestamp_ntz({})",
    "try_to_timestamp({})",
    "date_add({}, 0)",
    "date_sub({}, 0)",
    "date_trunc('DAY', {})",
    "trunc({}, 'MM')",
    "last_day({})",
    "date_format({}, 'yyyy-MM-dd')",
    "timestamp_seconds(unix_seconds({}))",
    "make_date(year({}), month({}), day({}))",
    "coalesce(CAST(NULL AS DATE), {})",
    "greatest(DATE '1970-01-01', {})",
    "{} + INTERVAL '0' DAY",
    "CAST({} AS DATE) + INTERVAL '0' DAY",
    "dateadd(DAY, 0, {})",
    "explode(array(CAST({} AS DATE)))",
    "cast(array({}) AS array<date>)[0]",
    "cast(struct({}) AS struct<a: timestamp>).a",
    "cast(map('a', {}) AS map<string, date>)['a']",
    "element_at(transform(array({}), x -> CAST(x AS DATE)), 1)",
    "nullif(CAST({} AS DATE), DATE '1970-01-01')",
    "to_date({}, 'yyyy-MM-dd')",
    "try_to_timestamp({}, 'yyyy-MM-dd')",
    "from_utc_timestamp({}, 'UTC')",
    "convert_timezone('UTC', 'UTC', {})",
)
LITERALS = (
    "DATE '{}'",
    'DATE "{}"',
    "DATE'{}'",
    "DATE r'{}'",
    "TIMESTAMP '{}'",
    'timestamp "{}"',
    "TIMESTAMP_NTZ '{}'",
    "TIMESTAMP_LTZ '{}'",
    "DATE '\\u00{first}{rest}'",
)
PLACES = (
    "SELECT cast({} AS string) AS a",
    "SELECT cast(a AS string) FROM (VALUES ({})) AS t(a)",
    "WITH t AS (SELECT {} AS a) SELECT cast(a AS string) FROM t",
    "SELECT cast(b AS string) FROM (SELECT 1 AS a) t, LATERAL (SELECT {} AS b)",
    "SELECT cast(a AS string) FROM (SELECT DATE '1970-01-01' AS a UNION ALL SELECT {})",
    "SELECT cast(max(a) AS string) FROM (SELECT {} AS a)",
)
FINE = (
    "CAST('2026-11-30' AS DATE)",
    "DATE '2026-11-30'",
    'DATE "2026-11-30"',
    "TIMESTAMP '2026-11-30 10:00:00'",
    "timestamp'2026-11-30T10:00:00Z'",
    "TIMESTAMP '2026-11-30 10:00:00.5 Europe/Berlin'",
    "CAST(NULL AS DATE)",
    "CAST(0 AS TIMESTAMP)",
    "to_timestamp('2026-11-30 10:00:00')",
    "try_to_timestamp('2026-11-30')",
    "to_date('30.11.2026', 'dd.MM.yyyy')",
    "cast(concat('2026', '-11-30') AS DATE)",
    "date_add(DATE '2026-11-30', 1)",
    "'today' || 'now'",
    "CASE WHEN 'now' = 'today' THEN 1 ELSE 2 END",
)


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session with the settings of the room that decide how a query is parsed."""
    session = spark.newSession()
    for name in ("spark.sql.variable.substitute", "spark.sql.parser.eagerEvalOfUnresolvedInlineTable"):
        session.conf.set(name, "false")
    machine: Any = session._jvm
    sessions = machine.org.apache.spark.sql.classic.SparkSession
    sessions.setActiveSession(session._jsparkSession)
    yield session
    sessions.setActiveSession(spark._jsparkSession)


def answer(session: SparkSession, query: str) -> str | None:
    """Return what a policy would answer, None where it is refused; Spark's own errors answer nothing."""
    try:
        refuse_parsed(session, query, ())
        asked = session.sql(query)
        refuse_analysed(session, asked)
        return " ".join(str(row[0]) for row in asked.collect())
    except Refused:
        return None
    except (PySparkException, Py4JError):
        return ""


def expressions() -> Iterator[str]:
    """Yield each way of writing with one word, and each word with one way."""
    for number, (text, cast) in enumerate(product(TEXTS, CASTS)):
        word = WORDS[number % len(WORDS)] if "hex" not in text else "today"
        yield cast.replace("{}", text.replace("{}", word).replace("{hex}", word.encode().hex()))
    for word, cast in product(WORDS, CASTS[:4]):
        yield cast.replace("{}", f"concat('{word[:2]}', '{word[2:]}')")
    for word, literal in product(WORDS, LITERALS):
        first, rest = word.encode().hex()[:2], word[1:]
        yield literal.replace("{first}", first).replace("{rest}", rest).replace("{}", word)


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.deep), 17], ids=["all", "each 17th"])
def test_no_text_that_spark_takes_for_the_clock_gets_an_answer(session: SparkSession, step: int) -> None:
    (days,) = session.sql(
        "SELECT transform(array(-2, -1, 0, 1, 2), x -> cast(date_add(current_date(), x) AS string))"
    ).collect()[0]
    queries = [
        PLACES[number % len(PLACES)].replace("{}", expression) for number, expression in enumerate(expressions())
    ]
    answers = {query: answer(session, query) for query in queries[::step]}
    assert [query for query, said in answers.items() if said and any(day in said for day in days)] == []
    assert sum(said is None for said in answers.values()) > len(answers) // 3


@pytest.mark.parametrize("expression", FINE)
def test_dates_that_are_written_out_are_taken(session: SparkSession, expression: str) -> None:
    assert answer(session, PLACES[0].replace("{}", expression))
