"""Samples that count -> one row for each partition: what it carries on average, nearly always, at most, at the peak.

A statistic is that of a partition's time buckets, each the mean of the samples in it; percentiles interpolate linearly
between the closest ranks. `peak` is the rate in the cluster's busiest time bucket: the one with the largest sum, over
all partitions, of bytes in and bytes out, the earliest of equals. Sums that choose are of whole thousandths of a byte a
second, so that no order of addition can change the choice.
"""

from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.marks import MARKED, counts, is_kept
from reconciler.balance.normalise import GROUP, MICROS
from reconciler.balance.schemas import BUCKETED, KEYS, LOADS, RATES
from reconciler.model.load_report import Rule

SHARE = 0.95
_MICROS_PER_DAY = 86_400 * MICROS
_THOUSANDTHS = 1000
_MEDIAN_STEP = "percentile_disc(0.5) within group (order by step)"


class Measured(NamedTuple):
    """`loads` is the result, in its order; `found` has one row for each cluster: what was seen and each rule's count.

    Both read `kept` tables, which stay on disk until they are unpersisted.
    """

    loads: DataFrame
    found: DataFrame
    kept: tuple[DataFrame, ...]


def bucketed(samples: DataFrame) -> DataFrame:
    """Return the rows of BUCKETED: what every statistic over time, of whatever sum, is computed from."""
    return (
        samples.transform(buckets_of)
        .where(F.col("samples") > 0)
        .withColumn("bucket", F.timestamp_micros(-F.col("bucket_back")))
        .select(*BUCKETED.fieldNames())
    )


def measured(samples: DataFrame, bucket_seconds: int, known: DataFrame | None = None) -> Measured:
    """Return the loads of normalised samples; `known` has the partitions that there should be, if that is known."""
    partitions = samples.transform(buckets_of).transform(_partitions).persist(StorageLevel.DISK_ONLY)
    clusters = partitions.transform(lambda each: _clusters(each, bucket_seconds)).persist()
    placed = partitions.join(F.broadcast(clusters), on="cluster", how="left").transform(_covered)
    loads = placed.where(F.col("seen") > 0).transform(_loads)
    return Measured(loads, _found(placed, known), (partitions, clusters))


def buckets_of(samples: DataFrame) -> DataFrame:
    """Return one row for each partition and bucket; what does not count is only counted."""
    size_at = F.when(F.col("size_bytes").isNotNull(), -F.col("moment_back"))
    cleared = samples.withColumns(
        {name: F.when(is_kept(), F.col(name)) for name in (*RATES, "size_bytes")},
    )
    return cleared.groupBy(*GROUP, "bucket_back").agg(
        *(F.avg(rate).alias(rate) for rate in RATES),
        F.max_by("size_bytes", size_at).alias("size_bytes"),
        F.max(size_at).alias("size_at"),
        F.sum(is_kept().cast("long")).alias("samples"),
        *counts(),
    )


def _partitions(buckets: DataFrame) -> DataFrame:
    """Return one row for each partition: its statistics, its rates bucket by bucket, and the counts of all rules."""
    point = F.when(F.col("samples") > 0, F.struct((-F.col("bucket_back")).alias("bucket"), *RATES))
    days = F.col("size_at") / F.lit(float(_MICROS_PER_DAY))
    return buckets.groupBy(*GROUP).agg(
        *(statistic for rate in RATES for statistic in _statistics(rate)),
        F.max_by("size_bytes", "size_at").alias("size_bytes"),
        F.regr_slope("size_bytes", days).alias("growth_bytes_per_day"),
        F.collect_list(point).alias("points"),
        F.sum((F.col("samples") > 0).cast("long")).alias("seen"),
        F.sum("samples").alias("samples"),
        *(F.sum(rule.value).alias(rule.value) for rule in MARKED),
    )


def _statistics(rate: str) -> list[Column]:
    return [
        F.avg(rate).alias(f"{rate}_avg"),
        F.percentile(rate, SHARE).alias(f"{rate}_p95"),
        F.max(rate).alias(f"{rate}_max"),
    ]


def _clusters(partitions: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return one row for each cluster: first, last and busiest bucket, and the usual step from one to the next."""
    totals = (
        partitions.select("cluster", F.explode("points").alias("point"))
        .groupBy("cluster", F.col("point.bucket").alias("bucket"))
        .agg(F.sum(_thousandths("point.bytes_in", "point.bytes_out")).alias("total"))
    )
    before = F.lag("bucket").over(Window.partitionBy("cluster").orderBy("bucket"))
    # Of equal totals the earliest bucket: max_by takes the largest, so the bucket counts negatively.
    weight = F.when(F.col("total").isNotNull(), F.struct("total", -F.col("bucket")))
    return (
        totals.withColumn("step", F.col("bucket") - before)
        .groupBy("cluster")
        .agg(
            F.min("bucket").alias("first_bucket"),
            F.max("bucket").alias("last_bucket"),
            F.max_by("bucket", weight).alias("busiest_bucket"),
            F.coalesce(F.expr(_MEDIAN_STEP), F.lit(bucket_seconds * MICROS)).alias("step"),
        )
    )


def _thousandths(*rates: str) -> Column:
    """Return the sum of those known, in whole thousandths; None where none is known."""
    known = F.coalesce(*(F.col(rate) for rate in rates))
    each = [F.floor(F.coalesce(F.col(rate), F.lit(0.0)) * _THOUSANDTHS + F.lit(0.5)) for rate in rates]
    return F.when(known.isNotNull(), sum(each[1:], each[0]))


def _covered(placed: DataFrame) -> DataFrame:
    """Add `expected` buckets, those that are a `gap`, and `coverage`."""
    span = F.col("last_bucket") - F.col("first_bucket")
    expected = F.greatest(F.floor(span / F.col("step")) + 1, F.col("seen"))
    return placed.withColumn("expected", F.when(F.col("seen") > 0, expected)).withColumns(
        {
            Rule.GAP.value: F.coalesce(F.col("expected") - F.col("seen"), F.lit(0)),
            "coverage": F.col("seen") / F.col("expected"),
        }
    )


def _loads(placed: DataFrame) -> DataFrame:
    """Return the columns of LOADS in one sorted file: a row for each partition that has a sample."""
    at_peak = F.try_element_at(F.filter("points", _is_busiest), F.lit(1))
    return (
        placed.withColumn("at_peak", at_peak)
        .withColumns({f"{rate}_peak": F.col(f"at_peak.{rate}") for rate in RATES})
        .select(*LOADS.fieldNames())
        .repartition(1)
        .sortWithinPartitions(*KEYS)
    )


def _is_busiest(point: Column) -> Column:
    return point["bucket"] == F.col("busiest_bucket")


def _found(placed: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return one row for each cluster: what was seen, and each rule's count."""
    seen = placed.where(F.col("seen") > 0).select("cluster", "topic", "partition")
    missing = _holes(seen) if known is None else _not_seen(seen, known)
    rules = [rule.value for rule in Rule if rule is not Rule.MISSING_PARTITION]
    return (
        placed.groupBy("cluster")
        .agg(
            F.sum((F.col("seen") > 0).cast("long")).alias("partitions"),
            F.sum("samples").alias("samples"),
            *(F.max(name).alias(name) for name in ("first_bucket", "last_bucket", "busiest_bucket", "step")),
            (F.sum("seen") / F.sum("expected")).alias("coverage"),
            *(F.sum(rule).alias(rule) for rule in rules),
        )
        .join(missing, on="cluster", how="left")
        .orderBy(F.col("cluster").asc_nulls_first())
    )


def _holes(seen: DataFrame) -> DataFrame:
    """Partitions are numbered from 0: those below a topic's last that have no sample."""
    holes = (F.max("partition") + 1 - F.count("partition")).alias("holes")
    topics = seen.groupBy("cluster", "topic").agg(holes)
    return topics.groupBy("cluster").agg(F.sum("holes").alias(Rule.MISSING_PARTITION.value))


def _not_seen(seen: DataFrame, known: DataFrame) -> DataFrame:
    """Partitions that are known, and have no sample."""
    expected = seen.select("cluster").distinct().crossJoin(known.select("topic", "partition"))
    missing = expected.join(seen, on=list(KEYS), how="left_anti")
    return missing.groupBy("cluster").agg(F.count("partition").alias(Rule.MISSING_PARTITION.value))
