"""Packs chains of steps into stages: greedily, the busiest broker first, no stage longer than that broker needs.

A run takes as long as the sum of its stages, and a stage as long as its busiest broker in its busier direction. So each
stage gets a budget of bytes, made from the broker with most work left, and is filled with steps that keep every broker
within it. Steps wait in lanes: one lane for each set of brokers that a step touches, because steps of one lane fit or
do not fit together. Which budget is best depends on the sizes, so small runs are packed at several paces.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

from reconciler.model.desired import MovePolicy
from reconciler.staging.disk import DiskUse
from reconciler.staging.estimate import ASSUMED_BYTES_PER_SECOND
from reconciler.staging.safe_order import loads_in_order, safe_order
from reconciler.staging.step import Step, Urgency
from reconciler.staging.work import Caps, Load, Weights, Work, caps

# So many steps of a lane are tried before the lane is closed for a stage: it keeps packing linear in practice.
TRIES = 16
# Up to so many steps every pace is tried and the shortest run kept; beyond, one alone, which is seldom worse.
MOST_TRIED_AT_EVERY_PACE = 3000

Lane = list[int]
"""A heap of the ranks of ready steps with the same added and the same removed brokers."""


class Measure(Enum):
    """What the length of a stage is made from.

    CHUNKS: as long as the busiest broker needs for its largest steps, as many as each stage must take of it.
    INTAKE: the same, but what brokers give out is left aside.
    EVEN: the busiest broker's bytes over the number of stages, where it need not take all it may in each.
    """

    CHUNKS = "chunks"
    INTAKE = "intake"
    EVEN = "even"


class Pace(NamedTuple):
    """How long a stage may be: so many percent of that measure, or as its largest step that is ready needs."""

    measure: Measure
    percent: int


ORDINARY = Pace(Measure.EVEN, 100)
# Shorter stages leave less idle and longer ones are fewer; which is better depends on the sizes, so all are tried.
PACES = (
    ORDINARY,
    *(Pace(measure, percent) for measure in (Measure.CHUNKS, Measure.INTAKE) for percent in (100, 85, 50)),
    Pace(Measure.EVEN, 85),
    Pace(Measure.EVEN, 130),
)
# What a stage costs beside copying when packings are compared: throttles on and off, waiting for the last replicas.
SECONDS_A_STAGE = 5


@dataclass(frozen=True, slots=True)
class PackedStage:
    """Steps that run at once, by partition. `longest`: the bytes of its busiest broker, in its busier direction."""

    steps: tuple[Step, ...]
    longest: int


@dataclass(frozen=True, slots=True)
class Packed:
    """The stages, and the disks after the run."""

    stages: tuple[PackedStage, ...]
    disk: DiskUse

    def rating(self, bytes_a_stage: int) -> tuple[int, int, int]:
        """Return what makes one packing better than another, the less the better: disks overfilled, time, stages."""
        taken = sum(stage.longest for stage in self.stages) + bytes_a_stage * len(self.stages)
        return self.disk.excess, taken, len(self.stages)


def pack(chains: Sequence[Sequence[Step]], policy: MovePolicy, disk: DiskUse) -> Packed:
    """Return the stages: each respects the policy's limits and, where it can be, the disks.

    The chains' steps keep their order, in different stages. The more urgent steps go first; others fill what is left.
    Leaders that must leave their brokers do so in stages of their own, unless there is something to repair.
    """
    is_small = sum(len(chain) for chain in chains) <= MOST_TRIED_AT_EVERY_PACE
    paces = PACES if is_small else (ORDINARY,)
    bytes_a_stage = SECONDS_A_STAGE * (policy.throttle_bytes_per_second or ASSUMED_BYTES_PER_SECOND)
    tried = [_Packer(chains, policy, disk.copy(), pace).packed() for pace in paces]
    if all(packed.disk.excess and packed.disk.is_forced for packed in tried):
        tried += _in_safe_order(chains, policy, disk)
    return min(tried, key=lambda packed: packed.rating(bytes_a_stage))


def _in_safe_order(chains: Sequence[Sequence[Step]], policy: MovePolicy, disk: DiskUse) -> Iterator[Packed]:
    """Yield the packing in an order that overfills no disk, if one is found."""
    steps, following, firsts = _ranked(chains)
    order = safe_order(steps, following, firsts, disk)
    if order is not None:
        after = disk.copy()
        loads = list(loads_in_order(steps, following, order, policy, after))
        stages = tuple(PackedStage(_sorted(steps[rank] for rank in load.placed), load.longest) for load in loads)
        yield Packed(stages, after)


def _sorted(steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.move.topic_partition))


class _Packer:
    """One attempt; a stage is filled, ended, and what it freed and made ready goes into the next."""

    def __init__(self, chains: Sequence[Sequence[Step]], policy: MovePolicy, disk: DiskUse, pace: Pace) -> None:
        self._steps, self._next, firsts = _ranked(chains)
        self._policy = policy
        self._disk = disk
        self._pace = pace
        self._work = Work(self._steps)
        self._load = Load()
        self._lanes: dict[tuple[tuple[int, ...], tuple[int, ...]], Lane] = {}
        self._is_ready = [False] * len(self._steps)
        self._waiting = _by_broker(self._steps)
        for rank in firsts:
            self._make_ready(rank)

    def packed(self) -> Packed:
        return Packed(tuple(self._stages()), self._disk)

    def _stages(self) -> Iterator[PackedStage]:
        # Leaderships leave their brokers first: it costs no copy. A repair is more urgent than that. Steps are sorted,
        # the most urgent first, so the first one tells whether there is any.
        if not any(step.urgency < Urgency.REPAIRED for step in self._steps[:1]):
            yield from self._handovers()
        while self._work.steps:
            self._fill()
            # Nothing fits a disk any more: one step passes all the same, and what fits beside it, so that work goes on.
            if not self._load.placed:
                self._force()
                self._fill()
            yield self._end_stage()

    def _handovers(self) -> Iterator[PackedStage]:
        """Yield stages that only take leaderships off brokers that must lose them."""
        # Steps that add and remove nothing share one lane: changes of order alone, which Kafka ends at once.
        lane = self._lanes.pop(((), ()), [])
        ready = sorted(rank for rank in lane if self._steps[rank].is_handover)
        others = sorted(rank for rank in lane if not self._steps[rank].is_handover)
        if others:
            self._lanes[(), ()] = others
        for start in range(0, len(ready), self._policy.per_stage):
            for rank in ready[start : start + self._policy.per_stage]:
                self._load.place(rank, self._steps[rank])
            yield self._end_stage()

    def _end_stage(self) -> PackedStage:
        placed = self._load.placed
        steps = [self._steps[rank] for rank in placed]
        for rank, step in zip(placed, steps, strict=True):
            self._is_ready[rank] = False
            self._work.finish(step)
        self._disk.end(steps)
        # Successors are ready only now: a partition has one reassignment at a time (KIP-455), the next replaces it.
        for rank in placed:
            following = self._next[rank]
            if following is not None:
                self._make_ready(following)
        longest, self._load = self._load.longest, Load()
        return PackedStage(_sorted(steps), longest)

    def _make_ready(self, rank: int) -> None:
        step = self._steps[rank]
        self._is_ready[rank] = True
        heappush(self._lanes.setdefault((step.added, step.removed), []), rank)

    def _fill(self) -> None:
        """Place what fits, class by class; a lane whose next step is less urgent comes again with that class.

        First each broker gets its even share of what waits for it, so that none falls behind; then what room is left.
        """
        weights = Weights(self._work)
        stages = self._work.stages(self._policy)
        shares = caps(self._work, self._policy.per_broker, stages)
        limits = caps(self._work, self._policy.per_broker, 1)
        # Lanes are heaps of ranks, so a lane's first step is its most urgent.
        waiting = list(self._lanes.values())
        while waiting and len(self._load.placed) < self._policy.per_stage:
            urgency = self._steps[min(lane[0] for lane in waiting)].urgency
            end = bisect_right(self._steps, urgency, key=lambda step: step.urgency)
            lanes = self._in_order([lane for lane in waiting if lane[0] < end], weights)
            if self._load.budget is None:
                self._load.budget = self._budget(lanes, end, stages)
            # Twice over the lanes: with shares alone a stage would stay short where brokers are uneven.
            for most in (shares, limits):
                self._rounds([lane for lane in lanes if lane and lane[0] < end], end, most)
            waiting = [lane for lane in waiting if lane and lane[0] >= end]
        self._lanes = {key: lane for key, lane in self._lanes.items() if lane}

    def _in_order(self, lanes: Sequence[Lane], weights: Weights) -> list[Lane]:
        """Return the lanes, those of the busiest brokers first, then by rank."""
        weight_of, steps = weights.of, self._steps
        keyed = sorted((-weight_of(steps[lane[0]]), lane[0], lane) for lane in lanes)
        return [lane for _, _, lane in keyed]

    def _budget(self, lanes: Sequence[Lane], end: int, stages: int) -> int:
        """Return the bytes in a row that the stage may take."""
        # A step larger than the budget could never be placed.
        largest = max(self._steps[lane[0]].move.bytes for lane in lanes)
        size, broker_id, is_out = self._work.busiest(is_intake_only=self._pace.measure is Measure.INTAKE)
        # As many of that broker's steps as each stage must take: the first that are ready make the stage's length.
        counts = self._work.serving if is_out else self._work.arriving
        share = -(-counts[broker_id] // stages)
        percent = self._pace.percent
        if self._pace.measure is Measure.EVEN and share < self._policy.per_broker:
            return max(largest, -(-size * percent // (stages * 100)))
        waiting = self._waiting.get((broker_id, is_out), ())
        ready = (self._steps[rank] for rank in waiting if self._is_ready[rank] and rank < end)
        needed = sum(step.move.bytes if is_out else step.load for step in islice(ready, share))
        return max(largest, needed * percent // 100)

    def _rounds(self, lanes: list[Lane], end: int, most: Caps) -> None:
        """Take one step of each lane in turn, so that no pair of brokers uses up what all could share."""
        while lanes:
            still_open: list[Lane] = []
            for lane in lanes:
                if len(self._load.placed) >= self._policy.per_stage:
                    return
                if self._take(lane, end, most) and lane and lane[0] < end:
                    still_open.append(lane)
            lanes = still_open

    def _take(self, lane: Lane, end: int, most: Caps) -> bool:
        """Place the lane's first step that fits, if one of the first few does."""
        if not self._load.has_room_for(self._steps[lane[0]], most):
            return False
        # The steps of a lane differ in their bytes and their leader alone: a smaller one, or another's, may fit.
        passed_over: list[int] = []
        is_placed = False
        while not is_placed and len(passed_over) < TRIES and lane and lane[0] < end:
            rank = heappop(lane)
            step = self._steps[rank]
            is_placed = self._load.is_short_with(step) and not self._disk.shortfall(step)
            if is_placed:
                self._place(rank)
            else:
                passed_over.append(rank)
        for rank in passed_over:
            heappush(lane, rank)
        return is_placed

    def _place(self, rank: int) -> None:
        self._load.place(rank, self._steps[rank])
        self._disk.begin(self._steps[rank])

    def _force(self) -> None:
        """Place the step that overfills a broker the least: nothing that is left fits, so something has to."""
        waiting = [(rank, lane) for lane in self._lanes.values() for rank in lane]
        rank, lane = min(waiting, key=lambda item: (self._disk.shortfall(self._steps[item[0]]), item[0]))
        lane.remove(rank)
        heapify(lane)
        self._lanes = {key: kept for key, kept in self._lanes.items() if kept}
        self._disk.yield_to(self._steps[rank], (self._steps[other] for other, _ in waiting))
        self._place(rank)


def _ranked(chains: Sequence[Sequence[Step]]) -> tuple[list[Step], list[int | None], list[int]]:
    """Return all steps by urgency, the longest chain first, partition; each one's successor; each chain's first."""
    flat = [(step, chain, number) for chain, steps in enumerate(chains) for number, step in enumerate(steps)]
    flat.sort(key=lambda item: (item[0].urgency, -item[0].rest, item[0].move.topic_partition, item[2]))
    rank_of = {(chain, number): rank for rank, (_, chain, number) in enumerate(flat)}
    following = [rank_of.get((chain, number + 1)) for _, chain, number in flat]
    return [step for step, _, _ in flat], following, [rank_of[chain, 0] for chain in range(len(chains))]


def _by_broker(steps: Sequence[Step]) -> dict[tuple[int, bool], list[int]]:
    """Return the steps whose bytes go in (False) or out (True) of each broker, by rank."""
    found: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)
    for rank, step in enumerate(steps):
        for broker_id in step.added:
            found[broker_id, False].append(rank)
        if step.added and step.source is not None:
            found[step.source, True].append(rank)
    return dict(found)
