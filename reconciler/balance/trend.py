"""How fast disks fill, and when they are full."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.replica_load import BEFORE, KEYS, NO_BROKER, NO_TEXT
from reconciler.model.balance_report import Level

SECONDS_PER_DAY = 86400
# Slopes of doubles depend on their last digits on the order of rows; so many digits of one do not.
_DIGITS = 6
_EXACT = 10**_DIGITS


def growth(by_bucket: DataFrame) -> DataFrame:
    """Return the keys and growth_bytes_per_day: the slope of the size over the buckets, by least squares.

    A replica that was not seen in a bucket counts there as the mean of those that were; null below two buckets.
    """
    seen = F.col("seen_sizes")
    most = F.max("seen_sizes").over(Window.partitionBy(*KEYS))
    known = by_bucket.where(seen > 0).select(
        *KEYS,
        (F.col("size_bytes") * most / seen).alias("size_bytes"),
        (F.unix_micros("bucket") / (SECONDS_PER_DAY * 1e6)).alias("day"),
    )
    slope = F.regr_slope("size_bytes", "day")
    return known.groupBy(*KEYS).agg(significant(slope).alias("growth_bytes_per_day"))


def significant(value: Column) -> Column:
    """Return a number to six significant digits, or to the whole number below that."""
    step = F.pow(F.lit(10.0), F.floor(F.log10(F.abs(value))) - (_DIGITS - 1))
    return F.when(F.abs(value) < _EXACT, F.round(value)).otherwise(F.round(value / step) * step)


def disks(log_dirs: DataFrame, brokers: DataFrame) -> DataFrame:
    """Return what disks hold at each level, null where one does not tell it.

    Columns: cluster, level, broker, rack, log_dir, topic, total_bytes, usable_bytes.
    """
    racks = brokers.select("cluster", "broker", F.coalesce("rack", F.lit(NO_TEXT)).alias("rack"))
    each = racks.join(log_dirs, on=["cluster", "broker"], how="left")
    of_level = (
        (Level.CLUSTER, F.lit(NO_BROKER), F.lit(NO_TEXT), F.lit(NO_TEXT)),
        (Level.RACK, F.lit(NO_BROKER), F.col("rack"), F.lit(NO_TEXT)),
        (Level.BROKER, F.col("broker"), F.lit(NO_TEXT), F.lit(NO_TEXT)),
        (Level.LOG_DIR, F.col("broker"), F.lit(NO_TEXT), F.col("log_dir")),
    )
    at = F.array(
        *(
            F.struct(
                F.lit(level.value).alias("level"),
                broker.alias("broker"),
                rack.alias("rack"),
                log_dir.alias("log_dir"),
                F.lit(NO_TEXT).alias("topic"),
            )
            for level, broker, rack, log_dir in of_level
        )
    )
    named = each.select("cluster", F.explode(at).alias("at"), "total_bytes", "usable_bytes")
    return (
        named.select("cluster", "at.*", "total_bytes", "usable_bytes")
        .where(F.col("log_dir").isNotNull())
        .groupBy("cluster", "level", "broker", "rack", "log_dir", "topic")
        .agg(_whole("total_bytes"), _whole("usable_bytes"))
    )


def with_days_until_full(figures: DataFrame, disks: DataFrame) -> DataFrame:
    """Return the figures with total_bytes, free_bytes and days_until_full.

    What is free after a plan is what is free now, less what the disk holds more then. Days are null where what is free
    or the growth is not known, and where nothing grows; 0 where nothing is free.
    """
    now = F.max(F.when(F.col("side") == BEFORE, F.col("size_bytes"))).over(
        Window.partitionBy(*(key for key in KEYS if key != "side"))
    )
    is_whole = F.col("unknown_sizes") == 0
    usable = F.col("usable_bytes") - (F.coalesce("size_bytes", F.lit(0)) - F.coalesce(now, F.lit(0)))
    free = F.coalesce(usable, F.when(is_whole, F.col("total_bytes") - F.col("size_bytes")))
    days = F.greatest(F.col("free_bytes"), F.lit(0)) / F.col("growth_bytes_per_day")
    return (
        figures.join(F.broadcast(disks), on=[key for key in KEYS if key != "side"], how="left")
        .withColumn("free_bytes", free)
        .drop("usable_bytes")
        .withColumn("days_until_full", F.when(F.col("growth_bytes_per_day") > 0, F.round(days, 1)))
    )


def _whole(name: str) -> Column:
    """Return the sum, null where one is not known."""
    is_known = F.count_if(F.col(name).isNull()) == 0
    return F.when(is_known, F.sum(name)).alias(name)
