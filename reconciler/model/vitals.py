"""Holds what a doctor reads of a cluster beside its topics and brokers: versions, rights, log dirs, settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from reconciler.model.cluster import Cluster
from reconciler.model.codec import HIDDEN, REQUIRED, Integer, Key
from reconciler.model.sample import ReplicaOnDisk
from reconciler.model.topic_partition import TopicPartition

CLUSTER, TOPIC, GROUP = "cluster", "topic", "group"
"""The kinds of resources that rights are held on."""


LACKABLE = {
    "AlterPartitionReassignments": "moves of replicas",
    "ElectLeaders": "preferred-leader elections",
    "AlterReplicaLogDirs": "moves between log dirs",
    "DescribeLogDirs": "sizes, and what disks hold",
    "DescribeQuorum": "the controller and its quorum",
}
"""Requests that not every service takes, each with what it is for."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the brokers can do."""

    kafka_version: Annotated[str | None, HIDDEN] = None
    """What metadata.version is named after (`4.3`), None where it is unknown."""
    finalized: Annotated[Mapping[str, int], REQUIRED, "Each feature's level as switched on."] = field(
        default_factory=dict
    )
    supported: Annotated[
        Mapping[str, int], REQUIRED, "The highest level of each feature that the answering broker knows."
    ] = field(default_factory=dict)
    has_factor_guard: Annotated[
        bool, Key("replicationFactorGuard"), REQUIRED, "Moves can forbid a change of replication factor (KIP-860)."
    ] = False
    has_consumer_groups: Annotated[bool, Key("consumerGroups"), REQUIRED, "Consumer groups of KIP-848."] = False
    lacking: Annotated[
        tuple[str, ...], "Kafka's requests that these brokers do not take at all, as those of some services."
    ] = ()


@dataclass(frozen=True, slots=True)
class Rights:
    """What this user may do, in Kafka's words (`Describe`, `AlterConfigs`); without an authorizer that is everything.

    `topics` and `groups`: those that it may describe; `hidden`: the topics asked for that exist, and that it may not.
    """

    cluster: frozenset[str] = frozenset()
    topics: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LogDirState:
    """One log dir as its broker tells of it. `error`: Kafka's name for why it is offline (`KAFKA_STORAGE_ERROR`).

    `total_bytes`, `usable_bytes`: its size and what is free of it; None where the broker does not tell.
    """

    broker_id: int
    path: str
    error: str | None = None
    is_cordoned: bool = False
    total_bytes: int | None = None
    usable_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DiskReport:
    """What all log dirs hold, sorted; `silent`: living brokers that did not tell."""

    dirs: tuple[LogDirState, ...] = ()
    replicas: tuple[ReplicaOnDisk, ...] = ()
    silent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A controller or, as an observer, a broker that follows the metadata quorum's leader."""

    id: Annotated[int, "Its node id."]
    behind_records: Annotated[
        int | None,
        Key("recordsBehind"),
        REQUIRED,
        "How many records of metadata it has not fetched yet; null: the leader has not heard of it.",
    ] = None
    behind_ms: Annotated[
        Integer | None,
        Key("millisecondsBehind"),
        REQUIRED,
        "How long ago it had all; null: not heard of since the leader began.",
    ] = None


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum."""

    leader: Annotated[int | None, "The active controller; null while there is none."]
    voters: Annotated[tuple[QuorumMember, ...], REQUIRED, "All controllers, the leader too."] = ()
    observers: Annotated[tuple[QuorumMember, ...], REQUIRED, "The brokers that follow it."] = ()
    epoch: Annotated[int | None, REQUIRED, "The leader's epoch: it grows with each election."] = None


@dataclass(frozen=True, slots=True)
class CoordinatedTransaction:
    """What a coordinator has of a transaction. `state` is Kafka's (`Ongoing`, `PrepareCommit`), the time in ms."""

    transactional_id: str
    state: str
    began_ms: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that is open at a partition: from `first_offset` on, no consumer with read_committed reads it.

    `last_written_ms`: the time that its last record carries. `known`: what its coordinator has of it, None where none
    has this partition in a transaction of this producer: then nothing ever ends it (KIP-664).
    """

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    first_offset: int
    last_written_ms: int
    known: CoordinatedTransaction | None = None


@dataclass(frozen=True, slots=True)
class LateTransactions:
    """Open transactions whose last record is older than `before_ms`, sorted.

    `hidden`: how many cannot be judged, because this user may not describe every transactional id. `untold`:
    partitions with an open transaction that do not tell whose, because this user may not read them.
    """

    before_ms: int = 0
    found: tuple[OpenTransaction, ...] = ()
    hidden: int = 0
    untold: int = 0


@dataclass(frozen=True, slots=True)
class Vitals:
    """One look of the doctor. What could not be read is None, or left out, and `unexamined` says what and why.

    `cluster`: brokers, topics, configs, reassignments, and sizes where log dirs told them. `settings`: some of each
    broker's configs as they are in force, wherever they were set. `locked_by`: who holds the cluster's lock, in words;
    None where nobody does, or where it was not told. Without `has_topic_configs` no broker can be called safe to stop:
    a topic's own min.insync.replicas is unknown.
    """

    cluster: Cluster
    features: Features | None = None
    rights: Rights | None = None
    disks: DiskReport | None = None
    settings: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    quorum: Quorum | None = None
    locked_by: str | None = None
    transactions: LateTransactions = LateTransactions()
    unexamined: tuple[str, ...] = ()
    has_topic_configs: bool = True
