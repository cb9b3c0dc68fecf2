"""What a doctor reads of a cluster beside its topics and brokers: versions, rights, log dirs, settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import Cluster
from reconciler.model.sample import ReplicaOnDisk

CLUSTER, TOPIC, GROUP = "cluster", "topic", "group"
"""The kinds of resources that rights are held on."""


@dataclass(frozen=True, slots=True)
class Features:
    """What the brokers can do. `release`: what metadata.version is named after (`4.3`), None where it is unknown.

    `finalized`: each feature's level as the cluster has switched it on; `supported`: the highest level that the
    answering broker knows. `has_factor_guard`: moves can forbid a change of replication factor (KIP-860).
    `has_consumer_groups`: groups of the protocol of KIP-848.
    """

    release: str | None = None
    finalized: Mapping[str, int] = field(default_factory=dict)
    supported: Mapping[str, int] = field(default_factory=dict)
    has_factor_guard: bool = False
    has_consumer_groups: bool = False


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
    """One log dir as its broker tells of it. `error`: Kafka's name for why it is offline (`KAFKA_STORAGE_ERROR`)."""

    broker_id: int
    path: str
    error: str | None = None
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True)
class DiskReport:
    """What all log dirs hold, sorted; `silent`: living brokers that did not tell."""

    dirs: tuple[LogDirState, ...] = ()
    replicas: tuple[ReplicaOnDisk, ...] = ()
    silent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A controller or, as an observer, a broker that follows the metadata quorum's leader.

    `behind_records`, `behind_ms`: how far it is behind the leader; None where the leader has not heard of it yet.
    """

    id: int
    behind_records: int | None = None
    behind_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Quorum:
    """The metadata quorum. `leader`: the active controller; `voters`: all controllers, it too; `observers`: brokers."""

    leader: int | None
    voters: tuple[QuorumMember, ...] = ()
    observers: tuple[QuorumMember, ...] = ()


@dataclass(frozen=True, slots=True)
class Vitals:
    """One look of the doctor. What could not be read is None, or left out, and `unexamined` says what and why.

    `cluster`: brokers, topics, configs, reassignments, and sizes where log dirs told them. `settings`: some of each
    broker's configs as they are in force, wherever they were set. `holder`: who holds the cluster's lock, in words;
    None where nobody does, or where it was not told.
    """

    cluster: Cluster
    features: Features | None = None
    rights: Rights | None = None
    disks: DiskReport | None = None
    settings: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    quorum: Quorum | None = None
    holder: str | None = None
    unexamined: tuple[str, ...] = ()
