"""A broker is told where replicas go that are yet to come: Kafka remembers it, and makes them there (KIP-113)."""

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.answers import Denied, Outcome
from reconciler.simulate.storage import with_metadata

Choices = Mapping[tuple[TopicPartition, int], str]


def choose_log_dirs(cluster: Cluster, broker_id: int, choices: Mapping[TopicPartition, str]) -> Outcome[TopicPartition]:
    """Return what the broker answers for replicas that are not there yet; the cluster stays as it is."""
    broker = cluster.brokers[broker_id]
    refused = {path: Denied("INVALID_REPLICA_ASSIGNMENT", "") for path in broker.cordoned_dirs}
    unknown = {*choices.values()} - {one.path for one in broker.log_dirs}
    refused |= {path: Denied("LOG_DIR_NOT_FOUND", f"There is no log dir {path}.") for path in unknown}
    return Outcome(cluster, {key: refused.get(path) for key, path in choices.items()})


def in_chosen_log_dirs(before: Cluster, after: Cluster, chosen: Choices) -> Cluster:
    """Return the cluster with each replica that has just come, and has no data yet, in the log dir chosen for it."""
    changed: dict[TopicPartition, Partition] = {}
    for key, broker_id in chosen:
        partition, was = after.partition(key), before.partition(key)
        if partition is not None and broker_id not in (was.replicas if was else ()):
            changed[key] = _moved(changed.get(key, partition), broker_id, chosen[key, broker_id])
    return with_metadata(after, changed)


def _moved(partition: Partition, broker_id: int, path: str) -> Partition:
    known = zip(partition.replicas, partition.log_dirs, strict=False)
    return replace(partition, log_dirs=tuple(path if replica == broker_id else now for replica, now in known))
