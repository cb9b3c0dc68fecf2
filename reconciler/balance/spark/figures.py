"""All figures of all levels in one table: counts, sizes, rates, growth, days until full."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level
from reconciler.balance.spark.replica_load import KEYS
from reconciler.balance.spark.trend import with_days_until_full

RATES = tuple(f"{way}_{what}" for way in ("in", "out") for what in ("average", "p95", "maximum", "peak"))
_DECIMALS = 3
_COVERAGE_DECIMALS = 6


def figures(counts: DataFrame, rates: DataFrame, *, has_plan: bool) -> DataFrame:
    """Return one row for each side and broker, rack, log dir, topic and cluster.

    `counts` is as `replica_load` returns it. `rates` has the keys, any of RATES, in_covered and out_covered (samples or
    coverage, summed over replicas and over leaders, as a share of one each), growth_bytes_per_day. Columns: the keys,
    then counts, RATES, in_coverage, out_coverage, growth_bytes_per_day, total_bytes, free_bytes, days_until_full,
    leader_imbalance. What holds no replica takes in nothing, and what leads nothing sends nothing: 0 where the
    cluster's rate is known.
    """
    missing = [name for name in RATES if name not in rates.columns]
    whole = rates.select("*", *(F.lit(None).cast("double").alias(name) for name in missing)) if missing else rates
    # One shuffle for all that is asked within a cluster, here and of the figures afterwards.
    joined = counts.join(whole, on=list(KEYS), how="left").repartition("cluster")
    idle = {"in": F.col("replicas") == 0, "out": F.col("leaders") == 0}
    filled = joined.select(
        *counts.columns,
        *(F.round(_or_idle(name, idle[name.partition("_")[0]]), _DECIMALS).alias(name) for name in RATES),
        _coverage("in", "replicas"),
        _coverage("out", "leaders"),
        "growth_bytes_per_day",
        _leader_imbalance().alias("leader_imbalance"),
    )
    return with_days_until_full(filled, has_plan=has_plan).drop("preferred_led")


def _or_idle(name: str, is_idle: Column) -> Column:
    of_cluster = F.max(F.when(F.col("level") == Level.CLUSTER.value, F.col(name)))
    is_known = of_cluster.over(Window.partitionBy("side", "cluster")).isNotNull()
    return F.coalesce(F.col(name), F.when(is_idle & is_known, F.lit(0.0)))


def _coverage(way: str, of: str) -> Column:
    share = F.col(f"{way}_covered") / F.col(of)
    return F.when(F.col(of) > 0, F.round(F.coalesce(share, F.lit(0.0)), _COVERAGE_DECIMALS)).alias(f"{way}_coverage")


def _leader_imbalance() -> Column:
    """Return Kafka's ratio (its controller's `leader.imbalance.per.broker.percentage` is held against it)."""
    preferred = F.col("preferred_leaders")
    ratio = (preferred - F.col("preferred_led")) / preferred
    is_broker = F.col("level") == Level.BROKER.value
    return F.when(is_broker & (preferred > 0), F.round(ratio, _COVERAGE_DECIMALS))
