"""Requests about partitions: reassignments, cancels and preferred elections, each partition answered by itself."""

from collections.abc import Collection, Mapping, Sequence

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.answers import Denied, Outcome
from reconciler.simulate.controller import Controller, controller_of
from reconciler.simulate.partition import cancelled, reassigned, with_isr, with_preferred_leader
from reconciler.simulate.storage import with_partitions

MAX_RECORDS = 10_000
"""What the controller writes for one request; Kafka's MAX_RECORDS_PER_USER_OP."""


def reassign(
    cluster: Cluster,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    is_replication_factor_change_allowed: bool = True,
) -> Outcome[TopicPartition]:
    """Submit targets; None cancels. Beyond the controller's limit an item fails, those before it stand."""
    controller = controller_of(cluster)
    changed: dict[TopicPartition, Partition] = {}
    answers: dict[TopicPartition, Denied | None] = {}
    for key, target in targets.items():
        result = _altered(cluster, key, target, controller, is_factor_free=is_replication_factor_change_allowed)
        if not isinstance(result, Denied) and len(changed) == MAX_RECORDS:
            result = Denied("UNKNOWN_SERVER_ERROR")
        if isinstance(result, Denied):
            answers[key] = result
        else:
            answers[key] = None
            changed[key] = result
    return Outcome(with_partitions(cluster, changed), answers)


def elect_preferred_leaders(cluster: Cluster, topic_partitions: Collection[TopicPartition]) -> Outcome[TopicPartition]:
    """Elect the first replicas. Beyond the controller's limit all are answered as failed, though all may be done."""
    controller = controller_of(cluster)
    changed: dict[TopicPartition, Partition] = {}
    answers: dict[TopicPartition, Denied | None] = {}
    for key in topic_partitions:
        result = _elected(cluster, key, controller)
        if isinstance(result, Denied):
            answers[key] = result
        else:
            answers[key] = None
            changed[key] = result
    if len(changed) >= MAX_RECORDS:
        answers = dict.fromkeys(answers, Denied("UNKNOWN_SERVER_ERROR"))
    return Outcome(with_partitions(cluster, changed), answers)


def alter_isr(cluster: Cluster, isrs: Mapping[TopicPartition, Sequence[int]]) -> Cluster:
    """Return the cluster with the in-sync replicas that the leaders of these partitions reported."""
    controller = controller_of(cluster)
    partitions = {key: cluster.partition(key) for key in isrs}
    changed = {key: with_isr(found, isrs[key], controller) for key, found in partitions.items() if found is not None}
    return with_partitions(cluster, changed)


def _altered(
    cluster: Cluster,
    key: TopicPartition,
    target: Sequence[int] | None,
    controller: Controller,
    *,
    is_factor_free: bool,
) -> Partition | Denied:
    if key.topic not in cluster.topics:
        return Denied("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find a topic named {key.topic}.")
    partition = cluster.partition(key)
    if partition is None:
        return Denied("UNKNOWN_TOPIC_OR_PARTITION", f"Unable to find partition {key.topic}:{key.partition}.")
    if target is None:
        return cancelled(key, partition, controller)
    return reassigned(partition, target, controller, is_replication_factor_change_allowed=is_factor_free)


def _elected(cluster: Cluster, key: TopicPartition, controller: Controller) -> Partition | Denied:
    if key.topic not in cluster.topics:
        return Denied("UNKNOWN_TOPIC_OR_PARTITION", f"No such topic as {key.topic}")
    partition = cluster.partition(key)
    if partition is None:
        return Denied("UNKNOWN_TOPIC_OR_PARTITION", f"No such partition as {key}")
    return with_preferred_leader(partition, controller)
