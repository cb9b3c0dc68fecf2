"""Log dirs that go offline and come back: Kafka 4.1.1 keeps the broker alive, and only DescribeLogDirs tells of it."""

from dataclasses import replace

from reconciler.model.cluster import Cluster, LogDir, Partition
from reconciler.simulate.controller import controller_of
from reconciler.simulate.partition import without_broker
from reconciler.simulate.storage import with_metadata


def fail_log_dir(cluster: Cluster, broker_id: int, path: str) -> Cluster:
    """Return the cluster once that dir is offline: its replicas are in no ISR that others share, and lead nothing."""
    failed = _with_log_dir(cluster, broker_id, LogDir(path, is_offline=True))
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


def offline_log_dirs(cluster: Cluster) -> frozenset[tuple[int, str | None]]:
    """Return the broker and path of every log dir that is offline."""
    return frozenset((b.id, one.path) for b in cluster.brokers.values() for one in b.log_dirs if one.is_offline)


def log_dir_of(partition: Partition, broker_id: int) -> str | None:
    """Return the path of the replica on that broker, None where it is not known."""
    known = zip(partition.replicas, partition.log_dirs, strict=False)
    return next((path for replica, path in known if replica == broker_id), None)


def _with_log_dir(cluster: Cluster, broker_id: int, log_dir: LogDir) -> Cluster:
    broker = cluster.brokers[broker_id]
    log_dirs = tuple(log_dir if one.path == log_dir.path else one for one in broker.log_dirs)
    return replace(cluster, brokers={**cluster.brokers, broker_id: replace(broker, log_dirs=log_dirs)})
