"""Makes rates that were not measured, from the growth of offsets and sizes between neighbouring samples.

Messages a second are the growth of the end offset over the time since the sample before; bytes a second are messages
times the partition's mean record size, which is its growth of size over its growth of offsets wherever the size did not
fall (retention and compaction make sizes fall; that is no negative inflow). Without offsets, the growth of the size
itself counts while it does not fall. Bytes out do not follow from growth and stay unknown.

A log end offset that fell is that of a new log if it is less than half of the one before, and the next one does not
stand where that one stood: its value alone is the growth. Where log start offsets are known and records were deleted
before, they decide: a new log begins before the older one's start, and ends before it too, or begins at 0. Any other
fall is that of a replica which lags, told because the leader's broker did not answer, or of a log that was cut: such a
sample tells nothing of growth, and what comes next is measured from the sample before it.
"""

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.normalise import GROUP, MARKS, MICROS, MICROS_PER_DAY, by_time, is_kept, mark, marks, only
from reconciler.balance.spark.schemas import KEYS, LOG_START

GROWTH = "growth"
MOST_BYTES = 1e15
"""No partition holds a petabyte, or grows by one a day: a larger size, or a steeper slope, is that of a broken size."""
# Slopes of doubles depend on the order of rows with their last digits; so many digits of one do not.
_DIGITS = 6


def with_growth(samples: DataFrame) -> DataFrame:
    """Return normalised samples whose unknown `messages_in` and `bytes_in` are filled where growth tells them."""
    told = samples.withColumn("at", -F.col("moment_back")).transform(grown, by_time(), is_kept())
    found = mark(Rule.COUNTER_RESET, F.col("is_new")), mark(Rule.FALLEN_OFFSET, F.col("is_back"))
    return told.withColumn(MARKS, marks(F.col(MARKS), *found)).transform(_record_size).transform(_filled)


def with_bytes_grown(samples: DataFrame) -> DataFrame:
    """Return the same for whom only bytes are of interest: marks tell what was done to make `bytes_in`, no more."""
    was_known = F.col("bytes_in").isNotNull()
    marks_before = samples.withColumns({"told": F.col(MARKS), "was_known": was_known})
    grown = marks_before.transform(with_growth)
    in_vain = marks(F.col("told"), only(Rule.FALLEN_OFFSET))
    found = F.when(F.col("was_known"), F.col("told")).when(F.col("bytes_in").isNull(), in_vain).otherwise(F.col(MARKS))
    return grown.withColumn(MARKS, found).drop("told", "was_known")


def grown(samples: DataFrame, newest_first: WindowSpec, is_counted: Column) -> DataFrame:
    """Add what grew since the sample `before`: messages, bytes and seconds, each None where that is not known.

    Also whether the log `is_new` there, and whether its offset `is_back` behind an earlier one: such a sample tells
    nothing, and the next one looks past it. `at` is a sample's time in microseconds.
    """
    return samples.transform(_beside_the_one_before, newest_first, is_counted).transform(_grown)


def _beside_the_one_before(samples: DataFrame, newest_first: WindowSpec, is_counted: Column) -> DataFrame:
    """Add `is_new`, `is_back` and `before`: the last sample that has an offset or a size, and is not back."""
    offset, older = (F.col(f"{name}.end_offset") for name in ("log", "older"))
    log = F.struct("end_offset", F.col(LOG_START).alias("start"))
    log = F.when(is_counted & F.col("end_offset").isNotNull(), log)
    beside = {
        "older": F.expr("lead(log) ignore nulls").over(newest_first),
        "newer": F.expr("lag(log) ignore nulls").over(newest_first),
    }
    is_told = is_counted & (offset.isNotNull() | F.col("size_bytes").isNotNull())
    here = F.when(is_told & ~F.col("is_back"), F.struct("at", "end_offset", "size_bytes"))
    return (
        samples.withColumn("log", log)
        .withColumns(beside)
        .withColumn("is_new", _surely(_is_new()))
        .withColumn("is_back", _surely((offset < older) & ~F.col("is_new")))
        .withColumn("here", here)
        .withColumn("before", F.expr("lead(here) ignore nulls").over(newest_first))
        .drop("log", "older", "newer")
    )


def _is_new() -> Column:
    """Return whether the `log` began anew after the `older` sample; the `newer` one does not go on from that."""

    def ends(log: str) -> Column:
        return F.col(f"{log}.end_offset")

    def starts(log: str) -> Column:
        return F.col(f"{log}.start")

    by_end = (ends("log") < ends("older") / 2) & F.coalesce(ends("newer") < ends("older"), F.lit(col=True))
    is_before = (starts("log") < starts("older")) & F.coalesce(starts("newer") < starts("older"), F.lit(col=True))
    by_start = is_before & ((ends("log") < starts("older")) | (starts("log") == 0))
    return F.when((starts("older") > 0) & starts("log").isNotNull(), by_start).otherwise(by_end)


def _grown(samples: DataFrame) -> DataFrame:
    offset, size = F.col("end_offset"), F.col("size_bytes")
    since_offset, since_size = (offset - F.col("before.end_offset")), size - F.col("before.size_bytes")
    is_new = _surely(F.col("is_new") & since_offset.isNotNull())
    # After an offset that fell the next may be higher than that one, and still lower than those before it.
    is_back = F.col("is_back") | _surely(F.col("here").isNotNull() & ~F.col("is_new") & (since_offset < 0))
    has_both = F.col("here").isNotNull() & F.col("before").isNotNull() & ~F.col("is_back")
    return samples.withColumns({"is_new": is_new, "is_back": is_back}).withColumns(
        {
            "messages": F.when(has_both, F.when(F.col("is_new"), offset).otherwise(since_offset)),
            "bytes": F.when(has_both, F.when(F.col("is_new"), size).when(since_size >= 0, since_size)),
            "seconds": F.when(has_both, (F.col("at") - F.col("before.at")) / F.lit(MICROS)),
        }
    )


def _surely(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(col=False))


def _record_size(samples: DataFrame) -> DataFrame:
    """Add `record_size`, the mean of the partition; None where its size never grew with its offset."""
    whole = Window.partitionBy(*GROUP)
    counts = F.col("bytes").isNotNull() & (F.col("messages") > 0)
    bytes_of = F.sum(F.when(counts, F.col("bytes").cast("double"))).over(whole)
    messages_of = F.sum(F.when(counts, F.col("messages").cast("double"))).over(whole)
    return samples.withColumn("record_size", F.when(bytes_of > 0, bytes_of / messages_of))


def _filled(samples: DataFrame) -> DataFrame:
    messages_in = F.col("messages") / F.col("seconds")
    bytes_in = F.when(F.col("messages") == 0, F.lit(0.0)).otherwise(messages_in * F.col("record_size"))
    bytes_in = F.coalesce(bytes_in, F.when(F.col("messages").isNull(), F.col("bytes") / F.col("seconds")))
    made = _is_made("messages_in", messages_in) | _is_made("bytes_in", bytes_in)
    return samples.withColumns(
        {
            MARKS: marks(F.col(MARKS), mark(Rule.ESTIMATED, made)),
            "messages_in": F.coalesce("messages_in", messages_in),
            "bytes_in": F.coalesce(F.col("bytes_in"), bytes_in),
        }
    ).drop("at", "is_new", "is_back", "here", "before", "messages", "bytes", "seconds", "record_size")


def _is_made(name: str, value: Column) -> Column:
    return F.col(name).isNull() & value.isNotNull()


def slopes_of(rows: DataFrame) -> DataFrame:
    """Return what each partition grows a day by its rows (`buckets.alone` or `beside_others`), which may tell it."""
    if GROWTH in rows.columns:
        return rows.where(F.col(GROWTH).isNotNull()).select(*KEYS, GROWTH)
    return rows.where(F.col("size_bytes").isNotNull()).groupBy(*KEYS).agg(slope().alias(GROWTH))


def slope(of: WindowSpec | None = None) -> Column:
    """Return, over the buckets of one partition, the slope of its size by least squares, as `whole_growth`."""
    found = slope_of("size_bytes")
    return whole_growth(found if of is None else found.over(of))


def slope_of(size: str) -> Column:
    """Return the slope of that column by least squares over `bucket`, in bytes a day."""
    return F.regr_slope(size, F.col("bucket") / F.lit(float(MICROS_PER_DAY)))


def whole_growth(slope: Column) -> Column:
    """Return a partition's growth in whole bytes a day, so that sums of it are exact; None where it is not known.

    What many partitions grow is the sum of their slopes: the slope of their sum is the same only where each has a size
    in every bucket. Else it would take one that is made, found or lost meanwhile for growth.
    """
    return F.when(F.abs(slope) <= MOST_BYTES, significant(slope).cast("long"))


def significant(value: Column) -> Column:
    """Return a number to six significant digits, or to the whole number below that."""
    step = F.pow(F.lit(10.0), F.floor(F.log10(F.abs(value))) - (_DIGITS - 1))
    return F.when(F.abs(value) < 10**_DIGITS, F.round(value)).otherwise(F.round(value / step) * step)
