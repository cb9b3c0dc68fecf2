"""Sums what brokers, racks, log dirs, topics and clusters carry in each time bucket, and tells the buckets' statistics.

A percentile of a broker is that of its sum in each bucket, never the sum of its partitions' percentiles. Sums are of
whole thousandths of a byte a second, hence exact: neither the order of rows nor the number of workers can show.

What is summed is one row for each partition and time bucket. Most samples need no neighbours for that: where each
partition has one a bucket, each with its rate, in files written in the order of time, a sample is the row (`alone`),
and neither a shuffle nor a sort of samples is needed. Whether that was so shows in the sums (`soundness`); where it was
not, samples are sorted and cleaned as for loads (`beside_others`).
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.carrier_table import PART
from reconciler.balance.model.balance_report import Level
from reconciler.balance.spark.growth import GROWTH, MOST_BYTES, significant, slope, slope_of, slopes_of
from reconciler.balance.spark.load import buckets_of
from reconciler.balance.spark.normalise import (
    GROUP,
    MARKED,
    MARKS,
    MICROS,
    MILLI,
    MOST_PER_SECOND,
    P95,
    hour_of_week,
    is_kept,
)
from reconciler.balance.spark.replica_load import BEFORE, PARTITION

RULES = tuple(rule.value for rule in MARKED)
SIZE, UNSIZED = "size", "unsized"
_SUMMED = ("bytes_in", "bytes_out", GROWTH)
_WAYS = ("in", "out")
_AVERAGES = tuple(f"average_{way}" for way in _WAYS)
STRAYS = "strays"  # samples that count but for their partition, which no cluster has
# Replicas seen with what comes in, and leaders with what goes out, share one whole number.
_SEEN_BITS = 31
_SEEN = {"in": 0, "out": _SEEN_BITS}


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
    return F.when(F.col(name) <= MOST_PER_SECOND, whole).alias(name)


def carried(partitions: DataFrame) -> DataFrame:
    """Return what carries each partition: the log dirs (or brokers) that its replicas stand on, and its topic.

    One row for each side, partition and carrier: cluster, topic, partition, carrier (its number), is_topic, weight (how
    many replicas it holds), leads (whether it serves consumers), followers, is_total (true once a partition).
    """
    count, leader = F.size("replicas"), F.col("leader")
    leader_at = F.array_position(F.col("replicas"), leader) - 1
    each = partitions.select(
        *PARTITION,
        "side",
        count.cast("long").alias("count"),
        leader.isNotNull().alias("has_leader"),
        leader_at.alias("leader_at"),
        F.posexplode("carriers").alias("at", "carrier"),
    )
    is_topic = F.col("at") == F.col("count")
    return each.select(
        *PARTITION,
        "carrier",
        is_topic.alias("is_topic"),
        F.when(is_topic, F.col("count")).otherwise(1).alias("weight"),
        F.when(is_topic, F.col("has_leader")).otherwise(F.col("at").eqNullSafe(F.col("leader_at"))).alias("leads"),
        (F.col("count") - 1).alias("followers"),
        (is_topic & (F.col("side") == BEFORE)).alias("is_total"),
    )


def sums(rows: DataFrame, carried: DataFrame) -> DataFrame:
    """Return what each carrier carries in each bucket, of rows with the same marks.

    Columns: carrier (null for rows that nothing known carries), bucket, marks, bytes_in and bytes_out in thousandths a
    second, `seen`: how many replicas, or leaders, have been seen with each (`seen_with`). What a leader sends is known
    only where what its consumers take and, with followers, what these fetch is known. Then, for the topics of before
    and for rows that nothing carries: `total`, bytes in and out of the partitions themselves, each counted once; how
    many `rows` there were, and which `partitions` in whole rows, a bit each; when the files were written, from `oldest`
    to `newest`; and each rule's count, and growth, where rows have them. Rows without growth have their SIZE summed,
    and those of no known size counted as UNSIZED.
    """
    each = rows.transform(on_carriers, carried, "left")
    sent = sent_by_leader(F.col("bytes_in"), F.col("bytes_out"))
    seen = F.when(F.col("bytes_in").isNotNull(), F.col("weight")).otherwise(0)
    seen += F.when(sent.isNotNull(), F.lit(1 << _SEEN["out"])).otherwise(0)
    is_told = F.coalesce("is_total", F.lit(col=True))
    bit = F.expr(f"shiftleft(1L, partition % {PART})")
    return each.groupBy("carrier", "bucket", MARKS).agg(
        F.sum(F.col("bytes_in") * F.col("weight")).alias("bytes_in"),
        F.sum(sent).alias("bytes_out"),
        F.sum(seen).alias("seen"),
        F.sum(F.when(F.col("is_total"), _in_and_out())).alias("total"),
        F.count_if(is_told).alias("rows"),
        F.bit_or(F.when(F.col("is_total") & F.col("is_whole"), bit)).alias("partitions"),
        F.min(F.when(F.col("is_total"), F.col("written_at"))).alias("oldest"),
        F.max(F.when(F.col("is_total"), F.col("written_at"))).alias("newest"),
        *(F.sum(F.when(is_told, F.col(name))).alias(name) for name in RULES if name in rows.columns),
        *(
            F.sum(F.when(F.col("carrier").isNull(), F.col(name))).alias(STRAYS)
            for name in rows.columns
            if name == "samples"
        ),
        *((_grown(),) if GROWTH in rows.columns else _sized(is_told)),
    )


def _sized(is_told: Column) -> tuple[Column, Column]:
    size = F.when(F.col("size_bytes") <= MOST_BYTES, F.col("size_bytes"))
    return F.sum(size * F.col("weight")).alias(SIZE), F.count_if(is_told & size.isNull()).alias(UNSIZED)


def with_growth(sums: DataFrame, rows: DataFrame, carried: DataFrame, clusters: Sequence[str]) -> DataFrame:
    """Return the sums with what the partitions of each carrier grow; of rows that do not tell it, in no bucket.

    That reads such rows once more, those of these `clusters` alone: the growth of others follows from their SIZE.
    """
    if GROWTH in rows.columns:
        return sums
    if not clusters:
        return sums.withColumn(GROWTH, F.lit(None).cast("long"))
    wanted = rows.where(F.col("cluster").isin(*clusters))
    grown = slopes_of(wanted).transform(on_carriers, carried, "inner").groupBy("carrier").agg(_grown())
    return sums.unionByName(grown, allowMissingColumns=True)


def with_fills(sums: DataFrame, fills: DataFrame, averages: DataFrame, carried: DataFrame) -> DataFrame:
    """Return the sums with what was filled, and with averages of partitions, in no bucket: they add up over gaps.

    `fills` has the rates that were missing, in thousandths, and as `known_bytes_in` and `known_bytes_out` those that
    were not; `averages` has for each partition those of its rates, over what was seen of each.
    """
    bytes_in, bytes_out = (F.coalesce(name, f"known_{name}") for name in ("bytes_in", "bytes_out"))
    is_new = F.col("bytes_out").isNotNull() | (F.col("bytes_in").isNotNull() & (F.col("followers") > 0))
    filled = fills.where(F.col("bucket").isNotNull()).transform(on_carriers, carried, "inner")
    made = filled.groupBy("carrier", "bucket").agg(
        F.sum(F.col("bytes_in") * F.col("weight")).alias("bytes_in"),
        F.sum(F.when(is_new, sent_by_leader(bytes_in, bytes_out))).alias("bytes_out"),
        F.sum(F.when(F.col("is_total"), _in_and_out())).alias("total"),
    )
    on_average = averages.transform(on_carriers, carried, "inner").groupBy("carrier")
    means = on_average.agg(
        F.sum(F.col("bytes_in") * F.col("weight")).alias("average_in"),
        F.sum(sent_by_leader(F.col("bytes_in"), F.col("bytes_out"))).alias("average_out"),
    )
    together = made.unionByName(means, allowMissingColumns=True)
    return sums.unionByName(together, allowMissingColumns=True)


def _in_and_out() -> Column:
    """Return what comes in and goes out of the partition itself; what is unknown counts nothing."""
    return F.coalesce("bytes_in", F.lit(0)) + F.coalesce("bytes_out", F.lit(0))


def sent_by_leader(bytes_in: Column, bytes_out: Column, leads: str = "leads") -> Column:
    """Return what a replica sends where it leads: to consumers and, with `followers`, to these."""
    fetched = F.when(F.col("followers") > 0, bytes_in * F.col("followers")).otherwise(0)
    return F.when(F.col(leads), bytes_out + fetched)


def of_carried(rows: DataFrame, carried: DataFrame) -> DataFrame:
    """Return the rows of partitions that something carries."""
    known = F.broadcast(carried.where("is_total").select(F.xxhash64(*PARTITION).alias("partition_hash")))
    return rows.join(known, on=F.xxhash64(*PARTITION) == F.col("partition_hash"), how="left_semi")


def on_carriers(rows: DataFrame, carried: DataFrame, how: str) -> DataFrame:
    """Return the rows of partitions, once for each of its carriers."""
    slim = carried.select(
        F.xxhash64(*PARTITION).alias("partition_hash"), *("carrier", "weight", "leads", "followers", "is_total")
    )
    is_same = F.xxhash64(*PARTITION) == F.col("partition_hash")
    return rows.join(F.broadcast(slim), on=is_same, how=how)


def _grown() -> Column:
    return F.sum(F.col(GROWTH) * F.col("weight")).alias(GROWTH)


def seen_with(what: str) -> Column:
    """Return how many have been seen with that: `in` or `out`."""
    return F.shiftright("seen", _SEEN[what]).bitwiseAND((1 << _SEEN_BITS) - 1)


def bucketed(carried_sums: DataFrame, known: DataFrame) -> DataFrame:
    """Return the sums of each level in each bucket: key, cluster, bucket, bytes_in, bytes_out, growth, seen.

    SIZE stands beside them where rows have no growth, averages of partitions where buckets were filled (`with_fills`).
    """
    some = [name for name in (SIZE, *_AVERAGES) if name in carried_sums.columns]
    levels = F.broadcast(known.select("carrier", "key", "cluster"))
    each = carried_sums.join(levels, on="carrier", how="inner")
    unpacked = each.select(
        "key", "cluster", "bucket", *_SUMMED, *some, *(seen_with(what).alias(f"seen_{what}") for what in _SEEN)
    )
    names = (*_SUMMED, *some, *(f"seen_{what}" for what in _SEEN))
    return unpacked.groupBy("key", "cluster", "bucket").agg(*(F.sum(name).alias(name) for name in names))


def statistics(by_bucket: DataFrame, spans: DataFrame) -> DataFrame:
    """Return what is told of the buckets.

    Columns: key, then for `in` and `out` average, p95, maximum, peak and covered (the samples seen as a share of those
    expected, summed over replicas and over leaders), and growth_bytes_per_day. The percentile is exact,
    interpolated linearly between closest ranks. An average is the sum of partitions' averages where there are such.
    In clusters with `has_slopes`, growth is the sum of what partitions grow; in others it is the slope of SIZE.
    """
    averages = {name: _average(name) for name in _WAYS}
    if set(_AVERAGES) <= set(by_bucket.columns):
        averages |= {way: F.coalesce(F.sum(f"average_{way}") / MILLI, averages[way]) for way in _WAYS}

    few = F.broadcast(spans.select("cluster", "busiest", "expected", "has_slopes"))
    joined = by_bucket.join(few, on="cluster", how="inner")
    growth = F.sum(GROWTH)
    if SIZE in by_bucket.columns:
        growth = F.when(F.first("has_slopes"), growth).otherwise(slope_of(SIZE))
    growth = significant(growth).alias("growth_bytes_per_day")
    return joined.groupBy("key").agg(*(each for way in _WAYS for each in _statistics(way, averages[way])), growth)


def hours_of_week(by_bucket: DataFrame, known: DataFrame, share: float, most: int | None) -> DataFrame:
    """Return what the busiest brokers carry in each hour of the week, and the room that is left for moves.

    Columns: cluster, hour (0 to 167 from Monday on, UTC), busiest_in and busiest_out (rate in bytes a second, broker),
    room: bytes a second that may come on top at each broker, in and out, so that it stays within that share of `most`
    bytes a second or, without it, of the most that it carried in any bucket.
    """
    is_broker = (F.col("level") == Level.BROKER.value) & (F.col("side") == BEFORE)
    brokers = F.broadcast(known.where(is_broker).select("key", "broker").distinct())
    hour = hour_of_week(F.col("bucket")).alias("hour")
    carried = by_bucket.where(F.col("bucket").isNotNull()).join(brokers, on="key", how="inner")
    each = carried.groupBy("cluster", "broker", hour).agg(*(F.max(f"bytes_{way}").alias(way) for way in _WAYS))
    of_broker = Window.partitionBy("cluster", "broker")
    limits = [F.max(way).over(of_broker) if most is None else F.lit(most * MILLI) for way in _WAYS]
    room = [
        F.floor((F.floor(limit * F.lit(share)) - F.col(way)) / MILLI) for limit, way in zip(limits, _WAYS, strict=True)
    ]
    # Of brokers that carry as much, the one with the lowest id.
    first = [F.when(F.col(way).isNotNull(), F.struct(way, (-F.col("broker")).alias("turned"))) for way in _WAYS]
    told = each.select(
        "cluster",
        "hour",
        *(one.alias(way) for one, way in zip(first, _WAYS, strict=True)),
        F.least(*room).alias("room"),
    )
    return told.groupBy("cluster", "hour").agg(
        *(F.max(way).alias(f"busiest_{way}") for way in _WAYS),
        F.when(F.min("room") < 0, F.lit(0)).otherwise(F.min("room")).alias("room"),
    )


def _average(way: str) -> Column:
    return F.sum(f"bytes_{way}") / F.count(f"bytes_{way}") / MILLI


def _statistics(way: str, average: Column) -> tuple[Column, ...]:
    value = F.col(f"bytes_{way}")
    at_busiest = F.col("bucket") == F.col("busiest")
    return (
        average.alias(f"{way}_average"),
        (F.percentile(value, P95) / MILLI).alias(f"{way}_p95"),
        (F.max(value) / MILLI).alias(f"{way}_maximum"),
        (F.max(F.when(at_busiest, value)) / MILLI).alias(f"{way}_peak"),
        (F.sum(f"seen_{way}") / F.first("expected")).alias(f"{way}_covered"),
    )
