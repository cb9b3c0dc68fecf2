"""Packs chains of steps into stages: as few as `moves.perStage` and urgency allow, each no longer than it must be.

A stage is a set: any part of it may be done or in flight, and nobody inside it waits for the slowest. So nothing but
its size, its disks and the order of a chain limits it. A run takes as long as the sum of its stages, and a stage as
long as its busiest broker needs in its busier direction. That sum is least where every stage has its even part of the
busiest broker's bytes, and no broker falls behind.

Two passes do that. `_Spread` deals the steps over the stages, the largest first, each to the stage that it makes longer
by the least (LPT, Graham 1969, with a machine for each stage, broker and direction). What a stage will be as long as
anyway costs nothing: that is the level to which the busiest broker's bytes would fill all stages, poured like water
over those that one large step has made longer. Where several stages cost the same, the large steps fill the long ones.
`_settled` then goes through the stages in order and counts the disks: a step that would overfill one is put off to a
later stage, after other steps have freed room.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.desired import MovePolicy
from reconciler.staging.disk import DiskUse
from reconciler.staging.safe_order import loads_in_order, safe_order
from reconciler.staging.step import Step, Urgency

# So many stages at once are looked at for one step: it keeps packing linear. Longer runs are dealt into such parts.
MOST_LOOKED_AT = 64
# The level is a little below what the busiest broker needs, in percent: at it, that broker's last steps find no gap.
# Measured on 20,000 partitions whose replication factor grows: 1.001 times the bound, 1.007 at 100 percent.
LEVEL_PERCENT = 97
# Stages are compared in whole numbers of 64 bits: the busiest broker has WHOLE to do, a full stage is filled to SCALE.
WHOLE, SCALE, NEVER = 1 << 20, 1 << 10, np.iinfo(np.int64).max
# A stage counts as filled 64 times at most: so the square, times WHOLE, still fits 64 bits.
MOST_FILLED = 64 * SCALE

Rank = int


@dataclass(frozen=True, slots=True)
class Packed:
    """The steps of each stage, in the order in which a run admits them, and the disks after the run."""

    stages: tuple[tuple[Step, ...], ...]
    disk: DiskUse


def pack(chains: Sequence[Sequence[Step]], policy: MovePolicy, disk: DiskUse) -> Packed:
    """Return the stages: each respects `perStage` and, where it can be, the disks, with nothing freed inside it.

    The chains' steps keep their order, in different stages. The more urgent steps go first. Leaders that must leave
    their brokers do so in stages of their own, unless there is something to repair.
    """
    run = _Run.of(chains)
    packed = _settled(run, _spread(run, policy), policy, disk.copy())
    if packed.disk.excess and packed.disk.is_forced:
        order = safe_order(run.steps, run.following, run.firsts, disk)
        if order is not None:
            after = disk.copy()
            stages = list(loads_in_order(run.steps, run.following, order, policy, after))
            safe = Packed(tuple(_in_order(run.steps[rank] for rank in stage) for stage in stages), after)
            packed = min(packed, safe, key=lambda one: (one.disk.excess, len(one.stages)))
    return packed


def _in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Return the steps as a run admits them: the most urgent first, of these the largest, so that none ends alone."""
    return tuple(sorted(steps, key=lambda step: (step.urgency, -step.load, step.move.topic_partition)))


@dataclass(frozen=True, slots=True)
class _Run:
    """All steps by rank; each one's successor in its chain and its place there, and the first step of each chain.

    `waves` groups the ranks by urgency, the most urgent first. `apart` holds the ranks of leaderships that leave in
    stages of their own.
    """

    steps: tuple[Step, ...]
    following: tuple[Rank | None, ...]
    depth: tuple[int, ...]
    firsts: tuple[Rank, ...]
    waves: tuple[tuple[Rank, ...], ...]
    apart: frozenset[Rank]

    @classmethod
    def of(cls, chains: Sequence[Sequence[Step]]) -> "_Run":
        flat = [(step, chain, number) for chain, steps in enumerate(chains) for number, step in enumerate(steps)]
        flat.sort(key=lambda item: (item[0].urgency, -item[0].load, item[0].move.topic_partition, item[2]))
        rank_of = {(chain, number): rank for rank, (_, chain, number) in enumerate(flat)}
        # A leadership that leaves costs no copy, so it goes first; only what repairs goes before it.
        has_repairs = any(step.urgency < Urgency.REPAIRED for step, _, _ in flat)
        apart = frozenset(rank for rank, (step, _, _) in enumerate(flat) if step.is_handover and not has_repairs)
        return cls(
            steps=tuple(step for step, _, _ in flat),
            following=tuple(rank_of.get((chain, number + 1)) for _, chain, number in flat),
            depth=tuple(number for _, _, number in flat),
            firsts=tuple(rank_of[chain, 0] for chain in range(len(chains))),
            waves=_waves(chains, rank_of, apart),
            apart=apart,
        )

    def is_alike(self, rank: Rank, others: Sequence[Rank]) -> bool:
        """Whether the step may share a stage with these, as far as leaderships that leave go."""
        return not others or (rank in self.apart) is (others[0] in self.apart)


def _waves(
    chains: Sequence[Sequence[Step]], rank_of: Mapping[tuple[int, int], Rank], apart: Collection[Rank]
) -> tuple[tuple[Rank, ...], ...]:
    found: defaultdict[tuple[bool, int], list[Rank]] = defaultdict(list)
    for chain, steps in enumerate(chains):
        key = (False, 0)
        for number, step in enumerate(steps):
            rank = rank_of[chain, number]
            # A step is never before the one that it follows, however urgent it is.
            key = max(key, (rank not in apart, step.urgency))
            found[key].append(rank)
    return tuple(tuple(sorted(found[key])) for key in sorted(found))


def _spread(run: _Run, policy: MovePolicy) -> list[list[Rank]]:
    """Return the ranks of each stage: disks are not looked at yet."""
    stages: list[list[Rank]] = []
    stage_of: dict[Rank, int] = {}
    begin = 0
    for wave in run.waves:
        # What is less urgent fills the last stage of what is more urgent; leaderships that leave stay by themselves.
        begin = len(stages) - 1 if stages and run.is_alike(wave[0], stages[-1]) else len(stages)
        for part in _parts(run, wave, policy):
            used = [[run.steps[rank] for rank in stage] for stage in stages[begin:]]
            dealt = _dealt(run, part, used, {rank: stage_of[rank] - begin for rank in part if rank in stage_of}, policy)
            for rank, chosen in dealt.items():
                stages.extend([] for _ in range(begin + chosen + 1 - len(stages)))
                stages[begin + chosen].append(rank)
                following = run.following[rank]
                if following is not None:
                    # One reassignment a partition at a time (KIP-455): the next would replace it.
                    stage_of[following] = begin + chosen + 1
            stages = [stage for stage in stages if stage]
            begin = max(begin, len(stages) - 1)
    return stages


def _dealt(
    run: _Run,
    part: Sequence[Rank],
    used: Sequence[Sequence[Step]],
    earliest_of: Mapping[Rank, int],
    policy: MovePolicy,
) -> Mapping[Rank, int]:
    """Return the stage of each rank, counted from the first of `used`, in the order of the part.

    Chains need as many stages as the longest has steps. One or two more leave something to choose: each is taken where
    it saves a hundredth of the time. `earliest_of`: where a rank may come first, for those that follow an earlier part.
    """
    behind = _behind(run, part)
    longest = max(behind.values())
    found: list[tuple[int, dict[Rank, int]]] = []
    for least in range(longest + 1, longest + 4) if longest else (1,):
        spread = _Spread([run.steps[rank] for rank in part], used, policy.per_stage, least)
        earliest, dealt = dict(earliest_of), dict[Rank, int]()
        for rank in part:
            dealt[rank] = spread.place(run.steps[rank], max(0, earliest.get(rank, 0)), behind[rank])
            following = run.following[rank]
            if following is not None:
                earliest[following] = dealt[rank] + 1
        found.append((spread.length * (100 + len(found)), dealt))
    return min(found, key=lambda one: one[0])[1]


def _behind(run: _Run, part: Sequence[Rank]) -> Mapping[Rank, int]:
    """Return how many steps of the part follow each in its chain, and so need a stage after its own."""
    behind: dict[Rank, int] = dict.fromkeys(part, 0)
    for rank in sorted(part, key=lambda rank: run.depth[rank], reverse=True):
        following = run.following[rank]
        if following in behind:
            behind[rank] = 1 + behind[following]
    return behind


def _parts(run: _Run, wave: Sequence[Rank], policy: MovePolicy) -> Iterator[Sequence[Rank]]:
    """Yield the wave's ranks in the order in which they are placed, in parts of at most so many stages.

    Each part gets the same share of what every broker takes in and gives out.
    """
    steps, depth = run.steps, run.depth
    by_size = sorted(wave, key=lambda rank: (depth[rank], -steps[rank].load, rank))
    per_part = policy.per_stage * MOST_LOOKED_AT
    count = -(-len(wave) // per_part)
    if count <= 1:
        yield by_size
        return
    dealt = _Spread([steps[rank] for rank in by_size], (), per_part, count)
    parts: list[list[Rank]] = [[] for _ in range(count)]
    earliest: dict[Rank, int] = {}
    for rank in by_size:
        part = dealt.place(steps[rank], earliest.get(rank, 0), 0)
        parts[part].append(rank)
        following = run.following[rank]
        if following is not None:
            earliest[following] = part
    yield from parts


class _Spread:
    """Deals steps over stages: as few as there can be, and more where a chain needs them.

    Sizes are in units: the busiest broker has `WHOLE` of them in its busier direction. `_load` [brokers x directions,
    stages] sums them, and `_longest` [stages] is its most in each stage. `_limit` [stages] is how long each may become
    at no cost. `_weight` [brokers x directions] is a row's sum of all stages. `_slots` tells how many of all slots are
    needed, as a part of `WHOLE`.
    """

    def __init__(self, steps: Sequence[Step], used: Sequence[Sequence[Step]], per_stage: int, least: int) -> None:
        every = [*steps, *(step for placed in used for step in placed)]
        brokers = {broker for step in every for broker in (*step.added, step.source) if broker is not None}
        self._row = {broker: 2 * number for number, broker in enumerate(sorted(brokers))}
        self._per_stage = per_stage
        self._unit = 1
        self._unit = -(-max(self._summed(every), default=0) // WHOLE) or 1
        self._weight = self._summed(every)
        self._whole = max(self._weight, default=0) * LEVEL_PERCENT // 100
        self._load = np.zeros((2 * len(brokers), 0), dtype=np.int64)
        self._longest = np.zeros(0, dtype=np.int64)
        self._room = np.zeros(0, dtype=np.int64)
        stages = max(least, len(used), -(-len(every) // per_stage))
        self._open(stages)
        self._slots = len(every) * WHOLE // (per_stage * stages) if stages else 0
        for stage, placed in enumerate(used):
            for step in placed:
                self._take(self._rows(step), stage)
        self._pour()

    @property
    def length(self) -> int:
        """How long all stages are together."""
        return int(self._longest.sum())

    def _summed(self, steps: Sequence[Step]) -> list[int]:
        sums = [0] * (2 * len(self._row))
        for step in steps:
            for row, size in self._rows(step):
                sums[row] += size
        return sums

    def _open(self, stages: int) -> None:
        """Make that many stages."""
        more = max(0, stages - len(self._room))
        self._load = np.pad(self._load, ((0, 0), (0, more)))
        self._longest = np.pad(self._longest, (0, more))
        self._room = np.pad(self._room, (0, more), constant_values=self._per_stage)
        self._pour()

    def _pour(self) -> None:
        """Set the limits to the level at which all stages together are as long as the busiest broker needs."""
        left, stages = self._whole, len(self._longest)
        for longest in sorted(self._longest.tolist(), reverse=True):
            if longest * stages <= left:
                break
            left, stages = left - longest, stages - 1
        self._limit = np.maximum(self._longest, max(1, left // stages if stages else 0))

    def place(self, step: Step, earliest: int, behind: int) -> int:
        """Return the stage that takes the step, counted there: not before `earliest`, with so many `behind` it.

        Of the stages that it makes longer by the least, it takes the one whose slots and brokers stay the emptiest.
        Fillings are squared, so that a full one counts for more than two half full (Awerbuch et al. 1995, Load
        balancing in the L_p norm). Each counts the more, the more there is in all stages for that broker, or for slots.
        """
        end = max(earliest + 1, len(self._room) - behind)
        if earliest >= len(self._room) or not self._room[earliest:end].any():
            end = max(earliest, len(self._room)) + 1
            self._open(end)
        room, limit = self._room[earliest:end], self._limit[earliest:end]
        filled = ((self._per_stage - room) * SCALE // self._per_stage) ** 2 * self._slots // WHOLE
        longer = np.where(room == 0, NEVER, 0)
        rows = list(self._rows(step))
        for row, size in rows:
            sums = self._load[row, earliest:end] + size
            np.maximum(longer, sums - limit, out=longer)
            filled += np.minimum(sums * SCALE // limit, MOST_FILLED) ** 2 * self._weight[row] // WHOLE
        stage = earliest + int(np.where(longer == longer.min(), filled, NEVER).argmin())
        self._take(rows, stage)
        if self._longest[stage] > self._limit[stage]:
            self._pour()
        return stage

    def _take(self, rows: Iterable[tuple[int, int]], stage: int) -> None:
        self._room[stage] -= 1
        for row, size in rows:
            self._load[row, stage] += size
            self._longest[stage] = max(self._longest[stage], self._load[row, stage])

    def _rows(self, step: Step) -> Iterator[tuple[int, int]]:
        if step.added:
            for broker in step.added:
                yield self._row[broker], -(-step.load // self._unit)
            if step.source is not None:
                # The leader sends every new replica a copy of its own.
                yield self._row[step.source] + 1, -(-step.move.bytes // self._unit)


def _settled(run: _Run, stages: Sequence[Sequence[Rank]], policy: MovePolicy, disk: DiskUse) -> Packed:
    """Return the stages with each step put off that would overfill a disk where it was dealt to.

    A copy counts from its stage's begin, a replica that goes until its end: so whatever part of a stage is done or in
    flight, no disk holds more than was counted.
    """
    settling = _Settling(run, policy, disk)
    settled: list[tuple[Step, ...]] = []
    dealt, put_off = list(stages), list[Rank]()
    while dealt or put_off:
        due = sorted([*put_off, *(dealt.pop(0) if dealt else ())])
        placed = settling.fitting(due, [])
        if not placed and not dealt:
            # Nothing fits a disk any more: one step passes all the same, and what fits beside it, so that work goes on.
            placed = settling.fitting(due, [settling.forced(due)])
        put_off = sorted(set(due).difference(placed))
        if placed:
            settling.end(placed)
            settled.append(_in_order(run.steps[rank] for rank in placed))
    return Packed(tuple(settled), disk)


class _Settling:
    """Places steps stage by stage; `_before` maps a step to the one before it in its chain."""

    def __init__(self, run: _Run, policy: MovePolicy, disk: DiskUse) -> None:
        self._run, self._policy, self._disk = run, policy, disk
        self._before = {following: rank for rank, following in enumerate(run.following) if following is not None}
        self._ended: set[Rank] = set()

    def fitting(self, due: Sequence[Rank], placed: list[Rank]) -> list[Rank]:
        """Return the placed ranks and those that fit beside them."""
        for rank in due:
            step = self._run.steps[rank]
            is_room = (
                len(placed) < self._policy.per_stage and self._run.is_alike(rank, placed) and rank not in placed[:1]
            )
            if self._is_ready(rank) and is_room and not self._disk.shortfall(step):
                self._disk.begin(step)
                placed.append(rank)
        return placed

    def forced(self, waiting: Sequence[Rank]) -> Rank:
        """Return the step that overfills a broker the least, begun."""
        steps, disk = self._run.steps, self._disk
        rank = min(filter(self._is_ready, waiting), key=lambda one: (disk.shortfall(steps[one]), one))
        disk.yield_to(steps[rank], (steps[other] for other in waiting))
        disk.begin(steps[rank])
        return rank

    def end(self, placed: Sequence[Rank]) -> None:
        """Free what the steps of a stage removed."""
        self._disk.end([self._run.steps[rank] for rank in placed])
        self._ended.update(placed)

    def _is_ready(self, rank: Rank) -> bool:
        return rank not in self._before or self._before[rank] in self._ended
