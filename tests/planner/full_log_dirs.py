"""Small clusters of two log dirs a broker, some too full, and the least that any placement leaves and copies there.

Nothing here knows the planner: every log dir is tried for each partition, and every order of the moves.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations, product

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.desired import Desired, DesiredCluster, DesiredTopic, Limits
from reconciler.model.plan import Plan
from reconciler.model.stage import LogDirsStage, ReassignStage

PATHS = ("/d1", "/d2")
Place = tuple[int, str]
Way = tuple[Place, ...]
"""The log dir of each partition of RF 1."""


@dataclass(frozen=True)
class FullDirs:
    """A cluster of one topic: the bytes of each partition, where it lies, and what each log dir has and may have."""

    sizes: Sequence[int]
    lies: Way
    total: dict[Place, int]
    share: Fraction

    @property
    def desired(self) -> Desired:
        cluster = DesiredCluster("c", limits=Limits(disk_use=self.share))
        return Desired(cluster, topics={"t": DesiredTopic("t", replication_factor=1)})

    @property
    def observed(self) -> Cluster:
        used = self.used(self.lies)
        brokers = {
            broker: Broker(
                broker,
                log_dirs=tuple(
                    LogDir(path, self.total[broker, path], self.total[broker, path] - used[broker, path])
                    for path in PATHS
                ),
            )
            for broker in sorted({broker for broker, _ in self.total})
        }
        parts = tuple(
            Partition(number, broker, (broker,), (broker,), sizes=(size,), log_dirs=(path,))
            for number, (size, (broker, path)) in enumerate(zip(self.sizes, self.lies, strict=True))
        )
        return Cluster("id", brokers=brokers, topics={"t": Topic("t", parts)})

    def used(self, way: Way) -> Counter[Place]:
        found = Counter[Place]()
        for size, place in zip(self.sizes, way, strict=True):
            found[place] += size
        return found

    def excess(self, held: Counter[Place]) -> int:
        """Return the bytes above the limit with so many in each log dir."""
        return sum(max(0, held[place] - int(total * self.share)) for place, total in self.total.items())


def full_dirs(seed: int) -> FullDirs:
    """Return 2 or 3 brokers with 3 to 5 partitions, most of them in one log dir."""
    draw = random.Random(seed)
    places = [*product(range(1, draw.choice([3, 4])), PATHS)]
    sizes = [draw.choice([5, 10, 20, 30, 40, 60]) for _ in range(draw.choice([3, 4, 5]))]
    crowd = [*places, *draw.sample(places, 1) * 4]
    lies = tuple(draw.choice(crowd) for _ in sizes)
    case = FullDirs(sizes, lies, dict.fromkeys(places, 0), draw.choice([Fraction(1, 2), Fraction(7, 10)]))
    used = case.used(lies)
    return replace(case, total={place: max(used[place], draw.choice([60, 80, 100])) for place in places})


def least(case: FullDirs) -> tuple[int, int, int]:
    """Return the least excess, and the bytes between brokers and inside of the best runs that leave it."""
    ways = sorted(
        (case.excess(case.used(way)), *_copied(case, way), way) for way in product(case.total, repeat=len(case.sizes))
    )
    best: tuple[int, int, int, int] | None = None
    for end, between, inside, way in ways:
        if best is None or (end, end, between, inside) < best:
            found = end, min(_runs(case, way)), between, inside
            best = found if best is None else min(best, found)
    assert best is not None
    return best[0], best[2], best[3]


def _copied(case: FullDirs, way: Way) -> tuple[int, int]:
    moved = [
        (size, now[0] == then[0]) for size, now, then in zip(case.sizes, case.lies, way, strict=True) if now != then
    ]
    return sum(size for size, is_inside in moved if not is_inside), sum(size for size, is_inside in moved if is_inside)


def _runs(case: FullDirs, way: Way) -> Iterator[int]:
    """Yield the excess of each order of the moves, the end's among it."""
    moves = [number for number, (now, then) in enumerate(zip(case.lies, way, strict=True)) if now != then]
    for order in permutations(moves):
        held, filled = case.used(case.lies), Counter[Place]()
        for number in order:
            held[way[number]] += case.sizes[number]
            filled[way[number]] = max(filled[way[number]], held[way[number]])
            held[case.lies[number]] -= case.sizes[number]
        yield case.excess(held | filled)


def after(case: FullDirs, plan: Plan) -> tuple[FullDirs, int, int]:
    """Return the cluster as the plan leaves it, and the bytes that it copied between brokers and inside them."""
    lies = [*case.lies]
    for stage in plan.stages:
        for inside in stage.moves if isinstance(stage, LogDirsStage) else ():
            number = inside.topic_partition.partition
            assert lies[number] == (inside.broker, inside.from_dir)
            lies[number] = inside.broker, inside.to_dir
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            number, broker = move.topic_partition.partition, move.to_replicas[0]
            if broker != lies[number][0]:
                lies[number] = (
                    broker,
                    move.log_dirs.get(broker) or plan.predicted_log_dirs[move.topic_partition][broker],
                )
    return replace(case, lies=tuple(lies)), plan.summary.bytes, plan.summary.dir_bytes
