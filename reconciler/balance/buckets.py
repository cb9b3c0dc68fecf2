"""Rates of brokers, racks, log dirs, topics and clusters from samples: summed in each time bucket, then told.

A percentile of a broker is that of its sum in each bucket, never the sum of its partitions' percentiles. Sums are of
whole thousandths of a byte a second, hence exact: neither the order of rows nor the number of workers can show.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.replica_load import (
    BEFORE,
    KEYS,
    NO_BROKER,
    NO_TEXT,
    PARTITION,
    at_every_level,
    at_topic_level,
)

MILLI = 1000
# No partition takes in a terabyte a second; a larger rate is a broken sample, hence unknown.
MOST_BYTES_PER_SECOND = 1e12
SUMS = ("bytes_in", "seen_in", "bytes_out", "seen_out", "size_bytes", "seen_sizes")
P95 = 0.95
_MEDIAN_STEP = "percentile_disc(0.5) within group (order by step)"
_CARRIER = ("side", "cluster", "broker", "log_dir", "topic")


def carriers(replicas: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return what carries each partition's load, and who the carriers are: log dirs of brokers, and topics.

    The first has one row a partition: cluster, topic, partition, carried (an array of carrier, weight, leads,
    followers, is_counted; `weight` is how many replicas it holds of it, `leads` 1 where it serves consumers,
    `is_counted` true once a partition). The second has one row a carrier: carrier, side, cluster, broker, log_dir,
    topic.
    """
    common = ("side", *PARTITION, "followers")
    leads = F.col("is_leader").cast("int").alias("leads")
    places = replicas.select(*common, "broker", "log_dir", F.lit(1).alias("weight"), leads)
    topics = (
        replicas.groupBy(*common)
        .agg(F.count(F.lit(1)).cast("int").alias("weight"), F.max("is_leader").cast("int").alias("leads"))
        .select(*common, F.lit(NO_BROKER).alias("broker"), F.lit(NO_TEXT).alias("log_dir"), "weight", "leads")
    )
    # A place carries whatever the topic, and a topic is carried wherever it stands.
    each = places.withColumn("of", F.lit(NO_TEXT)).unionByName(topics.withColumn("of", F.col("topic")))
    keys = ["side", "cluster", "broker", "log_dir", "of"]
    known = each.select(*keys).distinct().withColumn("carrier", F.row_number().over(Window.orderBy(*keys)))
    is_counted = (F.col("of") != NO_TEXT) & (F.col("side") == BEFORE)
    one = F.struct("carrier", "weight", "leads", "followers", is_counted.alias("is_counted"))
    carried = (
        each.join(F.broadcast(known), on=keys, how="inner")
        .groupBy(*PARTITION)
        .agg(F.collect_list(one).alias("carried"))
    )
    return carried, known.select("carrier", *_CARRIER[:-1], F.col("of").alias("topic"))


def sums(samples: DataFrame, carried: DataFrame) -> DataFrame:
    """Return what each carrier carries in each bucket.

    Columns: carrier, bucket, bytes_in and bytes_out in thousandths a second, size_bytes, and how many replicas, or
    leaders, have been seen with each (seen_in, seen_out, seen_sizes). What a leader sends is known only where what its
    consumers take and, with followers, what these fetch is known. `total`: bytes in and out of the partitions
    themselves, each counted once.
    """
    exact = samples.select(*PARTITION, "bucket", _milli("bytes_in"), _milli("bytes_out"), "size_bytes")
    joined = exact.join(F.broadcast(carried), on=list(PARTITION), how="inner")
    each = joined.select("bucket", "bytes_in", "bytes_out", "size_bytes", F.inline("carried"))
    sent = F.col("bytes_out") + F.when(F.col("followers") > 0, F.col("bytes_in") * F.col("followers")).otherwise(0)
    leads = F.col("leads") == 1
    itself = F.coalesce("bytes_in", F.lit(0)) + F.coalesce("bytes_out", F.lit(0))
    return each.groupBy("carrier", "bucket").agg(
        F.sum(F.col("bytes_in") * F.col("weight")).alias("bytes_in"),
        F.sum(F.when(F.col("bytes_in").isNotNull(), F.col("weight"))).alias("seen_in"),
        F.sum(F.when(leads, sent)).alias("bytes_out"),
        F.count_if(leads & sent.isNotNull()).alias("seen_out"),
        F.sum(F.col("size_bytes") * F.col("weight")).alias("size_bytes"),
        F.sum(F.when(F.col("size_bytes").isNotNull(), F.col("weight"))).alias("seen_sizes"),
        F.sum(F.when(F.col("is_counted"), itself).otherwise(0)).alias("total"),
    )


def bucketed(carried_sums: DataFrame, known: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return the sums of each level in each bucket: the keys, bucket, and the columns of `sums`."""
    racks = brokers.select("cluster", "broker", F.coalesce("rack", F.lit(NO_TEXT)).alias("rack"))
    named = carried_sums.join(F.broadcast(known), on="carrier", how="inner")
    names = ("bucket", *SUMS)
    places = named.where(F.col("topic") == NO_TEXT).join(F.broadcast(racks), on=["cluster", "broker"], how="inner")
    topics = named.where(F.col("topic") != NO_TEXT)
    levels = places.transform(at_every_level, names).unionByName(topics.transform(at_topic_level, names))
    return levels.groupBy(*KEYS, "bucket").agg(*(F.sum(name).alias(name) for name in SUMS))


def spans(carried_sums: DataFrame, known: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return one row a cluster: its busiest bucket (of equals the first), the first and last, and how many there are.

    The busiest is that in which most bytes come in from producers and go out to consumers. `step` is the usual time, in
    seconds, from one bucket to the next, `expected` how many there would be without gaps. Columns: cluster, busiest,
    first, last, buckets, step, expected.
    """
    named = carried_sums.join(F.broadcast(known.select("carrier", "cluster")), on="carrier", how="inner")
    by_bucket = named.groupBy("cluster", "bucket").agg(F.sum("total").alias("total"))
    before = F.lag("bucket").over(Window.partitionBy("cluster").orderBy("bucket"))
    stepped = by_bucket.withColumn("step", F.unix_seconds("bucket") - F.unix_seconds(before))
    seen = stepped.groupBy("cluster").agg(
        F.min_by("bucket", F.struct(-F.col("total"), F.col("bucket"))).alias("busiest"),
        F.min("bucket").alias("first"),
        F.max("bucket").alias("last"),
        F.count(F.lit(1)).alias("buckets"),
        F.coalesce(F.expr(_MEDIAN_STEP), F.lit(bucket_seconds)).cast("long").alias("step"),
    )
    length = F.unix_seconds("last") - F.unix_seconds("first")
    return seen.withColumn("expected", F.greatest(F.floor(length / F.col("step")) + 1, F.col("buckets")))


def statistics(by_bucket: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the statistics over the buckets: the keys, then for `in` and `out` average, p95, maximum, peak and seen.

    The percentile is exact, interpolated linearly between closest ranks. `spans` has each cluster's busiest bucket.
    """
    joined = by_bucket.join(F.broadcast(spans.select("cluster", "busiest")), on="cluster", how="inner")
    return joined.groupBy(*KEYS).agg(*_statistics("in"), *_statistics("out"))


def _statistics(way: str) -> tuple[Column, ...]:
    value = F.col(f"bytes_{way}")
    at_busiest = F.col("bucket") == F.col("busiest")
    return (
        (F.sum(value) / F.count(value) / MILLI).alias(f"{way}_average"),
        (F.percentile(value, P95) / MILLI).alias(f"{way}_p95"),
        (F.max(value) / MILLI).alias(f"{way}_maximum"),
        (F.max(F.when(at_busiest, value)) / MILLI).alias(f"{way}_peak"),
        F.sum(f"seen_{way}").alias(f"{way}_seen"),
    )


def _milli(name: str) -> Column:
    return F.when(F.col(name) <= MOST_BYTES_PER_SECOND, F.round(F.col(name) * MILLI).cast("long")).alias(name)
