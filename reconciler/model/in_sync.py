"""Computes how many replicas must be in sync, as brokers count them, and which broker a partition cannot do without."""

from collections.abc import Mapping

from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.topic_partition import TopicPartition

MIN_ISR = "min.insync.replicas"


def needed_in_sync(topic: Topic, partition: Partition, default: int) -> int:
    """Return how many replicas must be in sync for acks=all, as the broker counts them.

    A partition with fewer replicas than `min.insync.replicas` needs all it has: `Partition.effectiveMinIsr`, in each
    release from 3.7 on (KAFKA-15583), with KIP-966's ELR on or off. The topic's override decides, else the brokers'
    value.
    """
    return min(whole_number(topic.configs.get(MIN_ISR)) or default, max(1, len(partition.replicas)))


def waiting_leader(partition: Partition) -> int | None:
    """Return the preferred leader where it is in sync and does not lead, so that it can be elected; else None."""
    preferred = partition.preferred_leader
    return preferred if preferred != partition.leader and preferred in partition.isr else None


def blocking_partitions(cluster: Cluster, default: int | None = None) -> Mapping[int, tuple[TopicPartition, ...]]:
    """Return, for each broker, the partitions that would be under min ISR, or offline, were it to stop.

    `default`: the brokers' own min ISR, where it is known better than from their dynamic configs.
    """
    of_brokers = default if default is not None else brokers_min_isr(cluster)
    found: dict[int, list[TopicPartition]] = {}
    for name, topic in cluster.topics.items():
        for partition in topic.partitions:
            if len(partition.isr) <= needed_in_sync(topic, partition, of_brokers):
                for broker in partition.isr:
                    found.setdefault(broker, []).append(TopicPartition(name, partition.partition))
    return {broker: tuple(found[broker]) for broker in sorted(found)}


def brokers_min_isr(cluster: Cluster, settings: Mapping[int, Mapping[str, str]] | None = None) -> int:
    """Return the brokers' min ISR: the highest in force, by `settings` where they were asked; else Kafka's, 1."""
    asked = [configs.get(MIN_ISR) for configs in (settings or {}).values()]
    told = asked or [broker.in_force(MIN_ISR) for broker in cluster.brokers.values()]
    return max((number for text in told if (number := whole_number(text))), default=1)


def whole_number(text: str | None) -> int | None:
    """Return the number that a config holds, as brokers read it: blanks around it do not count; None for none."""
    digits = (text or "").strip()
    return int(digits) if digits.isascii() and digits.isdigit() else None
