"""Describes a cluster as observed: what the snapshot file holds, and what both admins return."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple

from reconciler.model.assignment import BASE64, BASE64_FORM
from reconciler.model.codec import (
    ALWAYS,
    DISTINCT,
    FILLED,
    HIDDEN,
    INLINE,
    NULLABLE,
    SORTED,
    By,
    Check,
    Ids,
    Key,
    Malformed,
    Pattern,
    When,
)
from reconciler.model.topic_partition import TopicPartition

LEADER_THROTTLED_RATE = "leader.replication.throttled.rate"
FOLLOWER_THROTTLED_RATE = "follower.replication.throttled.rate"
LEADER_THROTTLED_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_THROTTLED_REPLICAS = "follower.replication.throttled.replicas"
BROKER_THROTTLES = (LEADER_THROTTLED_RATE, FOLLOWER_THROTTLED_RATE)
TOPIC_THROTTLES = (LEADER_THROTTLED_REPLICAS, FOLLOWER_THROTTLED_REPLICAS)
CLASSIC, CONSUMER = "classic", "consumer"
CORDONED_LOG_DIRS = "cordoned.log.dirs"
AUTO_REBALANCE, DELETE_TOPICS = "auto.leader.rebalance.enable", "delete.topic.enable"
REBALANCE_INTERVAL = "leader.imbalance.check.interval.seconds"
ALTER_LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
CORDONS_REFUSED_SINCE = (4, 4)
"""From this release on the controller takes no replica list that names a cordoned broker, even one that stays there."""
BROKER_LEASES = (*BROKER_THROTTLES, CORDONED_LOG_DIRS, ALTER_LOG_DIRS_RATE)
"""The settings of brokers that a run changes and gives back."""
DEFAULT_PARTITIONS, DEFAULT_REPLICATION_FACTOR = "num.partitions", "default.replication.factor"
REMOTE_STORAGE = "remote.storage.enable"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
TIERED_FETCH = "follower.fetch.last.tiered.offset.enable"
BROKER_SETTINGS = (
    AUTO_REBALANCE,
    "compression.type",
    CORDONED_LOG_DIRS,
    DEFAULT_REPLICATION_FACTOR,
    DELETE_TOPICS,
    TIERED_FETCH,
    "log.cleaner.delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms",
    "log.cleaner.min.compaction.lag.ms",
    "log.cleanup.policy",
    "log.local.retention.bytes",
    "log.local.retention.ms",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.retention.bytes",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.ms",
    "log.segment.bytes",
    "message.max.bytes",
    "min.insync.replicas",
    DEFAULT_PARTITIONS,
    "remote.log.storage.system.enable",
    UNCLEAN_ELECTION,
)
"""The brokers' settings that plans depend on: what is in force stands in the snapshot, static ones too."""


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory.

    `is_offline`: the broker cannot read or write it (a full or broken disk), and lives on without what lies in it.
    """

    path: Annotated[str, "Where it is on the broker."]
    total_bytes: Annotated[int | None, "Its size; null or left out where not known."] = None
    usable_bytes: Annotated[int | None, "What is free of it."] = None
    is_offline: Annotated[bool, HIDDEN] = False
    is_cordoned: Annotated[bool, "Whether Kafka itself puts no new replica there (KIP-1066). Since 1.1."] = False


class SizedDir(NamedTuple):
    """A log directory of which size and used bytes are known; `is_open`: new replicas may go there."""

    path: str
    used: int
    total: int
    is_open: bool


@dataclass(frozen=True, slots=True)
class FutureReplica:
    """The copy that a broker makes of one of its replicas in another of its log dirs (KIP-113)."""

    topic_partition: Annotated[TopicPartition, INLINE]
    path: Annotated[str, Key("logDir"), "The log dir that it is made in."]
    size_bytes: Annotated[int | None, Key("bytes"), "What is copied by now; null or left out where not known."] = None


_Configs = Annotated[Mapping[str, str], ALWAYS, "Dynamic overrides only, never defaults."]


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker."""

    id: Annotated[int, "The broker's id."]
    rack: Annotated[str | None, "Its rack; null where it has none."] = None
    host: Annotated[str | None, "Its host name."] = None
    port: Annotated[int | None, "Its port."] = None
    is_fenced: Annotated[bool, ALWAYS, "Registered, but not alive."] = False
    log_dirs: Annotated[tuple[LogDir, ...], By("path"), ALWAYS, "Its log directories."] = ()
    configs: _Configs = field(default_factory=dict)
    settings: Annotated[
        Mapping[str, str],
        "What is in force there, wherever it was set, of the settings that plans depend on; not there where unknown. "
        "Since 1.1.",
    ] = field(default_factory=dict)
    future_replicas: Annotated[
        tuple[FutureReplica, ...],
        "The copies of its own replicas that it makes in other log dirs of its own; not there: none. Since 1.1.",
    ] = ()

    def in_force(self, key: str) -> str | None:
        """Return what is in force there of a setting that plans depend on, None where it is unknown."""
        return self.configs.get(key, self.settings.get(key))

    @property
    def sized_dirs(self) -> tuple[SizedDir, ...]:
        """Its log dirs of which size and free bytes are known: an offline one tells neither."""
        told = ((one.path, one.total_bytes, one.usable_bytes) for one in self.log_dirs)
        known = [(path, total, free) for path, total, free in told if total is not None and free is not None]
        closed = self.cordoned_dirs
        # All cordoned: a replica that is placed there all the same may lie in any of them.
        are_all = closed.issuperset(path for path, _, _ in known)
        return tuple(
            SizedDir(path, max(0, total - free), total, are_all or path not in closed) for path, total, free in known
        )

    @property
    def total_bytes(self) -> int | None:
        """What all its log dirs that are online hold, None where none tells its size."""
        known = [one.total_bytes for one in self.log_dirs if one.total_bytes is not None]
        return sum(known) if known else None

    @property
    def used_bytes(self) -> int | None:
        """What is used of that, by whomever; None where a log dir does not tell."""
        online = [one for one in self.log_dirs if one.total_bytes is not None]
        if not online or any(one.usable_bytes is None for one in online):
            return None
        # A hand-made snapshot may say more usable than there is: that is an empty disk, not less than one.
        return sum(max(0, (one.total_bytes or 0) - (one.usable_bytes or 0)) for one in online)

    @property
    def is_cordoned(self) -> bool:
        """Whether all its log dirs are cordoned (KIP-1066), so that Kafka itself gives it no new replica."""
        is_told = bool(self.log_dirs) and len(self.cordoned_dirs) == len(self.log_dirs)
        return is_told or (not self.log_dirs and "*" in self._cordons)

    @property
    def cordoned_dirs(self) -> frozenset[str]:
        """The paths of its cordoned log dirs: as the broker tells, or as its setting names them."""
        cordons = self._cordons
        return frozenset(one.path for one in self.log_dirs if one.is_cordoned or one.path in cordons or "*" in cordons)

    @property
    def _cordons(self) -> frozenset[str]:
        named = self.in_force(CORDONED_LOG_DIRS)
        return frozenset(path.strip() for path in named.split(",")) if named else frozenset()


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition.

    While it is reassigned, `replicas` is what Kafka holds and not the goal, which is `target_replicas`.
    """

    partition: Annotated[int, "Its number."]
    leader: Annotated[int | None, "The broker that leads it; null: none."]
    replicas: Annotated[
        Ids, FILLED, "Ordered: the first is the preferred leader; during a reassignment Kafka's union of old and new."
    ]
    isr: Annotated[Ids, "The replicas in sync."]
    adding_replicas: Annotated[Ids, "The replicas that a reassignment adds."] = ()
    removing_replicas: Annotated[Ids, "The replicas that a reassignment removes."] = ()
    sizes: Annotated[
        tuple[int | None, ...], "Bytes of each replica, parallel to replicas; null: not known; left out: none is known."
    ] = ()
    log_dirs: Annotated[
        tuple[str | None, ...], "The log directory of each replica, parallel to replicas; null: not known."
    ] = ()
    end_offset: Annotated[int | None, "The offset behind the last record."] = None
    elr: Annotated[
        Ids | None,
        "The eligible leader replicas: out of sync, with every committed record (KIP-966); left out: not known. "
        "Since 1.1.",
    ] = None
    last_known_elr: Annotated[
        Ids | None, "Of a partition without a leader, who led it last (KIP-966); left out: not known. Since 1.1."
    ] = None
    untiered_bytes: Annotated[
        int | None,
        "Of a tiered topic: the leader's bytes that are not in the remote tier yet, where a new replica copies no more "
        "(KIP-1023). Since 1.1.",
    ] = None

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The ordered replicas once the reassignment in flight, if any, has ended."""
        if not self.removing_replicas:
            return self.replicas
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)

    @property
    def lagging(self) -> frozenset[int]:
        """The replicas out of sync; none where nobody is in sync, as nobody then has more than the others."""
        if not self.isr or len(self.isr) == len(self.replicas):
            return frozenset()
        return frozenset(self.replicas).difference(self.isr)

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is in flight."""
        return bool(self.adding_replicas or self.removing_replicas)

    @property
    def preferred_leader(self) -> int | None:
        """The first replica, or None for a partition without replicas."""
        target = self.target_replicas
        return target[0] if target else None

    def size_on(self, broker_id: int) -> int | None:
        """Return the bytes of the replica on that broker, None where unknown."""
        if broker_id not in self.replicas or not self.sizes:
            return None
        return self.sizes[self.replicas.index(broker_id)]

    def on_replicas(self, replicas: tuple[int, ...], new_size: int | None = None) -> "Partition":
        """Return the partition on these replicas: those that stay keep bytes and log dir, a new one has `new_size`."""
        if replicas == self.replicas:
            return self
        sizes = dict(zip(self.replicas, self.sizes, strict=False))
        log_dirs = dict(zip(self.replicas, self.log_dirs, strict=False))
        return replace(
            self,
            replicas=replicas,
            sizes=tuple(sizes.get(replica, new_size) for replica in replicas) if self.sizes else (),
            log_dirs=tuple(log_dirs.get(replica) for replica in replicas) if self.log_dirs else (),
        )

    @property
    def bytes_to_copy(self) -> int | None:
        """Bytes that one new replica copies: those of a replica that is there, None where these are unknown.

        Of a tiered topic log dirs hold the local bytes alone, and no others are copied (KIP-405), or fewer (KIP-1023).
        """
        return self.untiered_bytes if self.untiered_bytes is not None else self.bytes_on_brokers

    @property
    def bytes_on_brokers(self) -> int | None:
        """Bytes of one replica in its log dir: the leader's, else the largest known one, else None (unknown)."""
        size = self.size_on(self.leader) if self.leader is not None else None
        if size is not None:
            return size
        return max((known for known in self.sizes if known is not None), default=None)


def _refuse_impossible(one: Partition) -> None:
    """Refuse a partition whose brokers are none of its replicas, or whose replicas' facts are not one each."""
    replicas = one.replicas
    if one.leader is not None and one.leader not in replicas:
        _refuse_strangers("leader", (one.leader,), replicas)
    # Equal lists are one tuple, and most often all replicas are in sync.
    if one.isr is not replicas:
        _refuse_strangers("isr", one.isr, replicas)
    if one.adding_replicas or one.removing_replicas or one.elr or one.last_known_elr:
        _refuse_strangers("addingReplicas", one.adding_replicas, replicas)
        _refuse_strangers("removingReplicas", one.removing_replicas, replicas)
        _refuse_strangers("elr", one.elr or (), replicas)
        _refuse_strangers("lastKnownElr", one.last_known_elr or (), replicas)
    for key, facts in (("sizes", one.sizes), ("logDirs", one.log_dirs)):
        if facts and len(facts) != len(replicas):
            message = f"must have one entry for each of the {len(replicas)} replicas, or none; it has {len(facts)}"
            raise Malformed(f"/{key}", message)


def _refuse_strangers(key: str, broker_ids: Iterable[int], replicas: tuple[int, ...]) -> None:
    for broker_id in broker_ids:
        if broker_id not in replicas:
            raise Malformed(f"/{key}", f"names broker {broker_id}, which is none of the replicas {{}}", list(replicas))


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic."""

    name: Annotated[str, "The topic's name."]
    partitions: Annotated[
        Sequence[Annotated[Partition, Check(_refuse_impossible)]],
        By("partition"),
        ALWAYS,
        "Its partitions, numbered from 0 without a gap.",
    ] = ()
    topic_id: Annotated[str | None, "The topic's id, which a topic made again does not share."] = None
    is_internal: Annotated[bool, ALWAYS, "Whether Kafka keeps it for itself."] = False
    configs: _Configs = field(default_factory=dict)

    def partition(self, number: int) -> Partition | None:
        """Return the partition of that number, None where it does not exist."""
        found = self.partitions[number] if number < len(self.partitions) else None
        if found is not None and found.partition == number:
            return found
        return next((found for found in self.partitions if found.partition == number), None)


def leaders_of(topics: Iterable[Topic]) -> dict[TopicPartition, int | None]:
    """Return the leader of each partition, None where it has none."""
    return {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in topics
        for partition in topic.partitions
    }


def _refuse_gaps(topic: Topic) -> None:
    for number, partition in enumerate(topic.partitions):
        if partition.partition != number:
            last = len(topic.partitions) - 1
            message = f"must number the partitions of {{}} from 0 to {last}, each once; there is no {number}"
            raise Malformed("/partitions", message, topic.name)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member."""

    member_id: Annotated[str, "The member's id."]
    client_id: Annotated[str, ALWAYS, NULLABLE, "Its client id."] = ""
    host: Annotated[str, ALWAYS, NULLABLE, "Where it runs."] = ""
    instance_id: Annotated[str | None, ALWAYS, "Its static id; null where it has none."] = None
    rack: Annotated[str | None, ALWAYS, "Its rack; null where it has none."] = None
    subscription: Annotated[tuple[str, ...], SORTED, ALWAYS, "The topics it subscribes to."] = ()
    assignment: Annotated[
        Mapping[str, Annotated[tuple[int, ...], DISTINCT, SORTED]], ALWAYS, "Topic to the partitions that it has."
    ] = field(default_factory=dict)
    subscription_pattern: Annotated[
        str | None, "The regular expression (RE2) that a KIP-848 member subscribes by, beside its subscription."
    ] = None
    user_data: Annotated[
        str | None,
        BASE64_FORM,
        BASE64,
        "What its assignor sent with its subscription, base64; not there for the assignors that Kafka ships.",
    ] = None


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group.

    `kind` `consumer` is KIP-848: the broker assigns, and `protocol` names its assignor. Where `protocol_type` is
    anything but `consumer` or empty, what members subscribe to and have is not known: their metadata is their own.
    """

    group_id: Annotated[str, "The group's id."]
    state: Annotated[str, ALWAYS, NULLABLE, "Such as Stable or Empty."] = ""
    protocol: Annotated[str, ALWAYS, NULLABLE, "The assignor."] = ""
    coordinator: Annotated[int | None, "The broker that coordinates it."] = None
    members: Annotated[tuple[GroupMember, ...], By("member_id"), ALWAYS, "Its members."] = ()
    offsets: Annotated[Mapping[str, Mapping[int, int]], ALWAYS, "Topic to partition to committed offset."] = field(
        default_factory=dict
    )
    kind: Annotated[
        str, Key("type"), NULLABLE, "Kafka's group type: classic (not written), consumer (KIP-848), share or streams."
    ] = CLASSIC
    protocol_type: Annotated[
        str, NULLABLE, "What its members speak: consumer (not written), connect, or nothing for offsets alone."
    ] = CONSUMER

    @property
    def committed(self) -> dict[TopicPartition, int]:
        """The committed offsets by partition, sorted."""
        return {
            TopicPartition(topic, partition): offset
            for topic, offsets in sorted(self.offsets.items())
            for partition, offset in sorted(offsets.items())
        }

    @property
    def topics(self) -> frozenset[str]:
        """What the group reads or has read: its members' topics, and those of its committed offsets."""
        members = (name for member in self.members for name in (*member.subscription, *member.assignment))
        return frozenset((*self.offsets, *members))

    @property
    def is_live(self) -> bool:
        """Whether somebody is a member now; a state is believed where members are not told."""
        return bool(self.members) or self.state not in {"", "Empty", "Dead"}

    def is_reading(self, topic: str) -> bool:
        """Whether a member reads that topic now, or may.

        What members own tells what their patterns match; where they own nothing yet, what a pattern begins with. Where
        nothing is told of the members, as of a share group, it may be every topic, or those of committed offsets.
        """
        if not self.is_live:
            return False
        named = {name for member in self.members for name in (*member.subscription, *member.assignment)}
        patterns = {each.subscription_pattern for each in self.members if each.subscription_pattern}
        if patterns and not named:
            return any(topic.startswith(_certain_start(pattern)) for pattern in patterns)
        if named or self.offsets:
            return topic in (named or self.offsets)
        return self.kind != CLASSIC or self.protocol_type == CONSUMER


def _certain_start(pattern: str) -> str:
    """Return the letters with which all that this regular expression matches begins, as far as that is plain."""
    found = re.match(r"\^?([A-Za-z0-9_-]*)(.?)", pattern)
    if found is None or "|" in pattern:
        return ""
    return found[1][:-1] if found[2] in {"?", "*", "{"} else found[1]


@dataclass(frozen=True, slots=True)
class Cluster:
    """The observed state. Brokers are sorted by id, topics by name.

    `has_groups`: consumer groups were looked at, so that none means that there are none.
    """

    format_version: ClassVar[
        Annotated[str, Pattern(r"^1(\.[0-9]+)?$"), "The version of this format; a reader of 1.0 reads every 1.x."]
    ] = "1.1"
    cluster_id: Annotated[str, "The cluster's id."]
    brokers: Annotated[Mapping[int, Broker], By("id"), ALWAYS, "Every registered broker, alive or not."] = field(
        default_factory=dict
    )
    topics: Annotated[Mapping[str, Annotated[Topic, Check(_refuse_gaps)]], By("name"), ALWAYS, "Every topic."] = field(
        default_factory=dict
    )
    groups: Annotated[
        tuple[Group, ...],
        By("group_id"),
        ALWAYS,
        When(lambda cluster: bool(cluster.groups) or cluster.has_groups),
        "Consumer groups; not there where nobody looked at them.",
    ] = ()
    observed_at: Annotated[str | None, "When, ISO 8601 in UTC."] = None
    kafka_version: Annotated[str | None, "The brokers' Kafka version, such as 4.3."] = None
    controller_id: Annotated[int | None, "The node that is the controller."] = None
    has_groups: Annotated[bool, HIDDEN] = field(default=False, compare=False)
    made_table: Annotated[Any, HIDDEN, "Its `PartitionTable`, once somebody asked for it."] = field(
        default=None, init=False, compare=False, repr=False
    )

    def partition(self, topic_partition: TopicPartition) -> Partition | None:
        """Return that partition, None where the topic or the partition does not exist."""
        topic = self.topics.get(topic_partition.topic)
        return topic.partition(topic_partition.partition) if topic is not None else None

    def partitions(self) -> Iterator[tuple[TopicPartition, Partition]]:
        """Yield every partition, by topic and number."""
        for name, topic in self.topics.items():
            for partition in topic.partitions:
                yield TopicPartition(name, partition.partition), partition

    def in_force(self, key: str) -> Mapping[int, str]:
        """Return what is in force of a broker setting, by living broker that tells it: see `BROKER_SETTINGS`."""
        told = {broker.id: broker.in_force(key) for broker in self.brokers.values() if not broker.is_fenced}
        return {broker_id: value for broker_id, value in told.items() if value is not None}

    def number_in_force(self, key: str) -> int | None:
        """Return the number that all brokers which tell it have in force, None where none does or they differ."""
        values = {*self.in_force(key).values()}
        text = values.pop() if len(values) == 1 else ""
        return int(text) if text.isascii() and text.isdigit() else None

    def is_alive(self, broker_id: int) -> bool:
        """Whether that broker is registered and not fenced."""
        broker = self.brokers.get(broker_id)
        return broker is not None and not broker.is_fenced
