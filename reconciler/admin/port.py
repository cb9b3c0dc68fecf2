"""Declares what the reconciler asks of a cluster; `client` (Kafka) and `simulated` (in memory) both offer it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, Self

from reconciler.model.change import ConfigChange, CreatePartitions, CreateTopic
from reconciler.model.cluster import Broker, Cluster, FutureReplica, Group, LogDir, Topic
from reconciler.model.lock import Holder, RateRequest
from reconciler.model.sample import ClusterSample
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, Features, LateTransactions, Quorum, Rights


@dataclass(frozen=True, slots=True)
class Answer:
    """Kafka's answer for one item of a request: `error` is the protocol's name (`NOT_CONTROLLER`), None for success."""

    error: str | None = None
    message: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether the item succeeded."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class DiskUse:
    """What some brokers' log dirs hold of some partitions, by (partition, broker).

    For moves; a doctor, who must see strays and copies between dirs too, reads `reconciler.model.vitals.DiskReport`.
    """

    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    replica_bytes: Mapping[tuple[TopicPartition, int], int] = field(default_factory=dict)
    replica_paths: Mapping[tuple[TopicPartition, int], str] = field(default_factory=dict)
    """The log dir that holds each replica; none where that dir is offline."""
    futures: Mapping[tuple[TopicPartition, int], FutureReplica] = field(default_factory=dict)
    """The copies that are made in other log dirs of the same broker."""


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A reassignment in flight, as the active controller lists it; `replicas` is the union."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The ordered replicas once it has ended."""
        return tuple(replica for replica in self.replicas if replica not in self.removing_replicas)


@dataclass(frozen=True, slots=True)
class Records:
    """A partition's next records, offset and value, and where to go on; `error` is the protocol's name or None.

    `keys`: those of the same records, in the same order.
    """

    values: tuple[tuple[int, bytes], ...] = ()
    next_offset: int = 0
    error: str | None = None
    keys: tuple[bytes | None, ...] = ()


class Clock(Protocol):
    """Time as the executor sees it: real, or a simulated cluster's own."""

    def now(self) -> datetime:
        """Return the time, with its zone (UTC). It passes evenly: a clock that is set meanwhile does not show."""

    def time_of_day(self) -> datetime:
        """Return what the clock shows (UTC): what windows go by."""

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""


EARLIEST, LATEST = -2, -1
"""The two ends of a partition's log, where a time in milliseconds could stand (ListOffsets has the same numbers)."""

ProgressHook = Callable[[str, int, int], None]
"""Called with what is read, how much of it was, and how much there is."""

WaitHook = Callable[[str], None]
"""Called once with a sentence, where something takes longer than a moment."""


class Lock(Protocol):
    """A cluster's lock, held until it is released or its holder dies. It is no fence: it must be asked before a write.

    While it is held, each write of the admin that gave it checks it first, so a run need not.
    """

    def is_held(self) -> bool:
        """Whether it is certainly held at this moment; asks nobody."""

    def check(self) -> None:
        """Return once it is certain that it is held; raises LockLost for good, ClusterUnavailable where nobody says."""

    def raise_if_lost(self) -> None:
        """Raise LockLost where it is known to be lost; asks, and waits for, nobody."""

    @property
    def holder(self) -> Holder:
        """Who holds it: this process, as others see it."""

    @property
    def asked_by(self) -> Holder | None:
        """Who asks this holder to end in order, None for nobody; it stays so, and waits for nobody."""

    @property
    def rate_asked(self) -> RateRequest | None:
        """Which rate this holder was last asked to throttle its moves to, and by whom; None for none."""

    def keep(self, text: str) -> Answer:
        """Keep that text in the cluster in place of the one before, all of it or nothing; an empty one removes it.

        Whoever may see the lock's holder can read it (`Admin.kept`), and does so after this holder's death. Too long a
        text is answered with OFFSET_METADATA_TOO_LARGE; a missing right is an answer too. Raises LockLost.
        """

    def release(self) -> None:
        """Give it back; never raises, and may be called twice."""

    def __enter__(self) -> Self:
        """Return the lock."""

    def __exit__(self, *_: object) -> None:
        """Release it."""


class Admin(Protocol):
    """One cluster. A call that gets no answer raises ClusterUnavailable; a missing right raises MissingRight.

    A request that times out may have had its effect: look before you repeat. Reads may lag behind writes, but
    `reassignments` comes from the active controller. With `is_validated_only` nothing is changed: each answer is what
    Kafka would say to that item by itself now, and a missing right is then its item's answer.
    """

    clock: Clock

    def observe(self, *, has_groups: bool = False, progress: ProgressHook | None = None) -> Cluster:
        """Return the whole observed state: brokers, configs, topics, sizes, end offsets and, if asked, groups."""

    def sample(self) -> ClusterSample:
        """Return what every log dir holds, and leaders and end offsets; a missing right or answer is `untold`."""

    def cluster_id(self) -> str:
        """Return the id of the cluster that answers."""

    def lock(
        self, purpose: str, *, digest: str = "", waiting: WaitHook | None = None, stopping: str | None = None
    ) -> Lock:
        """Return the cluster's lock for this process; LockHeld says who has it.

        `digest`: of the plan that it is taken to run; whoever finds the lock held is told.

        A holder whose purpose is `stopping` is asked to end in order, and waited for: NotStopped after STOP_SECONDS.
        One with this same `purpose` is waited for as long, where `stopping` is given: it does what is wanted.

        The lock of a process that died is waited for (6 s at most on a cluster with Kafka's defaults, and `waiting` is
        told so), that of one that lives is not.
        """

    def lock_holder(self) -> Holder | None:
        """Return who holds the cluster's lock now, None where it is free; of a dead one for 6 s more."""

    def kept(self) -> str:
        """Return the text that the lock's last holder kept in the cluster, "" where there is none to be seen.

        Kafka forgets it a while after its writer's death (`offsets.retention.minutes`, 7 days by default).
        """

    def ask_rate(self, of: str, rate: int, *, waiting: WaitHook | None = None) -> Holder | None:
        """Ask the lock's holder of that purpose for that rate; return who holds the lock and has read it, if any."""

    def brokers(self) -> Mapping[int, Broker]:
        """Return every registered broker, fenced ones too, without configs and log dirs."""

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        """Return those of the topics that exist, None: all; no configs and sizes. In flight `replicas` is the union."""

    def with_eligible_leaders(self, topics: Mapping[str, Topic]) -> Mapping[str, Topic]:
        """Return the topics with the ELR of each partition that is out of sync somewhere, where the brokers tell it."""

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Return every reassignment in flight in the cluster."""

    def disks(self, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition] = ()) -> DiskUse:
        """Return what these brokers' log dirs hold of these partitions; a broker that does not answer is left out.

        Only here a full or broken disk shows: its broker lives on, and what is copied there never comes in sync.
        """

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the dynamic overrides of these topics; one that does not exist is left out."""

    def topic_settings(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the configs of these topics that are not Kafka's defaults: overrides, and what brokers set for all.

        So does `kafka-topics --describe` show them. One that does not exist is left out.
        """

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        """Return the dynamic overrides of these brokers, live ones only."""

    def broker_settings(self, broker_ids: Collection[int], keys: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        """Return these configs of live brokers as they are in force, wherever they were set."""

    def disk_report(self) -> DiskReport:
        """Return every log dir of all live brokers and what it holds; MissingRight where Kafka would tell of none."""

    def features(self) -> Features:
        """Return what the brokers can do, and what the cluster has switched on."""

    def lacking(self) -> tuple[str, ...]:
        """Return which requests of LACKABLE these brokers do not take, as they told at the start: nothing is asked."""

    def quorum(self) -> Quorum:
        """Return the metadata quorum: who leads it, and how far its voters and the brokers are behind."""

    def late_transactions(self, leaders: Mapping[TopicPartition, int | None], before_ms: int) -> LateTransactions:
        """Return the transactions open at these partitions whose last record is older than that time.

        A partition without a leader, or whose leader does not answer, is left out.
        """

    def rights(self, topics: Collection[str] = (), groups: Collection[str] = ()) -> Rights:
        """Return what this user may do: to the cluster, to all topics that it sees or that are named, to these groups.

        Of a group only Read, with the Describe that comes with it, is told.
        """

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:
        """Submit targets (None cancels). Where a factor may not change, brokers from 4.1 on enforce it (KIP-860)."""

    def choose_log_dirs(self, broker_id: int, choices: Mapping[TopicPartition, str]) -> Mapping[TopicPartition, Answer]:
        """Say in which of a broker's log dirs each replica belongs (AlterReplicaLogDirs, KIP-113).

        One that is yet to come is made there: the broker remembers it until it restarts. One that is there is copied to
        that dir, which it replaces in the end; the dir that it lies in by now takes a copy to another back. Only that
        broker can answer.
        """

    def elect_preferred_leaders(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Answer]:
        """Elect the first replicas; ELECTION_NOT_NEEDED is answered as a success."""

    def create_topics(self, changes: Sequence[CreateTopic], *, is_validated_only: bool = False) -> Mapping[str, Answer]:
        """Create topics with their explicit assignments and configs."""

    def create_partitions(
        self, changes: Sequence[CreatePartitions], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        """Add partitions with their explicit assignments."""

    def delete_topics(self, names: Collection[str]) -> Mapping[str, Answer]:
        """Delete topics."""

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        """Change dynamic topic configs incrementally, all of a topic's keys at once.

        A missing right is the answer of its topics alone, and raises nothing. Items appended to throttle lists are in
        force on every live broker on return, or after 5 s.
        """

    def alter_broker_configs(self, broker_id: int, changes: Sequence[ConfigChange]) -> Answer:
        """Change a broker's dynamic configs incrementally; only that broker can answer."""

    def groups(self, group_ids: Collection[str] | None = None, but: Collection[str] = ()) -> Mapping[str, Group]:
        """Return these groups, or every one `but` some, with members and committed offsets.

        One that does not exist is left out; some that may not be described raise MissingRight with all their names.
        """

    def log_offsets(self, topic_partitions: Collection[TopicPartition], at: int) -> Mapping[TopicPartition, int | None]:
        """Return each partition's offset at EARLIEST, LATEST, or of the first record at or after `at` ms since 1970.

        None: no record is that late. A partition that no leader tells of, or that does not exist, is left out.
        """

    def newest_records(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        """Return the latest time of each partition's records, in ms since 1970 and as these have it; None: it has none.

        A partition of which no leader tells is left out, and all where brokers are older than Kafka 3.0 (KIP-734).
        """

    def records(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Records]:
        """Return what comes next in each partition from its offset on, a few megabytes at most, without a group.

        A partition that no leader tells of is left out. OFFSET_OUT_OF_RANGE: what stood there is gone.
        """

    def commit_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Answer]:
        """Commit offsets for a group without members; a group that does not exist begins so.

        COORDINATOR_NOT_AVAILABLE leaves open whether it happened.
        """

    def delete_groups(self, group_ids: Collection[str]) -> Mapping[str, Answer]:
        """Delete groups without members, and their offsets."""

    def close(self) -> None:
        """Release connections."""
