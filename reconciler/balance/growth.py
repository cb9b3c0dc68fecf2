"""Rates that were not measured, made from the growth of offsets and sizes between neighbouring samples.

Messages a second are the growth of the end offset over the time since the sample before; bytes a second are messages
times the partition's mean record size, which is its growth of size over its growth of offsets wherever the size did not
fall (retention and compaction make sizes fall; that is no negative inflow). Without offsets, the growth of the size
itself counts while it does not fall. A counter that fell began anew: its new value alone is the growth. Bytes out do
not follow from growth and stay unknown.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.marks import MARKS, is_kept, mark, marks
from reconciler.balance.normalise import GROUP, MICROS, by_time
from reconciler.model.load_report import Rule


def with_growth(samples: DataFrame) -> DataFrame:
    """Return normalised samples whose unknown `messages_in` and `bytes_in` are filled where growth tells them."""
    return samples.transform(_beside_the_one_before).transform(_grown).transform(_record_size).transform(_filled)


def with_bytes_grown(samples: DataFrame) -> DataFrame:
    """Return the same for whom only bytes are of interest: marks tell what was done to make `bytes_in`, no more."""
    was_known = F.col("bytes_in").isNotNull()
    marks_before = samples.withColumns({"told": F.col(MARKS), "was_known": was_known})
    grown = marks_before.transform(with_growth)
    found = F.when(F.col("was_known") | F.col("bytes_in").isNull(), F.col("told")).otherwise(F.col(MARKS))
    return grown.withColumn(MARKS, found).drop("told", "was_known")


def _beside_the_one_before(samples: DataFrame) -> DataFrame:
    """Add `before`: moment, offset and size of the sample before that has either."""
    here = F.when(
        is_kept() & (F.col("end_offset").isNotNull() | F.col("size_bytes").isNotNull()),
        F.struct("moment_back", "end_offset", "size_bytes"),
    )
    return samples.withColumn("here", here).withColumn("before", F.expr("lead(here) ignore nulls").over(by_time()))


def _grown(samples: DataFrame) -> DataFrame:
    """Add `messages` and `bytes` grown since then, and `seconds`; a size that fell tells nothing."""
    fell = F.col("end_offset") < F.col("before.end_offset")
    messages = F.when(fell, F.col("end_offset")).otherwise(F.col("end_offset") - F.col("before.end_offset"))
    size = F.col("size_bytes")
    grown = F.when(size >= F.col("before.size_bytes"), size - F.col("before.size_bytes"))
    has_both = F.col("here").isNotNull() & F.col("before").isNotNull()
    return samples.withColumns(
        {
            MARKS: marks(F.col(MARKS), mark(Rule.COUNTER_RESET, has_both & fell)),
            "messages": F.when(has_both, messages),
            "bytes": F.when(has_both, F.when(fell, size).otherwise(grown)),
            "seconds": F.when(has_both, (F.col("before.moment_back") - F.col("moment_back")) / F.lit(MICROS)),
        }
    )


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
    ).drop("here", "before", "messages", "bytes", "seconds", "record_size")


def _is_made(name: str, value: Column) -> Column:
    return F.col(name).isNull() & value.isNotNull()
