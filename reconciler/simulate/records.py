"""Producers: records that are written while a cluster is watched."""

from dataclasses import replace

from reconciler.model.cluster import Cluster
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.storage import with_partitions


def with_records(cluster: Cluster, topic_partition: TopicPartition, *, size: int, records: int) -> Cluster:
    """Return the cluster once a producer (acks=all) wrote that much; only in-sync replicas hold it at once."""
    partition = cluster.partition(topic_partition)
    if partition is None or partition.leader is None:
        return cluster
    sizes = tuple(
        held + size if held is not None and replica in partition.isr else held
        for replica, held in zip(partition.replicas, partition.sizes, strict=False)
    )
    written = replace(partition, sizes=sizes, end_offset=(partition.end_offset or 0) + records)
    return with_partitions(cluster, {topic_partition: written})
