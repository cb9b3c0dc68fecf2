"""Makes the tables of a history, from the sums of a balance, its rows, and the samples that stand beside them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.history import Placement
from reconciler.balance.spark.history import (
    Times,
    by_period,
    compared_hours,
    hourly,
    partition_periods,
    series,
    sizes_by_period,
    skews_then,
    skews_today,
    time_table,
    times_of,
    week,
)
from reconciler.balance.spark.history_changes import by_broker, changes, compared, led_elsewhere, moved_replicas
from reconciler.balance.spark.history_samples import broker_samples, replica_samples, standing
from reconciler.balance.spark.history_slow import slow_brokers
from reconciler.balance.spark.replica_load import BEFORE, NO_BROKER, replicas
from reconciler.balance.spark.spellings import in_spark, settled

if TYPE_CHECKING:
    from pyspark.sql import Row


@dataclass(frozen=True, slots=True)
class HistoryTables:
    """The tables that a history comes to; each is collected once."""

    times: Mapping[str, Times]
    week: DataFrame
    series: DataFrame
    skews: DataFrame
    changes: DataFrame
    brokers: DataFrame
    """The brokers that changed most."""
    placed: DataFrame | None
    """What brokers lead that others led before; None without samples of brokers."""
    moved: DataFrame | None
    """What stood on another broker before; None without replica samples."""
    slow: DataFrame | None
    """Slow brokers; None without samples of brokers."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Samples that stand beside those of partitions; None where there are none."""

    brokers: DataFrame | None = None
    replicas: DataFrame | None = None

    @staticmethod
    def of(spark: SparkSession, places: Sequence[str], cluster: str | None) -> "Beside":
        """Return what stands beside the samples in these places."""
        return Beside(broker_samples(spark, places, cluster), replica_samples(spark, places, cluster))


@dataclass(frozen=True, slots=True)
class Today:
    """What a balance has made of samples by the placement of today (`balance_job.balance_of_samples`)."""

    by_bucket: DataFrame
    known: DataFrame
    partitions: DataFrame
    brokers: DataFrame


@contextmanager
def history(today: Today, rows: DataFrame, spans: Sequence["Row"], beside: Beside) -> Iterator[HistoryTables]:
    """Yield the history of the clusters that have samples: `rows` of one partition and bucket, with their `spans`.

    The rows are read once for it, beside what the balance reads them for, and replica samples once. What is kept until
    the end is one row for each hour of each broker, and one for each day (or hour) of each partition and replica.
    """
    kept: list[DataFrame] = []

    def keep(table: DataFrame) -> DataFrame:
        kept.append(settled(table))
        return kept[-1]

    times = times_of(spans)
    timed = in_spark(rows.sparkSession, time_table(times.values()))
    partitions = today.partitions.where(F.col("side") == BEFORE)
    try:
        hours = keep(hourly(today.by_bucket, today.known))
        compared_in = keep(compared_hours(hours, timed))
        each = keep(partition_periods(rows, timed, compared_in))
        changed = keep(compared(each, timed, partitions))
        periods = by_period(hours, timed)
        skews = skews_today(
            periods.where(F.col("broker") != NO_BROKER),
            sizes_by_period(each, partitions),
            _holding(partitions),
            today.brokers,
            timed,
        ).withColumn("placement", F.lit(Placement.TODAY.value))
        moved = None
        if beside.replicas is not None:
            stood = keep(standing(beside.replicas, timed))
            then = skews_then(stood, each, today.brokers, timed)
            skews = skews.unionByName(then.withColumn("placement", F.lit(Placement.THEN.value)))
            moved = moved_replicas(stood, partitions, each, timed)
        measured = beside.brokers
        yield HistoryTables(
            times=times,
            week=week(hours),
            series=series(periods, timed),
            skews=skews,
            changes=changes(changed),
            brokers=by_broker(changed),
            placed=None if measured is None else led_elsewhere(measured, changed, compared_in, timed),
            moved=moved,
            slow=None if measured is None else slow_brokers(measured),
        )
    finally:
        for table in kept:
            table.unpersist()


def _holding(partitions: DataFrame) -> DataFrame:
    """Return the brokers that hold replicas today: cluster, broker, leads (whether they lead any)."""
    return replicas(partitions).groupBy("cluster", "broker").agg(F.bool_or("is_leader").alias("leads"))
