"""How well partitions are: in sync, enough in sync for acks=all, led at all."""

from collections.abc import Mapping, Sequence

from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import Affected, Health

MIN_ISR = "min.insync.replicas"
SHOWN = 10


def health(cluster: Cluster) -> Health:
    """Return which partitions are under-replicated, under min ISR and offline."""
    default = brokers_min_isr(cluster)
    under_replicated, under_min_isr, offline = [], [], []
    for name, topic in cluster.topics.items():
        for partition in topic.partitions:
            key = TopicPartition(name, partition.partition)
            if _is_under_replicated(partition):
                under_replicated.append(key)
            if partition.leader is None:
                offline.append(key)
            elif len(partition.isr) < needed_in_sync(topic, partition, default):
                under_min_isr.append(key)
    return Health(_affected(under_replicated), _affected(under_min_isr), _affected(offline))


def needed_in_sync(topic: Topic, partition: Partition, default: int) -> int:
    """Return how many replicas must be in sync for acks=all, as the broker counts them.

    A partition with fewer replicas than `min.insync.replicas` needs all it has (Kafka's Partition.effectiveMinIsr). The
    topic's override decides, else the brokers' value.
    """
    return min(_number(topic.configs.get(MIN_ISR)) or default, max(1, len(partition.replicas)))


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
    """Return the brokers' min ISR: of their settings in force, else of dynamic configs, else Kafka's default, 1."""
    told = settings or {broker.id: broker.configs for broker in cluster.brokers.values()}
    written = (_number(configs.get(MIN_ISR)) for configs in told.values())
    return max((number for number in written if number), default=1)


def _is_under_replicated(partition: Partition) -> bool:
    return partition.leader is None or not set(partition.isr).issuperset(partition.target_replicas)


def _affected(keys: Sequence[TopicPartition]) -> Affected:
    return Affected(len(keys), tuple(str(key) for key in sorted(keys)[:SHOWN]))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
