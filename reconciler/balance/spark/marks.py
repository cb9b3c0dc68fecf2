"""Which rules a sample broke, as bits of one whole number: a column that is cheap to shuffle and to count."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.model.load_report import Rule

MARKS = "marks"
# GAP and MISSING_PARTITION are about samples that are not there: they are counted at the end.
_ABSENT: frozenset[Rule] = frozenset({Rule.GAP, Rule.MISSING_PARTITION})
MARKED: tuple[Rule, ...] = tuple(rule for rule in Rule if rule not in _ABSENT)
LEFT_OUT = (
    Rule.INCOMPLETE, Rule.FUTURE, Rule.UNKNOWN_PARTITION, Rule.UNKNOWN_BROKER, Rule.DUPLICATE, Rule.NOT_SPLIT,
    Rule.UNUSED_SERIES,
)  # fmt: skip
_BITS = {rule: 1 << place for place, rule in enumerate(MARKED)}


def mark(rule: Rule, condition: Column) -> Column:
    """Return the rule's bit where the condition holds, else 0; an unknown condition does not hold."""
    return F.when(condition, _BITS[rule]).otherwise(0)


def marks(*each: Column) -> Column:
    """Return all marks in one number."""
    return reduce(Column.bitwiseOR, each)


def has(rule: Rule) -> Column:
    """Return whether the sample broke the rule."""
    return F.col(MARKS).bitwiseAND(_BITS[rule]) != 0


def only(rule: Rule) -> Column:
    """Return that rule's mark, where it is there."""
    return F.col(MARKS).bitwiseAND(_BITS[rule])


def is_kept(left_out: Sequence[Rule] = LEFT_OUT) -> Column:
    """Return whether the sample counts: it broke none of the rules that leave a sample out."""
    return F.col(MARKS).bitwiseAND(sum(_BITS[rule] for rule in left_out)) == 0


def rules_of(number: int) -> tuple[Rule, ...]:
    """Return the rules whose marks are in that number."""
    return tuple(rule for rule, bit in _BITS.items() if number & bit)


def counts() -> list[Column]:
    """Return a sum for each rule, named for it."""
    return [F.sum(has(rule).cast("long")).alias(rule.value) for rule in MARKED]
