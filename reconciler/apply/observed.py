"""Holds what one turn of the executor sees: the topics that a stage touches, every reassignment, and the brokers."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from reconciler.admin.port import Admin, Clock, DiskUse, Reassignment
from reconciler.model.cluster import Broker, LogDir, Partition, Topic
from reconciler.model.move import DirMove, Move
from reconciler.model.topic_partition import TopicPartition

V = TypeVar("V")
_NO_IDS: Mapping[str, str] = {}
LAG = timedelta(seconds=30)
"""How long a look may show the time before a request that Kafka took."""
LAG_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Observed:
    """One look at the cluster; `configs`, `replica_bytes` and `log_dirs` are empty where they were not asked for."""

    topics: Mapping[str, Topic] = field(default_factory=dict)
    reassignments: Mapping[TopicPartition, Reassignment] = field(default_factory=dict)
    """What the active controller lists: it is newer than the metadata in `topics`."""
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    replica_bytes: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    disks: DiskUse | None = None
    """What brokers told of the replicas that the plan moves between log dirs; None where they were not asked."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Topics that were deleted and made again since the plan, with their new id. They are other topics, not the
    plan's, so nothing else of them is here."""

    def then(self, newer: "Observed", topics: Collection[str]) -> "Observed":
        """Return what is known after a newer look, which saw these topics only."""
        return Observed(
            topics=_with(self.topics, newer.topics, topics),
            reassignments=newer.reassignments,
            brokers=newer.brokers,
            disks=_merged(self.disks, newer.disks, topics),
            replaced=_with(self.replaced, newer.replaced, topics),
        )

    def without(self, replaced: Mapping[str, str]) -> "Observed":
        """Return the look without these topics, which were made again: they are others."""
        topics = {name: topic for name, topic in self.topics.items() if name not in replaced}
        configs = {name: one for name, one in self.configs.items() if name not in replaced}
        return replace(self, topics=topics, configs=configs, replaced=replaced)

    def partition(self, topic_partition: TopicPartition) -> Partition | None:
        """Return that partition, None where it does not exist."""
        topic = self.topics.get(topic_partition.topic)
        return topic.partition(topic_partition.partition) if topic is not None else None

    def absence(self, topic: str) -> str:
        """Return in words why a topic, or a partition of it, is not here."""
        if topic in self.replaced:
            return f"another topic under the same name (id {self.replaced[topic]})"
        return "no such partition" if topic in self.topics else "no such topic"

    def is_alive(self, broker_id: int) -> bool:
        """Whether that broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced

    def dead_of(self, broker_ids: Collection[int]) -> tuple[int, ...]:
        """Return those of the brokers that are not alive, sorted."""
        return tuple(sorted(broker for broker in set(broker_ids) if not self.is_alive(broker)))

    def has_source(self, topic_partition: TopicPartition) -> bool:
        """Whether the partition has a leader, and a living replica in sync: the leader is one."""
        partition = self.partition(topic_partition)
        if partition is None or partition.leader is None:
            return False
        return any(self.is_alive(broker) for broker in (partition.leader, *partition.isr))

    def awaited(self, move: Move) -> tuple[int, ...]:
        """Return the replicas that must live, and be in sync in the end: of a change of order, only those that live."""
        if move.is_reorder:
            return tuple(replica for replica in move.to_replicas if self.is_alive(replica))
        return move.to_replicas

    def is_in_sync(self, move: Move) -> bool:
        """Whether all replicas that the move waits for are in sync."""
        partition = self.partition(move.topic_partition)
        return partition is not None and set(self.awaited(move)) <= set(partition.isr)


def _merged(known: DiskUse | None, newer: DiskUse | None, topics: Collection[str]) -> DiskUse | None:
    if known is None or newer is None:
        return newer or known

    def kept(found: Mapping[tuple[TopicPartition, int], V]) -> dict[tuple[TopicPartition, int], V]:
        return {replica: value for replica, value in found.items() if replica[0].topic not in topics}

    return DiskUse(
        {**known.log_dirs, **newer.log_dirs},
        {**kept(known.replica_bytes), **newer.replica_bytes},
        {**kept(known.replica_paths), **newer.replica_paths},
        {**kept(known.futures), **newer.futures},
    )


def _with(known: Mapping[str, V], newer: Mapping[str, V], topics: Collection[str]) -> dict[str, V]:
    return {**{name: value for name, value in known.items() if name not in topics}, **newer}


def lasting(clock: Clock, look_again: Callable[[], V], *, is_gone: Callable[[V], bool]) -> V:
    """Return what a look shows, repeated until that is gone, for LAG at most.

    Brokers answer from their own image of the metadata, so a look may show the time before a request that Kafka took.
    """
    end = clock.now() + LAG
    while True:
        shown = look_again()
        if is_gone(shown) or clock.now() >= end:
            return shown
        clock.sleep(LAG_PAUSE_SECONDS)


def look(
    admin: Admin,
    topics: Collection[str],
    *,
    ids: Mapping[str, str] = _NO_IDS,
    with_configs_of: Collection[str] = (),
    dir_moves: Iterable[DirMove] = (),
) -> Observed:
    """Observe these topics, every reassignment and the brokers; a topic of another id than in `ids` is not here.

    Brokers tell what their log dirs hold of those `dir_moves` that are of these topics.
    """
    # The controller's list comes first: what it no longer lists, the later metadata may already show.
    reassignments = admin.reassignments()
    names = sorted(topics)
    found = admin.topics(names) if names else {}
    replaced = replaced_topics(found, ids)
    configs = admin.topic_configs(sorted(with_configs_of)) if with_configs_of else {}
    brokers = admin.brokers()
    disks = disks_of(admin, brokers, [move for move in dir_moves if move.topic_partition.topic in topics])
    return Observed(found, reassignments, brokers, configs, disks=disks).without(replaced)


def disks_of(admin: Admin, brokers: Mapping[int, Broker], moves: Collection[DirMove]) -> DiskUse | None:
    """Return what the living brokers tell of these moves between log dirs; None where there is none."""
    alive = {move.broker for move in moves if move.broker in brokers and not brokers[move.broker].is_fenced}
    return admin.disks(sorted(alive), sorted({move.topic_partition for move in moves})) if moves else None


def replaced_topics(found: Mapping[str, Topic], ids: Mapping[str, str]) -> Mapping[str, str]:
    """Return the topics whose id is not the one in `ids`, each with its id; an id that is not known differs from none.

    Brokers before Kafka 2.8 tell none.
    """
    new = ((name, topic.topic_id) for name, topic in found.items() if topic.topic_id is not None)
    return {name: topic_id for name, topic_id in new if ids.get(name, topic_id) != topic_id}
