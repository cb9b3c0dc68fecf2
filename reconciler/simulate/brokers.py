"""Brokers that die, come back, join and leave."""

from collections.abc import Collection
from dataclasses import replace

from reconciler.model.cluster import Broker, Cluster
from reconciler.simulate.controller import controller_of
from reconciler.simulate.partition import with_returned_broker, without_broker
from reconciler.simulate.storage import with_partitions


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


def _with_fencing(cluster: Cluster, broker_id: int, *, is_fenced: bool) -> Cluster:
    brokers = {**cluster.brokers, broker_id: replace(cluster.brokers[broker_id], is_fenced=is_fenced)}
    alive = [broker.id for broker in brokers.values() if not broker.is_fenced]
    controller_id = cluster.controller_id
    if controller_id == broker_id and is_fenced:
        controller_id = min(alive, default=None)
    return replace(cluster, brokers=brokers, controller_id=controller_id)
