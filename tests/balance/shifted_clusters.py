"""Two weeks of a cluster, drawn with a seed: rhythm of days and weeks, noise, drift, and one planted shift."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import cos, pi
from random import Random

from reconciler.model.cluster import Broker, Cluster, Partition, Topic

HOUR, HOURS = 3600, 336
START = int(datetime(2026, 3, 2, 13, tzinfo=UTC).timestamp())
MIB = 1024**2
PartitionRow = tuple[str, str, int, int, float, float, int]
"""Cluster, topic, partition, second, bytes in and out a second, size."""
BrokerRow = tuple[int, str, int, float, float]
"""Second, cluster, broker, bytes in from producers and out to consumers a second."""


class Kind(StrEnum):
    DOUBLED = "doubled"
    NEW = "new"
    LEADERS = "leaders"


@dataclass(frozen=True)
class Shifted:
    """A cluster as it is after the shift, its samples, and what was planted: a topic, or two brokers."""

    name: str
    kind: Kind
    cluster: Cluster
    rows: list[PartitionRow]
    brokers: list[BrokerRow]
    topic: str | None = None
    moved: tuple[int, int] | None = None


def shifted(seed: int) -> Shifted:
    """Return a cluster whose shift, of a kind by the seed, was somewhere in its second week's first two days."""
    random = Random(seed)
    kind = list(Kind)[seed % 3]
    ids = range(1, random.randint(4, 8) + 1)
    at = 168 + random.randrange(48)
    weights = {f"topic-{number}": random.lognormvariate(0, 0.8) * 4 * MIB for number in range(random.randint(8, 16))}
    # Not one of the smallest: who doubles next to nothing changes next to nothing.
    planted = random.choice(sorted(weights, key=lambda topic: -weights[topic])[: len(weights) // 2])
    lost, won = random.sample(list(ids), 2)
    before = {topic: _partitions(random, list(ids)) for topic in weights}
    after = before if kind is not Kind.LEADERS else {topic: _led(told, lost, won) for topic, told in before.items()}
    cluster = Cluster(
        f"cluster-{seed}",
        brokers={one: Broker(one) for one in ids},
        topics={topic: Topic(topic, partitions) for topic, partitions in after.items()},
    )
    shift = _Shift(kind, at, planted)
    rows = [row for topic in weights for row in _rows(random, cluster, topic, weights[topic], shift)]
    brokers = _measured(random, cluster, rows, before, at)
    if kind is Kind.LEADERS:
        return Shifted(cluster.cluster_id, kind, cluster, rows, brokers, moved=(lost, won))
    return Shifted(cluster.cluster_id, kind, cluster, rows, brokers, topic=planted)


@dataclass(frozen=True)
class _Shift:
    kind: Kind
    at: int
    topic: str

    def factor(self, topic: str, hour: int) -> float:
        """Return what the topic's rate is multiplied by; 0: it is not there yet."""
        if topic != self.topic or self.kind is Kind.LEADERS:
            return 1.0
        if self.kind is Kind.NEW:
            return float(hour >= self.at)
        return 2.0 if hour >= self.at else 1.0


def _partitions(random: Random, ids: list[int]) -> tuple[Partition, ...]:
    each = (tuple(random.sample(ids, 3)) for _ in range(random.randint(2, 6)))
    return tuple(Partition(number, replicas[0], replicas, replicas) for number, replicas in enumerate(each))


def _led(partitions: tuple[Partition, ...], lost: int, won: int) -> tuple[Partition, ...]:
    """Return the partitions, those that the one led led by the other, which takes part in them."""
    found = []
    for one in partitions:
        others = tuple(each for each in one.replicas if each not in {lost, won})[:1]
        replicas = (won, lost, *others)
        found.append(one if one.leader != lost else Partition(one.partition, won, replicas, replicas))
    return tuple(found)


def _rows(random: Random, cluster: Cluster, topic: str, weight: float, shift: _Shift) -> Iterator[PartitionRow]:
    partitions = cluster.topics[topic].partitions
    drift, phase, fan = random.uniform(0.97, 1.03), random.uniform(-3, 3), random.uniform(0.5, 3)
    for one in partitions:
        size, share = random.randrange(2**34), random.uniform(0.5, 1.5) / len(partitions)
        for hour in range(HOURS):
            mean = weight * share * (drift if hour >= 168 else 1.0) * shift.factor(topic, hour)
            taken = mean * _rhythm(hour + 13 + phase) * random.lognormvariate(0, 0.25)
            size = max(size + int(taken * random.uniform(-400, 420)), 0)
            sent = taken * fan * random.lognormvariate(0, 0.1)
            if mean:
                second = START + hour * HOUR
                yield cluster.cluster_id, topic, one.partition, second, round(taken, 3), round(sent, 3), size


def _measured(
    random: Random,
    cluster: Cluster,
    rows: Sequence[PartitionRow],
    before: Mapping[str, tuple[Partition, ...]],
    at: int,
) -> list[BrokerRow]:
    """Return what brokers tell of themselves: the sums of what they led then, two percent off."""
    led: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for _, topic, partition, second, taken, sent, _ in rows:
        placed = cluster.topics[topic].partitions if second >= START + at * HOUR else before[topic]
        told = led[second, placed[partition].leader or 0]
        told[0] += taken
        told[1] += sent
    found: list[BrokerRow] = []
    for second in range(START, START + HOURS * HOUR, HOUR):
        for broker in cluster.brokers:
            taken, sent = (round(value * random.lognormvariate(0, 0.02), 3) for value in led[second, broker])
            found.append((second, cluster.cluster_id, broker, taken, sent))
    return found


def _rhythm(hour: float) -> float:
    return (1 - 0.6 * cos(2 * pi * (hour % 24) / 24)) * (0.6 if hour % 168 >= 120 else 1.0)
