"""Clusters to import: tidy ones, and ones that have been lived in, with rules planted, bent and broken."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from reconciler.model.cluster import Broker, Cluster, Partition, Topic

CONFIGS: Sequence[dict[str, str]] = (
    {},
    {"min.insync.replicas": "2"},
    {"cleanup.policy": "compact", "min.insync.replicas": "2"},
    {"retention.ms": "604800000"},
    {"retention.ms": "-1", "segment.bytes": "1073741824"},
    {"compression.type": "zstd", "unclean.leader.election.enable": "true"},
    {"leader.replication.throttled.replicas": "0:1", "max.message.bytes": "1000012"},
    {"min.cleanable.dirty.ratio": "0.01", "cleanup.policy": "compact,delete"},
)
NAMES = (
    "orders",
    "orders.events",
    "orders_events",
    "web.clicks",
    "123",
    "true",
    "-",
    "_x",
    "Web.Clicks",
    "a.b.c",
    "null",
)


@dataclass(frozen=True, slots=True)
class Habits:
    """How a cluster was lived in: the chance of each thing that is not as it should be."""

    dead: float = 0.1
    racks_broken: float = 0.3
    mixed_factor: float = 0.1
    led_by_another: float = 0.2
    leaderless: float = 0.05
    moving: float = 0.1


TIDY = Habits(0, 0, 0, 0, 0, 0)


def import_cluster_of(seed: int, habits: Habits | None = None) -> Cluster:
    """Return a small cluster drawn from the seed; without habits, half of them are tidy."""
    random = Random(seed)
    lived = habits or random.choice([TIDY, Habits()])
    racks = random.choice(["a", "ab", "abc", "abc", "abcd", "aab", None])
    ids = sorted(random.sample(range(1, 20), random.randint(2, 8)))
    rack_of = {broker: None if racks is None else racks[n % len(racks)] for n, broker in enumerate(ids)}
    brokers = {broker: Broker(broker, rack_of[broker], is_fenced=random.random() < lived.dead / 2) for broker in ids}
    names = sorted(random.sample(NAMES, random.randint(1, 8)))
    topics = {name: _topic(random, name, rack_of, lived) for name in [*names, "__consumer_offsets"]}
    return Cluster("imported", brokers=brokers, topics=topics)


def _topic(random: Random, name: str, rack_of: dict[int, str | None], lived: Habits) -> Topic:
    factor = random.randint(1, min(3, len(rack_of)))
    is_broken = random.random() < lived.racks_broken
    is_mixed = random.random() < lived.mixed_factor
    start = random.randrange(len(rack_of))
    partitions = []
    for number in range(random.randint(1, 9)):
        wanted = random.randint(1, min(3, len(rack_of))) if is_mixed else factor
        replicas = tuple(
            random.sample(sorted(rack_of), wanted) if is_broken else _spread(rack_of, start + number, wanted)
        )
        partitions.append(_partition(random, number, replicas, sorted(rack_of), lived))
    configs = dict(random.choice(CONFIGS))
    return Topic(name, tuple(partitions), configs=configs, is_internal=name.startswith("__"))


def _spread(rack_of: dict[int, str | None], start: int, wanted: int) -> list[int]:
    """Return brokers in turn, one rack after the other, as Kafka places them."""
    by_rack = sorted(rack_of, key=lambda broker: (str(rack_of[broker]), broker))
    queues = [[b for b in by_rack if rack_of[b] == rack] for rack in sorted({str(r) for r in rack_of.values()})]
    queues = [queue for queue in queues if queue] or [by_rack]
    order: list[int] = []
    longest = max(map(len, queues))
    for turn in range(longest):
        order += [queue[turn] for queue in queues if turn < len(queue)]
    at = start % len(order)
    return (order[at:] + order[:at])[:wanted]


def _partition(random: Random, number: int, replicas: tuple[int, ...], ids: Sequence[int], lived: Habits) -> Partition:
    leader: int | None = replicas[0]
    if random.random() < lived.led_by_another:
        leader = random.choice(replicas)
    if random.random() < lived.leaderless / 4:
        leader = None
    others = [broker for broker in ids if broker not in replicas]
    if others and random.random() < lived.moving / 4:
        added = random.choice(others)
        return Partition(number, leader, (*replicas, added), replicas, (added,), (replicas[-1],))
    return Partition(number, leader, replicas, replicas, sizes=(random.choice([0, 1, 10, 1000]),) * len(replicas))
