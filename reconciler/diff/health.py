"""How well partitions are: in sync, enough in sync for acks=all, led at all."""

from collections.abc import Sequence

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import Affected, Health

MIN_ISR = "min.insync.replicas"
SHOWN = 10


def health(cluster: Cluster) -> Health:
    """Return which partitions are under-replicated, under min ISR and offline.

    As the broker counts them: a partition with fewer replicas than `min.insync.replicas` needs all it has (Kafka's
    Partition.effectiveMinIsr). The topic's override decides, else the brokers' dynamic one, else Kafka's default, 1.
    """
    default = _brokers_min_isr(cluster)
    under_replicated, under_min_isr, offline = [], [], []
    for name, topic in cluster.topics.items():
        wanted = _number(topic.configs.get(MIN_ISR)) or default
        for partition in topic.partitions:
            key = TopicPartition(name, partition.partition)
            if _is_under_replicated(partition):
                under_replicated.append(key)
            if partition.leader is None:
                offline.append(key)
            elif len(partition.isr) < min(wanted, len(partition.replicas)):
                under_min_isr.append(key)
    return Health(_affected(under_replicated), _affected(under_min_isr), _affected(offline))


def _is_under_replicated(partition: Partition) -> bool:
    return partition.leader is None or not set(partition.isr).issuperset(partition.target_replicas)


def _affected(keys: Sequence[TopicPartition]) -> Affected:
    return Affected(len(keys), tuple(str(key) for key in sorted(keys)[:SHOWN]))


def _brokers_min_isr(cluster: Cluster) -> int:
    written = (_number(broker.configs.get(MIN_ISR)) for broker in cluster.brokers.values())
    return max((number for number in written if number), default=1)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
