"""How fast disks fill, and when they are full."""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level
from reconciler.balance.spark.replica_load import BEFORE, IN_RACK, KEYS

GROWTH = "growth"
_MICROS_PER_DAY = 86_400e6
# No partition grows by a petabyte a day; a steeper slope is that of a broken size.
_MOST_BYTES_PER_DAY = 1e15
# Slopes of doubles depend on the order of rows with their last digits; so many digits of one do not.
_DIGITS = 6


def slope(of: WindowSpec | None = None) -> Column:
    """Return, over the buckets of one partition, the slope of its size by least squares, as `whole_growth`."""
    found = F.regr_slope("size_bytes", F.col("bucket") / F.lit(_MICROS_PER_DAY))
    return whole_growth(found if of is None else found.over(of))


def whole_growth(slope: Column) -> Column:
    """Return a partition's growth in whole bytes a day, so that sums of it are exact; None where it is not known.

    What many partitions grow is the sum of their slopes: the slope of their sum would take one that is made, found or
    lost meanwhile for growth.
    """
    return F.when(F.abs(slope) <= _MOST_BYTES_PER_DAY, significant(slope).cast("long"))


def significant(value: Column) -> Column:
    """Return a number to six significant digits, or to the whole number below that."""
    step = F.pow(F.lit(10.0), F.floor(F.log10(F.abs(value))) - (_DIGITS - 1))
    return F.when(F.abs(value) < 10**_DIGITS, F.round(value)).otherwise(F.round(value / step) * step)


def with_days_until_full(figures: DataFrame, *, has_plan: bool) -> DataFrame:
    """Return the figures with free_bytes (for usable_bytes, which is free before) and days_until_full.

    What is free after a plan is what is free now, less what the disk holds more then. Days are null where what is free
    or the growth is not known, and where nothing grows; 0 where nothing is free. A broker, a rack and a cluster are as
    full as the first of their disks.
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
        .withColumn("days_until_full", _first_full())
        .drop(IN_RACK)
    )


def _first_full() -> Column:
    """Return the days until the first of its log dirs is full, or a whole broker where its log dirs tell nothing.

    What all of its disks have free would last longer than the fullest of them.
    """
    level, days = F.col("level"), F.col("days_until_full")
    is_disk = level.isin(Level.LOG_DIR.value, Level.BROKER.value)
    within = {Level.BROKER: ("broker",), Level.RACK: (IN_RACK,), Level.CLUSTER: ()}
    first = days
    for each, keys in within.items():
        of_disks = F.min(F.when(is_disk, days)).over(Window.partitionBy("side", "cluster", *keys))
        first = F.when(level == each.value, F.least(days, of_disks)).otherwise(first)
    return first
