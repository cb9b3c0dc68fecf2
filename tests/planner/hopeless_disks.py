"""Clusters of which one disk cannot come below its limit, by construction, and others that can."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

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
    Protection,
)
from reconciler.model.problem import Location

GIB = 1 << 30
TOTAL, SIZE = 1000 * GIB, 25 * GIB
LINE = Location("cluster.yaml", 9)
KINDS = ("giant", "foreign", "protected", "named")
"""Why a disk is hopeless: one partition is larger, or other files are; it may not move, or to no other broker."""


@dataclass(frozen=True)
class Hopeless:
    """A cluster, and what is known of it."""

    desired: Desired
    observed: Cluster
    broker: int  # whose disk is hopeless
    excess: int  # by so many bytes
    full: tuple[int, ...]  # brokers whose disks can be relieved
    relief: int  # the fewest bytes that leave these


class _Disks:
    """The partitions of RF 1 on each disk."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.used, self.topics = dict.fromkeys(ids, 0), dict[str, list[Partition]]()

    def put(self, topic: str, broker: int, size: int, count: int = 1) -> None:
        """Put so many partitions of that size there."""
        found = self.topics.setdefault(topic, [])
        for _ in range(count):
            found.append(Partition(len(found), broker, (broker,), (broker,), sizes=(size,), log_dirs=("/d",)))
        self.used[broker] += size * count

    @property
    def cluster(self) -> Cluster:
        """The observed state."""
        brokers = {
            one: Broker(one, log_dirs=(LogDir("/d", TOTAL, TOTAL - used),)) for one, used in sorted(self.used.items())
        }
        return Cluster("id", brokers, {name: Topic(name, tuple(found)) for name, found in sorted(self.topics.items())})


def hopeless_cluster(seed: int, balance: Balance | None = None) -> Hopeless:
    """Return 5 to 8 brokers; one is hopelessly full, one or two others are too full of partitions of 25 GiB."""
    draw = random.Random(seed)
    ids = draw.sample(range(1, 20), draw.choice([5, 6, 7, 8]))
    kind, limit = KINDS[seed % len(KINDS)], draw.choice([Fraction(70, 100), Fraction(85, 100)])
    hopeless, *others = ids
    full, allowed = others[: draw.choice([1, 1, 2])], int(TOTAL * limit)
    disks = _Disks(ids)
    _fill(disks, kind, hopeless, allowed + draw.randrange(1, 12) * 10 * GIB)
    for broker in others:
        over = draw.randrange(1, 60) * GIB if broker in full else 0
        disks.put("small", broker, SIZE, -(-(allowed + over) // SIZE) if over else draw.randrange(0, 5))
    for broker in draw.sample(others, 2):
        disks.put("empty", broker, 0)
    relief = sum(-(-(disks.used[broker] - allowed) // SIZE) * SIZE for broker in full)
    states = {}
    if draw.random() < 0.3:
        states[others[-1]] = BrokerState.CORDONED
    # One broker stays free to take in what leaves the others.
    if draw.random() < 0.3 and len(others) > len(full) + len(states) + 1:
        states[others[-2]] = BrokerState.DRAINING
        relief += disks.used[others[-2]]
    declared = {name: DesiredTopic(name, replication_factor=1) for name in disks.topics}
    if kind == "protected":
        declared["stuck"] = replace(declared["stuck"], protect=frozenset({Protection.MOVE}))
    if kind == "named":
        declared["stuck"] = replace(declared["stuck"], placement=Placement(brokers_only=frozenset({hopeless})))
    cluster = DesiredCluster(
        "c",
        brokers={one: DesiredBroker(one, state) for one, state in states.items()},
        balance=balance or Balance(),
        limits=Limits(disk_use=limit, at={"diskUse": LINE}),
    )
    excess = disks.used[hopeless] - allowed
    return Hopeless(Desired(cluster, topics=declared), disks.cluster, hopeless, excess, tuple(full), relief)


def _fill(disks: _Disks, kind: str, broker: int, size: int) -> None:
    if kind == "foreign":
        disks.used[broker] += size
    elif kind == "giant":
        disks.put("giant", broker, size)
    else:
        disks.put("stuck", broker, size // 10, 10)
