"""The balance job as a whole: from assignments and samples, or loads, to its tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance import additive
from reconciler.balance.buckets import bucketed, carriers, spans, statistics, sums
from reconciler.balance.effect import moved
from reconciler.balance.figures import figures
from reconciler.balance.replica_load import KEYS, PARTITION, counts, empty_places, replicas
from reconciler.balance.skew import skew
from reconciler.balance.trend import disks, growth

if TYPE_CHECKING:
    from pyarrow import Table


@dataclass(frozen=True, slots=True)
class Assignments:
    """Who stands where, on each side of each cluster: tables as `files.assignment_table` makes them."""

    sides: DataFrame
    partitions: DataFrame
    brokers: DataFrame
    log_dirs: DataFrame


@dataclass(frozen=True, slots=True)
class Balance:
    """The job's tables: `figures` of every level, `skews` over brokers, what a plan `moved`, each cluster's `spans`.

    `spans` is None for loads.
    """

    figures: DataFrame
    skews: DataFrame
    moved: DataFrame
    spans: DataFrame | None


def assignments(
    spark: SparkSession, sides: "Table", partitions: "Table", brokers: "Table", log_dirs: "Table"
) -> Assignments:
    """Return these tables in Spark."""
    return Assignments(*(spark.createDataFrame(table) for table in (sides, partitions, brokers, log_dirs)))


@contextmanager
def balance_of_samples(
    assigned: Assignments, samples: DataFrame, bucket_seconds: int, *, has_all_sizes: bool = True
) -> Iterator[Balance]:
    """Yield the balance by samples, one row for each partition and bucket (`schemas.BUCKETED`).

    The samples are read once, and again for their last sizes where the cluster does not tell all (`has_all_sizes`).
    What is kept of them until the end is one row for each carrier and bucket.
    """
    standing = replicas(assigned.partitions, assigned.brokers)
    if not has_all_sizes:
        known_sizes = samples.where(F.col("size_bytes").isNotNull())
        last = known_sizes.groupBy(*PARTITION).agg(F.max_by("size_bytes", "bucket").alias("last_size"))
        standing = with_sizes(standing, last)
    carried, known = carriers(standing)
    kept = sums(samples, carried).persist()
    try:
        seen = kept.transform(spans, known, bucket_seconds)
        by_bucket = bucketed(kept, known, assigned.brokers)
        covered = statistics(by_bucket, seen).join(
            F.broadcast(seen.select("cluster", "expected")), on="cluster", how="inner"
        )
        rates = (
            covered.withColumn("in_covered", F.col("in_seen") / F.col("expected"))
            .withColumn("out_covered", F.col("out_seen") / F.col("expected"))
            .drop("in_seen", "out_seen", "expected")
            .join(growth(by_bucket), on=list(KEYS), how="left")
        )
        with _balance(assigned, standing, rates, seen) as found:
            yield found
    finally:
        kept.unpersist()


@contextmanager
def balance_of_loads(assigned: Assignments, loads: DataFrame) -> Iterator[Balance]:
    """Yield the balance by the loads of partitions (`schemas.LOADS`): averages and peaks, which add up.

    A replica whose size the cluster does not tell has that of its partition's load.
    """
    sizes = loads.select(*PARTITION, F.col("size_bytes").alias("last_size"))
    sized = with_sizes(replicas(assigned.partitions, assigned.brokers), sizes)
    with _balance(assigned, sized, additive.rates(loads, sized), None) as found:
        yield found


def with_sizes(replicas: DataFrame, sizes: DataFrame) -> DataFrame:
    """Return the replicas, those of unknown size with their partition's `last_size`."""
    sized = replicas.join(sizes, on=list(PARTITION), how="left")
    return sized.withColumn("size_bytes", F.coalesce("size_bytes", "last_size")).drop("last_size")


@contextmanager
def _balance(assigned: Assignments, standing: DataFrame, rates: DataFrame, seen: DataFrame | None) -> Iterator[Balance]:
    places = empty_places(assigned.sides, assigned.brokers, assigned.log_dirs)
    on_disk = disks(assigned.log_dirs, assigned.brokers)
    found = figures(counts(standing, places), rates, on_disk).persist()
    try:
        yield Balance(found, skew(found, assigned.brokers), moved(standing), seen)
    finally:
        found.unpersist()
