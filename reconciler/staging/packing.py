"""Packs chains of steps into stages: as few as `moves.perStage` and urgency allow, each no longer than it must be.

A stage is a set: any part of it may be done or in flight, and nobody inside it waits for the slowest. So nothing but
its size, its disks and the order of a chain limits it. A run takes as long as the sum of its stages, and a stage as
long as its busiest broker needs in its busier direction. That sum is least where every stage has its even part of the
busiest broker's bytes, and no broker falls behind.

Two passes do that. `_spread` deals the steps over the stages (`dealing`), the more urgent first. `_settled` then goes
through the stages in order and counts the disks: a step that would overfill one is put off to a later stage, after
other steps have freed room.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.columns import Ints
from reconciler.model.desired import MovePolicy
from reconciler.staging.dealing import Dealing, Loads
from reconciler.staging.disk import DiskUse
from reconciler.staging.safe_order import loads_in_order, safe_order
from reconciler.staging.step import Step, Urgency

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
    """All steps by rank, and what they ask; each one's successor in its chain, its predecessor, and its place there.

    `before` is -1, and `following` None, where there is none; `firsts` are the first steps of all chains.

    `waves` groups the ranks by urgency, the most urgent first. `apart` holds the ranks of leaderships that leave in
    stages of their own.
    """

    steps: tuple[Step, ...]
    loads: Loads
    following: tuple[Rank | None, ...]
    before: tuple[Rank, ...]
    depth: tuple[int, ...]
    firsts: tuple[Rank, ...]
    waves: tuple[tuple[Rank, ...], ...]
    apart: frozenset[Rank]

    @classmethod
    def of(cls, chains: Sequence[Sequence[Step]]) -> "_Run":
        flat = [step for steps in chains for step in steps]
        # Stable sorts: steps that are as urgent and as large stay in the order of their partitions and chains.
        order = sorted(range(len(flat)), key=[step.load for step in flat].__getitem__, reverse=True)
        order.sort(key=[step.urgency for step in flat].__getitem__)
        steps = tuple([flat[place] for place in order])
        depth = np.array([number for steps in chains for number in range(len(steps))], dtype=np.int64)
        rank_of = np.empty_like(depth)
        rank_of[order] = np.arange(len(flat))
        is_inner = depth > 0
        before, following = np.full((2, len(flat)), -1, dtype=np.int64)
        before[rank_of[is_inner]] = rank_of[np.flatnonzero(is_inner) - 1]
        following[rank_of[np.flatnonzero(is_inner) - 1]] = rank_of[is_inner]
        # A leadership that leaves costs no copy, so it goes first; only what repairs goes before it.
        has_repairs = any(step.urgency < Urgency.REPAIRED for step in flat)
        apart = frozenset(rank for rank, step in enumerate(steps) if step.is_handover and not has_repairs)
        return cls(
            steps=steps,
            loads=Loads.of(steps),
            following=tuple([rank if rank >= 0 else None for rank in following.tolist()]),
            before=tuple(before.tolist()),
            depth=tuple(depth[order].tolist()),
            firsts=tuple(rank_of[~is_inner].tolist()),
            waves=_waves(chains, rank_of.tolist(), apart),
            apart=apart,
        )

    def is_alike(self, rank: Rank, others: Sequence[Rank]) -> bool:
        """Whether the step may share a stage with these, as far as leaderships that leave go."""
        return not others or (rank in self.apart) is (others[0] in self.apart)


def _waves(
    chains: Sequence[Sequence[Step]], rank_of: Sequence[Rank], apart: Collection[Rank]
) -> tuple[tuple[Rank, ...], ...]:
    found: defaultdict[tuple[bool, int], list[Rank]] = defaultdict(list)
    ranks = iter(rank_of)
    for steps in chains:
        key = (False, 0)
        for step in steps:
            rank = next(ranks)
            # A step is never before the one that it follows, however urgent it is.
            key = max(key, (rank not in apart, step.urgency))
            found[key].append(rank)
    return tuple(tuple(sorted(found[key])) for key in sorted(found))


def _spread(run: _Run, policy: MovePolicy) -> list[list[Rank]]:
    """Return the ranks of each stage: disks are not looked at yet."""
    stage_of = np.full(len(run.steps), -1, dtype=np.int64)
    count, last = 0, np.zeros(0, dtype=np.int64)
    for wave in run.waves:
        # What is less urgent fills the last stage of what is more urgent; leaderships that leave stay by themselves.
        begin = count - 1 if count and run.is_alike(wave[0], last[:1].tolist()) else count
        placed = last if begin < count else last[:0]
        dealt = _dealt(run, wave, placed, stage_of - begin, policy)
        # A stage that stayed empty is none.
        used, number = np.unique(np.concatenate([np.zeros_like(placed), dealt]), return_inverse=True)
        ranks = np.array(wave, dtype=np.int64)
        stage_of[ranks] = begin + number[len(placed) :]
        count = begin + len(used)
        last = np.flatnonzero(stage_of == count - 1)
    order = np.argsort(stage_of, kind="stable")
    return [part.tolist() for part in np.split(order, np.flatnonzero(np.diff(stage_of[order])) + 1) if len(part)]


def _dealt(run: _Run, wave: Sequence[Rank], placed: Ints, stage_of: Ints, policy: MovePolicy) -> Ints:
    """Return the stage of each rank of the wave, counted from that of those that are `placed`.

    Chains need as many stages as the longest has steps. One or two more leave something to choose: each is taken where
    it saves a hundredth of the time. `stage_of`: where the steps of earlier waves are, counted likewise.
    """
    turns = _turns(run, wave)
    ranks = np.array(wave, dtype=np.int64)
    longest = max(int(turn.behind.max()) for turn in turns)
    needed = -(-(len(wave) + len(placed)) // policy.per_stage)
    best, least = ranks, None
    for more, stages in enumerate(sorted({max(needed, longest + one) for one in ((1, 2, 3) if longest else (1,))})):
        dealing = Dealing(run.loads, ranks, placed, policy.per_stage, stages)
        found = _dealt_by(dealing, turns, stage_of)
        if least is None or dealing.length * (100 + more) < least:
            best, least = found[ranks], dealing.length * (100 + more)
        if dealing.is_close:
            break
    return best


@dataclass(frozen=True, slots=True)
class _Turn:
    """The steps of a wave that are as deep in their chains, the largest first: arrays of ranks.

    `before` is the step before in the chain, -1 for none; `behind` counts those of the wave that follow in it, and so
    need a stage after its own.
    """

    ranks: Ints
    before: Ints
    behind: Ints


def _turns(run: _Run, wave: Sequence[Rank]) -> list[_Turn]:
    """Return the wave's steps in the order in which they are dealt."""
    behind = dict.fromkeys(wave, 0)
    ahead = dict.fromkeys(wave, 0)
    for rank in sorted(wave, key=lambda rank: run.depth[rank]):
        ahead[rank] = 1 + ahead.get(run.before[rank], -1)
    by_depth: defaultdict[int, list[Rank]] = defaultdict(list)
    for rank in sorted(wave, key=lambda rank: (-ahead[rank], -run.steps[rank].load, rank)):
        following = run.following[rank]
        if following in behind:
            behind[rank] = 1 + behind[following]
        by_depth[ahead[rank]].append(rank)
    turns = []
    for ranks in reversed(by_depth.values()):
        columns = ranks, [run.before[rank] for rank in ranks], [behind[rank] for rank in ranks]
        turns.append(_Turn(*(np.array(column, dtype=np.int64) for column in columns)))
    return turns


def _dealt_by(dealing: Dealing, turns: Sequence[_Turn], stage_of: Ints) -> Ints:
    """Return the stages of all ranks, those of these turns dealt."""
    found = stage_of.copy()
    for turn in turns:
        # One reassignment a partition at a time (KIP-455): the next would replace it.
        earliest = np.where(turn.before >= 0, np.maximum(0, found[turn.before] + 1), 0)
        found[turn.ranks] = dealing.deal(turn.ranks, earliest, turn.behind)
    return found


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
    """Places steps stage by stage."""

    def __init__(self, run: _Run, policy: MovePolicy, disk: DiskUse) -> None:
        self._run, self._policy, self._disk = run, policy, disk
        self._ended: set[Rank] = {-1}

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
        return self._run.before[rank] in self._ended
