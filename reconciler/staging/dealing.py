"""Deals steps over stages so that these together take as short as can be: many steps at once, in columns of numbers.

The largest step comes first, and each goes to the stage that it makes longer by the least (LPT, Graham 1969, with a
machine for each stage, broker and direction). What a stage will be as long as anyway costs nothing: that is the level
to which the busiest broker's bytes would fill all stages, poured like water over those that one large step has made
longer. Where several stages cost the same, the large steps fill the long ones.

A broker shares its rate evenly among its copies, and a copy is at two brokers. The one with more copies in flight gives
it the smaller share, and so sets its pace. A large copy may be held back by small copies at one broker first and at the
other one later: then it ends after the bytes of either broker would. So the end of the largest copy is kept for each
broker in each stage. Steps come largest first. A step at a broker makes that copy later by its own size if the broker
sets the copy's pace, that is if it has at least as many copies as the copy's other broker. A stage is as long as the
latest of these ends, or as its busiest broker's bytes.

Steps are looked at in batches, against the stages as they are before the batch. Of a batch those are dealt that do not
meet at one broker in one stage; the others are looked at again. All numbers are whole.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from reconciler.model.columns import Bools, Ints, place_among_equals
from reconciler.model.move_table import Moves

# The level is a little below what the busiest broker needs, in percent: at it, that broker's last steps find no gap.
# Measured on 20,000 partitions whose replication factor grows: 1.001 times the bound, 1.007 at 100 percent.
LEVEL_PERCENT = 97
# Stages are compared in whole numbers of 64 bits: the busiest broker has WHOLE to do, a full stage is filled to SCALE
# and counts as filled 8 times at most.
WHOLE, SCALE, MOST_FILLED, NEVER = 1 << 25, 1 << 10, 8, np.iinfo(np.int64).max
# Slots count for a part of what a broker counts for: bytes bind first in nearly all stages.
SLOTS_PART = 2
# So many steps are looked at together, where there are at least so many cells a step: fewer would often meet.
BATCH, CELLS_A_STEP = 64, 64
# Where at most one in so many stages is made longer by the least, only these are asked how full they are.
FEW = 8
# After one step in ten, the largest, a batch looks at so many stages, the next one at others: packing stays linear.
MOST_LOOKED_AT = 400


@dataclass(frozen=True, slots=True)
class Loads:
    """What steps ask of brokers, one row of numbers a step, filled up with what asks nothing of nobody.

    `rows`: twice the broker's number for what it takes in, one more for what it gives out, 0 and 1 being nobody.
    `sizes`: the bytes, in units of `unit` bytes where sums would not fit 64 bits.
    """

    rows: Ints
    sizes: Ints
    unit: int = 1

    @classmethod
    def of(cls, moves: Moves, source: Ints) -> "Loads":
        """Return what these moves ask, each served by the leader beside it; NONE: by nobody."""
        count, into, size = moves.copies, moves.after[moves.is_added], moves.bytes_a_copy
        brokers = np.unique(np.concatenate([into, source[source >= 0]]))
        unit = -(-sum(size.tolist()) * int(count.max(initial=0)) // (1 << 60)) or 1
        sizes = (-(-size // unit)).astype(np.int64)
        is_copy = np.arange(int(count.max(initial=0))) < count[:, None]
        rows = np.zeros((len(moves), is_copy.shape[1] + 1), dtype=np.int64)
        rows[:, :-1][is_copy] = 2 * np.searchsorted(brokers, into) + 2
        # The leader sends every new replica a copy of its own.
        rows[:, -1] = np.where((count > 0) & (source >= 0), 2 * np.searchsorted(brokers, source) + 3, 0)
        times = np.hstack([is_copy, count[:, None] * (rows[:, -1:] > 0)])
        return cls(rows, sizes[:, None] * times, unit)

    def part(self, steps: Ints) -> "Loads":
        """Return those of some steps."""
        return Loads(self.rows[steps], self.sizes[steps], self.unit)

    @property
    def others(self) -> Ints:
        """The row at the other end of each copy; the source stands for its first copy."""
        return self.rows[:, [-1] * (self.rows.shape[1] - 1) + [0]]

    def added_to(self, held: Ints, columns: slice, kept: Bools) -> Iterator[Ints]:
        """Yield, side by side, what each row holds in the kept ones of these columns with what is asked of it."""
        for rows, sizes in zip(self.rows.T, self.sizes.T, strict=True):
            yield held[rows, columns][:, kept] + sizes[:, None]

    def summed(self, steps: Ints) -> Ints:
        """Return what all these ask of each row."""
        sums = np.zeros(int(self.rows.max(initial=1)) + 1, dtype=np.int64)
        np.add.at(sums, self.rows[steps], self.sizes[steps])
        return sums


class Dealing:
    """Deals steps over stages, and makes more stages where a chain needs them.

    `_load` [brokers x directions, stages] sums sizes, and `_longest` [stages] is the most in each. `_limit` [stages] is
    how long each may become at no cost. `_weight` [brokers x directions] is a row's sum of all stages, and `_slots`
    how many of all slots are needed: parts of SCALE. `_count`, `_end` and `_other` [as `_load`]: the number of copies,
    when the largest of them ends, and the row of its other broker. `_reach` [as `_load`]: what one more copy adds to,
    `_load` or, where it holds the largest copy back, `_end`. `_first`: in which place of the batch each is first named.
    """

    def __init__(self, loads: Loads, steps: Ints, placed: Ints, per_stage: int, stages: int) -> None:
        """Begin with so many stages and what is `placed` in the first of them; `steps` will be dealt."""
        every = np.concatenate([steps, placed])
        sums = loads.summed(every)
        busiest = max(1, int(sums.max()))
        # Small sizes are made larger, so that levels between them are whole numbers too. Those of other waves
        # may overflow: none of them is looked at.
        times, unit = max(1, WHOLE // busiest), -(-busiest // WHOLE)
        self._loads, self._per_stage = Loads(loads.rows, -(-loads.sizes * times // unit)), per_stage
        self._busiest = busiest * times // unit
        self._whole = self._busiest * LEVEL_PERCENT // 100
        self._weight = sums * SCALE // busiest
        self._slots = len(every) * SCALE // (per_stage * stages * SLOTS_PART)
        self._load, self._count, self._end, self._other, self._reach = np.zeros((5, len(sums), 0), dtype=np.int64)
        self._longest = self._room = np.zeros(0, dtype=np.int64)
        self._open(stages)
        self._take(self._loads.part(placed), np.zeros(len(placed), dtype=np.int64))

    @property
    def length(self) -> int:
        """How long all stages are together."""
        return int(self._longest.sum())

    @property
    def is_close(self) -> bool:
        """Whether all stages together are hardly longer than the busiest broker needs."""
        return 100 * self.length <= 101 * self._busiest

    @property
    def count(self) -> int:
        """How many stages there are."""
        return len(self._room)

    def deal(self, steps: Ints, earliest: Ints, behind: Ints) -> Ints:
        """Return the stage of each step, the first of them the largest.

        None comes before `earliest`; so many stages are kept after it as there are steps `behind` it in its chain.
        """
        found = np.full(len(steps), -1, dtype=np.int64)
        most = min(BATCH, -(-self._load.size // CELLS_A_STEP))
        waiting, begin, turn = np.zeros(0, dtype=np.int64), 0, 0
        while len(waiting) or begin < len(steps):
            end = min(len(steps), begin + most - len(waiting))
            batch, begin = np.concatenate([waiting, np.arange(begin, end)]), end
            asked = self._loads.part(steps[batch])
            is_limited = bool(earliest[batch].any() or behind[batch].any())
            columns = self._columns(turn, is_whole=is_limited or 10 * begin <= len(steps))
            best = self._best(asked, columns, earliest[batch], behind[batch], is_limited=is_limited)
            is_dealt = self._is_together(asked, best)
            self._take(Loads(asked.rows[is_dealt], asked.sizes[is_dealt]), best[is_dealt])
            found[batch[is_dealt]] = best[is_dealt]
            if (best < 0).any():
                self._open(max(self.count, int(earliest[batch[best < 0]].min())) + 1)
            waiting, turn = batch[~is_dealt], turn + 1
        return found

    def _columns(self, turn: int, *, is_whole: bool) -> slice:
        """Return the stages to look at: all of them, or each so many-th, others in each turn, where one has room."""
        every = 1 if is_whole else -(-self.count // MOST_LOOKED_AT) or 1
        part = slice(turn % every, None, every)
        return part if self._room[part].any() else slice(None)

    def _best(self, asked: Loads, columns: slice, earliest: Ints, behind: Ints, *, is_limited: bool) -> Ints:
        """Return the best stage for each, -1 where there is none.

        Of the stages that it makes longer by the least, that is the one whose slots and brokers stay the emptiest.
        Fillings of brokers are cubed, so that a full one counts for more than two half full (Awerbuch et al. 1995, Load
        balancing in the L_p norm). Each counts the more, the more there is in all stages for that broker, or for slots.
        """
        has_room = self._room[columns] > 0
        stages = np.arange(self.count)[columns][has_room]
        if not len(stages):
            return np.full(len(earliest), -1, dtype=np.int64)
        reached = reduce(np.maximum, asked.added_to(self._reach, columns, has_room))
        longer = np.maximum(reached - self._limit[stages], 0)
        if is_limited:
            last = np.maximum(earliest + 1, self.count - behind)
            longer[(stages < earliest[:, None]) | (stages >= last[:, None])] = NEVER
        is_least = longer == longer.min(axis=1, keepdims=True)
        cells = np.flatnonzero(is_least)
        if len(cells) * FEW > is_least.size:
            sums, weight = asked.added_to(self._load, columns, has_room), self._weight[asked.rows.T, None]
            filled = np.where(is_least, self._filled(sums, weight, stages), NEVER)
        else:
            step, place = np.divmod(cells, len(stages))
            rows = asked.rows[step].T
            filled, held = np.full_like(longer, NEVER), self._load[rows, stages[place]]
            filled.flat[cells] = self._filled(held + asked.sizes[step].T, self._weight[rows], stages[place])
        place = filled.argmin(axis=1)
        return np.where(longer[np.arange(len(place)), place] < NEVER, stages[place], -1)

    def _filled(self, sums: Iterable[Ints], weights: Ints, stages: Ints) -> Ints:
        """Return how full each of these stages is where its brokers hold these sums, side by side."""
        limit, used = self._limit[stages], (self._per_stage - self._room[stages]) * SCALE // self._per_stage
        most, inverse, filled = MOST_FILLED * limit, (SCALE << 30) // limit, used * used * SCALE * self._slots
        for each, weight in zip(sums, weights, strict=True):
            part = np.minimum(each, most) * inverse >> 30
            filled = filled + part * part * part * weight
        return filled >> 20

    def _is_together(self, asked: Loads, best: Ints) -> Bools:
        """Return which may all be dealt: those that come first at each broker, where their stage has room for all."""
        # Those without a stage have a cell of their own, before the first one of each broker.
        cells = asked.rows * (self.count + 1) + best[:, None] + 1
        place = np.arange(cells.size).reshape(cells.shape)
        self._first[cells] = cells.size
        np.minimum.at(self._first, cells.ravel(), place.ravel())
        # What asks nothing of nobody meets no other.
        is_first = (self._first[cells] == place) | (asked.sizes == 0)
        found: Bools = (best >= 0) & is_first.all(axis=1)
        if int(self._room[best].min(initial=len(best))) < len(best):
            order = np.argsort(best, kind="stable")
            turn = np.empty_like(order)
            turn[order] = place_among_equals(best[order])
            found &= turn < self._room[best]
        return found

    def _take(self, asked: Loads, stages: Ints) -> None:
        np.subtract.at(self._room, stages, 1)
        rows, others, sizes, stage = asked.rows, asked.others, asked.sizes, stages[:, None]
        count, other = self._count[rows, stage], self._other[rows, stage]
        is_first = count == 0
        is_held_back = (count >= self._count[other, stage]) | (other == others)
        later = self._end[rows, stage] + sizes * is_held_back
        end = np.where(is_first, sizes * (self._count[others, stage] + 1), later)
        # Two rows may have the same largest copy.
        is_same = ~is_first & (self._other[other, stage] == rows) & (other != others)
        for row, twin, until, is_twin in zip(rows.T, other.T, end.T, is_same.T, strict=True):
            self._end[twin[is_twin], stages[is_twin]] = until[is_twin]
            self._end[row, stages] = until
        self._other[rows, stage] = np.where(is_first, others, other)
        np.add.at(self._load, (rows, stage), sizes)
        np.add.at(self._count, (rows, stage), sizes > 0)
        np.maximum.at(self._longest, stages, self._load[rows, stage].max(axis=1))
        for cells in (rows, self._other[rows, stage]):
            is_held_back = self._count[cells, stage] >= self._count[self._other[cells, stage], stage]
            self._reach[cells, stage] = np.maximum(self._load[cells, stage], self._end[cells, stage] * is_held_back)
        if (self._longest[stages] > self._limit[stages]).any():
            self._pour()

    def _open(self, stages: int) -> None:
        """Make that many stages."""
        more = max(0, stages - self.count)
        self._load, self._count, self._end, self._other, self._reach = (
            np.pad(one, ((0, 0), (0, more))) for one in (self._load, self._count, self._end, self._other, self._reach)
        )
        self._longest = np.pad(self._longest, (0, more))
        self._room = np.pad(self._room, (0, more), constant_values=self._per_stage)
        self._first = np.zeros(len(self._weight) * (self.count + 1), dtype=np.int64)
        self._pour()

    def _pour(self) -> None:
        """Set the limits to the level at which all stages together are as long as the busiest broker needs."""
        longest, stages = np.sort(self._longest)[::-1], np.arange(self.count, 0, -1)
        left = self._whole - np.cumsum(longest) + longest
        levels = (left // stages)[longest * stages <= left]
        self._limit = np.maximum(self._longest, levels[:1].max(initial=1))
