"""Changes a simulated cluster by what happens to it: brokers die, join and leave, log dirs fail, producers write."""

from collections.abc import Collection
from dataclasses import replace

from reconciler.model.cluster import Broker, Cluster, LogDir
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import controller_of
from reconciler.simulate.log_dirs import without_futures_in
from reconciler.simulate.partition import with_returned_broker, without_broker
from reconciler.simulate.storage import log_dir_of, with_metadata, with_partitions


def fence(cluster: Cluster, broker_id: int) -> Cluster:
    """Return the cluster once that broker is known to be dead: out of every ISR it shares, and leading nothing."""
    return fence_all(cluster, (broker_id,))


def fence_all(cluster: Cluster, broker_ids: Collection[int]) -> Cluster:
    """Return the cluster once these brokers are known to be dead; the controller finds one after the other, by id."""
    gone = frozenset(broker_ids)
    touched = [key for key, partition in cluster.partitions() if not gone.isdisjoint(partition.isr)]
    for broker_id in sorted(gone):
        cluster = _with_fencing(cluster, broker_id, is_fenced=True)
        controller = controller_of(cluster)
        found = ((key, cluster.partition(key)) for key in touched)
        left = {key: without_broker(one, broker_id, controller) for key, one in found if one and broker_id in one.isr}
        cluster = with_partitions(cluster, left)
    return cluster


def unfence(cluster: Cluster, broker_id: int) -> Cluster:
    """Return the cluster once that broker lives again; its replicas must catch up before they are in sync."""
    alive = _with_fencing(cluster, broker_id, is_fenced=False)
    controller = controller_of(alive)
    changed = {
        key: with_returned_broker(partition, controller)
        for key, partition in alive.partitions()
        if partition.leader is None and broker_id in (*partition.isr, *(partition.elr or ()))
    }
    return with_partitions(alive, changed)


def register(cluster: Cluster, broker: Broker) -> Cluster:
    """Return the cluster with one broker more."""
    brokers = {**cluster.brokers, broker.id: broker}
    return replace(cluster, brokers={broker_id: brokers[broker_id] for broker_id in sorted(brokers)})


def unregister(cluster: Cluster, broker_id: int) -> Cluster:
    """Return the cluster without that broker; partitions that name it keep naming it."""
    gone = fence(cluster, broker_id)
    return replace(gone, brokers={kept: broker for kept, broker in gone.brokers.items() if kept != broker_id})


def fail_log_dir(cluster: Cluster, broker_id: int, path: str) -> Cluster:
    """Return the cluster once that dir is offline: its replicas are in no ISR that others share, and lead nothing.

    Its broker lives on, as on Kafka 4.1.1, and only DescribeLogDirs tells of it.
    """
    failed = _with_log_dir(without_futures_in(cluster, broker_id, path), broker_id, LogDir(path, is_offline=True))
    controller = controller_of(failed)
    changed = {
        key: without_broker(partition, broker_id, controller)
        for key, partition in failed.partitions()
        if broker_id in partition.isr and log_dir_of(partition, broker_id) == path
    }
    return with_metadata(failed, changed)


def repair_log_dir(cluster: Cluster, broker_id: int, log_dir: LogDir) -> Cluster:
    """Return the cluster with that dir working again, in place of the one of its path."""
    return _with_log_dir(cluster, broker_id, replace(log_dir, is_offline=False))


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


def _with_fencing(cluster: Cluster, broker_id: int, *, is_fenced: bool) -> Cluster:
    brokers = {**cluster.brokers, broker_id: replace(cluster.brokers[broker_id], is_fenced=is_fenced)}
    alive = [broker.id for broker in brokers.values() if not broker.is_fenced]
    controller_id = cluster.controller_id
    if controller_id == broker_id and is_fenced:
        controller_id = min(alive, default=None)
    return replace(cluster, brokers=brokers, controller_id=controller_id)


def _with_log_dir(cluster: Cluster, broker_id: int, log_dir: LogDir) -> Cluster:
    broker = cluster.brokers[broker_id]
    log_dirs = tuple(log_dir if one.path == log_dir.path else one for one in broker.log_dirs)
    return replace(cluster, brokers={**cluster.brokers, broker_id: replace(broker, log_dirs=log_dirs)})
