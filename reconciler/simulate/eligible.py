"""Keeps the eligible leader replicas (ELR, KIP-966) of changed partitions, as controllers of Kafka 4.1 and later do."""

from collections.abc import Mapping
from dataclasses import replace

from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.in_sync import brokers_min_isr, needed_in_sync
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import controller_of


def with_elr(cluster: Cluster, changed: Mapping[TopicPartition, Partition]) -> Mapping[TopicPartition, Partition]:
    """Return the partitions with the ELR that their change leaves, and nobody in sync where nobody leads.

    Whoever leaves the ISR while fewer than min.insync.replicas stay in it is eligible until enough are in it again.
    """
    if not controller_of(cluster).has_eligible_leaders:
        return changed
    min_isr = brokers_min_isr(cluster)
    return {key: _kept(cluster.topics[key.topic], cluster.partition(key), one, min_isr) for key, one in changed.items()}


def _kept(topic: Topic, before: Partition | None, after: Partition, min_isr: int) -> Partition:
    isr = after.isr if after.leader is not None else ()
    if before is None or (not before.elr and set(isr).issuperset(before.isr)):
        return after
    elr: set[int] = set()
    if len(isr) < needed_in_sync(topic, after, min_isr):
        elr = {*before.isr, *(before.elr or ())}.intersection(after.replicas).difference(isr)
    if before.elr is None and not elr:
        return replace(after, isr=isr)
    last = () if isr else (before.last_known_elr if before.leader is None else (before.leader,))
    return replace(after, isr=isr, elr=tuple(sorted(elr)), last_known_elr=last)


def without_elr(topic: Topic) -> Topic:
    """Return the topic once its min.insync.replicas was changed: the controller then forgets every ELR of it."""
    partitions = (replace(one, elr=(), last_known_elr=()) if one.elr else one for one in topic.partitions)
    return replace(topic, partitions=tuple(partitions))
