"""Small clusters whose disks are nearly full, and the fewest bytes that any run may copy there, by trying all.

Nothing here knows the planner: placements are enumerated, and so are the orders in which their moves could run.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

SHARE = Fraction(4, 5)


@dataclass(frozen=True)
class Tight:
    """A cluster with a broker that leaves, or a factor that grows."""

    desired: Desired
    observed: Cluster
    rack_of: Mapping[int, str]
    leaving: frozenset[int]
    factor: int
    is_strict: bool

    @property
    def partitions(self) -> Sequence[Partition]:
        return self.observed.topics["t"].partitions


def tight_cluster(seed: int, dirs: int = 1, balance: Balance | None = None) -> Tight:
    """Return a cluster of 4 or 5 brokers with 4 or 5 partitions; it is within its limit as it is."""
    draw = random.Random(seed)
    ids = range(1, draw.choice([4, 5, 6]))
    rack_of = {broker: "abc"[broker % draw.choice([1, 2, 3])] for broker in ids}
    before = draw.choice([1, 2, 2])
    factor = before + (draw.random() < 0.3)
    sizes = [draw.choice([10, 20, 30, 35, 50, 80]) + draw.randrange(5) for _ in range(draw.choice([4, 5]))]
    held = [tuple(draw.sample([*ids], before)) for _ in sizes]
    lies = [tuple(f"/d{draw.randrange(dirs)}" for _ in replicas) for replicas in held]
    is_strict = draw.random() < 0.3
    leaving = frozenset([draw.choice([*ids])] if factor == before and draw.random() < 0.8 else [])
    brokers = {}
    for broker in ids:
        found = []
        for number in range(dirs):
            path = f"/d{number}"
            mine = sum(
                size
                for size, replicas, paths in zip(sizes, held, lies, strict=True)
                if (broker, path) in zip(replicas, paths, strict=True)
            )
            used = mine + draw.choice([0, 0, 7, 40])
            room = used + draw.choice([0, 15, 30, 45, 60, 90, 120]) // dirs
            found.append(LogDir(path, int(room / SHARE) + 1, int(room / SHARE) + 1 - used))
        brokers[broker] = Broker(broker, rack=rack_of[broker], log_dirs=tuple(found))
    partitions = tuple(
        Partition(number, replicas[0], replicas, replicas, sizes=(size,) * len(replicas), log_dirs=paths)
        for number, (size, replicas, paths) in enumerate(zip(sizes, held, lies, strict=True))
    )
    topic = DesiredTopic(
        "t", replication_factor=factor, placement=Placement(racks_spread=Spread.STRICT if is_strict else Spread.IGNORE)
    )
    cluster = DesiredCluster(
        "c",
        brokers={broker: DesiredBroker(broker, BrokerState.DRAINING) for broker in leaving},
        balance=balance or Balance(),
        limits=Limits(disk_use=SHARE),
    )
    observed = Cluster("id", brokers=brokers, topics={"t": Topic("t", partitions)})
    return Tight(Desired(cluster, topics={"t": topic}), observed, rack_of, leaving, factor, is_strict)


def least_bytes(case: Tight) -> int | None:
    """Return the fewest bytes that a run within the limit copies to a placement within it; None: there is none."""
    best = nearest(case, lambda _way: 0)
    return None if best is None else best[1]


def most_even(case: Tight) -> tuple[int, int] | None:
    """Return the least sum of squares of the brokers' counts within the limit, and the fewest bytes that reach it."""
    return nearest(case, lambda way: sum(sum(broker in chosen for chosen in way) ** 2 for broker in case.rack_of))


def nearest(case: Tight, imbalance: Callable[[Sequence[Sequence[int]]], int]) -> tuple[int, int] | None:
    """Return the least imbalance of all ways that can run within the limit, and the fewest bytes that reach it."""
    choices = [[*_sets(case)] for _ in case.partitions]
    ways = sorted(
        (
            imbalance(way),
            sum(_copied(partition, chosen) for partition, chosen in zip(case.partitions, way, strict=True)),
            way,
        )
        for way in product(*choices)
    )
    return next(((uneven, size) for uneven, size, way in ways if _can_run(case, way)), None)


def _sets(case: Tight) -> Iterator[tuple[int, ...]]:
    open_brokers = [broker for broker in case.rack_of if broker not in case.leaving]
    racks = sorted({case.rack_of[broker] for broker in open_brokers})
    low, high = case.factor // len(racks), -(-case.factor // len(racks))
    for chosen in combinations(open_brokers, case.factor):
        counts = [sum(case.rack_of[broker] == rack for broker in chosen) for rack in racks]
        if not case.is_strict or all(low <= count <= high for count in counts):
            yield chosen


def _copied(partition: Partition, chosen: Sequence[int]) -> int:
    return (partition.sizes[0] or 0) * len(set(chosen) - set(partition.replicas))


_Places = dict[tuple[int, str], int]
_Move = tuple[Partition, tuple[int, ...], tuple[int, ...]]


def _can_run(case: Tight, way: Sequence[Sequence[int]]) -> bool:
    """Whether the moves can run one after another, each into any log dir, with no disk above its limit."""
    moves = [
        (partition, tuple(sorted(set(chosen) - set(partition.replicas))), tuple(set(partition.replicas) - set(chosen)))
        for partition, chosen in zip(case.partitions, way, strict=True)
        if set(chosen) != set(partition.replicas)
    ]
    free = {
        (broker.id, one.path): int((one.total_bytes or 0) * SHARE) - ((one.total_bytes or 0) - (one.usable_bytes or 0))
        for broker in case.observed.brokers.values()
        for one in broker.log_dirs
    }
    seen: set[tuple[frozenset[int], tuple[int, ...]]] = set()
    open_states = [(frozenset[int](), free)]
    while open_states:
        done, now = open_states.pop()
        if len(done) == len(moves):
            return True
        key = done, tuple(now[place] for place in sorted(now))
        if key not in seen:
            seen.add(key)
            for number in set(range(len(moves))) - done:
                open_states += [(done | {number}, then) for then in _after(case, now, moves[number])]
    return False


def _after(case: Tight, now: _Places, move: _Move) -> Iterator[_Places]:
    """Yield what is free once the move has ended, for each way to choose log dirs that never fills one too far."""
    partition, added, removed = move
    size = partition.sizes[0] or 0
    for into in product(*([one.path for one in case.observed.brokers[broker].log_dirs] for broker in added)):
        then = dict(now)
        for broker, path in zip(added, into, strict=True):
            then[broker, path] -= size
        if all(then[broker, path] >= 0 for broker, path in zip(added, into, strict=True)):
            for broker in removed:
                then[broker, partition.log_dirs[partition.replicas.index(broker)] or ""] += size
            yield then
