"""Says which steps may begin: each needs a place for its replicas on every broker that it adds, and bytes on the disks.

A replica that arrives counts from the beginning of its stage, one that leaves until the end: Kafka deletes it once its
move has ended, and in which order the moves of one stage end is unknown. So no part of a stage holds more than counted.

    example: replicasPerBroker 2, brokers 1 with t-0 and t-2, 2 with t-1 and t-3, 3 with t-4
             t-2: 1 to 3    t-1: 2 to 1    t-3: 2 to 1    t-4: 3 to 2
             only t-2 fits at first; then t-1 or t-3, into the place that it leaves on 1; then t-4; then the other
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from reconciler.model.change import CreatePartitions, CreateTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.columns import Bools, Ints
from reconciler.model.desired import Limits
from reconciler.model.move_table import Moves
from reconciler.model.problem import STAGE_LIMIT, Problem, Severity
from reconciler.model.stage import ReassignStage, Stage, TopicsStage
from reconciler.model.table_maker import table_of
from reconciler.staging.disk import DiskUse
from reconciler.staging.problems import PLAN_FEWER
from reconciler.staging.step import Step, Steps

# So many kinds of steps are visited in all, which takes about a second on one core. After that any step is allowed.
MOST_VISITS = 1_000_000


def _per_broker(table: Ints, mask: Bools) -> Counter[int]:
    ids, counts = np.unique(table[mask], return_counts=True)
    return Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))


def replicas_now(observed: Cluster) -> Counter[int]:
    """Return how many replicas each broker holds; of a partition on the move, those that it moves to."""
    target = table_of(observed).target
    return _per_broker(target, target >= 0)


def replicas_created(changes: Iterable[TopicChange]) -> Counter[int]:
    """Return how many replicas of new partitions each broker gets."""
    growing = (change for change in changes if isinstance(change, CreateTopic | CreatePartitions))
    return Counter(broker_id for change in growing for replicas in change.assignment.values() for broker_id in replicas)


class ReplicaCounts:
    """The replicas that each broker holds while steps are placed, against the limit.

    Only brokers that could come above the limit are counted: those in `ceiling`, which is the most that each may hold.
    It is the limit, or what the broker ends with where that is more: then the excess is the least there can be.
    """

    def __init__(self, limit: int | None, steps: Steps, now: Mapping[int, int], created: Mapping[int, int]) -> None:
        """Take the state before the first stage, in which the new partitions of `created` are there already."""
        self._held, self.ceiling = Counter[int](), dict[int, int]()
        self._excess, self._yields = Counter[int](), 0
        if limit is None:
            return
        arriving, leaving = _changes_of(steps.moves)
        for broker_id in sorted(arriving.keys() | created.keys()):
            count = now.get(broker_id, 0) + created.get(broker_id, 0)
            if count + arriving[broker_id] > limit:
                self._held[broker_id] = count
                self.ceiling[broker_id] = max(limit, count + arriving[broker_id] - leaving[broker_id])
                self._excess[broker_id] = min(created.get(broker_id, 0), max(0, count - limit))

    def copy(self) -> "ReplicaCounts":
        """Return the same state, to be changed apart."""
        twin = copy(self)
        twin._held, twin._excess, twin.ceiling = Counter(self._held), Counter(self._excess), dict(self.ceiling)  # noqa: SLF001 - its own class
        return twin

    @property
    def excess(self) -> int:
        """The replicas by which brokers, while they took something in, were above the limit, or what they end with."""
        return self._excess.total()

    @property
    def is_forced(self) -> bool:
        """Whether a step had to pass that did not fit."""
        return self._yields > 0

    def free(self) -> dict[int, int]:
        """Return how many replicas each broker may still take."""
        return {broker_id: ceiling - self._held[broker_id] for broker_id, ceiling in self.ceiling.items()}

    def shortfall(self, step: Step) -> int:
        """Return by how many replicas the step, begun now, would bring a broker above its ceiling; 0: it fits."""
        over = (1 + self._held[each] - self.ceiling[each] for each in step.added if each in self.ceiling)
        return max(0, *over, 0)

    def net(self, step: Step) -> int:
        """Return how many replicas more the brokers that count hold once the step has ended."""
        return sum(map(self.ceiling.__contains__, step.added)) - sum(map(self.ceiling.__contains__, step.removed))

    def begin(self, step: Step) -> None:
        """Take the step's new replicas in."""
        for broker_id in step.added:
            if broker_id in self.ceiling:
                self._held[broker_id] += 1

    def end(self, steps: Iterable[Step]) -> None:
        """Free what the steps of an ended stage removed."""
        for step in steps:
            self._held.subtract(broker_id for broker_id in step.removed if broker_id in self.ceiling)

    def yield_to(self, step: Step) -> None:
        """Let a step pass that does not fit: its destinations may hold that much from now on."""
        self._yields += 1
        for broker_id in step.added:
            over = 1 + self._held[broker_id] - self.ceiling[broker_id] if broker_id in self.ceiling else 0
            if over > 0:
                self._excess[broker_id] += over
                self.ceiling[broker_id] += over


@dataclass(frozen=True, slots=True)
class Room:
    """The replicas and the bytes that each broker holds while steps are placed."""

    disk: DiskUse
    counts: ReplicaCounts

    def copy(self) -> "Room":
        """Return the same state, to be changed apart."""
        return Room(self.disk.copy(), self.counts.copy())

    @property
    def excess(self) -> tuple[int, int]:
        """The replicas, and then the bytes, that were above the limits."""
        return self.counts.excess, self.disk.excess

    @property
    def is_limited(self) -> bool:
        """Whether any broker could hold too much."""
        return bool(self.counts.ceiling) or self.disk.is_limited

    @property
    def is_forced(self) -> bool:
        """Whether a step had to pass that did not fit, and some limit was exceeded."""
        return (self.counts.is_forced or self.disk.is_forced) and any(self.excess)

    def fits(self, step: Step) -> bool:
        """Whether the step may begin now."""
        return not self.counts.shortfall(step) and not self.disk.shortfall(step)

    def shortfall(self, step: Step) -> tuple[int, int]:
        """Return how many replicas, and then bytes, the step lacks on the fullest of its brokers."""
        return self.counts.shortfall(step), self.disk.shortfall(step)

    def is_watched(self, step: Step) -> bool:
        """Whether the step takes room that others may need."""
        return any(map(self.counts.ceiling.__contains__, step.added)) or self.disk.is_watched(step)

    def net(self, step: Step) -> tuple[int, int]:
        """Return how many replicas and bytes more the watched brokers hold once the step has ended."""
        return self.counts.net(step), self.disk.net(step)

    def begin(self, step: Step) -> None:
        """Take the step's copies in."""
        self.counts.begin(step)
        self.disk.begin(step)

    def end(self, steps: Sequence[Step]) -> None:
        """Free what the steps of an ended stage removed."""
        self.counts.end(steps)
        self.disk.end(steps)

    def yield_to(self, step: Step, waiting: Iterable[Step]) -> None:
        """Let a step pass that does not fit, as none that fits is left."""
        self.counts.yield_to(step)
        self.disk.yield_to(step, waiting)


Kind = tuple[tuple[int, ...], tuple[int, ...]]
"""The brokers, of those that count, to which a step adds a replica, and from which it removes one."""


class Outlook:
    """Decides which steps leave a way for all others.

    Steps are connected if they share a broker that counts. Steps that are not connected to them do not change what
    these brokers hold. So if none of them fits, none ever will. If each step copies one replica, the converse is true
    as well: a free place goes from broker to broker against the moves, and it can visit all connected steps, as a walk
    over all edges of a graph does (Hierholzer 1873). Then a step is allowed if and only if an order of the others
    exists.
    """

    def __init__(self, steps: Iterable[Step], counts: ReplicaCounts) -> None:
        """Take the state before the first stage, in which none of the steps is done."""
        self._is_counted = counts.ceiling.keys()
        self._free, self._remaining, self._visits = counts.free(), Counter(map(self._kind, steps)), 0
        self._kinds: dict[int, set[Kind]] = {}
        for kind in self._remaining:
            for broker_id in (*kind[0], *kind[1]) if kind[0] else ():
                self._kinds.setdefault(broker_id, set()).add(kind)

    def take(self, step: Step) -> None:
        """Count the step as done."""
        self._count(self._kind(step), 1)

    def allows(self, step: Step) -> bool:
        """Whether after this step one of the steps connected to it would fit, if any remain."""
        kind = self._kind(step)
        self._count(kind, 1)
        is_allowed = not kind[0] or all(map(self._is_open, (*kind[0], *kind[1])))
        self._count(kind, -1)
        return is_allowed

    def _kind(self, step: Step) -> Kind:
        added, removed = (tuple(each for each in sorted(ids) if each in self._is_counted) for ids in step[1:3])
        return added, removed

    def _count(self, kind: Kind, times: int) -> None:
        self._remaining[kind] -= times
        for change, brokers in zip((-times, times), kind, strict=True):
            for broker_id in brokers:
                self._free[broker_id] += change

    def _is_open(self, start: int) -> bool:
        """Whether one of the steps that are connected to this broker fits, or none remains."""
        reached, waiting, is_empty = {start}, [start], True
        while waiting and self._visits < MOST_VISITS:
            for kind in self._kinds.get(waiting.pop(), ()):
                self._visits += 1
                if self._remaining[kind] > 0:
                    is_empty = False
                    if all(self._free[broker_id] > 0 for broker_id in kind[0]):
                        return True
                    waiting += {*kind[0], *kind[1]} - reached
                    reached.update(*kind)
        return is_empty or self._visits >= MOST_VISITS


def count_violations(
    stages: Iterable[Stage], changes: Sequence[TopicChange], now: Counter[int], limits: Limits
) -> Iterator[Problem]:
    """Yield a violation for each broker that a stage brings above `replicasPerBroker`: where it is highest above it."""
    limit, counts, worst = limits.replicas_per_broker, Counter(now), dict[int, tuple[int, int]]()
    for stage in stages if limit is not None else ():
        arriving, leaving = _changes_of_stage(stage, changes)
        for broker_id, arrivals in arriving.items():
            count = counts[broker_id] + arrivals
            if count > (limit or 0):
                worst[broker_id] = max(worst.get(broker_id, (0, 0)), (count, -stage.number))
        counts.update(arriving)
        counts.subtract(leaving)
    for broker_id, (count, number) in sorted(worst.items()):
        message = (
            f"broker {broker_id} would hold {count} replicas in stage {-number}, {count - (limit or 0)} more than"
            f" limits.replicasPerBroker, {limit}, allows: no order of stages that keeps it was found; raise it or"
            f" give the brokers room{PLAN_FEWER}"
        )
        yield Problem(STAGE_LIMIT, message, limits.at.get("replicasPerBroker"), Severity.VIOLATION)


def _changes_of_stage(stage: Stage, changes: Sequence[TopicChange]) -> tuple[Counter[int], Counter[int]]:
    """Return how many replicas the stage brings to each broker, and how many it takes away."""
    match stage:
        case ReassignStage():
            return _changes_of(Moves.of(stage.moves))
        case TopicsStage():
            return replicas_created(changes[place] for place in stage.changes), Counter()
    return Counter(), Counter()


def _changes_of(moves: Moves) -> tuple[Counter[int], Counter[int]]:
    return _per_broker(moves.after, moves.is_added), _per_broker(moves.before, moves.is_removed)
