"""Puts all figures of all levels into one table: counts, sizes, rates, growth, days until full, leader imbalance.

Rates of samples come from `buckets`. Those of loads are made here: averages, peaks and growth add up over partitions;
percentiles and maxima do not, and are left unknown. Sums are of whole thousandths, as in `buckets`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level
from reconciler.balance.spark.buckets import sent_by_leader
from reconciler.balance.spark.forecast import DAYS_UNTIL_FULL, FORECAST_DAYS, HAS_FORECAST
from reconciler.balance.spark.growth import significant, whole_growth
from reconciler.balance.spark.normalise import MILLI, MOST_PER_SECOND
from reconciler.balance.spark.replica_load import BEFORE, IN_RACK, KEYS, PARTITION, at_levels, by_carrier

RATES = tuple(f"{way}_{what}" for way in ("in", "out") for what in ("average", "p95", "maximum", "peak"))
# Thousandths of a byte a second, and ten thousandths of a percent: more is noise of the order of rows.
_DECIMALS, _SHARE_DECIMALS = 3, 6
_SUMS = ("in_average", "in_peak", "in_covered", "out_average", "out_peak", "out_covered", "growth")


def figures(counts: DataFrame, rates: DataFrame, *, has_plan: bool) -> DataFrame:
    """Return one row for each side and broker, rack, log dir, topic and cluster.

    `counts` is as `replica_load` returns it. `rates` has the key, any of RATES, in_covered and out_covered (samples or
    coverage, summed over replicas and over leaders, as a share of one each), growth_bytes_per_day. Columns: the keys,
    then IN_RACK, counts, RATES, in_coverage, out_coverage, growth_bytes_per_day, total_bytes, free_bytes,
    leader_imbalance. What holds no replica takes in nothing, and what leads nothing sends nothing: 0 where the
    cluster's rate is known. `with_days_until_full` comes after it.
    """
    missing = [name for name in RATES if name not in rates.columns]
    whole = rates.select("*", *(F.lit(None).cast("double").alias(name) for name in missing)) if missing else rates
    # One shuffle for all that is asked within a cluster, here and of the figures afterwards.
    joined = counts.withColumn("key", F.xxhash64(*KEYS)).join(whole, on="key", how="left").repartition("cluster")
    idle = {"in": F.col("replicas") == 0, "out": F.col("leaders") == 0}
    filled = joined.select(
        *counts.columns,
        *(F.round(_or_idle(name, idle[name.partition("_")[0]]), _DECIMALS).alias(name) for name in RATES),
        _coverage("in", "replicas"),
        _coverage("out", "leaders"),
        "growth_bytes_per_day",
        _leader_imbalance().alias("leader_imbalance"),
    )
    return filled.transform(_with_free_bytes, has_plan).drop("preferred_led")


def _or_idle(name: str, is_idle: Column) -> Column:
    of_cluster = F.max(F.when(F.col("level") == Level.CLUSTER.value, F.col(name)))
    is_known = of_cluster.over(Window.partitionBy("side", "cluster")).isNotNull()
    return F.coalesce(F.col(name), F.when(is_idle & is_known, F.lit(0.0)))


def _coverage(way: str, of: str) -> Column:
    share = F.col(f"{way}_covered") / F.col(of)
    return F.when(F.col(of) > 0, F.round(F.coalesce(share, F.lit(0.0)), _SHARE_DECIMALS)).alias(f"{way}_coverage")


def _leader_imbalance() -> Column:
    """Return Kafka's ratio (its controller's `leader.imbalance.per.broker.percentage` is held against it)."""
    preferred = F.col("preferred_leaders")
    ratio = (preferred - F.col("preferred_led")) / preferred
    is_broker = F.col("level") == Level.BROKER.value
    return F.when(is_broker & (preferred > 0), F.round(ratio, _SHARE_DECIMALS))


def _with_free_bytes(figures: DataFrame, has_plan: bool) -> DataFrame:  # noqa: FBT001 - handed on by `transform`
    """Return the figures with free_bytes (for usable_bytes, which is free before).

    What is free after a plan is what is free now, less what the disk holds more then.
    """
    size = F.coalesce("size_bytes", F.lit(0))
    of_key = Window.partitionBy(*(key for key in KEYS if key != "side"))
    now = F.coalesce(F.max(F.when(F.col("side") == BEFORE, size)).over(of_key), F.lit(0)) if has_plan else size
    is_whole = F.col("unknown_sizes") == 0
    free = F.coalesce(
        F.col("usable_bytes") - (size - now), F.when(is_whole, F.col("total_bytes") - F.col("size_bytes"))
    )
    return figures.withColumn("free_bytes", free).drop("usable_bytes")


def with_days_until_full(figures: DataFrame, forecasts: DataFrame | None = None) -> DataFrame:
    """Return the figures without IN_RACK and with DAYS_UNTIL_FULL.

    `forecasts` are as `forecast.disk_forecasts` makes them. A row without one has what is free over its growth: null
    where either is unknown or nothing grows, 0 where nothing is free. A broker, a rack and a cluster are as full as the
    first of their disks.
    """
    # `greatest` leaves out what is null, so it alone would call a disk of unknown size full.
    not_negative = F.when(F.col("free_bytes").isNotNull(), F.greatest(F.col("free_bytes"), F.lit(0)))
    growth = F.col("growth_bytes_per_day")
    days = F.when(growth > 0, F.round(not_negative / growth, 1))
    if forecasts is not None:
        figures = figures.join(F.broadcast(forecasts), on=list(KEYS), how="left")
        days = F.when(F.col(HAS_FORECAST), F.col(FORECAST_DAYS)).otherwise(days)
    days_by_row = figures.withColumn(DAYS_UNTIL_FULL, days)
    first_full = days_by_row.withColumn(DAYS_UNTIL_FULL, _first_full())
    return first_full.drop(IN_RACK, FORECAST_DAYS, HAS_FORECAST)


def _first_full() -> Column:
    """Return the days until the first log dir of each row is full, or the broker's own days if its log dirs have none.

    The free bytes of all disks together would last longer than those of the fullest disk.
    """
    level, days = F.col("level"), F.col(DAYS_UNTIL_FULL)
    is_disk = level.isin(Level.LOG_DIR.value, Level.BROKER.value)
    within = {Level.BROKER: ("broker",), Level.RACK: (IN_RACK,), Level.CLUSTER: ()}
    first = days
    for each, keys in within.items():
        of_disks = F.min(F.when(is_disk, days)).over(Window.partitionBy("side", "cluster", *keys))
        first = F.when(level == each.value, F.least(days, of_disks)).otherwise(first)
    return first


def rates_of_loads(loads: DataFrame, replicas: DataFrame, known: DataFrame) -> DataFrame:
    """Return at each level the sums of its replicas' loads.

    Columns: key, in_average, in_peak, out_average, out_peak, in_covered and out_covered (the coverage of its
    replicas, and of its leaders, summed), growth_bytes_per_day.
    """
    load = loads.select(
        *PARTITION,
        *(_exact(name) for name in ("bytes_in_avg", "bytes_in_peak", "bytes_out_avg", "bytes_out_peak")),
        whole_growth(F.col("growth_bytes_per_day")).alias("growth"),
        F.coalesce("coverage", F.lit(0.0)).alias("coverage"),
    )
    each = replicas.join(load, on=list(PARTITION), how="inner")
    carried = each.select(
        "carriers",
        F.col("bytes_in_avg").alias("in_average"),
        F.col("bytes_in_peak").alias("in_peak"),
        _covered(F.col("bytes_in_avg").isNotNull()).alias("in_covered"),
        _sent("avg").alias("out_average"),
        _sent("peak").alias("out_peak"),
        _covered(_sent("avg").isNotNull()).alias("out_covered"),
        "growth",
    )
    summed = [F.sum(name).alias(name) for name in _SUMS]
    return (
        by_carrier(carried, *summed)
        .transform(at_levels, known)
        .groupBy("key")
        .agg(*summed)
        .select(
            "key",
            *((F.col(name) / MILLI).alias(name) for name in _SUMS if name != "growth"),
            significant(F.col("growth")).alias("growth_bytes_per_day"),
        )
    )


def _exact(name: str) -> Column:
    known = F.abs(F.col(name)) <= MOST_PER_SECOND
    return F.when(known, F.round(F.col(name) * MILLI).cast("long")).alias(name)


def _sent(statistic: str) -> Column:
    return sent_by_leader(F.col(f"bytes_in_{statistic}"), F.col(f"bytes_out_{statistic}"), "is_leader")


def _covered(is_known: Column) -> Column:
    return F.when(is_known, F.round(F.col("coverage") * MILLI).cast("long")).otherwise(0)
