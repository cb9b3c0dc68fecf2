"""Packs chains of steps into stages: as few as `moves.perStage` and urgency allow, each no longer than it must be.

A stage is a set: any part of it may be done or in flight, and nobody inside it waits for the slowest. So nothing but
its size, its disks and the order of a chain limits it. A run takes as long as the sum of its stages, and a stage as
long as its busiest broker needs in its busier direction. That sum is least where every stage has its even part of the
busiest broker's bytes, and no broker falls behind.

Two passes do that. `_Spread` deals the steps over the stages, the largest first, each to the stage that it makes longer
by the least (LPT, Graham 1969, with a machine for each stage, broker and direction). What a stage will be as long as
anyway costs nothing: that is the level to which the busiest broker's bytes would fill all stages, poured like water
over those that one large step has made longer. `_settled` then goes through the stages in order and counts the disks: a
step that would overfill one is put off to a later stage, after other steps have freed room.
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
# Measured on 20,000 partitions whose replication factor grows: 1.003 times the bound, 1.011 at 100 percent.
LEVEL_PERCENT = 97

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
            behind = _behind(run, part)
            spread = _Spread(
                [run.steps[rank] for rank in part], used, policy.per_stage, _stages_of_chains(behind.values())
            )
            for rank in part:
                earliest = max(0, stage_of.get(rank, begin) - begin)
                chosen = begin + spread.place(run.steps[rank], earliest, behind[rank])
                stages.extend([] for _ in range(chosen + 1 - len(stages)))
                stages[chosen].append(rank)
                following = run.following[rank]
                if following is not None:
                    # One reassignment a partition at a time (KIP-455): the next would replace it.
                    stage_of[following] = chosen + 1
            stages = [stage for stage in stages if stage]
            begin = max(begin, len(stages) - 1)
    return stages


def _behind(run: _Run, part: Sequence[Rank]) -> Mapping[Rank, int]:
    """Return how many steps of the part follow each in its chain, and so need a stage after its own."""
    behind: dict[Rank, int] = dict.fromkeys(part, 0)
    for rank in sorted(part, key=lambda rank: run.depth[rank], reverse=True):
        following = run.following[rank]
        if following in behind:
            behind[rank] = 1 + behind[following]
    return behind


def _stages_of_chains(behind: Collection[int]) -> int:
    """Return how many stages there must be for chains of these lengths.

    One more than the longest needs: where each stage had to take the next step, nothing could be chosen.
    """
    longest = max(behind)
    return longest + 2 if longest else 1


def _parts(run: _Run, wave: Sequence[Rank], policy: MovePolicy) -> Iterator[Sequence[Rank]]:
    """Yield the wave's ranks in the order in which they are placed, in parts of at most so many stages.

    Each part gets the same share of what every broker receives, large and small.
    """
    steps, depth = run.steps, run.depth
    count = -(-len(wave) // (policy.per_stage * MOST_LOOKED_AT))
    by_size = sorted(wave, key=lambda rank: (depth[rank], -steps[rank].load, rank))
    if count <= 1:
        yield by_size
        return
    by_receiver = sorted(by_size, key=lambda rank: (depth[rank], steps[rank].added))
    part_of = {rank: number % count for number, rank in enumerate(by_receiver)}
    for part in range(count):
        yield [rank for rank in by_size if part_of[rank] == part]


class _Spread:
    """Deals steps over stages: as few as there can be, and more where a chain needs them.

    `_load` [brokers x directions, stages] counts bytes, `_longest` [stages] its most in each, `_level` what any stage
    may be as long as at no cost.
    """

    def __init__(self, steps: Sequence[Step], used: Sequence[Sequence[Step]], per_stage: int, least: int) -> None:
        every = [*steps, *(step for placed in used for step in placed)]
        brokers = {broker for step in every for broker in (*step.added, step.source) if broker is not None}
        self._row = {broker: 2 * number for number, broker in enumerate(sorted(brokers))}
        self._per_stage = per_stage
        self._load = np.zeros((2 * len(brokers), 0), dtype=np.int64)
        self._longest = np.zeros(0, dtype=np.int64)
        self._room = np.zeros(0, dtype=np.int64)
        self._level, self._whole = 0, 0
        self._open(max(least, len(used), -(-len(every) // per_stage)))
        for stage, placed in enumerate(used):
            for step in placed:
                self._take(step, stage)
        total = self._load.sum(axis=1)
        for step in steps:
            for row, size in self._rows(step):
                total[row] += size
        self._whole = int(total.max(initial=0)) * LEVEL_PERCENT // 100
        self._level = self._poured()

    def _open(self, stages: int) -> None:
        """Make that many stages."""
        more = max(0, stages - len(self._room))
        self._load = np.pad(self._load, ((0, 0), (0, more)))
        self._longest = np.pad(self._longest, (0, more))
        self._room = np.pad(self._room, (0, more), constant_values=self._per_stage)

    def _poured(self) -> int:
        """Return the level at which all stages together are as long as the busiest broker needs."""
        left, stages = self._whole, len(self._longest)
        for longest in sorted(self._longest.tolist(), reverse=True):
            if longest * stages <= left:
                break
            left, stages = left - longest, stages - 1
        return left // stages if stages else 0

    def place(self, step: Step, earliest: int, behind: int) -> int:
        """Return the stage that takes the step, counted there: not before `earliest`, with so many `behind` it."""
        end = max(earliest + 1, len(self._room) - behind)
        if earliest >= len(self._room) or not self._room[earliest:end].any():
            end = max(earliest, len(self._room)) + 1
            self._open(end)
        most = np.zeros(end - earliest, dtype=np.int64)
        for row, size in self._rows(step):
            np.maximum(most, self._load[row, earliest:end] + size, out=most)
        longer = np.maximum(most - np.maximum(self._longest[earliest:end], self._level), 0)
        # Least longer, then where its brokers have least, then the first: one sort key would overflow.
        longer[self._room[earliest:end] == 0] = np.iinfo(np.int64).max
        least = np.flatnonzero(longer == longer.min())
        stage = earliest + int(least[most[least].argmin()])
        self._take(step, stage)
        if self._longest[stage] > self._level:
            self._level = self._poured()
        return stage

    def _take(self, step: Step, stage: int) -> None:
        self._room[stage] -= 1
        for row, size in self._rows(step):
            self._load[row, stage] += size
            self._longest[stage] = max(self._longest[stage], self._load[row, stage])

    def _rows(self, step: Step) -> Iterator[tuple[int, int]]:
        if step.added:
            for broker in step.added:
                yield self._row[broker], step.load
            if step.source is not None:
                # The leader sends every new replica a copy of its own.
                yield self._row[step.source] + 1, step.move.bytes


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
