"""Estimates what partitions carried in time buckets of which they have no sample, or none that tells a rate.

A sum over partitions in a bucket in which one of them is missing is too small, and a gap is no zero. So a rate that a
partition has elsewhere is estimated in each bucket in which the cluster has it. The first that is known counts:

    filledByHour    its own mean in that hour of the week, where half of that hour's buckets were seen of it
    filledByP95     its own 95th percentile, where a quarter of all buckets was seen of it
    filledByTopic   the mean of its topic's others in that very bucket, where a tenth was seen of it
    notFilled       less was seen, or there are no such others: nothing is made up

Partitions rise and fall together, so the first two are multiplied by a factor: what the topic's others carried in that
bucket, divided by what the same ones carry in that hour, or by their percentiles. The factor is that of the topic where
the percentiles of these others are a quarter of the topic's; else it is that of the cluster, by the same test; else
there is none. No estimate is above a terabyte a second.

Rates are whole thousandths of a byte a second, and so are estimates: neither the order of rows nor the number of
workers shows. What is done is linear in the number of samples: at most nine buckets are filled for each that was seen.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.model.load_report import FILLED, Rule
from reconciler.balance.spark.normalise import MILLI, MOST_PER_SECOND, P95, hour_of_week
from reconciler.balance.spark.schemas import KEYS

SERIES = (*KEYS, "rate")
RUNG = "rung"
# One in so many has to be there: of an hour's buckets; of all buckets for the percentile; of all buckets for any fill;
# of the percentiles of a topic or cluster for its factor.
_OF_HOUR, _OWN, _LEAST, _OTHERS = 2, 4, 10, 4
_MOST = int(MOST_PER_SECOND) * MILLI
_OF_TOPIC, _OF_CLUSTER = ("cluster", "topic", "rate"), ("cluster", "rate")


def series_of(rows: DataFrame, rates: Sequence[str]) -> DataFrame:
    """Return one row for each partition and rate that it has: SERIES, `points`, each a bucket and a value, and `p95`.

    `rows` has one row for each partition and bucket, with these rates in thousandths, null where unknown.
    """
    each = F.explode(F.array(*(F.struct(F.lit(rate).alias("rate"), F.col(rate).alias("value")) for rate in rates)))
    return (
        rows.select(*KEYS, "bucket", each.alias("told"))
        .select(*KEYS, "told.rate", "bucket", "told.value")
        .where(F.col("value").isNotNull())
        .groupBy(*SERIES)
        .agg(F.collect_list(F.struct("bucket", "value")).alias("points"))
        .transform(with_p95)
    )


def with_p95(series: DataFrame) -> DataFrame:
    """Add the 95th percentile of the points, in whole thousandths, interpolated linearly between the closest ranks."""
    ascending = F.sort_array("points.value")
    rank = (F.size("points") - 1) * F.lit(P95)
    below, above = F.floor(rank), F.ceil(rank)
    low, high = (F.get(ascending, place.cast("int")) for place in (below, above))
    return series.withColumn("p95", _whole(low + (rank - below) * (high - low)))


def points_of(series: DataFrame) -> DataFrame:
    """Return each point of the series as a row: all columns of the series but `points`, then bucket and value."""
    kept = [name for name in series.columns if name != "points"]
    return series.select(*kept, F.inline("points"))


def fills_of(series: DataFrame, rates: Sequence[str]) -> DataFrame:
    """Return one row for each partition and bucket in which a rate of it is missing, one for all that are not filled.

    Columns: KEYS, bucket (null in the row of all buckets that are not filled because too little was seen), the rates in
    thousandths (null where known or not filled), `rung`: the place in FILLED of its least certain estimate, `times`:
    how many buckets the row stands for.
    """
    of_rate = [F.max(F.when(F.col("rate") == rate, F.col("value"))).alias(rate) for rate in rates]
    rung = F.max(RUNG).alias(RUNG), F.max("times").alias("times")
    return _estimates(series).groupBy(*KEYS, "bucket").agg(*of_rate, *rung)


def averages_of(series: DataFrame, rates: Sequence[str]) -> DataFrame:
    """Return for each partition the averages of its rates over what was seen of each, in thousandths: KEYS, rates."""
    total = F.aggregate("points.value", F.lit(0).cast("long"), lambda so_far, one: so_far + one)
    means = series.select(*KEYS, "rate", _whole(total / F.size("points")).alias("mean"))
    of_rate = [F.max(F.when(F.col("rate") == rate, F.col("mean"))).alias(rate) for rate in rates]
    return means.groupBy(*KEYS).agg(*of_rate)


def with_known(fills: DataFrame, series: DataFrame, rates: Sequence[str]) -> DataFrame:
    """Return the fills with `known_` columns: the rates that are known in a bucket in which another one is filled."""
    # Whether rates of a partition are known in different buckets: hardly ever, and then of few partitions.
    form = F.xxhash64(F.sort_array("points.bucket"))
    apart = series.groupBy(*KEYS).agg(F.min(form).alias("one"), F.max(form).alias("other")).where("one <> other")
    known = points_of(series.join(apart.select(*KEYS), on=list(KEYS), how="left_semi"))
    beside = known.groupBy(*KEYS, "bucket").agg(
        *(F.max(F.when(F.col("rate") == rate, F.col("value"))).alias(f"known_{rate}") for rate in rates)
    )
    return fills.join(beside, on=[*KEYS, "bucket"], how="left")


def rung_counts() -> list[Column]:
    """Return, over rows of `fills_of`, how many were filled in each way, named for the rule."""
    each = enumerate(FILLED)
    return [F.sum(F.when(F.col(RUNG) == place, F.col("times")).otherwise(0)).alias(rule.value) for place, rule in each]


def _estimates(series: DataFrame) -> DataFrame:
    """Return an estimate for each missing point: SERIES, bucket, value (null: not filled), `rung`, `times`."""
    buckets = points_of(series).select(*_OF_CLUSTER, "bucket").distinct()
    known = series.transform(_with_share, buckets)
    telling = known.where(F.col("p95").isNotNull()).drop("grid")
    hours = telling.transform(points_of).transform(_by_hour, buckets)
    sums = telling.transform(points_of).transform(_sums, hours)
    left = F.array_except("grid", F.col("points.bucket"))
    missing = known.where("may_fill").select(*SERIES, "p95", F.explode(left).alias("bucket"))
    in_vain = known.where(~F.col("may_fill")).select(
        *SERIES,
        *(F.lit(None).cast("long").alias(name) for name in ("bucket", "value")),
        F.lit(FILLED.index(Rule.NOT_FILLED)).alias(RUNG),
        (F.size("grid") - F.size("points")).cast("long").alias("times"),
    )
    of_topic, of_cluster = (_factors(sums, telling, keys) for keys in (_OF_TOPIC, _OF_CLUSTER))
    estimated = (
        missing.withColumn("hour", hour_of_week(F.col("bucket")))
        .join(hours, on=[*SERIES, "hour"], how="left")
        .join(of_topic, on=[*_OF_TOPIC, "bucket"], how="left")
        .join(of_cluster.select(*_OF_CLUSTER, "bucket", *_renamed()), on=[*_OF_CLUSTER, "bucket"], how="left")
        .select(*SERIES, "bucket", *_estimate(), F.lit(1).cast("long").alias("times"))
    )
    return estimated.unionByName(in_vain)


def _with_share(series: DataFrame, buckets: DataFrame) -> DataFrame:
    """Add `grid`, the buckets in which the cluster has the rate, and `may_fill`; keep `p95` where enough was seen."""
    grids = buckets.groupBy(*_OF_CLUSTER).agg(F.collect_list("bucket").alias("grid"))
    seen, due = F.size("points"), F.size("grid")
    return series.join(F.broadcast(grids), on=list(_OF_CLUSTER), how="inner").select(
        *SERIES,
        "points",
        "grid",
        (seen * _LEAST >= due).alias("may_fill"),
        F.when(seen * _OWN >= due, F.col("p95")).alias("p95"),
    )


def _by_hour(points: DataFrame, buckets: DataFrame) -> DataFrame:
    """Return the mean of each series in each hour of the week of which enough was seen: SERIES, hour, by_hour."""
    hour = hour_of_week(F.col("bucket")).alias("hour")
    due = buckets.groupBy(*_OF_CLUSTER, hour).agg(F.count(F.lit(1)).alias("due"))
    seen = points.groupBy(*SERIES, hour).agg(F.sum("value").alias("total"), F.count(F.lit(1)).alias("seen"))
    return (
        seen.join(F.broadcast(due), on=[*_OF_CLUSTER, "hour"], how="inner")
        .where(F.col("seen") * _OF_HOUR >= F.col("due"))
        .select(*SERIES, "hour", _whole(F.col("total") / F.col("seen")).alias("by_hour"))
    )


def _sums(points: DataFrame, hours: DataFrame) -> DataFrame:
    """Return what the partitions of each topic that were seen in a bucket carried there, and what they usually do.

    Columns: _OF_TOPIC, bucket; of those with a mean in that hour `in_hour`, the sums of these means `by_hour` and of
    their percentiles `p95_in_hour`; of all `carried`, the sum of their percentiles `p95`, and how many `partitions`.
    """
    return (
        points.withColumn("hour", hour_of_week(F.col("bucket")))
        .join(hours, on=[*SERIES, "hour"], how="left")
        .groupBy(*_OF_TOPIC, "bucket")
        .agg(
            F.sum(F.when(F.col("by_hour").isNotNull(), F.col("value"))).alias("in_hour"),
            F.sum(F.when(F.col("by_hour").isNotNull(), F.col("p95"))).alias("p95_in_hour"),
            F.sum("by_hour").alias("by_hour"),
            F.sum("value").alias("carried"),
            F.sum("p95").alias("p95"),
            F.count(F.lit(1)).alias("partitions"),
        )
    )


def _factors(sums: DataFrame, telling: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return how much more than usually was carried in each bucket: keys, bucket, hour_factor, p95_factor, mean.

    A factor is null where those that were seen carry too small a part of all. `mean` is that of a partition.
    """
    names = ("in_hour", "by_hour", "p95_in_hour", "carried", "p95", "partitions")
    together = (
        sums if keys == _OF_TOPIC else sums.groupBy(*keys, "bucket").agg(*(F.sum(each).alias(each) for each in names))
    )
    wholes = telling.groupBy(*keys).agg(F.sum("p95").alias("whole"))
    return together.join(F.broadcast(wholes), on=list(keys), how="inner").select(
        *keys,
        "bucket",
        _factor("in_hour", "by_hour", "p95_in_hour").alias("hour_factor"),
        _factor("carried", "p95", "p95").alias("p95_factor"),
        _whole(F.col("carried") / F.col("partitions")).alias("mean"),
    )


def _factor(carried: str, usual: str, part: str) -> Column:
    speaks = (F.col(usual) > 0) & (F.col(part) * _OTHERS >= F.col("whole"))
    return F.when(speaks, F.col(carried) / F.col(usual))


def _renamed() -> list[Column]:
    return [F.col(name).alias(f"cluster_{name}") for name in ("hour_factor", "p95_factor")]


def _estimate() -> list[Column]:
    """Return `value` and `rung`, the place in FILLED of how it was made."""
    is_filled = [F.col(name).isNotNull() for name in ("by_hour", "p95", "mean")]
    by_hour, by_p95 = (
        _whole(F.col(usual) * F.coalesce(factor, f"cluster_{factor}", F.lit(1.0)))
        for usual, factor in (("by_hour", "hour_factor"), ("p95", "p95_factor"))
    )
    value, rung = F.lit(None).cast("long"), F.lit(FILLED.index(Rule.NOT_FILLED))
    for place, made in reversed(list(enumerate((by_hour, by_p95, F.col("mean"))))):
        value = F.when(is_filled[place], F.least(made, F.lit(_MOST))).otherwise(value)
        rung = F.when(is_filled[place], F.lit(place)).otherwise(rung)
    return [value.alias("value"), rung.alias(RUNG)]


def _whole(value: Column) -> Column:
    return F.floor(value + F.lit(0.5)).cast("long")
