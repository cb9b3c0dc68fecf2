"""Small clusters whose disks are too full already, and the least excess that any run can leave there, by trying all.

Nothing here knows the planner: placements are enumerated, and so are the orders in which their moves could run.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Limits,
    Placement,
    Spread,
)
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import Location
from reconciler.model.stage import moves_of
from reconciler.model.topic_partition import TopicPartition

LINE = Location("cluster.yaml", 9)
Way = Sequence[tuple[int, ...]]
"""The brokers of each partition."""


@dataclass(frozen=True)
class Full:
    """A cluster with one disk a broker, and what is asked of it."""

    desired: Desired
    observed: Cluster
    factor: int
    is_strict: bool

    @property
    def partitions(self) -> Sequence[Partition]:
        return [one for _, topic in sorted(self.observed.topics.items()) for one in topic.partitions]

    def state(self, broker_id: int) -> BrokerState:
        return self.desired.cluster.broker(broker_id).state

    def used(self, broker_id: int) -> int:
        (disk,) = self.observed.brokers[broker_id].log_dirs
        return (disk.total_bytes or 0) - (disk.usable_bytes or 0)

    def allowed(self, broker_id: int) -> int:
        (disk,) = self.observed.brokers[broker_id].log_dirs
        return int((disk.total_bytes or 0) * (self.desired.cluster.limits.disk_use or 1))


def full_cluster(seed: int, balance: Balance | None = None) -> Full:
    """Return a cluster of 3 to 5 brokers with 3 to 5 partitions, some of them empty, and some disks too full."""
    draw = random.Random(seed)
    ids = range(1, draw.choice([4, 5, 5, 6]))
    factor = draw.choice([1, 1, 1, 2])
    sizes = [draw.choice([0, 5, 10, 20, 30, 40, 60, 110]) for _ in range(draw.choice([3, 4, 5]))]
    # Brokers named more often hold more, so that some are too full.
    crowd = [*ids, *draw.sample([*ids], 2) * 3]
    held: list[tuple[int, ...]] = []
    for _ in sizes:
        first = draw.choice(crowd)
        rest = draw.sample([one for one in ids if one != first], factor - 1)
        held.append((first, *rest))
    states = {}
    if draw.random() < 0.4:
        states[draw.choice([*ids])] = BrokerState.DRAINING
    if draw.random() < 0.2:
        states.setdefault(draw.choice([*ids]), BrokerState.CORDONED)
    if sum(state is not BrokerState.DRAINING for state in states.values()) + len(ids) - len(states) < factor + 1:
        states = {}
    is_strict = factor == 2 and draw.random() < 0.4
    brokers = {}
    for one in ids:
        mine = sum(size for size, replicas in zip(sizes, held, strict=True) if one in replicas)
        used = mine + draw.choice([0, 0, 0, 0, 10, 45])
        total = max(used, draw.choice([100, 120, 120, 150]))
        brokers[one] = Broker(one, rack="ab"[one % 2], log_dirs=(LogDir("/d", total, total - used),))
    topics: dict[str, list[Partition]] = {"a": [], "b": []}
    for size, replicas in zip(sizes, held, strict=True):
        found = topics[draw.choice("aab")]
        found.append(Partition(len(found), replicas[0], replicas, replicas, (), (), (size,) * factor, ("/d",) * factor))
    observed = Cluster(
        "id", brokers=brokers, topics={n: Topic(n, tuple(found)) for n, found in topics.items() if found}
    )
    spread = Spread.STRICT if is_strict else Spread.IGNORE
    declared = {
        name: DesiredTopic(name, replication_factor=factor, placement=Placement(racks_spread=spread))
        for name in observed.topics
    }
    limits = Limits(disk_use=draw.choice([Fraction(1, 2), Fraction(7, 10), Fraction(85, 100)]), at={"diskUse": LINE})
    cluster = DesiredCluster(
        "c",
        brokers={one: DesiredBroker(one, state) for one, state in states.items()},
        balance=balance or Balance(),
        limits=limits,
    )
    return Full(Desired(cluster, topics=declared), observed, factor, is_strict)


def with_spread(case: Full, spread: Spread) -> Desired:
    """Return what is asked of the cluster, with another spread over racks in each topic."""
    topics = {n: replace(topic, placement=Placement(racks_spread=spread)) for n, topic in case.desired.topics.items()}
    return replace(case.desired, topics=topics)


Excess = tuple[int, int]
"""Bytes above the limit, of all disks together: in the end; and at the worst moments, the end among them."""


def least(case: Full) -> tuple[Excess, int] | None:
    """Return the least excess that a run leaves, and the fewest bytes that a run with it copies; None: no placement."""
    choices = [[*_sets(case, partition)] for partition in case.partitions]
    ways = sorted((_end_excess(case, way), sum(map(_copied, case.partitions, way)), way) for way in product(*choices))
    best: tuple[Excess, int] | None = None
    for end, size, way in ways:
        if best is None or ((end, end), size) < best:
            found = (end, _run_excess(case, way, end)), size
            best = found if best is None else min(best, found)
    return best


def _sets(case: Full, partition: Partition) -> Iterator[tuple[int, ...]]:
    staying = [one for one in case.observed.brokers if case.state(one) is not BrokerState.DRAINING]
    racks = {case.observed.brokers[one].rack for one in staying}
    high = -(-case.factor // len(racks)) if case.is_strict else case.factor
    for chosen in combinations(staying, case.factor):
        may_hold = all(case.state(one) is not BrokerState.CORDONED or one in partition.replicas for one in chosen)
        counts = [sum(case.observed.brokers[one].rack == rack for one in chosen) for rack in racks]
        if may_hold and max(counts) <= high:
            yield chosen


def _bytes(partition: Partition) -> int:
    return partition.sizes[0] or 0


def _copied(partition: Partition, chosen: Sequence[int]) -> int:
    return _bytes(partition) * len(set(chosen) - set(partition.replicas))


class _Disks:
    """What each disk holds, and its most while something comes to it."""

    def __init__(self, case: Full) -> None:
        self.case, self.held = case, {one: case.used(one) for one in case.observed.brokers}
        self.filled = dict.fromkeys(self.held, 0)

    def copy(self) -> "_Disks":
        other = _Disks(self.case)
        other.held, other.filled = dict(self.held), dict(self.filled)
        return other

    def take(self, brokers: Iterable[int], size: int) -> None:
        for one in brokers if size else ():
            self.held[one] += size
            self.filled[one] = max(self.filled[one], self.held[one])

    def free(self, brokers: Iterable[int], size: int) -> None:
        for one in brokers:
            self.held[one] -= size

    def excess(self, *, is_over: bool) -> int:
        """Return the bytes above the limit of all disks, so far or, once all is over, with the end."""
        ends = {
            one: held if is_over and self.case.state(one) is not BrokerState.DRAINING else 0
            for one, held in self.held.items()
        }
        return sum(max(0, max(ends[one], self.filled[one]) - self.case.allowed(one)) for one in ends)


def _end_excess(case: Full, way: Way) -> int:
    disks = _Disks(case)
    for partition, chosen in zip(case.partitions, way, strict=True):
        disks.free(set(partition.replicas) - set(chosen), _bytes(partition))
        disks.free(set(chosen) - set(partition.replicas), -_bytes(partition))
    return disks.excess(is_over=True)


def _run_excess(case: Full, way: Way, end: int) -> int:
    """Return the least that disks are above the limit by in any order of the moves: `end`, or more on the way."""
    moves = [
        (_bytes(partition), set(chosen) - set(partition.replicas), set(partition.replicas) - set(chosen))
        for partition, chosen in zip(case.partitions, way, strict=True)
        if set(chosen) != set(partition.replicas)
    ]
    best: list[int] = []

    def go_on(disks: _Disks, remaining: Sequence[int]) -> None:
        if end in best or (best and disks.excess(is_over=False) >= min(best)):
            return
        if not remaining:
            best.append(disks.excess(is_over=True))
        for number in remaining:
            size, added, removed = moves[number]
            then = disks.copy()
            then.take(added, size)
            then.free(removed, size)
            go_on(then, [other for other in remaining if other != number])

    go_on(_Disks(case), range(len(moves)))
    return min(best)


def excess_of(case: Full, plan: Plan) -> Excess:
    """Return the excess of a plan: in each of its stages, everything comes before anything leaves."""
    disks = _Disks(case)
    for stage in plan.stages:
        moves = [*moves_of([stage])]
        for move in moves:
            disks.take(move.added, _size(case, move))
        for move in moves:
            disks.free(move.removed, _size(case, move))
    whole = disks.excess(is_over=True)
    disks.filled = dict.fromkeys(disks.held, 0)
    return disks.excess(is_over=True), whole


def _size(case: Full, move: Move) -> int:
    partition = case.observed.partition(move.topic_partition)
    assert partition is not None
    return _bytes(partition)


def after(case: Full, plan: Plan) -> Full:
    """Return the cluster as the plan leaves it."""
    ends = {move.topic_partition: move.to_replicas for move in moves_of(plan.stages)}
    disks, topics = _Disks(case), {}
    for name, topic in case.observed.topics.items():
        found = []
        for partition in topic.partitions:
            now = ends.get(TopicPartition(name, partition.partition), partition.replicas)
            disks.free(partition.replicas, _bytes(partition))
            disks.free(now, -_bytes(partition))
            found.append(replace(partition, leader=now[0], replicas=now, isr=now))
        topics[name] = replace(topic, partitions=tuple(found))
    brokers = {}
    for one, broker in case.observed.brokers.items():
        (disk,) = broker.log_dirs
        brokers[one] = replace(
            broker, log_dirs=(replace(disk, usable_bytes=(disk.total_bytes or 0) - disks.held[one]),)
        )
    return replace(case, observed=replace(case.observed, brokers=brokers, topics=topics))
