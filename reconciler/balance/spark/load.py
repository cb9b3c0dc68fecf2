"""Makes of samples one row for each partition: what it carries on average, nearly always, at most, at the peak.

A statistic is that of a partition's time buckets, each the mean of the samples in it; percentiles interpolate linearly
between the closest ranks. `peak` is the rate in the cluster's busiest time bucket: the one with the largest sum, over
all partitions, of bytes in and bytes out, the earliest of equals. Sums that choose are of whole thousandths of a byte a
second, so that no order of addition can change the choice.

There are two ways to a partition's row. `partitions_of` takes samples that were sorted and cleaned beside each other.
`checked` first tries without a window, after one sort by two numbers: each partition is summed as if its samples were
clean, one a bucket, and beside the sums stand the lists that prove it: no rule was broken, no two samples share a
bucket, none was written after a newer one, no counter began anew, no rate has to be made from growth. Where the proof
fails, that partition's samples are done again the first way.
"""

from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.holes import fills_of, rung_counts, with_p95
from reconciler.balance.spark.normalise import GROUP, MARKED, MARKS, MICROS, MICROS_PER_DAY, MILLI, P95, counts, is_kept
from reconciler.balance.spark.schemas import KEYS, LOADS, LOG_START, RATES
from reconciler.balance.spark.spellings import settled

HASH = "partition_hash"
FILLED_BACK = "filled_back"
_UNKNOWN = -1.0  # in a list of rates, which holds no null: such a list is sorted as bare numbers
_NEVER_MADE = ("bytes_out",)  # the rate that no growth tells
_COUNTED = ("bytes_in", "bytes_out")
MEDIAN_STEP = "percentile_disc(0.5) within group (order by step)"


class Measured(NamedTuple):
    """`loads` is the result, in its order; `found` has one row for each cluster: what was seen and each rule's count.

    Both read the tables that are `kept`: these stay until they are unpersisted.
    """

    loads: DataFrame
    found: DataFrame
    kept: tuple[DataFrame, ...]


def each(rate: str) -> str:
    """Return the name of the column that lists this rate bucket by bucket."""
    return f"{rate}_each"


# One row for each partition: its statistics, in how many buckets each rate is known, when its buckets are (negative,
# the newest first) and its rates in each of them, how many were `seen` and how many samples count, and how many broke
# each rule.
PARTITIONS = (
    HASH,
    *KEYS,
    *(f"{rate}_{statistic}" for rate in RATES for statistic in ("avg", "max", "p95", "known")),
    "size_bytes",
    "growth_bytes_per_day",
    "buckets_back",
    *(each(rate) for rate in RATES),
    "seen",
    "samples",
    *(rule.value for rule in MARKED),
)


def measured(partitions: DataFrame, bucket_seconds: int, known: DataFrame | None = None) -> Measured:
    """Return the loads of such rows (PARTITIONS); `known` has the partitions that there should be, if that is known.

    Where all partitions have all their rates in all of their cluster's buckets, nothing else is looked at. Where not,
    the buckets that miss a rate are filled (`holes`): averages stay those of what was seen, all else goes by what was
    filled too.
    """
    clusters = _clusters(partitions, bucket_seconds).persist()
    kept = [clusters]
    whole = partitions
    with_holes = _with_holes(partitions, clusters)
    if with_holes.limit(1).count():
        holed = partitions.join(F.broadcast(with_holes), on="cluster", how="left_semi")
        series = settled(_series(holed))
        fills = settled(_fills(series))
        whole = _with_fills(partitions, fills)
        clusters = _clusters(whole, bucket_seconds).persist()
        kept += [series, fills, clusters]
    placed = whole.join(F.broadcast(clusters), on="cluster", how="left").transform(_covered)
    loads = placed.where(F.col("seen") > 0).transform(_loads)
    return Measured(loads, _found(placed, known), tuple(kept))


def _with_holes(partitions: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return the clusters in which a partition has no sample in a bucket, or a rate in some of its buckets only."""
    every = F.least("seen", *(F.when(F.col(f"{rate}_known") > 0, F.col(f"{rate}_known")) for rate in RATES))
    fewest = partitions.where(F.col("seen") > 0).groupBy("cluster").agg(F.min(every).alias("fewest"))
    joined = fewest.join(F.broadcast(clusters), on="cluster", how="inner")
    return joined.where(F.col("fewest") < F.col("buckets")).select("cluster")


def _series(partitions: DataFrame) -> DataFrame:
    """Return the lists of the partitions' rates as `holes.series_of` returns them."""

    def points(rate: str) -> Column:
        known = F.filter(F.arrays_zip("buckets_back", each(rate)), lambda one: one[each(rate)] >= 0)
        return F.transform(
            known,
            lambda one: F.struct((-one["buckets_back"]).alias("bucket"), _thousandths(one[each(rate)]).alias("value")),
        )

    told = F.array(*(F.struct(F.lit(rate).alias("rate"), points(rate).alias("points")) for rate in RATES))
    return partitions.select(*KEYS, F.inline(told)).where(F.size("points") > 0).transform(with_p95)


def _fills(series: DataFrame) -> DataFrame:
    """Return one row for each partition that has fills: KEYS, FILLED_BACK, its rates there, how many by each rule."""
    is_filled = F.col("bucket").isNotNull()
    rates = {rate: F.when(is_filled, F.coalesce(F.col(rate) / MILLI, F.lit(_UNKNOWN))) for rate in RATES}
    listed = [F.collect_list(value).alias(_filled(rate)) for rate, value in rates.items()]
    back = F.collect_list(-F.col("bucket")).alias(FILLED_BACK)
    return fills_of(series, RATES).groupBy(*KEYS).agg(back, *listed, *rung_counts())


def _filled(rate: str) -> str:
    return f"{rate}_filled"


def _with_fills(partitions: DataFrame, fills: DataFrame) -> DataFrame:
    """Return the partitions, what was filled behind all that was seen in their lists, FILLED_BACK and the counts."""
    joined = partitions.join(fills, on=list(KEYS), how="left")
    nothing = F.array().cast("array<double>")
    joined = joined.withColumn(FILLED_BACK, F.coalesce(FILLED_BACK, F.array().cast("array<bigint>"))).withColumns(
        {_filled(rate): F.coalesce(_filled(rate), nothing) for rate in RATES}
    )
    longer = {"buckets_back": F.concat("buckets_back", FILLED_BACK)}
    for rate in RATES:
        made = F.filter(_filled(rate), lambda one: one >= 0)
        longer |= {
            each(rate): F.concat(each(rate), _filled(rate)),
            f"{rate}_known": F.col(f"{rate}_known") + F.size(made),
            # `greatest` leaves out what is null: nothing is filled of a rate that is never known.
            f"{rate}_max": F.greatest(f"{rate}_max", F.array_max(made)),
        }
    return joined.withColumns(longer).withColumns(percentiles())


def buckets_of(samples: DataFrame) -> DataFrame:
    """Return one row for each partition and bucket; what does not count is only counted."""
    size_at = F.when(F.col("size_bytes").isNotNull(), -F.col("moment_back"))
    cleared = samples.withColumns({name: F.when(is_kept(), F.col(name)) for name in (*RATES, "size_bytes")})
    return cleared.groupBy(*GROUP, "bucket_back").agg(
        *(F.avg(rate).alias(rate) for rate in RATES),
        F.max_by("size_bytes", size_at).alias("size_bytes"),
        F.max(size_at).alias("size_at"),
        F.sum(is_kept().cast("long")).alias("samples"),
        *counts(),
    )


def partitions_of(samples: DataFrame) -> DataFrame:
    """Return the rows of PARTITIONS of normalised samples, their rates made from growth."""
    counted = F.col("samples") > 0
    days = F.col("size_at") / F.lit(float(MICROS_PER_DAY))
    return (
        buckets_of(samples)
        .groupBy(*GROUP)
        .agg(
            *(statistic for rate in RATES for statistic in statistics_of(rate)),
            F.max_by("size_bytes", "size_at").alias("size_bytes"),
            F.regr_slope("size_bytes", days).alias("growth_bytes_per_day"),
            F.collect_list(F.when(counted, F.col("bucket_back"))).alias("buckets_back"),
            *(F.collect_list(F.when(counted, _or_unknown(rate))).alias(each(rate)) for rate in RATES),
            F.sum(counted.cast("long")).alias("seen"),
            F.sum("samples").alias("samples"),
            *(F.sum(rule.value).alias(rule.value) for rule in MARKED),
        )
        .withColumns(percentiles())
        .select(*PARTITIONS)
    )


def statistics_of(rate: str) -> list[Column]:
    """Return average and maximum of the rate, and in how many buckets it is known."""
    return [F.avg(rate).alias(f"{rate}_avg"), F.max(rate).alias(f"{rate}_max"), F.count(rate).alias(f"{rate}_known")]


def listed(rate: str) -> Column:
    """Return the list of the rate in all buckets, `_UNKNOWN` where it is not known."""
    return F.collect_list(_or_unknown(rate))


def percentiles() -> dict[str, Column]:
    """Return each rate's percentile: what `F.percentile` gives, which counts equal values first and so costs more."""
    return {f"{rate}_p95": _percentile(rate) for rate in RATES}


def _percentile(rate: str) -> Column:
    # A list without nulls is sorted as bare numbers, and only in ascending order; the unknown come first.
    ascending = F.sort_array(each(rate))
    last = F.size(each(rate)) - 1
    rank = (F.col(f"{rate}_known") - 1) * F.lit(P95)
    below, above = F.floor(rank), F.ceil(rank)
    first = last - (F.col(f"{rate}_known") - 1)
    low, high = (F.get(ascending, (first + found).cast("int")) for found in (below, above))
    between = F.when(low == high, low).otherwise((above - rank) * low + (rank - below) * high)
    return F.when(F.col(f"{rate}_known") > 0, between)


def _or_unknown(rate: str) -> Column:
    return F.coalesce(F.col(rate), F.lit(_UNKNOWN))


def _clusters(partitions: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return one row for each cluster: first, last and busiest bucket, and the usual step from one to the next."""
    totals = (
        partitions.select("cluster", F.posexplode("buckets_back").alias("at", "back"), *map(each, _COUNTED))
        .groupBy("cluster", (-F.col("back")).alias("bucket"))
        .agg(F.sum(_thousandths(*(_at(rate) for rate in _COUNTED))).alias("total"))
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
            F.coalesce(F.expr(MEDIAN_STEP), F.lit(bucket_seconds * MICROS)).alias("step"),
            F.count(F.lit(1)).alias("buckets"),
        )
    )


def _at(rate: str, place: str = "at") -> Column:
    """Return the rate at that place of its list; none where it is unknown."""
    found = F.get(each(rate), F.col(place))
    return F.when(found >= 0, found)


def _thousandths(*rates: Column) -> Column:
    """Return the sum of those known, in whole thousandths; None where none is known."""
    whole = [F.floor(F.coalesce(rate, F.lit(0.0)) * MILLI + F.lit(0.5)) for rate in rates]
    return F.when(F.coalesce(*rates).isNotNull(), sum(whole[1:], whole[0]))


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
    busiest = -F.col("busiest_bucket")
    # No place is before the first, where no list has anything.
    placed = placed.withColumn("at", F.array_position(F.col("buckets_back"), busiest).cast("int") - 1)
    peaks = {f"{rate}_peak": _at(rate) for rate in RATES}
    if FILLED_BACK in placed.columns:
        # The bucket of a sample that lacks a rate stands there twice.
        in_fills = F.array_position(F.col(FILLED_BACK), busiest)
        again = F.size("buckets_back") - F.size(FILLED_BACK) + F.when(in_fills > 0, in_fills) - 1
        placed = placed.withColumn("again", again.cast("int"))
        peaks = {f"{rate}_peak": F.coalesce(_at(rate), _at(rate, "again")) for rate in RATES}
    return placed.withColumns(peaks).select(*LOADS.fieldNames()).repartition(1).sortWithinPartitions(*KEYS)


def _found(placed: DataFrame, known: DataFrame | None) -> DataFrame:
    """Return one row for each cluster: what was seen, and each rule's count."""
    seen = placed.where(F.col("seen") > 0).select("cluster", "topic", "partition")
    missing = _holes(seen) if known is None else _not_seen(seen, known)
    rules = [
        (F.sum(rule.value) if rule.value in placed.columns else F.lit(0)).alias(rule.value)
        for rule in Rule
        if rule is not Rule.MISSING_PARTITION
    ]
    return (
        placed.groupBy("cluster")
        .agg(
            F.sum((F.col("seen") > 0).cast("long")).alias("partitions"),
            F.sum("samples").alias("samples"),
            *(F.max(name).alias(name) for name in ("first_bucket", "last_bucket", "busiest_bucket", "step")),
            (F.sum("seen") / F.sum("expected")).alias("coverage"),
            *rules,
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
        (-F.col(LOG_START)).alias("start_back"),
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
        F.collect_list("start_back").alias("starts_back"),
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
        *(F.sort_array(name) == F.col(name) for name in ("offsets_back", "starts_back")),
    )
    return reduce(and_, conditions)
