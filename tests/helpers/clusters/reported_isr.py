"""Lets leaders report their in-sync replicas to the simulated controller (AlterPartition)."""

from collections.abc import Mapping, Sequence

from reconciler.model.cluster import Cluster
from reconciler.model.topic_partition import TopicPartition
from reconciler.simulate.controller import controller_of
from reconciler.simulate.partition import with_isr
from reconciler.simulate.storage import with_partitions


def alter_isr(cluster: Cluster, isrs: Mapping[TopicPartition, Sequence[int]]) -> Cluster:
    """Return the cluster with the in-sync replicas that the leaders of these partitions reported."""
    controller = controller_of(cluster)
    partitions = {key: cluster.partition(key) for key in isrs}
    changed = {key: with_isr(found, isrs[key], controller) for key, found in partitions.items() if found is not None}
    return with_partitions(cluster, changed)
