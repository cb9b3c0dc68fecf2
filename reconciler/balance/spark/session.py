"""Gives a job its Spark session, with the settings that all jobs rely on; tells its errors; names files to it.

Where a session is there already, as in a notebook, the job has a copy of it: what its owner has set is left alone. Else
one is started, or opened on a Spark Connect server, and ends with the job. Nothing else makes a session, and importing
this module does not load Spark.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from reconciler.balance.files.folders import UNWRITTEN
from reconciler.balance.spark import connect
from reconciler.balance.spark.java import require_java, signals_end_java, without_the_expected_line
from reconciler.balance.spark.settings import PAGES, QUERIES, RESULTS, SparkChoice, is_submitted, settings, shown_to_all
from reconciler.balance.spark.work import Counted, counted_work
from reconciler.files.paths import expanded
from reconciler.model.problem import Problem, ReconcilerError, Severity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NO_SPARK = "KR020"
NOT_STARTED = "KR023"
FIXED, IN_VAIN = "KR292", "KR289"


@contextmanager
def spark_session(choice: SparkChoice) -> Iterator["SparkSession"]:
    """Yield a session; end it afterwards, unless it was there before.

    What SIGINT and SIGTERM raise ends Spark at once. Raises ReconcilerError, in one sentence, where Spark or Java is
    missing or too old, or Spark does not start.
    """
    require_spark(choice)
    with _session(choice) as session:
        is_told = choice.on_work is not None and not connect.is_connected()
        with counted_work(session) if is_told else nullcontext(Counted()) as counted:
            yield session
        if choice.on_work is not None and counted.work is not None:
            choice.on_work(counted.work)


@contextmanager
def _session(choice: SparkChoice) -> Iterator["SparkSession"]:
    running = _of_running_spark(choice)
    if choice.driver_memory and choice.on_warning and (running is not None or is_submitted(os.environ)):
        message = f"--driver-memory {choice.driver_memory} does nothing: Spark's driver runs already"
        advice = "give it memory where it is started"
        choice.on_warning(Problem(IN_VAIN, f"{message}; {advice}", severity=Severity.WARNING))
    if running is None:
        with _of_this_program(choice) as session:
            yield session
        return
    with running as session:
        _set(session, {**QUERIES, **choice.conf, **RESULTS})
        yield session


def _of_running_spark(choice: SparkChoice) -> "AbstractContextManager[SparkSession] | None":
    """Return the session that this process or a Spark Connect server gives; None where Spark has to be started."""
    if (there := connect.existing()) is not None:
        return connect.lent(there)
    if (present := _existing()) is not None:
        return _copy_of(present)
    server = connect.server_of(choice.master, os.environ)
    return None if server is None else connect.connected(server)


@contextmanager
def _of_this_program(choice: SparkChoice) -> Iterator["SparkSession"]:
    if not is_submitted(os.environ):
        require_java(os.environ)
    with connect.no_server() as local, signals_end_java() as signals:
        chosen = settings(replace(choice, master=choice.master or local), os.environ)
        submitted = _submitted()
        session = _started({key: value for key, value in chosen.items() if key in choice.conf or key not in submitted})
        signals.take()
        session.sparkContext.setLogLevel("ERROR")
        try:
            yield session
        finally:
            if not signals.has_ended_java:
                session.stop()


def _submitted() -> frozenset[str]:
    """Return those of our settings that spark-submit was given a value for: that value counts."""
    if not is_submitted(os.environ):
        return frozenset()
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # noqa: SLF001 - its settings are those of the Java that is there
    return frozenset(key for key, _ in SparkConf().getAll() if key in {*QUERIES, *PAGES})


def _existing() -> "SparkSession | None":
    """Return the session that this process works with already, in whatever thread; None where there is none."""
    if find_spec("py4j") is None:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is None:  # noqa: SLF001 - to look without a start
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


@contextmanager
def _copy_of(session: "SparkSession") -> Iterator["SparkSession"]:
    """Yield a copy of the session, with its catalogues, views and settings, which then go each their own way.

    It is the active one meanwhile: expressions take their settings from that.
    """
    was = type(session)._activeSession  # noqa: SLF001 - as `newSession`, which would copy nothing
    java = session._jsparkSession  # noqa: SLF001
    active: Any = reduce(getattr, java.getClass().getName().split("."), session._jvm)  # noqa: SLF001
    before = active.getActiveSession()
    own = type(session)(session.sparkContext, java.cloneSession())
    active.setActiveSession(own._jsparkSession)  # noqa: SLF001
    try:
        yield own
    finally:
        type(session)._activeSession = was  # noqa: SLF001
        if before.isDefined():
            active.setActiveSession(before.get())
        else:
            active.clearActiveSession()


def _set(session: "SparkSession", ours: Mapping[str, str]) -> None:
    from pyspark.errors import PySparkException

    for key, value in ours.items():
        try:
            session.conf.set(key, value)
        except PySparkException as error:
            if key in QUERIES:
                continue
            message = f"{key} cannot be set in a Spark that is running already: set it where that is started"
            raise ReconcilerError(message, code=FIXED) from error


def require_spark(choice: SparkChoice) -> None:
    """Raise ReconcilerError, which says how to get them, where Spark or what it exchanges tables with is missing.

    For a Spark Connect server its client is enough, which has no py4j.
    """
    has_server = connect.server_of(choice.master, os.environ) is not None
    needed = ("pyspark", "pyarrow") if has_server else ("pyspark", "py4j", "pyarrow")
    if any(find_spec(name) is None for name in needed):
        raise ReconcilerError(
            "this verb runs on Spark, which is not installed: pip install 'WHEEL[spark]'", code=NO_SPARK
        )


def _started(chosen: Mapping[str, str]) -> "SparkSession":
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        with without_the_expected_line(), _names_in_utf8():
            # Java starts with settings on its command line; it gets the others once it is there.
            conf = SparkConf(loadDefaults=False).setAll(sorted(shown_to_all(chosen).items()))
            SparkContext._ensure_initialized(conf=conf)  # noqa: SLF001 - as the context does, with all settings
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
UNSEEN = "KR293"
NO_ZSTD = "KR448"
_NO_ZSTD = "native zStandard library not available"
WITHOUT_ZSTD = (
    "this Spark cannot read .zst files: it takes Hadoop's native library for them, which is not there; compress the "
    "samples as .gz, or run the job on Spark 4.1 or later"
)
_UNSEEN = re.compile(r"Path does not exist: file:(/.+?)[.]?(?: SQLSTATE.*)?$", re.MULTILINE)
_FILE = re.compile(r"(?:file:/*|file )(/[^\s,;]+\.(?:parquet|pq|csv|jsonl?|ndjson)(?:\.gz|\.zst)?)")
_DAMAGED = ("FAILED_READ_FILE", "MALFORMED_RECORD_IN_PARSING", "CANNOT_READ_FILE_FOOTER")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn what Spark raises into a ReconcilerError; the stack of the JVM is its cause, for -v."""
    try:
        yield
    except raised_by_spark() as error:
        raise _sentence(str(error)) from error


def raised_by_spark() -> tuple[type[Exception], ...]:
    """Return the classes of what Spark raises."""
    from pyspark.errors import PySparkException

    known: list[type[Exception]] = [PySparkException]
    with suppress(ModuleNotFoundError):  # the client of Spark Connect alone has no py4j
        from py4j.protocol import Py4JError

        known.append(Py4JError)
    return tuple(known)


def _sentence(text: str) -> ReconcilerError:
    named = _FILE.search(text)
    if named and any(code in text for code in _DAMAGED):
        path = unquote("/" + named[1].lstrip("/"))
        return ReconcilerError(f"{path}: is damaged or cut short, so its samples cannot be read", code=DAMAGED_FILE)
    if _NO_ZSTD in text:
        return ReconcilerError(WITHOUT_ZSTD, code=NO_ZSTD)
    if (unseen := _UNSEEN.search(text)) and connect.is_connected():
        path = unquote("/" + unseen[1].lstrip("/"))
        message = f"{path}: the Spark Connect server does not see it"
        return ReconcilerError(f"{message}: name a place that it sees too, such as a shared folder", code=UNSEEN)
    first = text.strip().partition("\n")[0]
    return ReconcilerError(f"Spark could not do it: {first}", code=FAILED)


def as_hadoop(path: Path | str) -> str:
    """Return an absolute path of this machine, or a URI, as Spark takes it: by its very name, whatever stands in it.

    Hadoop decodes nothing in a path, so the `%20` of a file URI is taken for itself; without a scheme it looks in the
    cluster's own file system. In what it reads, brackets and stars are patterns, which `files.sample_files` keeps out.
    """
    return f"file://{path}" if str(path).startswith("/") else str(path)


def write_parquet(table: "DataFrame", folder: Path) -> None:
    """Write the table into that folder; raise ReconcilerError where it went to another machine's disk."""
    table.write.parquet(as_hadoop(folder), mode="append", compression="zstd")
    if not any(expanded(folder, ["*.parquet"])):
        message = "Spark's workers wrote the result to disks of their own, and nothing arrived on this machine's"
        raise ReconcilerError(f"{message}: let --out name a folder that all of them share", code=UNWRITTEN)
