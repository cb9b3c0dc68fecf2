"""Marks what is wrong with each sample, rule by rule, and leaves out what does not count; nothing is dropped unmarked.

The rules that a sample broke are bits of one whole number, `marks`: a column that is cheap to shuffle and to count. All
of it happens after one shuffle and one sort by partition and time, newest first; the marked rows stay until they are
counted. Where two samples have one partition and one moment, the one whose file was written last counts, and of equally
old ones the larger: a rule that neither the order of rows nor of files can change.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.model.load_report import ABSENT, Rule
from reconciler.balance.spark.schemas import KEYS, LOG_START, RATES

MARKS = "marks"
# Those about samples that are not there are counted at the end.
MARKED: tuple[Rule, ...] = tuple(rule for rule in Rule if rule not in ABSENT)
LEFT_OUT = (
    Rule.INCOMPLETE, Rule.FUTURE, Rule.UNKNOWN_PARTITION, Rule.DUPLICATE, Rule.NOT_SPLIT, Rule.UNUSED_SERIES,
)  # fmt: skip
_BITS = {rule: 1 << place for place, rule in enumerate(MARKED)}
MICROS = 1_000_000
HOUR = 3600 * MICROS
MICROS_PER_DAY = 86_400 * MICROS
HOURS_A_DAY, HOURS_A_WEEK = 24, 168
# Hours of the week count from Monday; time began on a Thursday.
_THURSDAY = 72
# No partition takes in a terabyte a second: a larger rate is a broken sample, infinity included.
MOST_PER_SECOND = 1e12
P95 = 0.95
MILLI = 1000  # thousandths of a byte a second, of which sums are exact: sums of doubles depend on the order of rows
COUNTS = ("size_bytes", "end_offset", LOG_START)
# What each row of a partition carries: the hash keeps comparisons of names out of the sort, and the negative bucket and
# moment put the newest first in ascending order, in which Spark can aggregate without a hash table.
GROUP = ("partition_hash", *KEYS)
NEWEST_FIRST = ("bucket_back", "moment_back")


def normalised(samples: DataFrame, *, bucket_seconds: int, now: datetime, known: DataFrame | None = None) -> DataFrame:
    """Return every sample with its marks, measures cleaned, and the columns of GROUP and NEWEST_FIRST.

    `samples` is as `sources` returns it; `known`, where given, has the `topic, partition` that the cluster has.
    """
    return (
        cleaned(samples, now=now, known=known)
        .transform(lambda each: _in_time(each, bucket_seconds))
        .transform(_written_once)
    )


def cleaned(
    samples: DataFrame, *, now: datetime, known: DataFrame | None = None, rates: Sequence[str] = RATES
) -> DataFrame:
    """Return every sample with the marks that it gets by itself, and what cannot be a measure made unknown.

    Of rates it looks at these only, and of counts at the size where not all rates are asked for, so that the other
    columns need not be read.
    """
    counts = COUNTS if tuple(rates) == RATES else ("size_bytes",)
    return samples.transform(lambda each: _figures_cleaned(each, rates, counts)).transform(
        lambda each: _left_out(each, now, known)
    )


def by_time() -> WindowSpec:
    """Return the samples of each partition, newest first; of one moment the last written first."""
    ties = (F.col(name).desc_nulls_last() for name in ("written_at", *reversed(COUNTS), *RATES))
    return Window.partitionBy(*GROUP).orderBy(*NEWEST_FIRST, *ties)


def _figures_cleaned(samples: DataFrame, rates: Sequence[str], counts: Sequence[str]) -> DataFrame:
    """Make unknown what cannot be a rate, a size or an offset."""
    is_strange = _any_of([_is_no_rate(F.col(rate)) for rate in rates])
    is_negative = _any_of([F.col(name) < 0 for name in (*rates, *counts)])
    found = marks(F.col(MARKS), mark(Rule.NOT_A_NUMBER, is_strange), mark(Rule.NEGATIVE, is_negative))
    known_rates = {rate: F.when((F.col(rate) >= 0) & ~_is_no_rate(F.col(rate)), F.col(rate)) for rate in rates}
    known_counts = {name: F.when(F.col(name) >= 0, F.col(name)) for name in counts}
    return samples.withColumns({MARKS: found, **known_rates, **known_counts})


def _any_of(conditions: list[Column]) -> Column:
    """Return whether one holds for sure; what is unknown does not."""
    return F.coalesce(F.greatest(*conditions), F.lit(col=False))


def _is_no_rate(rate: Column) -> Column:
    return F.isnan(rate) | (F.abs(rate) > F.lit(MOST_PER_SECOND))


def _left_out(samples: DataFrame, now: datetime, known: DataFrame | None) -> DataFrame:
    """Mark what does not count whatever stands beside it."""
    is_without_key = _any_of([F.col(name).isNull() for name in ("ts", *KEYS)]) | (F.col("partition") < 0)
    # What is no sample of a partition has been told already.
    is_incomplete = is_without_key & ~has(Rule.NOT_SPLIT) & ~has(Rule.UNUSED_SERIES) & ~has(Rule.DUPLICATE)
    is_future = F.unix_micros("ts") > F.lit(int(now.timestamp() * MICROS))
    found = [F.col(MARKS), mark(Rule.INCOMPLETE, is_incomplete), mark(Rule.FUTURE, is_future)]
    if known is None:
        return samples.withColumn(MARKS, marks(*found))
    listed = F.broadcast(known.select("topic", "partition", F.lit(col=True).alias("is_known")))
    joined = samples.join(listed, on=["topic", "partition"], how="left")
    is_unknown = F.col("is_known").isNull() & ~is_without_key
    return joined.withColumn(MARKS, marks(*found, mark(Rule.UNKNOWN_PARTITION, is_unknown))).drop("is_known")


def _in_time(samples: DataFrame, bucket_seconds: int) -> DataFrame:
    moment = F.unix_micros("ts")
    width = bucket_seconds * MICROS
    return samples.select(
        F.xxhash64(*KEYS).alias("partition_hash"),
        *KEYS,
        (F.pmod(moment, F.lit(width)) - moment).alias("bucket_back"),
        (-moment).alias("moment_back"),
        *RATES,
        *COUNTS,
        # What is left out stands behind all others of its moment, so that nothing is taken for its duplicate.
        F.when(is_kept(), F.col("written_at")).alias("written_at"),
        MARKS,
    )


def _written_once(samples: DataFrame) -> DataFrame:
    """Mark the duplicates, and what was written after newer samples of its partition."""
    newer = by_time()
    written_of_newer = F.min("written_at").over(newer.rowsBetween(Window.unboundedPreceding, -1))
    is_duplicate = (F.lag("moment_back").over(newer) == F.col("moment_back")) & is_kept()
    is_late = (written_of_newer < F.col("written_at")) & is_kept()
    return samples.withColumns({"is_duplicate": is_duplicate, "is_late": is_late}).withColumn(
        MARKS,
        marks(
            F.col(MARKS),
            mark(Rule.DUPLICATE, F.col("is_duplicate")),
            mark(Rule.LATE, F.col("is_late") & ~F.col("is_duplicate")),
        ),
    )


def hour_of_week(bucket: Column) -> Column:
    """Return the hour of the week, 0 to 167 from Monday on in UTC, of a time in microseconds."""
    return F.pmod(F.floor(bucket / HOUR) + _THURSDAY, F.lit(HOURS_A_WEEK)).cast("int")


def iso(micros: int) -> str:
    """Return a time in microseconds as text: ISO 8601 in UTC, to the second."""
    return f"{datetime.fromtimestamp(micros // MICROS, UTC):%Y-%m-%dT%H:%M:%SZ}"


def mark(rule: Rule, condition: Column) -> Column:
    """Return the rule's bit where the condition holds, else 0; an unknown condition does not hold."""
    return F.when(condition, _BITS[rule]).otherwise(0)


def marks(*each: Column) -> Column:
    """Return all marks in one number."""
    return reduce(lambda one, other: one.bitwiseOR(other), each)


def has(rule: Rule) -> Column:
    """Return whether the sample broke the rule."""
    return F.col(MARKS).bitwiseAND(_BITS[rule]) != 0


def only(rule: Rule) -> Column:
    """Return that rule's mark, where it is there."""
    return F.col(MARKS).bitwiseAND(_BITS[rule])


def is_kept() -> Column:
    """Return whether the sample counts: it broke none of the rules that leave a sample out."""
    return F.col(MARKS).bitwiseAND(sum(_BITS[rule] for rule in LEFT_OUT)) == 0


def rules_of(number: int) -> tuple[Rule, ...]:
    """Return the rules whose marks are in that number."""
    return tuple(rule for rule, bit in _BITS.items() if number & bit)


def counts() -> list[Column]:
    """Return a sum for each rule, named for it."""
    return [F.sum(has(rule).cast("long")).alias(rule.value) for rule in MARKED]
