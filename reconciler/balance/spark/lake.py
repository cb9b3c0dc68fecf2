"""Brings a lake up to date: takes new files, and makes the days that these change. Reads the last days of a lake.

    ledger -> bronze, of new files -> ledger -> silver, gold, of days that were made from other samples -> ledger

Each step ends with a whole result, from which the next run sees what is left to do. After a run that died anywhere,
the next one takes and makes what is missing, and ends where an undisturbed run ends.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import TEXT, arrow_table
from reconciler.balance.files.folders import LOADS_REPORT
from reconciler.balance.files.ledger import (
    IN_USE,
    LEDGER,
    OTHER_BUCKET,
    Day,
    Ledger,
    TakenFile,
    lake_lock,
    ledger_of,
    refuse_no_lake,
)
from reconciler.balance.model.lake_report import LakeReport, MadeDay
from reconciler.balance.model.load_report import ClusterSamples, LoadReport, Rule
from reconciler.balance.spark.bronze import bronze_of, take
from reconciler.balance.spark.gold import (
    LOADS_OF_DAY,
    REPORT,
    days_without_loads,
    defects_of,
    loads_of_rows,
    make_gold,
)
from reconciler.balance.spark.loads_job import cluster_samples
from reconciler.balance.spark.new_files import Find, new_files, sources_of
from reconciler.balance.spark.normalise import MARKED
from reconciler.balance.spark.session import as_hadoop, spark_errors
from reconciler.balance.spark.silver import SILVER, empty_day, read_days, silver_of, write_days
from reconciler.balance.spark.spellings import in_spark
from reconciler.balance.spark.tables import replaced
from reconciler.balance.spark.uri_results import by_name
from reconciler.files.places import is_uri
from reconciler.model.problem import ReconcilerError

NO_DAYS = "KR298"
_DAY_SECONDS = 86_400
_SLOTS = ("a", "b")
_NOT_THERE = "PATH_NOT_FOUND"


@dataclass(frozen=True, slots=True)
class LakeTask:
    """Which lake, and what to bring into it."""

    place: str
    """The absolute path of a folder, or the URI of one."""
    now: datetime
    """Samples that are later than this when they are taken are from the future, and never count."""
    bucket_seconds: int | None = None
    """None: as the lake has it, a minute in a new one."""
    cluster: str | None = None
    """The cluster of samples that name none."""
    find: Find | None = None
    """None: nothing is taken."""


@dataclass(frozen=True, slots=True)
class Window:
    """The last days of a lake."""

    place: str
    days: Sequence[Day]
    bucket_seconds: int

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return the rows of silver of these days that count."""
        return read_days(spark, _table(self.place, "silver"), self.days, SILVER).where(F.col("samples") > 0)

    def defects(self, spark: SparkSession) -> Mapping[str | None, Mapping[Rule, int]]:
        """Return how many samples of these days broke each rule, by cluster."""
        return defects_of(spark, _table(self.place, "gold/report"), self.days)


@dataclass(frozen=True, slots=True)
class DaysOfLake:
    """Which of the last days of a lake to read."""

    lake: LakeTask
    count: int
    only: str | None = None
    """The cluster whose days are read; None: all."""

    def window(self, spark: SparkSession) -> Window:
        """Make the days that an earlier run left undone, and return the window."""
        ledger, _ = update(spark, self.lake)
        return window_of(ledger, self.lake.place, self.only, self.count)


def update(spark: SparkSession, task: LakeTask) -> tuple[Ledger, LakeReport]:
    """Bring the lake up to date; return its ledger, and what was done.

    Raises ReconcilerError where it is no lake, another run is at work on it, or its buckets are of another length.
    """
    with spark_errors(), _held(task):
        ledger = _begun(spark, task)
        ledger, taken, notes = _with_new_files(spark, task, ledger)
        ledger, made = _with_all_days(spark, task.place, ledger)
    days = tuple(MadeDay(*day) for day in made)
    return ledger, LakeReport(ledger.bucket_seconds or 0, taken, days, len(ledger.made), notes)


def window_of(ledger: Ledger, place: str, cluster: str | None, days: int) -> Window:
    """Return the last days of that cluster, or of all: so many, up to the last one there is. KR298 where none is."""
    found = [day for day in ledger.made if day.date is not None and cluster in {None, day.cluster}]
    if not found:
        of = "" if cluster is None else f" of {cluster}"
        message = f"the lake has no day{of}, so there are no loads: take samples with loads --samples"
        raise ReconcilerError(message, code=NO_DAYS)
    last = max(day.date or "" for day in found)
    first = (date.fromisoformat(last) - timedelta(days=days - 1)).isoformat()
    chosen = sorted((day for day in found if (day.date or "") >= first), key=lambda day: day.order)
    return Window(place, chosen, ledger.bucket_seconds or 0)


def loads_of_window(
    spark: SparkSession, window: Window, out: str, report_text: Callable[[LoadReport], str], notes: Sequence[str] = ()
) -> LoadReport:
    """Write the loads over these days, and beside them the report, as `loads_job.run_loads` does; return it."""
    with spark_errors(), replaced(spark, out, LOADS_REPORT) as result_at:
        result = loads_of_rows(window.rows(spark), window.bucket_seconds)
        try:
            result_at.write(result.loads)
            found = [cluster_samples(row) for row in result.found.collect()]
        finally:
            for table in result.kept:
                table.unpersist()
        defects = window.defects(spark)
        none_counts = [ClusterSamples(name) for name in defects.keys() - {one.cluster for one in found}]
        in_order = sorted((*found, *none_counts), key=lambda one: (one.cluster is not None, one.cluster or ""))
        clusters = tuple(_with_defects(one, defects.get(one.cluster, {})) for one in in_order)
        report = LoadReport(window.bucket_seconds, clusters, tuple(notes))
        if not report.partitions:
            raise ReconcilerError("no sample of these days counts, so there are no loads to write", code=NO_DAYS)
        result_at.tell(LOADS_REPORT, report_text(report))
    return report


def _with_defects(one: ClusterSamples, marked: Mapping[Rule, int]) -> ClusterSamples:
    return replace(one, defects={**one.defects, **{rule: marked.get(rule, 0) for rule in MARKED}})


def _held(task: LakeTask) -> AbstractContextManager[None]:
    """Hold a lake of this machine; of another file system only the ledger tells of other runs (`_written`)."""
    if is_uri(task.place):
        return nullcontext()
    refuse_no_lake(Path(task.place))
    if task.find is None and not (Path(task.place) / LEDGER).is_dir():
        raise _no_lake(task.place)
    return lake_lock(Path(task.place))


def _no_lake(place: str) -> ReconcilerError:
    return ReconcilerError(f"{place}: there is no lake yet: take samples with loads --samples", code=NO_DAYS)


def _begun(spark: SparkSession, task: LakeTask) -> Ledger:
    """Return the lake's ledger; that of a new one is written first."""
    ledger = read_ledger(spark, task.place)
    asked = task.bucket_seconds
    if ledger.bucket_seconds is None:
        if task.find is None:
            raise _no_lake(task.place)
        return _written(spark, task.place, replace(ledger, bucket_seconds=_whole_day(asked or 60)))
    if asked not in {None, ledger.bucket_seconds}:
        message = f"{task.place}: the lake has time buckets of {ledger.bucket_seconds} s, not of {asked} s"
        raise ReconcilerError(f"{message}: leave --bucket out, or name a new lake", code=OTHER_BUCKET)
    return ledger


def _whole_day(bucket_seconds: int) -> int:
    if _DAY_SECONDS % bucket_seconds:
        message = f"a day is no whole number of time buckets of {bucket_seconds} s, as a lake wants it"
        raise ReconcilerError(f"{message}: name a --bucket such as 60s, 5m or 1h", code=OTHER_BUCKET)
    return bucket_seconds


def _with_new_files(spark: SparkSession, task: LakeTask, ledger: Ledger) -> tuple[Ledger, int, tuple[str, ...]]:
    """Take the files that are new or have changed."""
    if task.find is None:
        return ledger, 0, ()
    new = new_files(spark, task.find, ledger, task.cluster)
    if not new.files:
        return ledger, 0, new.notes
    number = _next_taking(task.place, ledger)
    found = take(spark, _table(task.place, "bronze"), number, [*new.files], cluster=task.cluster, now=task.now)
    sources = sources_of(new.files, found)
    taken = []
    for file, version in new.files.items():
        source = sources[file]
        days = found.get(source, {})
        in_order = sorted(days, key=lambda day: day.order)
        evenings = tuple(day for day in in_order if days[day] and day.date is not None)
        taken.append(TakenFile(file.path, version, number, source, tuple(in_order), evenings))
    return _written(spark, task.place, ledger.with_files(taken)), len(taken), new.notes


def _with_all_days(spark: SparkSession, place: str, ledger: Ledger) -> tuple[Ledger, tuple[Day, ...]]:
    """Make every day anew that was made from other samples than it has now."""
    pending, gone, bucket_seconds = ledger.pending, ledger.gone, ledger.bucket_seconds
    if not (pending or gone) or bucket_seconds is None:
        return ledger, ()
    silver, loads, report = (_table(place, name) for name in ("silver", "gold/loads", "gold/report"))
    schemas = {silver: SILVER, loads: LOADS_OF_DAY, report: REPORT}
    if pending:
        samples = bronze_of(spark, _table(place, "bronze"), ledger, pending)
        write_days(silver_of(samples, pending, bucket_seconds), silver, ("topic", "partition", "ts"))
        make_gold(read_days(spark, silver, pending, SILVER), loads, report, bucket_seconds)
        for day in days_without_loads(spark, report, pending):
            empty_day(spark, loads, day, LOADS_OF_DAY)
    for day in gone:
        for table, schema in schemas.items():
            empty_day(spark, table, day, schema)
    return _written(spark, place, ledger.with_all_made(), (*pending, *gone)), pending


def read_ledger(spark: SparkSession, place: str) -> Ledger:
    """Return the last whole ledger of the lake; an empty one where there is none."""
    found = [ledger_of(_text(spark, f"{_table(place, LEDGER)}/{slot}")) for slot in _SLOTS]
    return max((each for each in found if each is not None), key=lambda each: each.number, default=Ledger())


def _next_taking(place: str, ledger: Ledger) -> int:
    """Return the number of a new taking: at a URI one that no run beside this one has, which would write over it."""
    number = ledger.takings + 1
    return number * 1000 + uuid4().int % 1000 if is_uri(place) else number


def _written(spark: SparkSession, place: str, ledger: Ledger, days: Collection[Day] = ()) -> Ledger:
    """Write the ledger in place of the one before the last, so that one is whole whenever a run ends.

    At a URI no lock keeps a second run away. Where one has written meanwhile, this run gives up; `days` are those that
    it has written over, maybe after the other one.
    """
    new = replace(ledger, number=ledger.number + 1, mark=uuid4().hex[:8] if is_uri(place) else "")
    if is_uri(place):
        _refuse_other_run(spark, place, ledger, days)
    _put(spark, place, new)
    if is_uri(place):
        _refuse_other_run(spark, place, new, days)
    return new


def _refuse_other_run(spark: SparkSession, place: str, ours: Ledger, days: Collection[Day]) -> None:
    """Raise ReconcilerError where the ledger there is not ours; then days that both may have made are due again."""
    there = read_ledger(spark, place)
    if (there.number, there.mark) != (ours.number, ours.mark):
        if days:
            _put(spark, place, replace(there.without_made(days), number=there.number + 1, mark=uuid4().hex[:8]))
        raise ReconcilerError(f"{place}: another run has worked on this lake meanwhile; start again", code=IN_USE)


def _put(spark: SparkSession, place: str, ledger: Ledger) -> None:
    folder = f"{_table(place, LEDGER)}/{_SLOTS[ledger.number % len(_SLOTS)]}"
    line = in_spark(spark, arrow_table({"value": TEXT}, [(ledger.text(),)]))
    line.coalesce(1).write.mode("overwrite").text(folder, compression="gzip")


def _text(spark: SparkSession, folder: str) -> str:
    try:
        return "".join(row.value for row in spark.read.text(by_name(folder), wholetext=True).collect())
    except PySparkException as error:
        if _NOT_THERE in str(error):
            return ""
        raise


def _table(place: str, name: str) -> str:
    """Return the folder of a table as Spark takes it."""
    folder = f"{place.rstrip('/')}/{name}"
    return folder if is_uri(place) else as_hadoop(folder)
