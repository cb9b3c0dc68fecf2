"""Answers the doctor for a simulated cluster: it has no authorizer, and elects nobody by itself."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.sample import ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, Features, LogDirState, Quorum, QuorumMember, Rights
from reconciler.simulate.controller import controller_of
from reconciler.simulate.storage import offline_log_dirs

CONSUMER_GROUPS_SINCE = (4, 0)
OFFLINE = "KAFKA_STORAGE_ERROR"
DEFAULTS = {"auto.leader.rebalance.enable": "false", "min.insync.replicas": "1"}
CLUSTER_OPERATIONS = frozenset(
    {
        "Alter",
        "AlterConfigs",
        "ClusterAction",
        "Create",
        "Describe",
        "DescribeConfigs",
        "IdempotentWrite",
    }
)
TOPIC_OPERATIONS = frozenset(
    {"Alter", "AlterConfigs", "Create", "Delete", "Describe", "DescribeConfigs", "Read", "Write"}
)
GROUP_OPERATIONS = frozenset({"Describe", "Read"})


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
            LogDirState(broker.id, log_dir.path, OFFLINE if log_dir.is_offline else None, log_dir.path in closed)
            for broker in alive
            for closed in (broker.cordoned_dirs,)
            for log_dir in broker.log_dirs
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
