"""Computes what a client sees of a simulated cluster: the state, sizes, samples, and what the doctor asks.

Of a dead broker nothing is seen but that it is registered. There is no authorizer, so every right is there.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconciler.admin.port import DiskUse
from reconciler.model.cluster import Cluster, Group, LogDir, Partition, Topic
from reconciler.model.coordinator import coordination
from reconciler.model.sample import ClusterSample, ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, Features, LogDirState, Quorum, QuorumMember, Rights
from reconciler.simulate.controller import controller_of
from reconciler.simulate.log_dirs import futures_of
from reconciler.simulate.storage import log_dir_of, offline_log_dirs

CONSUMER_GROUPS_SINCE = (4, 0)
OFFLINE = "KAFKA_STORAGE_ERROR"
DEFAULTS = {"auto.leader.rebalance.enable": "false", "min.insync.replicas": "1"}
BOTH_OPERATIONS = {"Alter", "AlterConfigs", "Create", "Describe", "DescribeConfigs"}
TOPIC_OPERATIONS = frozenset(BOTH_OPERATIONS | {"Delete", "Read", "Write"})
CLUSTER_OPERATIONS = frozenset(BOTH_OPERATIONS | {"ClusterAction", "IdempotentWrite"})
GROUP_OPERATIONS = frozenset({"Describe", "Read"})


def observed(cluster: Cluster, *, has_groups: bool) -> Cluster:
    """Return the cluster as `observe` shows it: of a dead broker neither configs nor sizes."""
    dead = frozenset(one.id for one in cluster.brokers.values() if one.is_fenced)
    groups = tuple(coordinated(group, cluster) for group in cluster.groups) if has_groups else ()
    found = replace(cluster, groups=groups, has_groups=has_groups)
    if not dead:
        return found
    brokers = {
        one.id: replace(one, configs={}, settings={}, log_dirs=(), future_replicas=()) if one.is_fenced else one
        for one in cluster.brokers.values()
    }
    topics = {
        name: replace(topic, partitions=tuple(_without_sizes(partition, dead) for partition in topic.partitions))
        for name, topic in cluster.topics.items()
    }
    return replace(found, brokers=brokers, topics=topics)


def _without_sizes(partition: Partition, dead: frozenset[int]) -> Partition:
    if dead.isdisjoint(partition.replicas):
        return partition
    end_offset = partition.end_offset if partition.leader is not None else None
    if dead.issuperset(partition.replicas):
        return replace(partition, sizes=(), log_dirs=(), end_offset=end_offset)
    sizes = zip(partition.replicas, partition.sizes, strict=False)
    log_dirs = zip(partition.replicas, partition.log_dirs, strict=False)
    return replace(
        partition,
        sizes=tuple(None if replica in dead else size for replica, size in sizes),
        log_dirs=tuple(None if replica in dead else path for replica, path in log_dirs),
        end_offset=end_offset,
    )


def sample(cluster: Cluster) -> ClusterSample:
    """Return what `collect` reads: the log dirs of living brokers, leaders and end offsets."""
    found = observed(cluster, has_groups=False)
    return ClusterSample(
        cluster_id=found.cluster_id,
        topics={name: bare(topic) for name, topic in found.topics.items()},
        replicas=tuple(sorted(replica for key, one in found.partitions() for replica in on_disk(key, one))),
        end_offsets={key: one.end_offset for key, one in found.partitions() if one.end_offset is not None},
        start_offsets={key: 0 for key, one in found.partitions() if one.end_offset is not None},
        untold=tuple(
            f"broker {one.id} is not alive: what its log dirs hold is unknown"
            for one in found.brokers.values()
            if one.is_fenced
        ),
    )


def disks(cluster: Cluster, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition]) -> DiskUse:
    """Return what log dirs that work, of living brokers, hold of these partitions."""
    alive = [broker_id for broker_id in sorted(broker_ids) if cluster.is_alive(broker_id)]
    offline = offline_log_dirs(cluster)
    found = ((key, cluster.partition(key)) for key in sorted(topic_partitions))
    there = {
        (key, replica): (partition, log_dir_of(partition, replica))
        for key, partition in found
        if partition is not None
        for replica in partition.replicas
        if replica in alive and (replica, log_dir_of(partition, replica)) not in offline
    }
    sizes = {replica: partition.size_on(replica[1]) for replica, (partition, _) in there.items()}
    futures = {
        (one.topic_partition, broker_id): one
        for broker_id in alive
        for one in futures_of(cluster, cluster.brokers[broker_id])
    }
    return DiskUse(
        {broker_id: cluster.brokers[broker_id].log_dirs for broker_id in alive},
        {replica: size for replica, size in sizes.items() if size is not None},
        {replica: path for replica, (_, path) in there.items() if path is not None},
        {replica: one for replica, one in futures.items() if replica[0] in set(topic_partitions)},
    )


def bare(topic: Topic) -> Topic:
    """Return the topic as metadata shows it: no configs, no sizes."""
    partitions = (
        Partition(one.partition, leader=one.leader, replicas=one.replicas, isr=one.isr) for one in topic.partitions
    )
    return replace(topic, partitions=tuple(partitions), configs={})


def coordinated(group: Group, cluster: Cluster) -> Group:
    """Return the group with the broker that coordinates it now."""
    found = coordination(group.group_id, cluster)
    return group if found is None else replace(group, coordinator=found.broker)


def features(cluster: Cluster) -> Features:
    """Return what brokers of that version can do."""
    controller = controller_of(cluster)
    return Features(
        kafka_version=cluster.kafka_version,
        has_factor_guard=controller.has_replication_factor_guard,
        has_consumer_groups=controller.version >= CONSUMER_GROUPS_SINCE,
    )


def quorum(cluster: Cluster) -> Quorum:
    """Return a quorum of the controller alone; nobody is behind it."""
    followers = (one.id for one in cluster.brokers.values() if not one.is_fenced and one.id != cluster.controller_id)
    voters = () if cluster.controller_id is None else (QuorumMember(cluster.controller_id, 0, 0),)
    return Quorum(cluster.controller_id, voters, tuple(QuorumMember(one, 0, 0) for one in followers))


def rights(cluster: Cluster, groups: Collection[str]) -> Rights:
    """Return every right there is."""
    return Rights(
        cluster=CLUSTER_OPERATIONS,
        topics=dict.fromkeys(cluster.topics, TOPIC_OPERATIONS),
        groups=dict.fromkeys(sorted(groups), GROUP_OPERATIONS),
    )


def disk_report(cluster: Cluster) -> DiskReport:
    """Return the log dirs of living brokers and the replicas whose log dir is known."""
    alive = [broker for broker in cluster.brokers.values() if not broker.is_fenced]
    offline = offline_log_dirs(cluster)
    return DiskReport(
        dirs=tuple(
            LogDirState(broker.id, one.path, OFFLINE if one.is_offline else None, one.path in closed, *_sizes(one))
            for broker in alive
            for closed in (broker.cordoned_dirs,)
            for one in broker.log_dirs
        ),
        replicas=tuple(
            sorted(
                one
                for key, each in cluster.partitions()
                for one in on_disk(key, each)
                if _is_told(one, cluster, offline)
            )
        ),
    )


def _sizes(log_dir: LogDir) -> tuple[int | None, int | None]:
    return (None, None) if log_dir.is_offline else (log_dir.total_bytes, log_dir.usable_bytes)


def _is_told(replica: ReplicaOnDisk, cluster: Cluster, offline: Collection[tuple[int, str | None]]) -> bool:
    """Whether its broker lives and its log dir works: nothing else is heard of."""
    return cluster.is_alive(replica.broker_id) and (replica.broker_id, replica.log_dir) not in offline


def broker_settings(
    cluster: Cluster, broker_ids: Collection[int], keys: Collection[str]
) -> Mapping[int, Mapping[str, str]]:
    """Return what is in force on living brokers: as they are told to have it, else what the simulation does."""
    alive = [broker_id for broker_id in sorted(broker_ids) if cluster.is_alive(broker_id)]
    told = {id_: {key: cluster.brokers[id_].in_force(key) for key in sorted(keys)} for id_ in alive}
    return {
        id_: {key: value for key, known in found.items() if (value := known or DEFAULTS.get(key)) is not None}
        for id_, found in told.items()
    }


def with_eligible_leaders(topic: Topic, cluster: Cluster) -> Topic:
    """Return the topic with the ELR that its partitions have in the cluster."""

    def told(partition: Partition) -> Partition:
        known = cluster.partition(TopicPartition(topic.name, partition.partition))
        return partition if known is None else replace(partition, elr=known.elr, last_known_elr=known.last_known_elr)

    return replace(topic, partitions=tuple(map(told, topic.partitions)))


def on_disk(key: TopicPartition, partition: Partition) -> list[ReplicaOnDisk]:
    """Return the replicas whose log dir is known; how far one lags is not simulated, so only those in sync are told."""
    return [
        ReplicaOnDisk(key, replica, log_dir, partition.size_on(replica), 0 if replica in partition.isr else None)
        for replica, log_dir in zip(partition.replicas, partition.log_dirs, strict=False)
        if log_dir is not None
    ]
