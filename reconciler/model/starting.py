"""Tells who can lead a partition without loss of an acknowledged record, and in which order to start dead brokers.

While fewer than min.insync.replicas are in sync nothing is acknowledged with acks=all, so whoever left the ISR then
(the ELR, KIP-966) has all that was, as the ISR has. Kafka elects the living of the ISR, or else of the ELR, by itself.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.codec import REQUIRED, Key
from reconciler.model.in_sync import needed_in_sync
from reconciler.model.topic_partition import PartitionObject, TopicPartition


@dataclass(frozen=True, slots=True)
class Start:
    """A dead broker to start, in its place in the order."""

    broker_id: Annotated[int, Key("broker"), "Its id."]
    leads: Annotated[
        tuple[PartitionObject, ...], REQUIRED, "Partitions without a leader that it can lead, and none before it can."
    ] = ()
    can_lead: Annotated[
        tuple[PartitionObject, ...],
        REQUIRED,
        "All partitions without a leader of which it has every acknowledged record.",
    ] = ()
    opens: Annotated[
        tuple[PartitionObject, ...], REQUIRED, "Partitions that reach min.insync.replicas with it and those before it."
    ] = ()


StartOrder = Annotated[
    tuple[Start, ...],
    REQUIRED,
    "Dead brokers in the order in which to start them, so that no acknowledged record is lost.",
]


def heirs(partition: Partition) -> tuple[int, ...] | None:
    """Return who has every acknowledged record, the last leader first; empty: nobody is known to have; None: unknown.

    It is unknown where nobody is in sync and the ELR was not told: before snapshots 1.1, and by old brokers.
    """
    if not partition.isr and partition.elr is None:
        return None
    last = partition.last_known_elr or ()
    return tuple(sorted({*partition.isr, *(partition.elr or ())}, key=lambda one: (one not in last, one)))


def start_order(cluster: Cluster, min_isr: int) -> tuple[Start, ...]:
    """Return the dead brokers to start: whoever gives most partitions a leader first, then who opens most to acks=all.

    `min_isr`: that of the brokers. A broker that does neither is left out, unless it could lead in another's place.
    """
    sick = dict(_sick(cluster, min_isr))
    held: dict[int, list[TopicPartition]] = defaultdict(list)
    for key, one in sick.items():
        for broker in one.dead:
            held[broker].append(key)
    can_lead = {broker: tuple(key for key in keys if sick[key].has_heir(broker)) for broker, keys in held.items()}
    worth = {broker: _sum(*(sick[key].worth(broker) for key in keys)) for broker, keys in held.items()}
    order = []
    while worth:
        best = max(worth, key=lambda broker: (worth[broker], len(can_lead[broker]), len(held[broker]), -broker))
        del worth[best]
        brought = {key: sick[key].worth(best) for key in held[best]}
        leads, opens = (tuple(key for key, each in brought.items() if each[at]) for at in (0, 2))
        order.append(Start(best, leads, can_lead[best], opens))
        for key in held[best]:
            waiting = sick[key].dead & worth.keys()
            for broker in waiting:
                worth[broker] = _less(worth[broker], sick[key].worth(broker))
            sick[key].start(best)
            for broker in waiting:
                worth[broker] = _sum(worth[broker], sick[key].worth(broker))
    return tuple(start for start in order if start.can_lead or start.opens)


Worth = tuple[int, int, int]
"""Partitions that get a leader with a broker; those of them that it led last; those that reach min ISR with it."""


def _sum(*worths: Worth) -> Worth:
    return sum(one[0] for one in worths), sum(one[1] for one in worths), sum(one[2] for one in worths)


def _less(whole: Worth, part: Worth) -> Worth:
    return whole[0] - part[0], whole[1] - part[1], whole[2] - part[2]


@dataclass(slots=True)
class _Sick:
    """A partition without a leader, or under min ISR by `missing` replicas, while `dead` brokers are started."""

    partition: Partition
    dead: frozenset[int]
    missing: int
    is_led: bool

    def has_heir(self, broker: int) -> bool:
        return self.partition.leader is None and broker in (heirs(self.partition) or ())

    def worth(self, broker: int) -> Worth:
        leads = not self.is_led and self.has_heir(broker)
        led_last = leads and broker in (self.partition.last_known_elr or ())
        opens = (self.is_led and self.missing == 1) or (leads and self.missing <= 1)
        return int(leads), int(led_last), int(opens)

    def start(self, broker: int) -> None:
        self.is_led = self.is_led or self.has_heir(broker)
        self.missing -= 1


def _sick(cluster: Cluster, min_isr: int) -> Iterator[tuple[TopicPartition, _Sick]]:
    alive = frozenset(broker for broker in cluster.brokers if cluster.is_alive(broker))
    for name, topic in cluster.topics.items():
        for partition in topic.partitions:
            missing = needed_in_sync(topic, partition, min_isr) - len(alive.intersection(partition.isr))
            if partition.leader is None or missing > 0:
                dead = frozenset(partition.replicas) - alive
                key = TopicPartition(name, partition.partition)
                yield key, _Sick(partition, dead, missing, is_led=partition.leader is not None)
