"""The tables that go in and out of the Spark jobs, as constants: nothing is inferred from data.

Times are UTC with microseconds, rates are per second, sizes are bytes. A key (`ts, cluster, topic, partition`) is never
null in a sample that counts; any measure may be null, which is unknown and never 0.
"""

from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

KEYS = ("cluster", "topic", "partition")
RATES = ("bytes_in", "bytes_out", "messages_in")
STATISTICS = ("avg", "p95", "max", "peak")

_KEY_FIELDS = (
    StructField("cluster", StringType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
)

# One row for each cluster, topic, partition and moment. `size_bytes` is the leader's log, else the largest replica's;
# `end_offset` the log end offset. `collect` writes these two and leaves the rates null: `loads` makes them from growth.
SAMPLES = StructType(
    [
        StructField("ts", TimestampType()),
        *_KEY_FIELDS,
        *(StructField(rate, DoubleType()) for rate in RATES),
        StructField("size_bytes", LongType()),
        StructField("end_offset", LongType()),
    ]
)

# One row for each replica and moment, as `collect` writes beside the samples: what log dirs hold.
# `is_future`: the copy that a move between log dirs of one broker is filling.
REPLICA_SAMPLES = StructType(
    [
        StructField("ts", TimestampType()),
        StructField("cluster", StringType()),
        StructField("broker", IntegerType()),
        StructField("log_dir", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("size_bytes", LongType()),
        StructField("offset_lag", LongType()),
        StructField("is_future", BooleanType()),
    ]
)

# A cleaned sample, one row for each partition and time bucket that has any: `bucket` is the bucket's start, a rate the
# mean of its samples in the bucket, `size_bytes` the last one in it. What every statistic is computed from.
BUCKETED = StructType(
    [
        *_KEY_FIELDS,
        StructField("bucket", TimestampType()),
        *(StructField(rate, DoubleType()) for rate in RATES),
        StructField("size_bytes", LongType()),
    ]
)

# The result of `loads`, one row for each partition, sorted by its keys.
LOADS = StructType(
    [
        *_KEY_FIELDS,
        *(StructField(f"{rate}_{statistic}", DoubleType()) for rate in RATES for statistic in STATISTICS),
        StructField("size_bytes", LongType()),
        StructField("growth_bytes_per_day", DoubleType()),
        StructField("coverage", DoubleType()),
    ]
)
