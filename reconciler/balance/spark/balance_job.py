"""Runs the job of `balance`: clusters, and samples or loads, in; what was found of each cluster out.

Every figure of "before" and of "after" comes from the same functions, on another assignment.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import TEXT, YES_NO, ArrowTable, arrow_table
from reconciler.balance.files.carrier_table import with_carriers
from reconciler.balance.files.folders import TABLES_MARK
from reconciler.balance.model.balance_report import Headroom
from reconciler.balance.spark.buckets import (
    alone,
    beside_others,
    bucketed,
    carried,
    hours_of_week,
    of_carried,
    statistics,
    sums,
    with_fills,
    with_growth,
)
from reconciler.balance.spark.collected import Found, collected
from reconciler.balance.spark.figures import figures, rates_of_loads, with_days_until_full
from reconciler.balance.spark.forecast import DAYS_UNTIL_FULL, SOON_DAYS, by_growth_alone, disk_forecasts
from reconciler.balance.spark.growth import GROWTH, slopes_of, whole_growth, with_bytes_grown
from reconciler.balance.spark.holes import averages_of, fills_of, series_of, with_known
from reconciler.balance.spark.loads_job import SampleTask
from reconciler.balance.spark.normalise import cleaned, normalised
from reconciler.balance.spark.places import looked_up
from reconciler.balance.spark.replica_load import (
    BEFORE,
    KEYS,
    NO_BROKER,
    NO_TEXT,
    PARTITION,
    counts,
    found_sizes,
    known_carriers,
    moved,
    replicas,
    with_sizes,
)
from reconciler.balance.spark.schemas import LOADS
from reconciler.balance.spark.session import spark_errors
from reconciler.balance.spark.skew import skew
from reconciler.balance.spark.soundness import SPANS, Told, filled, told
from reconciler.balance.spark.sources import read_samples
from reconciler.balance.spark.spellings import settled
from reconciler.balance.spark.tables import read_table, replaced
from reconciler.files.loads import AMOUNTS, NO_COLUMNS, LoadsUnreadable

FIGURES, EVENNESS = "figures", "evenness"
_WAYS = ("bytes_in", "bytes_out")
_SKEW_KEYS = ("side", "cluster", "measure", "statistic")


@dataclass(frozen=True, slots=True)
class BalanceTask:
    """What to compare: the tables of `files.assignment_table`, and what was measured."""

    partitions: ArrowTable
    places: ArrowTable
    brokers: ArrowTable
    measured: SampleTask | str
    """Samples, or the place of loads."""
    retention: ArrowTable | None = None
    """What bounds the topics (`files.retention_table`); None: growth is taken to have no bound."""
    out: str | None = None
    """The place that the tables are written to, if any."""
    has_plan: bool = False
    """Whether there is a side `after`."""
    has_all_sizes: bool = True
    """Whether the size of every replica is known: otherwise samples are read again for their last sizes."""
    headroom: Headroom | None = None
    """What hours of the week are told by; None: they are not."""


@dataclass(frozen=True, slots=True)
class Assignments:
    """Who stands where, on each side of each cluster: tables as `files.assignment_table` makes them."""

    partitions: DataFrame
    """As `files.carrier_table` makes them of these, and what their carriers are."""
    carriers: DataFrame
    places: DataFrame
    brokers: DataFrame
    has_plan: bool
    partition_counts: Mapping[str, int]
    """How many partitions each cluster has before."""
    limits: DataFrame | None = None
    """What retention keeps of each topic (`files.retention_table`); None: growth is taken to have no bound."""


@dataclass(frozen=True, slots=True)
class Balance:
    """The tables that a balance comes to."""

    figures: DataFrame
    """The loads of every level: broker, rack, log dir, topic, cluster."""
    skews: DataFrame
    """How even each measure is over the brokers."""
    moved: DataFrame | None
    """What the plan copies; None without a plan."""
    told: Told | None
    """What samples tell of themselves; None for loads."""
    hours: DataFrame | None = None
    """The hours of the week, where they are asked for."""


def run_balance(spark: SparkSession, task: BalanceTask) -> tuple[Mapping[str, Found], Mapping[str, int]]:
    """Return what was found, by cluster, and how often each rule about samples was broken, by its name.

    The tables are written where a folder for them is named. Loads have no samples, hence no rules.
    """
    with spark_errors(), _balance_of_task(spark, task) as balance:
        found = collected(balance.figures, balance.skews, balance.moved, balance.told, balance.hours)
        if task.out is not None:
            write_tables(spark, balance, task.out)
        defects = balance.told.defects if balance.told is not None else {}
    return found, {rule.value: count for rule, count in defects.items()}


@dataclass(frozen=True, slots=True)
class Looked:
    """A task whose places Spark has looked at, and what there is to tell of them."""

    task: BalanceTask
    notes: Sequence[str] = ()
    wrong: Mapping[str, tuple[int, int]] | None = None
    """Of each cluster that has loads, what is wrong with its rows (`wrong_rows`); None: they have been read before."""


def looked_at(spark: SparkSession, task: BalanceTask, *, has_unread_loads: bool) -> Looked:
    """Return the task with the files of its samples, or with what is wrong with loads that only Spark can read."""
    if isinstance(task.measured, str):
        with spark_errors():
            return Looked(task, wrong=wrong_rows(spark, task.measured) if has_unread_loads else None)
    found = looked_up(spark, task.measured.files)
    return Looked(replace(task, measured=replace(task.measured, files=found.files)), found.notes)


def assignments(
    spark: SparkSession,
    partitions: ArrowTable,
    places: ArrowTable,
    brokers: ArrowTable,
    *,
    has_plan: bool,
    retention: ArrowTable | None = None,
) -> Assignments:
    """Return these tables in Spark."""
    # Arrow counts them: texts of Python's own for each partition take tens of megabytes.
    counted = partitions.group_by(["side", "cluster"], use_threads=False).aggregate([([], "count_all")]).to_pylist()
    partition_counts = {one["cluster"]: one["count_all"] for one in counted if one["side"] == BEFORE}
    tables = (*with_carriers(partitions), places, brokers)
    standing, carriers, disks, weighed = (spark.createDataFrame(table) for table in tables)
    limits = None if retention is None else spark.createDataFrame(retention)
    return Assignments(standing, carriers, disks, weighed, has_plan, partition_counts, limits)


def rows_of_samples(spark: SparkSession, task: SampleTask) -> DataFrame | None:
    """Return each sample as a row of its own (`buckets.alone`); None where it is plain that samples want neighbours."""
    if not all(file.may_stand_alone for file in task.files):
        return None
    samples = read_samples(spark, task.files, cluster=task.cluster)
    return alone(cleaned(samples, now=task.now, rates=("bytes_in", "bytes_out")), task.bucket_seconds)


def rows_of_buckets(spark: SparkSession, task: SampleTask) -> DataFrame:
    """Return the samples as rows of one partition and bucket each (`buckets.beside_others`)."""
    samples = read_samples(spark, task.files, cluster=task.cluster)
    # A balance has no messages: they are not read, so that nothing is found wrong with them.
    without_messages = samples.withColumn("messages_in", F.lit(None).cast("double"))
    in_order = normalised(without_messages, bucket_seconds=task.bucket_seconds, now=task.now)
    return beside_others(with_bytes_grown(in_order))


@contextmanager
def _balance_of_task(spark: SparkSession, task: BalanceTask) -> Iterator[Balance]:
    assigned = assignments(
        spark, task.partitions, task.places, task.brokers, has_plan=task.has_plan, retention=task.retention
    )
    measured = task.measured
    if isinstance(measured, str):
        with balance_of_loads(assigned, loads_of(spark, measured)) as balance:
            yield balance
        return
    unsorted = rows_of_samples(spark, measured)
    rows = rows_of_buckets(spark, measured) if unsorted is None else unsorted
    in_need = None if unsorted is None else partial(rows_of_buckets, spark, measured)
    with balance_of_samples(
        assigned,
        rows,
        measured.bucket_seconds,
        in_need=in_need,
        has_all_sizes=task.has_all_sizes,
        headroom=task.headroom,
    ) as balance:
        yield balance


@contextmanager
def balance_of_samples(
    assigned: Assignments,
    rows: DataFrame,
    bucket_seconds: int,
    *,
    in_need: Callable[[], DataFrame] | None = None,
    has_all_sizes: bool = True,
    headroom: Headroom | None = None,
) -> Iterator[Balance]:
    """Yield the balance by samples, as rows of one partition and bucket each (`rows`).

    Where these turn out to want their neighbours, those that `in_need` returns are taken instead. The rows are read
    once, again for their last sizes where the cluster does not tell all (`has_all_sizes`), and again where rates are
    missing: then these are filled (`holes`), and an average is the sum of the averages of partitions. What is kept of
    them until the end is one row for each bucket of each log dir and topic.
    """
    # Carriers are made anew at each use: to keep them costs more.
    carriers = carried(assigned.partitions)
    known = known_carriers(assigned.carriers)
    summed = sums(rows, carriers).persist()
    kept = [summed]
    try:
        found = told(summed, assigned.carriers, assigned.partition_counts, bucket_seconds)
        if in_need is not None and not found.is_sound:
            summed.unpersist()
            rows = in_need()
            summed = sums(rows, carriers).persist()
            kept.append(summed)
            found = told(summed, assigned.carriers, assigned.partition_counts, bucket_seconds)
        standing = replicas(assigned.partitions)
        if not has_all_sizes:
            sized = rows.where(F.col("size_bytes").isNotNull()).groupBy(*PARTITION)
            standing = with_sizes(standing, sized.agg(F.max_by("size_bytes", "bucket").alias("last_size")))
        whole = with_growth(summed, rows, carriers, found.with_slopes)
        if found.with_holes:
            with_holes = rows.sparkSession.createDataFrame(arrow_table({"cluster": TEXT}, zip(found.with_holes)))
            holed = of_carried(rows, carriers).join(F.broadcast(with_holes), on="cluster", how="left_semi")
            series = settled(series_of(holed, _WAYS))
            fills = settled(with_known(fills_of(series, _WAYS), series, _WAYS))
            averages = averages_of(series, _WAYS)
            whole = with_fills(whole, fills, averages, carriers).persist()
            kept += [series, fills, whole]
            found = filled(found, whole, assigned.carriers, fills)
        by_bucket = bucketed(whole, known)
        spans = _spans(rows.sparkSession, found)
        rates = settled(statistics(by_bucket, spans))
        kept.append(rates)
        hours = None if headroom is None else hours_of_week(by_bucket, known, headroom.share, headroom.most)
        slopes = partial(slopes_of, rows)
        with _balance(assigned, standing, rates, found, slopes, has_found_sizes=not has_all_sizes) as balance:
            yield replace(balance, hours=hours)
    finally:
        for table in kept:
            table.unpersist()


def loads_of(spark: SparkSession, place: str) -> DataFrame:
    """Return the loads at that place as `schemas.LOADS`, whatever its columns are typed; what it lacks is null."""
    found = read_table(spark, place)
    have = set(found.columns)
    return found.select(
        *(
            (F.col(field.name) if field.name in have else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in LOADS.fields
        )
    )


def wrong_rows(spark: SparkSession, place: str) -> Mapping[str, tuple[int, int]]:
    """Return of each cluster that has loads there how many rows mean nothing, and how many partitions stand twice.

    It is what `files.loads` looks for in a folder of this machine. Raises LoadsUnreadable where a column is missing.
    """
    found = read_table(spark, place)
    missing = [name for name in ("cluster", *PARTITION[1:], *AMOUNTS) if name not in found.columns]
    if missing:
        has = ", ".join(found.columns)
        raise LoadsUnreadable(f"--loads {place} lacks the columns {', '.join(missing)} (it has {has})", code=NO_COLUMNS)
    amounts = [F.col(name).cast("double") for name in AMOUNTS]
    is_wrong = F.col("topic").isNull() | F.col("partition").isNull() | (F.col("partition") < 0)
    for amount in amounts:
        is_wrong = is_wrong | F.coalesce((amount < 0) | F.isnan(amount) | (amount >= float(2**62)), F.lit(col=False))
    rows = (
        found.groupBy(*PARTITION)
        .agg(F.count(F.lit(1)).alias("rows"), F.sum(is_wrong.cast("int")).alias("wrong"))
        .groupBy("cluster")
        .agg(F.sum("wrong").alias("wrong"), F.sum((F.col("rows") > 1).cast("int")).alias("twice"))
    )
    return {row["cluster"]: (row["wrong"], row["twice"]) for row in rows.collect()}


@contextmanager
def balance_of_loads(assigned: Assignments, loads: DataFrame) -> Iterator[Balance]:
    """Yield the balance by the loads of partitions (`schemas.LOADS`): averages and peaks, which add up.

    Disks are full by growth, which ends where retention is known to end it.
    A replica whose size the cluster does not tell has that of its partition's load.
    """
    sizes = loads.select(*PARTITION, F.col("size_bytes").alias("last_size"))
    sized = with_sizes(replicas(assigned.partitions), sizes)
    slopes = loads.select(*PARTITION, whole_growth(F.col("growth_bytes_per_day")).alias(GROWTH))
    rates = rates_of_loads(loads, sized, known_carriers(assigned.carriers))
    with _balance(assigned, sized, rates, None, lambda: slopes, has_found_sizes=True) as found:
        yield found


def _spans(spark: SparkSession, found: Told) -> DataFrame:
    rows = ((*(row[name] for name in SPANS), row.cluster in found.with_slopes) for row in found.spans)
    return spark.createDataFrame(arrow_table({**SPANS, "has_slopes": YES_NO}, rows))


@contextmanager
def _balance(
    assigned: Assignments,
    standing: DataFrame,
    rates: DataFrame,
    seen: Told | None,
    slopes: Callable[[], DataFrame],
    *,
    has_found_sizes: bool,
) -> Iterator[Balance]:
    """Yield the balance; `slopes` returns the daily growth of each partition.

    Retention can end that growth. Samples must be read once more for it, so by samples retention counts only if growth
    alone fills a disk within SOON_DAYS. By loads it always counts.
    """
    sizes = settled(found_sizes(standing)) if has_found_sizes else None
    kept = [] if sizes is None else [sizes]
    held = counts(assigned.carriers, assigned.places, sizes)
    placed = figures(held, rates, has_plan=assigned.has_plan)
    limits = assigned.limits
    if seen is not None or limits is None:
        found = settled(with_days_until_full(placed))
        kept.append(found)
        if limits is not None and found.where(F.col(DAYS_UNTIL_FULL) <= SOON_DAYS).isEmpty():
            limits = None
    if limits is not None:
        growths = by_growth_alone(slopes(), standing, limits, known_carriers(assigned.carriers))
        placed = settled(placed)
        found = settled(with_days_until_full(placed, disk_forecasts(growths, placed)))
        kept += [placed, found]
    copied = moved(standing) if assigned.has_plan else None
    try:
        yield Balance(found, skew(found, assigned.brokers), copied, seen)
    finally:
        for table in kept:
            table.unpersist()


def write_tables(spark: SparkSession, balance: Balance, out: str) -> None:
    """Write `figures` (every level, every topic) and `evenness` as Parquet, sorted by their keys.

    The place is replaced as a whole, and a file in it says what wrote it. What does not apply, or is unknown, is null.
    """
    figures = balance.figures.withColumns(
        {
            "broker": F.nullif("broker", F.lit(NO_BROKER)),
            **{name: F.nullif(name, F.lit(NO_TEXT)) for name in ("rack", "log_dir", "topic")},
        }
    )
    evenness = balance.skews.withColumn("statistic", F.nullif("statistic", F.lit(NO_TEXT)))
    with replaced(spark, out, TABLES_MARK, (FIGURES, EVENNESS)) as result:
        for name, table, keys in ((FIGURES, figures, KEYS), (EVENNESS, evenness, _SKEW_KEYS)):
            whole = table.repartition(1).sortWithinPartitions(*keys)
            result.write(whole, name)
        result.tell(TABLES_MARK, "written by reconciler balance\n")
