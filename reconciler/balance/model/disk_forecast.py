"""Foretells a disk from what its partitions are expected to do, its rhythm of the week, and how far it was off before.

Pure functions of what `spark.forecast` finds of a disk. Size is taken apart into what grows, which goes on from where
it is, and what stands (retention or compaction takes away as much as comes in), which swings around a level. What grows
is a random walk with drift, the drift being that of its last week: after h days chance has a standard deviation of
s * sqrt(h * (1 + h / 7)) (Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 3rd edition, 5.5). What
stands is foretold by the mean of its last week, whose middle is 3.5 days ago, and its level wanders from there, by
s * sqrt(3.5 + h) for two weeks. Both are measured by the errors that such forecasts made on the disk's own history
(5.10, cross-validation), so that no rhythm of whole weeks counts as chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from reconciler.balance.model.history import HOURS_A_DAY, HOURS_A_WEEK

ENOUGH_DAYS = 14
"""Below so many days of samples nothing is foretold.

An hour of the week has to be seen twice, or its rhythm cannot be told from chance; and from two weeks there is the
first error of a forecast of one week that was made from the week before.
"""
SIZES_AFTER = (7, 14)
AHEAD_DAYS: tuple[int, ...] = (*range(15), 21, 28, 42, 60, 90, 120, 180, 270, 365, 730, 1825, 3650)
"""The days for which what partitions will have grown is summed; in between, it is taken to grow evenly."""
_HOURLY = 14 * HOURS_A_DAY  # beyond, the hour of the week tells nothing of what is days or weeks off
# Student's t for 80 % in the middle, by degrees of freedom: the less was seen of chance, the wider.
_T_80 = (3.078, 1.886)
_DECIMALS = 1


@dataclass(frozen=True, slots=True)
class DiskHistory:
    """What is known of a disk, or of several together; sizes are bytes of the partitions that samples tell of."""

    ahead: tuple[int, ...]
    """For each of AHEAD_DAYS, what those that grow will have grown by, and what those that stand are expected to be."""
    hours: int = 0
    """From the first sample to the last."""
    grown_first: int = 0
    grown_now: int = 0
    """What those that grow were, and are."""
    standing_now: int = 0
    """What those that stand are."""
    grown_chance: float = 0.0
    """The variance of what grows, of a day."""
    standing_chance: float = 0.0
    """The variance of what stands, of a day too."""
    by_slot: tuple[tuple[int, int], ...] = ()
    """What grows and what stands, on average at each hour of the week; the first is that of now, the next before it."""

    @property
    def whole_weeks(self) -> int:
        """How many whole weeks are known."""
        return (self.hours + 1) // HOURS_A_WEEK

    @property
    def is_known(self) -> bool:
        """Whether there is enough history for an interval."""
        return self.hours >= ENOUGH_DAYS * HOURS_A_DAY

    @property
    def width(self) -> float:
        """By how many standard deviations four of five errors are below.

        A level and a slope are taken from n weeks, so n - 2 are left to tell of chance.
        """
        return _T_80[min(max(self.whole_weeks - 2, 1), len(_T_80)) - 1]


@dataclass(frozen=True, slots=True)
class Foretold:
    """Days until a disk is full, at the earliest and latest too, and what it will hold more after SIZES_AFTER.

    Null days: not within ten years.
    """

    days: float | None
    earliest: float | None = None
    latest: float | None = None
    changes: tuple[tuple[int, int, int], ...] = ()
    """What comes on top of its size: expected, least, most."""


def foretold(history: DiskHistory, free: int | None) -> Foretold:
    """Return the forecast of a disk with so many bytes free; without enough history, only when it is full."""
    rhythm = _rhythm(history)
    if not history.is_known:
        return Foretold(_full(history, rhythm, free, 0))
    width = history.width
    changes = tuple(_interval(history, rhythm, days * HOURS_A_DAY, width) for days in SIZES_AFTER)
    days, earliest, latest = (_full(history, rhythm, free, by) for by in (0, width, -width))
    return Foretold(days, earliest, latest, changes)


def _interval(history: DiskHistory, rhythm: Sequence[float], hour: int, width: float) -> tuple[int, int, int]:
    expected, chance = _change(history, rhythm, hour), width * _chance(history, hour)
    return round(expected), round(expected - chance), round(expected + chance)


def _full(history: DiskHistory, rhythm: Sequence[float], free: int | None, width: float) -> float | None:
    """Return after how many days the disk is full, or so many standard deviations earlier."""
    if free is None:
        return None
    if free <= 0:
        return 0.0
    before = 0, 0.0
    for hour in _hours(history, rhythm, free, width):
        now = hour, _change(history, rhythm, hour) + width * _chance(history, hour)
        if now[1] >= free:
            share = (free - before[1]) / (now[1] - before[1])
            return round((before[0] + share * (hour - before[0])) / HOURS_A_DAY, _DECIMALS)
        before = now
    return None


def _hours(history: DiskHistory, rhythm: Sequence[float], free: int, width: float) -> Iterator[int]:
    """Yield the hours to look at: each one of the first two weeks where the disk may be full by then, then few."""
    soon = max(_trend(history, day) for day in range(_HOURLY // HOURS_A_DAY + 1))
    if rhythm and soon + max(rhythm) + max(width, 0) * _chance(history, _HOURLY) >= free:
        yield from range(1, _HOURLY)
    yield from (days * HOURS_A_DAY for days in AHEAD_DAYS[1:] if not rhythm or days * HOURS_A_DAY >= _HOURLY)


def _change(history: DiskHistory, rhythm: Sequence[float], hour: int) -> float:
    """Return what is there more than now, that many hours from now."""
    return _trend(history, hour / HOURS_A_DAY) + (rhythm[hour % HOURS_A_WEEK] if rhythm else 0)


def _trend(history: DiskHistory, day: float) -> float:
    """Return the same without the rhythm of the week."""
    for (first, then), (here, there) in zip(pairwise(AHEAD_DAYS), pairwise(history.ahead), strict=True):
        if day <= then:
            return here + (there - here) * (day - first) / (then - first) - history.standing_now
    return history.ahead[-1] - history.standing_now


def _rhythm(history: DiskHistory) -> tuple[float, ...]:
    """Return, for each hour of the week from now on, what is there more than the trend says, on average over the weeks.

    What stands is held against its mean. What grows is held against a straight line from where it was to where it is,
    and goes on from where it is now.
    """
    if not history.by_slot:
        return ()
    a_slot = (history.grown_now - history.grown_first) / max(history.hours, 1)
    mean = sum(standing for _, standing in history.by_slot) / HOURS_A_WEEK
    now = history.by_slot[0][0]
    back = [(grown - now + slot * a_slot) + (standing - mean) for slot, (grown, standing) in enumerate(history.by_slot)]
    return tuple(back[-hour % HOURS_A_WEEK] for hour in range(HOURS_A_WEEK))


def _chance(history: DiskHistory, hour: int) -> float:
    """Return the standard deviation of a forecast of that many hours."""
    days = hour / HOURS_A_DAY
    wandered = 3.5 + min(days, SIZES_AFTER[-1])
    return sqrt(history.grown_chance * days * (1 + days / 7) + history.standing_chance * wandered)
