"""Rates of brokers, racks, log dirs, topics and clusters from samples: summed in each time bucket, then told.

A percentile of a broker is that of its sum in each bucket, never the sum of its partitions' percentiles. Sums are of
whole thousandths of a byte a second, hence exact: neither the order of rows nor the number of workers can show.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.replica_load import BEFORE, KEYS, NO_BROKER, NO_TEXT, PARTITION, PLACE, at_every_level
from reconciler.balance.trend import growth
from reconciler.model.balance_report import Level

MILLI = 1000
# No partition takes in a terabyte a second; a larger rate is a broken sample, hence unknown.
MOST_BYTES_PER_SECOND = 1e12
SUMS = ("bytes_in", "seen_in", "bytes_out", "seen_out", "size_bytes", "seen_sizes", "total")
P95 = 0.95
_MEDIAN_STEP = "percentile_disc(0.5) within group (order by step)"


def carried(partitions: DataFrame) -> DataFrame:
    """Return what carries each partition: the log dirs (or brokers) that its replicas stand on, and its topic.

    One row for each side and partition: cluster, topic, partition, side, carried: an array of carrier, broker, rack,
    log_dir, topic (what the carrier is), weight (how many replicas it holds), leads (whether it serves consumers),
    followers, is_total (true once a partition). A carrier's number is a hash of what it is: to number ten thousand in
    order would take a sort and a join, and two of them share one once in 10^11 clusters.
    """
    none = F.lit(NO_TEXT)

    def on_place(one: Column) -> Column:
        rack, log_dir = F.coalesce(one["racks"], none), F.coalesce(one["log_dirs"], none)
        leads = one["replicas"].eqNullSafe(F.col("leader"))
        return _carrier((one["replicas"], rack, log_dir, none), F.lit(1), leads, F.expr("false"))

    topic = _carrier(
        (F.lit(NO_BROKER), none, none, F.col("topic")),
        F.size("replicas"),
        F.col("leader").isNotNull(),
        F.col("side") == BEFORE,
    )
    places = F.transform(F.arrays_zip("replicas", "log_dirs", "racks"), on_place)
    return partitions.select(*PARTITION, "side", F.concat(places, F.array(topic)).alias("carried"))


def known_carriers(carried: DataFrame) -> DataFrame:
    """Return one row a carrier: carrier, side, cluster, broker, rack, log_dir, topic."""
    each = carried.select("side", "cluster", F.explode("carried").alias("one"))
    return each.select("one.carrier", "side", "cluster", *(f"one.{name}" for name in PLACE)).distinct()


def sums(samples: DataFrame, carried: DataFrame) -> DataFrame:
    """Return what each carrier carries in each bucket.

    Columns: carrier, bucket, bytes_in and bytes_out in thousandths a second, size_bytes, and how many replicas, or
    leaders, have been seen with each (seen_in, seen_out, seen_sizes). What a leader sends is known only where what its
    consumers take and, with followers, what these fetch is known. `total`: bytes in and out of the partitions
    themselves, each counted once.
    """
    needed = ("carrier", "weight", "leads", "followers", "is_total")
    slim = carried.select(*PARTITION, F.explode("carried").alias("one")).select(
        *PARTITION, *(f"one.{name}" for name in needed)
    )
    exact = samples.select(*PARTITION, "bucket", _milli("bytes_in"), _milli("bytes_out"), "size_bytes")
    each = exact.join(F.broadcast(slim), on=list(PARTITION), how="inner")
    sent = F.col("bytes_out") + F.when(F.col("followers") > 0, F.col("bytes_in") * F.col("followers")).otherwise(0)
    itself = F.coalesce("bytes_in", F.lit(0)) + F.coalesce("bytes_out", F.lit(0))
    return each.groupBy("carrier", "bucket").agg(
        F.sum(F.col("bytes_in") * F.col("weight")).alias("bytes_in"),
        F.sum(F.when(F.col("bytes_in").isNotNull(), F.col("weight"))).alias("seen_in"),
        F.sum(F.when(F.col("leads"), sent)).alias("bytes_out"),
        F.count_if(F.col("leads") & sent.isNotNull()).alias("seen_out"),
        F.sum(F.col("size_bytes") * F.col("weight")).alias("size_bytes"),
        F.sum(F.when(F.col("size_bytes").isNotNull(), F.col("weight"))).alias("seen_sizes"),
        F.sum(F.when(F.col("is_total"), itself).otherwise(0)).alias("total"),
    )


def bucketed(carried_sums: DataFrame, known: DataFrame) -> DataFrame:
    """Return the sums of each level in each bucket: the keys, bucket, and SUMS."""
    named = carried_sums.join(F.broadcast(known), on="carrier", how="inner")
    levels = named.transform(at_every_level, ("bucket", *SUMS))
    return levels.groupBy(*KEYS, "bucket").agg(*(F.sum(name).alias(name) for name in SUMS))


def spans(by_bucket: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return one row a cluster: its busiest bucket (of equals the first), the first and last, and how many there are.

    The busiest is that in which most bytes come in from producers and go out to consumers. `step` is the usual time, in
    seconds, from one bucket to the next, `expected` how many there would be without gaps. Columns: cluster, busiest,
    first, last, buckets, step, expected.
    """
    topics = by_bucket.where((F.col("level") == Level.TOPIC.value) & (F.col("side") == BEFORE))
    totals = topics.groupBy("cluster", "bucket").agg(F.sum("total").alias("total"))
    before = F.lag("bucket").over(Window.partitionBy("cluster").orderBy("bucket"))
    stepped = totals.withColumn("step", F.unix_seconds("bucket") - F.unix_seconds(before))
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
    """Return what is told of the buckets.

    Columns: the keys, then for `in` and `out` average, p95, maximum, peak and covered (the samples seen as a share of
    those expected, summed over replicas and over leaders), and growth_bytes_per_day. The percentile is exact,
    interpolated linearly between closest ranks.
    """
    few = F.broadcast(spans.select("cluster", "busiest", "expected"))
    joined = by_bucket.join(few, on="cluster", how="inner")
    return joined.groupBy(*KEYS).agg(*_statistics("in"), *_statistics("out"), growth().alias("growth_bytes_per_day"))


def _statistics(way: str) -> tuple[Column, ...]:
    value = F.col(f"bytes_{way}")
    at_busiest = F.col("bucket") == F.col("busiest")
    return (
        (F.sum(value) / F.count(value) / MILLI).alias(f"{way}_average"),
        (F.percentile(value, P95) / MILLI).alias(f"{way}_p95"),
        (F.max(value) / MILLI).alias(f"{way}_maximum"),
        (F.max(F.when(at_busiest, value)) / MILLI).alias(f"{way}_peak"),
        (F.sum(f"seen_{way}") / F.first("expected")).alias(f"{way}_covered"),
    )


def _carrier(place: tuple[Column, Column, Column, Column], weight: Column, leads: Column, is_total: Column) -> Column:
    """Return one carrier of a partition; `place` has its broker, rack, log dir and topic."""
    number = F.xxhash64("side", "cluster", *place)
    named = (each.alias(name) for each, name in zip(place, PLACE, strict=True))
    return F.struct(
        number.alias("carrier"),
        *named,
        weight.alias("weight"),
        leads.alias("leads"),
        (F.size("replicas") - 1).alias("followers"),
        is_total.alias("is_total"),
    )


def _milli(name: str) -> Column:
    return F.when(F.col(name) <= MOST_BYTES_PER_SECOND, F.round(F.col(name) * MILLI).cast("long")).alias(name)
