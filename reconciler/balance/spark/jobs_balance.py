"""The balance job as a whole: from assignments and samples, or loads, to its tables."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import ArrowTable, arrow_table
from reconciler.balance.spark import additive
from reconciler.balance.spark.buckets import bucketed, carried, known_carriers, statistics, sums, with_growth
from reconciler.balance.spark.effect import moved
from reconciler.balance.spark.figures import figures
from reconciler.balance.spark.local_files import read_parquet
from reconciler.balance.spark.replica_load import BEFORE, PARTITION, counts, replicas
from reconciler.balance.spark.schemas import LOADS
from reconciler.balance.spark.skew import skew
from reconciler.balance.spark.soundness import SPANS, Told, told


@dataclass(frozen=True, slots=True)
class Assignments:
    """Who stands where, on each side of each cluster: tables as `files.assignment_table` makes them.

    `has_plan`: there is a side `after`. `partition_counts`: how many partitions each cluster has before.
    """

    partitions: DataFrame
    places: DataFrame
    brokers: DataFrame
    has_plan: bool
    partition_counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Balance:
    """The job's tables: `figures` of every level, `skews` over brokers, what a plan `moved`; and what samples `told`.

    `moved` is None without a plan, `told` for loads.
    """

    figures: DataFrame
    skews: DataFrame
    moved: DataFrame | None
    told: Told | None


def assignments(
    spark: SparkSession, partitions: ArrowTable, places: ArrowTable, brokers: ArrowTable, *, has_plan: bool
) -> Assignments:
    """Return these tables in Spark."""
    frame = spark.createDataFrame
    named = zip(partitions["side"].to_pylist(), partitions["cluster"].to_pylist(), strict=True)
    counted = Counter(cluster for side, cluster in named if side == BEFORE)
    return Assignments(frame(partitions), frame(places), frame(brokers), has_plan, counted)


@contextmanager
def balance_of_samples(
    assigned: Assignments,
    rows: DataFrame,
    bucket_seconds: int,
    *,
    in_need: Callable[[], DataFrame] | None = None,
    has_all_sizes: bool = True,
) -> Iterator[Balance]:
    """Yield the balance by samples, as rows of one partition and bucket each (`rows`).

    Where these turn out to want their neighbours, those that `in_need` returns are taken instead. The rows are read
    once, and again for their last sizes where the cluster does not tell all (`has_all_sizes`). What is kept of them
    until the end is one row for each bucket of each log dir and topic.
    """
    carriers = carried(assigned.partitions).persist()
    known = known_carriers(carriers).persist()
    summed = sums(rows, carriers).persist()
    kept = [carriers, known, summed]
    try:
        found = told(summed, known, assigned.partition_counts, bucket_seconds)
        if in_need is not None and not found.is_sound:
            summed.unpersist()
            rows = in_need()
            summed = sums(rows, carriers).persist()
            kept.append(summed)
            found = told(summed, known, assigned.partition_counts, bucket_seconds)
        standing = replicas(assigned.partitions)
        if not has_all_sizes:
            standing = with_sizes(standing, _last_sizes(rows))
        whole = with_growth(summed, rows, carriers)
        rates = statistics(bucketed(whole, known), _spans(rows.sparkSession, found), known)
        with _balance(assigned, standing, rates, found) as balance:
            yield balance
    finally:
        for table in kept:
            table.unpersist()


def loads_of(spark: SparkSession, folder: str) -> DataFrame:
    """Return the loads in that folder as `schemas.LOADS`, whatever its columns are typed; what it lacks is null."""
    found = read_parquet(spark, folder)
    have = set(found.columns)
    return found.select(
        *(
            (F.col(field.name) if field.name in have else F.lit(None)).cast(field.dataType).alias(field.name)
            for field in LOADS.fields
        )
    )


@contextmanager
def balance_of_loads(assigned: Assignments, loads: DataFrame) -> Iterator[Balance]:
    """Yield the balance by the loads of partitions (`schemas.LOADS`): averages and peaks, which add up.

    A replica whose size the cluster does not tell has that of its partition's load.
    """
    sizes = loads.select(*PARTITION, F.col("size_bytes").alias("last_size"))
    sized = with_sizes(replicas(assigned.partitions), sizes)
    with _balance(assigned, sized, additive.rates(loads, sized), None) as found:
        yield found


def with_sizes(replicas: DataFrame, sizes: DataFrame) -> DataFrame:
    """Return the replicas, those of unknown size with their partition's `last_size`."""
    sized = replicas.join(sizes, on=list(PARTITION), how="left")
    return sized.withColumn("size_bytes", F.coalesce("size_bytes", "last_size")).drop("last_size")


def _spans(spark: SparkSession, found: Told) -> DataFrame:
    return spark.createDataFrame(arrow_table(SPANS, (tuple(row[name] for name in SPANS) for row in found.spans)))


def _last_sizes(samples: DataFrame) -> DataFrame:
    known = samples.where(F.col("size_bytes").isNotNull())
    return known.groupBy(*PARTITION).agg(F.max_by("size_bytes", "bucket").alias("last_size"))


@contextmanager
def _balance(assigned: Assignments, standing: DataFrame, rates: DataFrame, seen: Told | None) -> Iterator[Balance]:
    found = figures(counts(standing, assigned.places), rates, has_plan=assigned.has_plan).persist()
    copied = moved(standing) if assigned.has_plan else None
    try:
        yield Balance(found, skew(found, assigned.brokers), copied, seen)
    finally:
        found.unpersist()
