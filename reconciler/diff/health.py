"""Tells how well partitions are: in sync, enough in sync for acks=all, led at all."""

from collections.abc import Sequence

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.in_sync import brokers_min_isr, needed_in_sync
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import Affected, Health

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


def _is_under_replicated(partition: Partition) -> bool:
    return partition.leader is None or not set(partition.isr).issuperset(partition.target_replicas)


def _affected(keys: Sequence[TopicPartition]) -> Affected:
    return Affected(len(keys), tuple(str(key) for key in sorted(keys)[:SHOWN]))
