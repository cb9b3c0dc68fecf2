"""Rates and growth of brokers, racks, log dirs, topics and clusters from the loads of partitions.

Averages and peaks add up over partitions, and growth does; percentiles and maxima do not, and are left unknown. Sums
are of whole thousandths, as in `buckets`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.spark.replica_load import KEYS, PARTITION, PLACE, at_every_level
from reconciler.balance.spark.rows import MILLI, MOST_BYTES_PER_SECOND
from reconciler.balance.spark.trend import significant, whole_growth

_SUMS = (
    "in_average",
    "in_peak",
    "in_covered",
    "out_average",
    "out_peak",
    "out_covered",
    "growth",
)


def rates(loads: DataFrame, replicas: DataFrame) -> DataFrame:
    """Return at each level the sums of its replicas' loads.

    Columns: the keys, in_average, in_peak, out_average, out_peak, in_covered and out_covered (the coverage of its
    replicas, and of its leaders, summed), growth_bytes_per_day.
    """
    known = loads.select(
        *PARTITION,
        *(_exact(name) for name in ("bytes_in_avg", "bytes_in_peak", "bytes_out_avg", "bytes_out_peak")),
        whole_growth(F.col("growth_bytes_per_day")).alias("growth"),
        F.coalesce("coverage", F.lit(0.0)).alias("coverage"),
    )
    each = replicas.join(known, on=list(PARTITION), how="inner")
    carried = each.select(
        "side",
        *PARTITION,
        "broker",
        "rack",
        "log_dir",
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
        carried.groupBy("side", "cluster", *PLACE)
        .agg(*summed)
        .transform(at_every_level, _SUMS)
        .groupBy(*KEYS)
        .agg(*summed)
        .select(
            *KEYS,
            *((F.col(name) / MILLI).alias(name) for name in _SUMS if name != "growth"),
            significant(F.col("growth")).alias("growth_bytes_per_day"),
        )
    )


def _exact(name: str) -> Column:
    known = F.abs(F.col(name)) <= MOST_BYTES_PER_SECOND
    return F.when(known, F.round(F.col(name) * MILLI).cast("long")).alias(name)


def _sent(statistic: str) -> Column:
    fetched = F.when(F.col("followers") > 0, F.col(f"bytes_in_{statistic}") * F.col("followers")).otherwise(0)
    return F.when(F.col("is_leader"), F.col(f"bytes_out_{statistic}") + fetched)


def _covered(is_known: Column) -> Column:
    return F.when(is_known, F.round(F.col("coverage") * MILLI).cast("long")).otherwise(0)
