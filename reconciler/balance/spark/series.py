"""Partitions whose samples need no neighbours: their loads after one sort by two numbers, without a window.

Each partition is summed as if its samples were clean, one a bucket, and beside the sums stand the lists that prove it:
no rule was broken, no two samples share a bucket, none was written after a newer one, no counter began anew, no rate
has to be made from growth. Where the proof fails, that partition's samples are done again beside their neighbours.
"""

from collections.abc import Callable
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.spark.load import PARTITIONS, each, listed, percentiles, statistics_of
from reconciler.balance.spark.marks import MARKED, MARKS
from reconciler.balance.spark.normalise import MICROS, MICROS_PER_DAY
from reconciler.balance.spark.schemas import KEYS, RATES

HASH = "partition_hash"
_NEVER_MADE = ("bytes_out",)


def alone(cleaned: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return the rows of PARTITIONS, and whether each `is_sound`, of cleaned samples (`normalise.cleaned`)."""
    rows = cleaned.transform(lambda samples: _slim(samples, bucket_seconds))
    summed = rows.repartition(HASH).sortWithinPartitions(HASH, "moment_back").groupBy(HASH).agg(*_summed())
    return (
        summed.withColumn("is_sound", _is_sound())
        .withColumns({**percentiles(), **{rule.value: F.lit(0).cast("long") for rule in MARKED}})
        .withColumn("samples", F.col("seen"))
        .select(*PARTITIONS, "is_sound")
    )


def checked(
    samples: DataFrame,
    cleaned: Callable[[DataFrame], DataFrame],
    bucket_seconds: int,
    beside_others: Callable[[DataFrame], DataFrame],
) -> tuple[DataFrame, tuple[DataFrame, ...]]:
    """Return the rows of PARTITIONS of all samples, and the tables that stay on disk until they are unpersisted.

    `beside_others` makes them of samples as they come; it is asked for those of the partitions that are not sound.
    """
    first = alone(cleaned(samples), bucket_seconds).persist(StorageLevel.DISK_ONLY)
    unsound = first.where(~F.col("is_sound")).select(HASH)
    # Not `isEmpty`, which computes one part of the table after the other.
    if not unsound.count():
        return first.drop("is_sound"), (first,)
    hashed = samples.withColumn(HASH, F.xxhash64(*KEYS))
    again = hashed.join(unsound, on=HASH, how="left_semi").drop(HASH).transform(beside_others)
    kept = again.persist(StorageLevel.DISK_ONLY)
    return first.where("is_sound").drop("is_sound").unionByName(kept), (first, kept)


def _slim(samples: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return what is sorted: numbers that rise from the newest sample to the oldest where all is well."""
    moment = F.unix_micros("ts")
    return samples.select(
        F.xxhash64(*KEYS).alias(HASH),
        # Two partitions of one hash are told apart by another one.
        F.hash(*KEYS).alias("other_hash"),
        *KEYS,
        (F.pmod(moment, F.lit(bucket_seconds * MICROS)) - moment).alias("bucket_back"),
        (-moment).alias("moment_back"),
        *RATES,
        "size_bytes",
        (-F.col("end_offset")).alias("offset_back"),
        (-F.unix_micros("written_at")).alias("written_back"),
        MARKS,
    )


def _summed() -> list[Column]:
    days = F.when(F.col("size_bytes").isNotNull(), -F.col("moment_back")) / F.lit(float(MICROS_PER_DAY))
    return [
        *(F.first(name).alias(name) for name in KEYS),
        *(statistic for rate in RATES for statistic in statistics_of(rate)),
        F.first("size_bytes", ignorenulls=True).alias("size_bytes"),
        F.regr_slope("size_bytes", days).alias("growth_bytes_per_day"),
        F.collect_list("bucket_back").alias("buckets_back"),
        *(listed(rate).alias(each(rate)) for rate in RATES),
        F.collect_list("offset_back").alias("offsets_back"),
        F.collect_list("written_back").alias("writings_back"),
        F.count(F.lit(1)).alias("seen"),
        F.bit_or(MARKS).alias(MARKS),
        (F.min("other_hash") == F.max("other_hash")).alias("is_one"),
    ]


def _is_sound() -> Column:
    seen = F.col("seen")
    conditions = (
        F.col("is_one") & (F.col(MARKS) == 0),
        F.size(F.array_distinct("buckets_back")) == seen,
        *(F.col(f"{rate}_known") == seen for rate in RATES if rate not in _NEVER_MADE),
        F.size("writings_back") == seen,
        F.sort_array("writings_back") == F.col("writings_back"),
        F.sort_array("offsets_back") == F.col("offsets_back"),
    )
    return reduce(Column.__and__, conditions)
