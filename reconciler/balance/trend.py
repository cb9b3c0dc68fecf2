"""How fast disks fill, and when they are full."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.replica_load import BEFORE, KEYS

_MICROS_PER_DAY = 86_400e6
# Slopes of doubles depend on the order of rows with their last digits; so many digits of one do not.
_DIGITS = 6


def growth() -> Column:
    """Return, over the buckets of one key, the slope of its size by least squares, in bytes a day.

    A replica that was not seen in a bucket counts there as the mean of those that were; null below two buckets.
    """
    mean_size = F.when(F.col("seen_sizes") > 0, F.col("size_bytes") / F.col("seen_sizes"))
    slope = F.regr_slope(mean_size, F.col("bucket") / F.lit(_MICROS_PER_DAY))
    return significant(slope * F.max("seen_sizes"))


def significant(value: Column) -> Column:
    """Return a number to six significant digits, or to the whole number below that."""
    step = F.pow(F.lit(10.0), F.floor(F.log10(F.abs(value))) - (_DIGITS - 1))
    return F.when(F.abs(value) < 10**_DIGITS, F.round(value)).otherwise(F.round(value / step) * step)


def with_days_until_full(figures: DataFrame, *, has_plan: bool) -> DataFrame:
    """Return the figures with free_bytes (for usable_bytes, which is free before) and days_until_full.

    What is free after a plan is what is free now, less what the disk holds more then. Days are null where what is free
    or the growth is not known, and where nothing grows; 0 where nothing is free.
    """
    size = F.coalesce("size_bytes", F.lit(0))
    of_key = Window.partitionBy(*(key for key in KEYS if key != "side"))
    now = F.coalesce(F.max(F.when(F.col("side") == BEFORE, size)).over(of_key), F.lit(0)) if has_plan else size
    is_whole = F.col("unknown_sizes") == 0
    free = F.coalesce(
        F.col("usable_bytes") - (size - now), F.when(is_whole, F.col("total_bytes") - F.col("size_bytes"))
    )
    # `greatest` leaves out what is null, so it alone would call a disk of unknown size full.
    not_negative = F.when(F.col("free_bytes").isNotNull(), F.greatest(F.col("free_bytes"), F.lit(0)))
    days = not_negative / F.col("growth_bytes_per_day")
    return (
        figures.withColumn("free_bytes", free)
        .drop("usable_bytes")
        .withColumn("days_until_full", F.when(F.col("growth_bytes_per_day") > 0, F.round(days, 1)))
    )
