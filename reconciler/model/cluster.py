"""A cluster as observed: what the snapshot file holds and what both admins return."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

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
BROKER_LEASES = (*BROKER_THROTTLES, CORDONED_LOG_DIRS)
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
    "message.max.bytes",
    "min.insync.replicas",
    DEFAULT_PARTITIONS,
    "remote.log.storage.system.enable",
    UNCLEAN_ELECTION,
)
"""The brokers' settings that plans depend on: what is in force stands in the snapshot, static ones too."""


@dataclass(frozen=True, slots=True)
class LogDir:
    """One log directory of a broker; a size is None where the broker did not tell it.

    `is_offline`: the broker cannot read or write it (a full or broken disk), and lives on without what lies in it.
    `is_cordoned`: Kafka itself puts no new replica there (KIP-1066).
    """

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    is_offline: bool = False
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. `is_fenced`: registered, but not alive. `configs`: dynamic overrides only.

    `settings`: what is in force there, wherever it was set, of the settings that plans depend on; empty where unknown.
    """

    id: int
    rack: str | None = None
    host: str | None = None
    port: int | None = None
    is_fenced: bool = False
    log_dirs: tuple[LogDir, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def in_force(self, key: str) -> str | None:
        """Return what is in force there of a setting that plans depend on, None where it is unknown."""
        return self.configs.get(key, self.settings.get(key))

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
    """A partition's state. While it is reassigned, `replicas` is Kafka's union and `target_replicas` the goal.

    `sizes` and `log_dirs` run parallel to `replicas`; they are empty where nothing is known, and an entry is None
    where that replica's is unknown. `elr`: the eligible leader replicas, out of sync but with every committed record;
    `last_known_elr`: of a partition without a leader, who led it last (KIP-966). None where it is not known.
    `untiered_bytes`: of a tiered topic, what is not in the remote tier yet, where new replicas copy no more (KIP-1023).
    """

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    sizes: tuple[int | None, ...] = ()
    log_dirs: tuple[str | None, ...] = ()
    end_offset: int | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    untiered_bytes: int | None = None

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
        """Bytes that one new replica copies: the leader's size, else the largest known one, else None (unknown).

        Of a tiered topic log dirs hold the local bytes alone, and no others are copied (KIP-405), or fewer (KIP-1023).
        """
        if self.untiered_bytes is not None:
            return self.untiered_bytes
        size = self.size_on(self.leader) if self.leader is not None else None
        if size is not None:
            return size
        return max((known for known in self.sizes if known is not None), default=None)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions in order. `configs`: dynamic topic overrides only, never defaults."""

    name: str
    partitions: tuple[Partition, ...] = ()
    topic_id: str | None = None
    is_internal: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)

    def partition(self, number: int) -> Partition | None:
        """Return the partition of that number, None where it does not exist."""
        if number < len(self.partitions) and self.partitions[number].partition == number:
            return self.partitions[number]
        return next((found for found in self.partitions if found.partition == number), None)


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a consumer group; `assignment` maps a topic to its partitions.

    `subscription_pattern`: the regular expression (RE2) that a KIP-848 member subscribes by, beside `subscription`.
    """

    member_id: str
    client_id: str = ""
    host: str = ""
    instance_id: str | None = None
    rack: str | None = None
    subscription: tuple[str, ...] = ()
    assignment: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    subscription_pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group; `offsets` maps a topic to its committed offset for each partition.

    `kind` is Kafka's group type: `classic`, `consumer` (KIP-848: the broker assigns, `protocol` names its assignor),
    `share` or `streams`. `protocol_type` is `consumer` where members speak the consumer protocol, empty for a group
    that only holds offsets, and anything else (`connect`) where their metadata cannot be understood.
    """

    group_id: str
    state: str = ""
    protocol: str = ""
    coordinator: int | None = None
    members: tuple[GroupMember, ...] = ()
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    kind: str = CLASSIC
    protocol_type: str = CONSUMER

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
    """The observed state. Brokers are sorted by id, topics by name; `observed_at` is ISO 8601 in UTC.

    `has_groups`: consumer groups were looked at, so that none means that there are none.
    """

    cluster_id: str
    brokers: Mapping[int, Broker] = field(default_factory=dict)
    topics: Mapping[str, Topic] = field(default_factory=dict)
    groups: tuple[Group, ...] = ()
    observed_at: str | None = None
    kafka_version: str | None = None
    controller_id: int | None = None
    has_groups: bool = field(default=False, compare=False)

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
