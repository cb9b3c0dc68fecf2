"""Says what a session is started with, what holds for our queries in any session, and what --conf may add.

Importing this module does not load Spark.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.balance.spark.work import Work
from reconciler.model.logins import logins_in
from reconciler.model.problem import InvalidInput, Problem

LOCAL = "local[*]"
OURS = "KR291"
_LOOPBACK = "127.0.0.1"
_BEFORE = "spark.driver.defaultJavaOptions"  # Spark puts them before the others
_QUIET = Path(__file__).with_name("log4j2.properties").absolute()
_MASTER, _DRIVER_MEMORY, _OPTIONS = "spark.master", "spark.driver.memory", "spark.driver.extraJavaOptions"
# spark-submit, and an environment that names a Spark of its own, bring their master with them.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_MASTER_IS_GIVEN_BY = (_SUBMITTED, "SPARK_HOME", "SPARK_CONF_DIR", "MASTER")
# As Spark's own redaction has it; and keys of accounts, which no word marks.
_SECRET = re.compile(r"secret|passw|token|credential|signature|sas[.]|key([.]|$)", re.IGNORECASE)

RESULTS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    # Times in what we write: Spark 4.0 would write INT96.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A file that cannot be read is an error, never a gap.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""What figures depend on: it holds for our queries wherever they run, and nobody can set it."""

QUERIES = {
    # Thousands of small files, a round of `collect` each, are listed here and not by a job of their own.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    # A table of more than a megabyte goes to the tasks as Arrow; Java would write each of its rows as an object.
    "spark.sql.execution.arrow.localRelationThreshold": "1m",
    # What is kept between two results gets as many partitions as it needs, not 200.
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": "true",
    # Samples are sorted once by partition and time; everything after it aggregates in that order.
    "spark.sql.execution.replaceHashWithSortAgg": "true",
    # The fast table in which sums are kept holds 65,536 of them by default; a thousand topics and 200 brokers in an
    # hour of minutes are more.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
    # What is sent to every executor is small and asked for by us; on a busy machine it may be computed for more than
    # the five minutes after which Spark gives a query up.
    "spark.sql.broadcastTimeout": "-1",
}
"""What makes our queries cheaper; --conf may say otherwise."""

PAGES = {
    "spark.ui.enabled": "false",
    # For its pages Spark would write a plan out as text each time that a part of it has run.
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.debug.maxToStringFields": "0",
}
"""What is left out in a Spark that nobody looks at."""


_JAVA = ("-XX:CompileThresholdScaling=4", "-XX:+UseParallelGC")
"""Our jobs are short. As Java comes, half of their CPU goes into compiling code that soon runs no more, and into a
garbage collector that keeps pauses short."""
_COLLECTOR = re.compile(r"-XX:[+-]Use\w+GC\b")
_JAVA_READS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Which Spark a job runs on, and how."""

    master: str | None = None
    """Or the sc:// URL of a Spark Connect server; None: spark-submit's, else this machine."""
    driver_memory: str | None = None
    """As Spark writes it, such as 4g; None: Spark's own default."""
    has_progress: bool = False
    """Whether Spark draws its bar on stderr."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """More settings of Spark."""
    on_work: Callable[[Work], None] | None = None
    """Is told what jobs cost that ended well, where that is known."""
    on_warning: Callable[[Problem], None] | None = None
    """Is told what is asked for in vain."""


def is_submitted(environ: Mapping[str, str]) -> bool:
    """Return whether spark-submit has started this program, in a Java that is there already."""
    return _SUBMITTED in environ


def settings(choice: SparkChoice, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a session is started with; `spark.master` is left out where something outside has set it.

    Loopback addresses are for local masters only: the executors of a cluster have to reach the driver.
    """
    added = dict(choice.conf)
    master = choice.master or added.get(_MASTER) or (None if _is_master_given(environ) else LOCAL)
    chosen = {
        "spark.app.name": "reconciler",
        # Whatever SPARK_API_MODE says, and whichever packages are beside it: no Connect server.
        "spark.api.mode": "classic",
        "spark.ui.showConsoleProgress": str(choice.has_progress).lower(),
        **PAGES,
        **QUERIES,
    }
    if choice.driver_memory:
        chosen[_DRIVER_MEMORY] = choice.driver_memory
    if master and master.startswith("local"):
        chosen |= {
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            _OPTIONS: " ".join(_java_options(added.pop(_OPTIONS, ""), added.get(_BEFORE, ""), environ)),
        }
    return {**chosen, **added, **RESULTS, **({_MASTER: master} if master else {})}


def _java_options(asked: str, before: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the options of a local Java; what is asked for comes last, so that it counts."""
    yield f"-Dlog4j2.configurationFile={_QUIET.as_uri()}"
    # Java does not start where two collectors are named. A Spark that was installed apart may name one in its files.
    told = (asked, before, *(environ.get(name, "") for name in _JAVA_READS))
    is_chosen = _is_master_given(environ) or any(map(_COLLECTOR.search, told))
    yield from (option for option in _JAVA if not (is_chosen and _COLLECTOR.match(option)))
    if asked:
        yield asked


def _is_master_given(environ: Mapping[str, str]) -> bool:
    return any(environ.get(name) for name in _MASTER_IS_GIVEN_BY) or "--master" in environ.get(
        "PYSPARK_SUBMIT_ARGS", ""
    )


def conf_of(written: Iterable[str]) -> dict[str, str]:
    """Return the settings that are written KEY=VALUE; the last of a key counts.

    Raises InvalidInput for those that figures depend on. No value is ever told: it may be a secret.
    """
    found = dict(each.split("=", 1) for each in written)
    problems = [
        Problem(OURS, f"--conf {key}: figures depend on it, so it is always {RESULTS[key]}: leave it out")
        for key in RESULTS
        if key in found
    ]
    if problems:
        raise InvalidInput(problems)
    return found


def shown_to_all(chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the settings without secrets: for a command line, which every user of a machine can read."""
    return {key: value for key, value in chosen.items() if not _SECRET.search(key) and not logins_in(value)}


def secrets_of(written: Iterable[str]) -> tuple[str, ...]:
    """Return the values that must not be shown, by what their keys say."""
    pairs = (each.split("=", 1) for each in written)
    return tuple(value for key, value in pairs if _SECRET.search(key) and value)
