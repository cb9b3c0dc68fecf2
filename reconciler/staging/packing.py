"""Packs chains of steps into stages: as few as `moves.perStage` and urgency allow, each no longer than it must be.

A stage is a set: any part of it may be done or in flight, and nobody inside it waits for the slowest. So nothing but
its size, the room on its brokers and the order of a chain limits it. A run takes as long as the sum of its stages, and
a stage as long as its busiest broker needs in its busier direction. That sum is least where every stage has its even
part of the busiest broker's bytes, and no broker falls behind.

Two passes do that. `_spread` deals the steps over the stages (`dealing`), the more urgent first. `_settled` then goes
through the stages in order and counts replicas and bytes: a step for which a broker has no room is put off to a later
stage, after other steps have freed room. Where that ends with steps that have no room at all, it is tried again with
an eye on what is still to come (`room.Outlook`), and then by a search (`safe_order`).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.columns import Ints
from reconciler.model.desired import MovePolicy
from reconciler.staging.dealing import Dealing, Loads
from reconciler.staging.room import Outlook, Room
from reconciler.staging.safe_order import loads_in_order, safe_order
from reconciler.staging.step import Steps, Urgency

Rank = int


@dataclass(frozen=True, slots=True)
class Packed:
    """The steps of each stage, in the order in which a run admits them, what they ask, and the room after the run."""

    stages: tuple[Steps, ...]
    loads: tuple[Loads, ...]
    room: Room


def pack(steps: Steps, policy: MovePolicy, room: Room) -> Packed:
    """Return the stages: each respects `perStage` and, where it can be, the limits, with nothing freed inside it.

    The chains' steps keep their order, in different stages. The more urgent steps go first. Leaders that must leave
    their brokers do so in stages of their own, unless there is something to repair.
    """
    run = _Run.of(steps)
    dealt, after = _spread(run, policy), room.copy()
    stages: list[Sequence[Rank]] = list(_settled(run, dealt, policy, after))
    if after.is_forced and after.counts.excess:
        far = room.copy()
        other: list[Sequence[Rank]] = list(_settled(run, dealt, policy, far, Outlook(run.steps, room.counts)))
        stages, after = min((stages, after), (other, far), key=_worth)
    if after.is_forced:
        following = [rank if rank >= 0 else None for rank in run.following.tolist()]
        order = safe_order(run.steps, following, np.flatnonzero(run.before < 0).tolist(), room)
        if order is not None:
            safe = room.copy()
            other = list(loads_in_order(run.steps, following, order, policy, safe))
            stages, after = min((stages, after), (other, safe), key=_worth)
    # By rank: the most urgent first, of these the largest, so that none ends alone.
    columns = [np.array(sorted(stage), dtype=np.int64) for stage in stages]
    found = tuple(run.steps.part(column) for column in columns)
    return Packed(found, tuple(run.loads.part(column) for column in columns), after)


def _worth(way: tuple[Sequence[Sequence[Rank]], Room]) -> tuple[tuple[int, int], int]:
    """Return what decides between ways: the excess over limits, then the number of stages."""
    return way[1].excess, len(way[0])


@dataclass(frozen=True, slots=True)
class _Run:
    """All steps by rank, the most urgent first, of these the largest; columns and what they ask likewise.

    `before` and `following` are the steps beside each in its chain, -1 for none. `wave` groups the steps that are
    dealt together: the urgency, or that of a step before it that is less urgent. So many steps of its wave are `ahead`
    of each in its chain, and `behind` it. `apart` holds the leaderships that leave in stages of their own.
    """

    steps: Steps
    loads: Loads
    before: Ints
    following: Ints
    wave: Ints
    ahead: Ints
    behind: Ints
    apart: frozenset[Rank]

    @classmethod
    def of(cls, given: Steps) -> "_Run":
        # A stable sort: steps that are as urgent and as large stay in the order of their partitions and chains.
        order = np.lexsort((-given.moves.bytes_a_copy, given.urgency))
        steps, depth = given.part(order), given.depth
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(len(order))
        before, following = np.full((2, len(order)), -1, dtype=np.int64)
        inner = np.flatnonzero(depth)
        before[rank_of[inner]], following[rank_of[inner - 1]] = rank_of[inner - 1], rank_of[inner]
        # A leadership that leaves costs no copy, so it goes first; only what repairs goes before it.
        has_repairs = bool((steps.urgency[:1] < Urgency.REPAIRED).any())
        apart = frozenset[Rank]() if has_repairs else frozenset(np.flatnonzero(steps.is_handover).tolist())
        deeper = [rank_of[depth == number] for number in range(1, int(depth.max(initial=0)) + 1)]
        wave = _waves(steps, apart, before, deeper)
        ahead, behind = np.zeros((2, len(order)), dtype=np.int64)
        for ranks in deeper:
            ahead[ranks] = np.where(wave[ranks] == wave[before[ranks]], ahead[before[ranks]] + 1, 0)
        for ranks in (ranks[ahead[ranks] > 0] for ranks in reversed(deeper)):
            behind[before[ranks]] = behind[ranks] + 1
        return cls(steps, Loads.of(steps.moves, steps.source), before, following, wave, ahead, behind, apart)

    def is_alike(self, rank: Rank, others: Sequence[Rank]) -> bool:
        """Whether the step may share a stage with these, as far as leaderships that leave go."""
        return not others or (rank in self.apart) is (others[0] in self.apart)


def _waves(steps: Steps, apart: Collection[Rank], before: Ints, deeper: Sequence[Ints]) -> Ints:
    """Return the wave of each step; `deeper`: the second steps of all chains, the third ones and so on."""
    wave = steps.urgency.copy()
    wave[[*apart]] = -1
    for ranks in deeper:
        # A step is never before the one that it follows, however urgent it is.
        wave[ranks] = np.maximum(wave[ranks], wave[before[ranks]])
    return wave


def _spread(run: _Run, policy: MovePolicy) -> list[list[Rank]]:
    """Return the ranks of each stage: limits are not looked at yet."""
    stage_of = np.full(len(run.steps), -1, dtype=np.int64)
    count, last = 0, np.zeros(0, dtype=np.int64)
    for number in np.unique(run.wave):
        ranks = np.flatnonzero(run.wave == number)
        # What is less urgent fills the last stage of what is more urgent; leaderships that leave stay by themselves.
        begin = count - 1 if count and run.is_alike(int(ranks[0]), last[:1].tolist()) else count
        placed = last if begin < count else last[:0]
        dealt = _dealt(run, ranks, placed, stage_of - begin, policy)
        # A stage that stayed empty is none.
        used, stage = np.unique(np.concatenate([np.zeros_like(placed), dealt]), return_inverse=True)
        stage_of[ranks] = begin + stage[len(placed) :]
        count = begin + len(used)
        last = np.flatnonzero(stage_of == count - 1)
    order = np.argsort(stage_of, kind="stable")
    return [part.tolist() for part in np.split(order, np.flatnonzero(np.diff(stage_of[order])) + 1) if len(part)]


def _dealt(run: _Run, wave: Ints, placed: Ints, stage_of: Ints, policy: MovePolicy) -> Ints:
    """Return the stage of each rank of the wave, counted from that of those that are `placed`.

    Chains need as many stages as the longest has steps. One or two more leave something to choose: each is taken where
    it saves a hundredth of the time. `stage_of`: where the steps of earlier waves are, counted likewise.
    """
    longest = int(run.behind[wave].max())
    needed = -(-(len(wave) + len(placed)) // policy.per_stage)
    best, least = wave, None
    for more, stages in enumerate(sorted({max(needed, longest + one) for one in ((1, 2, 3) if longest else (1,))})):
        dealing = Dealing(run.loads, wave, placed, policy.per_stage, stages)
        found = _dealt_by(dealing, run, wave, stage_of)
        if least is None or dealing.length * (100 + more) < least:
            best, least = found[wave], dealing.length * (100 + more)
        if dealing.is_close:
            break
    return best


def _dealt_by(dealing: Dealing, run: _Run, wave: Ints, stage_of: Ints) -> Ints:
    """Return the stages of all ranks, those of the wave dealt: first steps of chains first, of these the largest."""
    found = stage_of.copy()
    ranks = wave[np.argsort(-run.loads.sizes[wave, 0], kind="stable")]
    for ahead in range(int(run.ahead[wave].max()) + 1):
        turn = ranks[run.ahead[ranks] == ahead]
        # One reassignment a partition at a time (KIP-455): the next would replace it.
        earliest = np.where(run.before[turn] >= 0, np.maximum(0, found[run.before[turn]] + 1), 0)
        found[turn] = dealing.deal(turn, earliest, run.behind[turn])
    return found


def _settled(
    run: _Run, stages: Sequence[Sequence[Rank]], policy: MovePolicy, room: Room, outlook: Outlook | None = None
) -> Iterator[Sequence[Rank]]:
    """Yield the stages with each step put off for which there is no room where it was dealt to.

    A copy counts from its stage's begin, a replica that goes until its end: so whatever part of a stage is done or in
    flight, no broker holds more than was counted. With an outlook a step is also put off if it would leave others
    without room for ever.
    """
    if not room.is_limited:
        for stage in stages:
            room.disk.take_and_free(run.steps.part(np.array(stage, dtype=np.int64)))
            yield stage
        return
    settling = _Settling(run, policy, room, outlook)
    dealt, put_off = list(stages), list[Rank]()
    while dealt or put_off:
        due = sorted([*put_off, *(dealt.pop(0) if dealt else ())])
        placed = settling.fitting(due, [])
        if not placed and not dealt:
            # Nothing fits any more: one step passes all the same, and what fits beside it, so that work goes on.
            placed = settling.fitting(due, [settling.forced(due)])
        put_off = sorted(set(due).difference(placed))
        if placed:
            settling.end(placed)
            yield placed


class _Settling:
    """Places steps stage by stage."""

    def __init__(self, run: _Run, policy: MovePolicy, room: Room, outlook: Outlook | None) -> None:
        self._run, self._policy, self._room, self._outlook = run, policy, room, outlook
        self._before = run.before.tolist()
        self._ended: set[Rank] = {-1}

    def fitting(self, due: Sequence[Rank], placed: list[Rank]) -> list[Rank]:
        """Return the placed ranks and those that fit beside them."""
        for rank in due:
            step = self._run.steps[rank]
            is_room = (
                len(placed) < self._policy.per_stage and self._run.is_alike(rank, placed) and rank not in placed[:1]
            )
            is_fit = is_room and self._is_ready(rank) and self._room.fits(step)
            if is_fit and (self._outlook is None or self._outlook.allows(step)):
                self._begin(rank)
                placed.append(rank)
        return placed

    def forced(self, waiting: Sequence[Rank]) -> Rank:
        """Return the step for which the least room is missing, begun."""
        steps, room = self._run.steps, self._room
        rank = min(filter(self._is_ready, waiting), key=lambda one: (room.shortfall(steps[one]), one))
        room.yield_to(steps[rank], (steps[other] for other in waiting))
        self._begin(rank)
        return rank

    def _begin(self, rank: Rank) -> None:
        self._room.begin(self._run.steps[rank])
        if self._outlook is not None:
            self._outlook.take(self._run.steps[rank])

    def end(self, placed: Sequence[Rank]) -> None:
        """Free what the steps of a stage removed."""
        self._room.end([self._run.steps[rank] for rank in placed])
        self._ended.update(placed)

    def _is_ready(self, rank: Rank) -> bool:
        return self._before[rank] in self._ended
