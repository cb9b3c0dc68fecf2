"""Starts the Spark session of a job, with the settings that all jobs rely on; tells its errors; names files to it.

Nothing else makes a session, and importing this module does not load Spark.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from reconciler.balance.files.folders import UNWRITTEN
from reconciler.balance.spark.java import require_java, signals_end_java, without_the_expected_line
from reconciler.model.problem import ReconcilerError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL = "local[*]"
NO_SPARK = "KR020"
NOT_STARTED = "KR023"
CONNECT = "KR024"
_LOOPBACK = "127.0.0.1"
_QUIET = Path(__file__).with_name("log4j2.properties").absolute()
# spark-submit, and an environment that names a Spark of its own, bring their master with them.
_MASTER_IS_GIVEN_BY = ("PYSPARK_GATEWAY_PORT", "SPARK_HOME", "SPARK_CONF_DIR", "MASTER")


@contextmanager
def spark_session(
    master: str | None = None, *, driver_memory: str | None = None, has_progress: bool = False
) -> Iterator["SparkSession"]:
    """Yield a session; end it afterwards, unless it was there before.

    Without a `master` it is the one that spark-submit or the environment's Spark names, else local[*]. `has_progress`:
    Spark draws its bar on stderr. What SIGINT and SIGTERM raise ends Spark at once. Raises ReconcilerError, in one
    sentence, where Spark or Java is missing or too old, or Spark does not start.
    """
    require_spark()
    refuse_connect(master, os.environ)
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        yield SparkSession.builder.getOrCreate()
        return
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        require_java(os.environ)
    with signals_end_java() as signals:
        session = _started(settings(master, os.environ, driver_memory=driver_memory, has_progress=has_progress))
        signals.take()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            if not signals.has_ended_java:
                session.stop()


def require_spark() -> None:
    """Raise ReconcilerError, which says how to get them, where Spark or what it exchanges tables with is missing."""
    # Without py4j it is the client of Spark Connect alone.
    if any(find_spec(name) is None for name in ("pyspark", "py4j", "pyarrow")):
        raise ReconcilerError(
            "this verb runs on Spark, which is not installed: pip install 'kafka-reconciler[spark]'", code=NO_SPARK
        )


def refuse_connect(master: str | None, environ: Mapping[str, str]) -> None:
    """Raise ReconcilerError where a Spark Connect server is named: what jobs keep and measure is out of its reach."""
    is_named = (master or "").startswith("sc:")
    if is_named or environ.get("SPARK_REMOTE"):
        named, remedy = ("--master", "name") if is_named else ("SPARK_REMOTE", "unset it, and name")
        raise ReconcilerError(
            f"{named} names a Spark Connect server, on which these jobs cannot run: {remedy} a master, such as "
            "spark://HOST:7077, or none for this machine",
            code=CONNECT,
        )


def settings(
    master: str | None,
    environ: Mapping[str, str],
    *,
    driver_memory: str | None = None,
    has_progress: bool = False,
) -> dict[str, str]:
    """Return Spark's settings; `spark.master` is left out where something outside has set it.

    Loopback addresses are for local masters only: the executors of a cluster have to reach the driver.
    """
    master = master or (None if _is_master_given(environ) else LOCAL)
    chosen = {
        "spark.app.name": "reconciler",
        # Whatever SPARK_API_MODE says, and whichever packages are beside it: no Connect server.
        "spark.api.mode": "classic",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(has_progress).lower(),
        # For its pages, which are off, Spark would write a plan out as text each time that a part of it has run.
        "spark.sql.maxPlanStringLength": "0",
        "spark.sql.debug.maxToStringFields": "0",
        # Thousands of small files, a round of `collect` each, are listed here and not by a job of their own.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
        # What is kept between two results gets as many partitions as it needs, not 200.
        "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
        # Samples are sorted once by partition and time; everything after it aggregates in that order.
        "spark.sql.execution.replaceHashWithSortAgg": "true",
        # The fast table in which sums are kept holds 65,536 of them by default; a thousand topics and 200 brokers in an
        # hour of minutes are more.
        "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
    }
    if driver_memory:
        chosen["spark.driver.memory"] = driver_memory
    if master:
        chosen["spark.master"] = master
    if master and master.startswith("local"):
        chosen |= {
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_QUIET.as_uri()}",
        }
    return chosen


def _is_master_given(environ: Mapping[str, str]) -> bool:
    return any(environ.get(name) for name in _MASTER_IS_GIVEN_BY) or "--master" in environ.get(
        "PYSPARK_SUBMIT_ARGS", ""
    )


def _started(chosen: Mapping[str, str]) -> "SparkSession":
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        with without_the_expected_line(), _names_in_utf8():
            return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        where = chosen.get("spark.master", "the given master")
        reason = str(error).partition("\n")[0]
        raise ReconcilerError(f"Spark did not start on {where}: {reason}", code=NOT_STARTED) from error


@contextmanager
def _names_in_utf8() -> Iterator[None]:
    """Let the Java that is started name every file: under LC_ALL=C it knows ASCII alone, where Python reads UTF-8."""
    was = os.environ.get("LC_ALL")
    if was in {"C", "POSIX"}:
        os.environ["LC_ALL"] = "C.UTF-8"
    try:
        yield
    finally:
        if was:
            os.environ["LC_ALL"] = was


FAILED = "KR252"
DAMAGED_FILE = "KR253"
_FILE = re.compile(r"(?:file:/*|file )(/[^\s,;]+\.(?:parquet|pq|orc|avro|csv|jsonl?|ndjson)(?:\.gz|\.zst)?)")
_DAMAGED = ("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "CANNOT_READ_FILE_FOOTER")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn what Spark raises into a ReconcilerError; the stack of the JVM is its cause, for -v."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise _sentence(str(error)) from error


def _sentence(text: str) -> ReconcilerError:
    named = _FILE.search(text)
    if named and any(code in text for code in _DAMAGED):
        path = unquote("/" + named[1].lstrip("/"))
        return ReconcilerError(f"{path}: is damaged or cut short, so its samples cannot be read", code=DAMAGED_FILE)
    first = text.strip().partition("\n")[0]
    return ReconcilerError(f"Spark could not do it: {first}", code=FAILED)


def as_hadoop(path: Path | str) -> str:
    """Return an absolute path of this machine as Spark takes it: by its very name, whatever stands in it.

    Hadoop decodes nothing in a path, so the `%20` of a file URI is taken for itself; without a scheme it looks in the
    cluster's own file system. In what it reads, brackets and stars are patterns, which `files.sample_files` keeps out.
    """
    return f"file://{path}"


def read_parquet(spark: "SparkSession", folder: str) -> "DataFrame":
    """Return the table in that folder."""
    # Turned off for several paths at once, Spark reads each of them as often as there are.
    return spark.read.option("__globPaths__", value=False).parquet(as_hadoop(folder))


def write_parquet(table: "DataFrame", folder: Path) -> None:
    """Write the table into that folder; raise ReconcilerError where it went to another machine's disk."""
    table.write.parquet(as_hadoop(folder), mode="append", compression="zstd")
    if not any(folder.glob("*.parquet")):
        message = "Spark's workers wrote the result to disks of their own, and nothing arrived on this machine's"
        raise ReconcilerError(f"{message}: let --out name a folder that all of them share", code=UNWRITTEN)
