"""Samples as rows that can be summed: one for each partition and time bucket, with what its rules counted.

Most samples need no neighbours: where each partition has one a bucket, each with its rate, in files written in the
order of time, a sample is the row (`alone`), and neither a shuffle nor a sort of samples is needed. Whether that was so
shows in the sums (`soundness`); where it was not, samples are sorted and cleaned as for loads (`beside_others`).
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.spark.load import buckets_of
from reconciler.balance.spark.marks import MARKED, MARKS, is_kept
from reconciler.balance.spark.normalise import GROUP, MICROS
from reconciler.balance.spark.replica_load import PARTITION
from reconciler.balance.spark.trend import GROWTH, slope

MILLI = 1000
# No partition takes in a terabyte a second; a larger rate is a broken sample, hence unknown.
MOST_BYTES_PER_SECOND = 1e12
RULES = tuple(rule.value for rule in MARKED)


def alone(samples: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return each cleaned sample (`normalise.cleaned`) as a row of its own.

    Columns: cluster, topic, partition (null where the sample does not count), bucket (its start in microseconds),
    bytes_in and bytes_out in whole thousandths a second, size_bytes, is_whole (false where a rate is missing that
    neighbours might tell), marks, written_at in microseconds.
    """
    moment = F.unix_micros("ts")
    return samples.select(
        *_keys(is_kept()),
        (moment - F.pmod(moment, F.lit(bucket_seconds * MICROS))).alias("bucket"),
        _milli("bytes_in"),
        _milli("bytes_out"),
        "size_bytes",
        F.col("bytes_in").isNotNull().alias("is_whole"),
        MARKS,
        F.unix_micros("written_at").alias("written_at"),
    )


def beside_others(samples: DataFrame) -> DataFrame:
    """Return normalised samples, their rates made from growth, as the same rows; each rule's count in its own column.

    A row's rates are the means of its samples, its size is the last. The newest row of a partition that counts has its
    growth, which is summed with the rest.
    """
    is_counted = F.col("samples") > 0
    whole = Window.partitionBy(*GROUP)
    is_newest = is_counted & (F.min(F.when(is_counted, F.col("bucket_back"))).over(whole) == F.col("bucket_back"))
    buckets = samples.transform(buckets_of).withColumn("bucket", -F.col("bucket_back"))
    return as_rows(buckets.withColumn(GROWTH, F.when(is_newest, slope(whole))), is_counted)


def as_rows(buckets: DataFrame, counts: Column) -> DataFrame:
    """Return rows of one partition and bucket (a number, in microseconds) each, of which those count that say so."""
    return buckets.select(
        *_keys(counts),
        "bucket",
        _milli("bytes_in"),
        _milli("bytes_out"),
        "size_bytes",
        F.lit(col=True).alias("is_whole"),
        F.lit(0).alias(MARKS),
        F.lit(None).cast("long").alias("written_at"),
        *(name for name in (*RULES, "samples", GROWTH) if name in buckets.columns),
    )


def _keys(counts: Column) -> list[Column]:
    # What does not count has no partition: it finds nobody to carry it, and is only counted.
    return [F.when(counts, F.col(name)).alias(name) for name in PARTITION]


def _milli(name: str) -> Column:
    # Not `round`, which goes through decimals and costs more than all the rest.
    whole = F.floor(F.col(name) * MILLI + F.lit(0.5))
    return F.when(F.col(name) <= MOST_BYTES_PER_SECOND, whole).alias(name)
