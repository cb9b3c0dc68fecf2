"""Computes how evenly brokers carry each measure: the definitions of `model.evenness`, in Spark."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level, Measure, RateStatistic

_DECIMALS = 6
_NO_STATISTIC = ""
_GROUP = ("side", "cluster", "measure", "statistic")
_COUNTED = {"replicas": Measure.REPLICAS, "leaders": Measure.LEADERS, "size_bytes": Measure.SIZE}
_WEIGHED_BY = {
    Measure.REPLICAS: "replicas_weight",
    Measure.LEADERS: "leaders_weight",
    Measure.SIZE: "disk_weight",
    Measure.IN: "network_weight",
    Measure.OUT: "network_weight",
}
_WAYS = {"in": Measure.IN, "out": Measure.OUT}


def skew(figures: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return how even each measure is over the brokers of a cluster.

    Columns: side, cluster, measure, statistic (empty for counts and sizes), max_over_mean, coefficient_of_variation,
    gini. A broker of capacity 0 is left out; a measure that is not known of every other broker has no row, nor has one
    that comes to nothing.
    """
    return figures.transform(_measured, brokers).transform(_even)


def _measured(figures: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return one row for each side, cluster, broker and measure: value (for each unit of capacity), capacity.

    The size of a broker is all that lies on its disks, where these weigh by their size.
    """
    weights = [*sorted({*_WEIGHED_BY.values()}), "foreign_bytes"]
    capacities = brokers.select("cluster", "broker", "capacity", *weights).where(F.col("capacity") > 0)
    counted = {name: F.col(name).cast("double") for name in _COUNTED}
    counted["size_bytes"] += F.col("foreign_bytes")
    values = [(measure, _NO_STATISTIC, counted[name]) for name, measure in sorted(_COUNTED.items())] + [
        (measure, statistic.value, F.col(f"{way}_{statistic.value}"))
        for way, measure in _WAYS.items()
        for statistic in RateStatistic
    ]
    each = F.array(
        *(
            F.struct(
                F.lit(measure.value).alias("measure"),
                F.lit(statistic).alias("statistic"),
                (value / F.col(_WEIGHED_BY[measure])).alias("value"),
                F.col(_WEIGHED_BY[measure]).cast("double").alias("capacity"),
            )
            for measure, statistic, value in values
        )
    )
    return (
        figures.where(F.col("level") == Level.BROKER.value)
        .join(F.broadcast(capacities), on=["cluster", "broker"], how="inner")
        .select("side", "cluster", "broker", F.explode(each).alias("at"))
        .select("side", "cluster", "broker", "at.*")
    )


def _even(measured: DataFrame) -> DataFrame:
    value, capacity = F.col("value"), F.col("capacity")
    in_order = Window.partitionBy(*_GROUP).orderBy("value", "broker")
    below = in_order.rowsBetween(Window.unboundedPreceding, -1)
    group = in_order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    placed = measured.select(
        *_GROUP,
        "value",
        "capacity",
        F.coalesce(F.sum("capacity").over(below), F.lit(0.0)).alias("below"),
        (F.sum(value * capacity).over(group) / F.sum("capacity").over(group)).alias("mean"),
        F.count_if(value.isNull()).over(group).alias("unknown"),
    ).where((F.col("unknown") == 0) & (F.col("mean") > 0))
    mean = F.first("mean")
    whole = F.sum("capacity")
    # Over members in ascending order, the sum of all differences is that of value x (members below - members above).
    ranked = F.sum(value * capacity * (2 * F.col("below") + capacity))
    return placed.groupBy(*_GROUP).agg(
        F.round(F.max("value") / mean, _DECIMALS).alias("max_over_mean"),
        F.round(F.sqrt(F.sum(capacity * F.pow(value - F.col("mean"), 2)) / whole) / mean, _DECIMALS).alias(
            "coefficient_of_variation"
        ),
        F.round(ranked / (whole * whole * mean) - 1, _DECIMALS).alias("gini"),
    )
