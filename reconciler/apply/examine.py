"""Reads a cluster for `doctor`: part by part, so that what one missing right hides leaves the rest to be seen."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from reconciler.admin.port import Admin, ProgressHook, Reassignment
from reconciler.model.cluster import AUTO_REBALANCE, UNCLEAN_ELECTION, Broker, Cluster, LogDir, Partition, Topic
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.lock import LOCK_GROUP
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, Vitals

T = TypeVar("T")

SETTINGS = (AUTO_REBALANCE, MIN_ISR, UNCLEAN_ELECTION)

DESCRIBE_CONFIGS = "DescribeConfigs"


@dataclass(slots=True)
class _Reader:
    """Reads one part after the other, and keeps why a part could not be read."""

    tell: ProgressHook
    unexamined: list[str] = field(default_factory=list)

    def read(self, what: str, ask: Callable[[], T]) -> T | None:
        self.tell(what, 0, 1)
        try:
            return ask()
        except MissingRight:
            self.unexamined.append(f"{what}: a right is missing")
        except ClusterUnavailable as error:
            self.unexamined.append(f"{what}: {error}")
        return None


def examine(admin: Admin, topics: Collection[str] = (), progress: ProgressHook | None = None) -> Vitals:
    """Return what can be read of the cluster; `topics` are those declared, which may be hidden.

    Raises ClusterUnavailable only where nothing answers. Needs no right: what one lacks is among `unexamined`.
    """
    reader = _Reader(progress or (lambda _what, _done, _all: None))
    observed_at = admin.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    cluster_id, brokers = admin.cluster_id(), admin.brokers()
    alive = [broker.id for broker in brokers.values() if not broker.is_fenced]
    features = reader.read("versions", admin.features)
    # Log dirs come before the topics: what metadata shows later as assigned is no stray.
    disks = reader.read("log dirs", admin.disk_report)
    on_disk = {one.topic_partition.topic for one in disks.replicas} if disks is not None else set()
    rights = admin.rights(sorted(on_disk | set(topics)), [LOCK_GROUP])
    flights = reader.read("reassignments", admin.reassignments) or {}
    seen = reader.read("topics", lambda: admin.topics(sorted(rights.topics))) or {}
    seen = reader.read("eligible leaders", lambda: admin.with_eligible_leaders(seen)) or seen
    told = [name for name in sorted(seen) if DESCRIBE_CONFIGS in rights.topics.get(name, ())]
    configs = reader.read("topic configs", lambda: admin.topic_configs(told)) or {}
    if len(told) < len(seen):
        reader.unexamined.append(f"configs of {len(seen) - len(told)} topics: a right is missing")
    if rights.hidden:
        reader.unexamined.append(f"{len(rights.hidden)} topics that this user may not describe")
    broker_configs = reader.read("broker configs", lambda: admin.broker_configs(alive)) or {}
    settings = reader.read("broker settings", lambda: admin.broker_settings(alive, SETTINGS)) or {}
    quorum = reader.read("the quorum", admin.quorum)
    holder = reader.read("the lock", admin.lock_holder)
    cluster = Cluster(
        cluster_id,
        brokers={one.id: _broker(one, broker_configs, disks) for one in brokers.values()},
        topics={name: _topic(topic, configs.get(name, {}), flights) for name, topic in sorted(seen.items())},
        observed_at=observed_at,
        kafka_version=features.release if features is not None else None,
        controller_id=quorum.leader if quorum is not None else None,
    )
    return Vitals(
        cluster,
        features,
        rights,
        disks,
        settings,
        quorum=quorum,
        holder=str(holder) if holder is not None else None,
        unexamined=tuple(reader.unexamined),
    )


def _broker(broker: Broker, configs: Mapping[int, Mapping[str, str]], disks: DiskReport | None) -> Broker:
    dirs = disks.dirs if disks is not None else ()
    log_dirs = (
        LogDir(one.path, is_offline=one.error is not None, is_cordoned=one.is_cordoned)
        for one in dirs
        if one.broker_id == broker.id
    )
    return replace(broker, configs=configs.get(broker.id, {}), log_dirs=tuple(log_dirs))


def _topic(topic: Topic, configs: Mapping[str, str], flights: Mapping[TopicPartition, Reassignment]) -> Topic:
    def moving(partition: Partition) -> Partition:
        flight = flights.get(TopicPartition(topic.name, partition.partition))
        if flight is None:
            return partition
        return replace(
            partition,
            replicas=flight.replicas,
            adding_replicas=flight.adding_replicas,
            removing_replicas=flight.removing_replicas,
        )

    return replace(topic, configs=configs, partitions=tuple(map(moving, topic.partitions)))
