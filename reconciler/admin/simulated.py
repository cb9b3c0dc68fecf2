"""Simulates a cluster behind the port: Kafka's answers, a clock of its own, and faults where a test wants them."""

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TypeVar

from reconciler.admin import simulated_views as views
from reconciler.admin.holder import this_process
from reconciler.admin.port import (
    EARLIEST,
    LATEST,
    Answer,
    Clock,
    DiskUse,
    Lock,
    ProgressHook,
    Reassignment,
    Records,
    WaitHook,
)
from reconciler.admin.simulated_locks import Locks, MemoryLocks, SimulatedLock, taken
from reconciler.model.change import ConfigChange, CreatePartitions, CreateTopic
from reconciler.model.cluster import Broker, Cluster, Group, LogDir, Topic
from reconciler.model.lock import Holder, RateRequest
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.sample import ClusterSample
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, Features, LateTransactions, Quorum, Rights
from reconciler.simulate.configs import alter_broker_configs, alter_topic_configs
from reconciler.simulate.controller import Outcome
from reconciler.simulate.events import fail_log_dir, fence, register, repair_log_dir, unfence, unregister, with_records
from reconciler.simulate.log_dirs import choose_log_dirs, in_chosen_log_dirs
from reconciler.simulate.progress import NETWORK_BYTES_PER_SECOND, advance
from reconciler.simulate.requests import commit_offsets, delete_groups, elect_preferred_leaders, reassign
from reconciler.simulate.topics import create_partitions, create_topics, delete_topics

K = TypeVar("K", bound=Hashable)

RECORDS_AT_ONCE = 500
"""How many records of a partition are told at once: a real broker tells so many bytes."""
START = datetime(2026, 1, 1, tzinfo=UTC)
"""When a cluster begins whose file does not say when it was observed."""


class Moment(Enum):
    """When a fault is asked for: before a request reaches the cluster, or after it has had its effect."""

    BEFORE = "before"
    AFTER = "after"


FaultHook = Callable[[str, Moment], Answer | None]
"""Called with the method's name before each request, and after each write. It may raise, which before loses the
request and after only its answer; or return an answer, which every item of a write then gets: before, instead of the
effect; after, beside it."""

SaveHook = Callable[[Cluster], None]
LoadHook = Callable[[], Cluster]


class SimulatedClock:
    """The cluster's own time: to sleep is to let its followers copy."""

    def __init__(self, start: datetime, pass_time: Callable[[float], None]) -> None:
        self._now = start
        self._pass_time = pass_time

    def now(self) -> datetime:
        """Return the cluster's time."""
        return self._now

    def time_of_day(self) -> datetime:
        """Return the same: nobody sets this clock."""
        return self.now()

    def sleep(self, seconds: float) -> None:
        """Let that much of the cluster's time pass; none of ours does."""
        if seconds > 0:
            self._now += timedelta(seconds=seconds)
            self._pass_time(seconds)


class SimulatedAdmin:
    """One simulated cluster; the methods up to `close` are those of `reconciler.admin.port.Admin`.

    `cluster` is its whole state; `save` is called with it after every change.
    `locks`: where its lock is kept. `load` reads the cluster again once the lock is held: it may have changed before.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        save: SaveHook | None = None,
        load: LoadHook | None = None,
        locks: Locks | None = None,
        fault: FaultHook | None = None,
        network_bytes_per_second: int = NETWORK_BYTES_PER_SECOND,
    ) -> None:
        self.cluster = cluster
        self.fault = fault
        self.writes = 0
        self.values: dict[TopicPartition, list[bytes]] = {}
        """What the records hold whose values matter; all others are counted only."""
        self.keys: dict[TopicPartition, list[bytes | None]] = {}
        """The keys of the same records, where they matter."""
        self.transactions = LateTransactions()
        """What `late_transactions` tells: a simulated cluster has none unless it is given some."""
        self._written: list[tuple[int, TopicPartition, int]] = []
        self._chosen_log_dirs: dict[tuple[TopicPartition, int], str] = {}
        self._began = _milliseconds(_time(cluster.observed_at))
        self.clock: Clock = SimulatedClock(_time(cluster.observed_at), self._pass_time)
        self._save = save
        self._load = load
        self._locks = locks or MemoryLocks()
        self._lock: SimulatedLock | None = None
        self._network_bytes_per_second = network_bytes_per_second

    def observe(self, *, has_groups: bool = False, progress: ProgressHook | None = None) -> Cluster:
        self._before("observe")
        cluster = views.observed(self.cluster, has_groups=has_groups)
        if progress is not None:
            progress("topics", len(cluster.topics), len(cluster.topics))
        return cluster

    def sample(self) -> ClusterSample:
        self._before("sample")
        return views.sample(self.cluster)

    def cluster_id(self) -> str:
        self._before("cluster_id")
        return self.cluster.cluster_id

    def lock(
        self, purpose: str, *, digest: str = "", waiting: WaitHook | None = None, stopping: str | None = None
    ) -> Lock:
        # The lock of a holder that died is free at once, so only a stop keeps anybody waiting.
        self._before("lock")
        asking = this_process(purpose, self.clock.now(), digest)
        self._lock = SimulatedLock(taken(self._locks, asking, waiting=waiting, stopping=stopping), self._keep)
        if self._load is not None:
            self.cluster = self._load()
            self.clock = SimulatedClock(_time(self.cluster.observed_at), self._pass_time)
        return self._lock

    def lock_holder(self) -> Holder | None:
        self._before("lock_holder")
        return self._locks.holder

    def kept(self) -> str:
        self._before("kept")
        return self._locks.kept

    def ask_rate(self, of: str, rate: int, *, waiting: WaitHook | None = None) -> Holder | None:  # noqa: ARG002 - the port's
        self._before("ask_rate")
        self._locks.ask_rate(RateRequest(of, this_process("throttle", self.clock.now()), rate))
        return self._locks.holder

    def brokers(self) -> Mapping[int, Broker]:
        self._before("brokers")
        return {
            one.id: replace(one, configs={}, log_dirs=(), future_replicas=()) for one in self.cluster.brokers.values()
        }

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        self._before("topics")
        there = self.cluster.topics
        return {name: views.bare(there[name]) for name in sorted(there if names is None else names) if name in there}

    def with_eligible_leaders(self, topics: Mapping[str, Topic]) -> Mapping[str, Topic]:
        self._before("with_eligible_leaders")
        return {name: views.with_eligible_leaders(topic, self.cluster) for name, topic in topics.items()}

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        self._before("reassignments")
        return {
            key: Reassignment(partition.replicas, partition.adding_replicas, partition.removing_replicas)
            for key, partition in self.cluster.partitions()
            if partition.is_reassigning
        }

    def disks(self, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition] = ()) -> DiskUse:
        self._before("disks")
        return views.disks(self.cluster, broker_ids, topic_partitions)

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        self._before("topic_configs")
        return {name: dict(self.cluster.topics[name].configs) for name in sorted(names) if name in self.cluster.topics}

    def topic_settings(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return self.topic_configs(names)  # whose sources a snapshot does not tell of what brokers set

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        self._before("broker_configs")
        alive = (broker_id for broker_id in sorted(broker_ids) if self.cluster.is_alive(broker_id))
        return {broker_id: dict(self.cluster.brokers[broker_id].configs) for broker_id in alive}

    def broker_settings(self, broker_ids: Collection[int], keys: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        self._before("broker_settings")
        return views.broker_settings(self.cluster, broker_ids, keys)

    def disk_report(self) -> DiskReport:
        self._before("disk_report")
        return views.disk_report(self.cluster)

    def features(self) -> Features:
        self._before("features")
        return views.features(self.cluster)

    def lacking(self) -> tuple[str, ...]:
        return ()

    def quorum(self) -> Quorum:
        self._before("quorum")
        return views.quorum(self.cluster)

    def late_transactions(self, leaders: Mapping[TopicPartition, int | None], before_ms: int) -> LateTransactions:
        self._before("late_transactions")
        there = (one for one in self.transactions.found if one.topic_partition in leaders)
        late = tuple(one for one in there if one.last_written_ms < before_ms)
        return replace(self.transactions, before_ms=before_ms, found=late)

    def rights(self, topics: Collection[str] = (), groups: Collection[str] = ()) -> Rights:
        del topics
        self._before("rights")
        return views.rights(self.cluster, groups)

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:

        def effect(cluster: Cluster) -> Outcome[TopicPartition]:
            done = reassign(cluster, targets, is_replication_factor_change_allowed=is_replication_factor_change_allowed)
            return replace(done, cluster=in_chosen_log_dirs(cluster, done.cluster, self._chosen_log_dirs))

        return self._send("reassign", list(targets), effect)

    def choose_log_dirs(self, broker_id: int, choices: Mapping[TopicPartition, str]) -> Mapping[TopicPartition, Answer]:
        self._check_alive(broker_id)
        answers = self._send(
            "choose_log_dirs", list(choices), lambda cluster: choose_log_dirs(cluster, broker_id, choices)
        )
        # Of a replica that is there nothing is remembered: it is copied.
        coming = {key for key in choices if broker_id not in getattr(self.cluster.partition(key), "replicas", ())}
        taken = {key for key, one in answers.items() if one.is_ok}
        self._chosen_log_dirs |= {(key, broker_id): choices[key] for key in coming & taken}
        return answers

    def elect_preferred_leaders(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Answer]:
        answers = self._send(
            "elect_preferred_leaders",
            topic_partitions,
            lambda cluster: elect_preferred_leaders(cluster, topic_partitions),
        )
        return {key: Answer() if one.error == "ELECTION_NOT_NEEDED" else one for key, one in answers.items()}

    def create_topics(self, changes: Sequence[CreateTopic], *, is_validated_only: bool = False) -> Mapping[str, Answer]:
        names = [change.topic for change in changes]
        return self._send(
            "create_topics",
            names,
            lambda cluster: create_topics(cluster, changes, seed=self.writes),
            is_validated_only=is_validated_only,
        )

    def create_partitions(
        self, changes: Sequence[CreatePartitions], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        names = [change.topic for change in changes]
        return self._send(
            "create_partitions",
            names,
            lambda cluster: create_partitions(cluster, changes),
            is_validated_only=is_validated_only,
        )

    def delete_topics(self, names: Collection[str]) -> Mapping[str, Answer]:
        return self._send("delete_topics", names, lambda cluster: delete_topics(cluster, names))

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        return self._send(
            "alter_topic_configs",
            list(changes),
            lambda cluster: alter_topic_configs(cluster, changes),
            is_validated_only=is_validated_only,
        )

    def alter_broker_configs(self, broker_id: int, changes: Sequence[ConfigChange]) -> Answer:
        self._check_alive(broker_id)
        answers = self._send(
            "alter_broker_configs", [broker_id], lambda cluster: alter_broker_configs(cluster, broker_id, changes)
        )
        return answers[broker_id]

    def groups(self, group_ids: Collection[str] | None = None, but: Collection[str] = ()) -> Mapping[str, Group]:
        self._before("groups")
        wanted = {group.group_id for group in self.cluster.groups} - {*but} if group_ids is None else {*group_ids}
        found = (group for group in self.cluster.groups if group.group_id in wanted)
        return {group.group_id: views.coordinated(group, self.cluster) for group in found}

    def log_offsets(self, topic_partitions: Collection[TopicPartition], at: int) -> Mapping[TopicPartition, int | None]:
        # What the cluster began with counts as written when it began.
        self._before("log_offsets")
        found = ((key, self.cluster.partition(key)) for key in sorted(topic_partitions))
        return {
            key: self._offset_at(key, max(partition.end_offset or 0, len(self.values.get(key, ()))), at)
            for key, partition in found
            if partition is not None and partition.leader is not None
        }

    def newest_records(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        # Of what the cluster began with, nobody knows how old it is.
        self._before("newest_records")
        written = {key: time for time, key, _ in self._written}
        found = ((key, self.cluster.partition(key)) for key in sorted(topic_partitions))
        return {
            key: written.get(key)
            for key, partition in found
            if partition is not None and partition.leader is not None and (key in written or partition.end_offset == 0)
        }

    def records(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Records]:
        self._before("records")
        return {
            key: Records(self._values(key, offset), self._next(key, offset), keys=self._keys(key, offset))
            for key, offset in sorted(positions.items())
            if self.cluster.partition(key) is not None
        }

    def _values(self, key: TopicPartition, offset: int) -> tuple[tuple[int, bytes], ...]:
        return tuple(enumerate(self.values.get(key, ())[offset : offset + RECORDS_AT_ONCE], start=offset))

    def _keys(self, key: TopicPartition, offset: int) -> tuple[bytes | None, ...]:
        keys = self.keys.get(key, [None] * len(self.values.get(key, ())))
        return tuple(keys[offset : offset + RECORDS_AT_ONCE])

    def _next(self, key: TopicPartition, offset: int) -> int:
        return max(offset, min(offset + RECORDS_AT_ONCE, len(self.values.get(key, ()))))

    def commit_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Answer]:
        return self._send("commit_offsets", list(offsets), lambda cluster: commit_offsets(cluster, group_id, offsets))

    def delete_groups(self, group_ids: Collection[str]) -> Mapping[str, Answer]:
        return self._send("delete_groups", group_ids, lambda cluster: delete_groups(cluster, group_ids))

    def close(self) -> None:
        pass

    def produce(self, topic_partition: TopicPartition, *, size: int, records: int = 1) -> None:
        """Let a producer write that many bytes."""
        partition = self.cluster.partition(topic_partition)
        if partition is not None:
            self._written.append((_milliseconds(self.clock.now()), topic_partition, partition.end_offset or 0))
        self._become(with_records(self.cluster, topic_partition, size=size, records=records))

    def kill_broker(self, broker_id: int) -> None:
        """Let a broker die, and the controller notice; it forgets which log dirs were chosen for what is to come."""
        self._chosen_log_dirs = {to: path for to, path in self._chosen_log_dirs.items() if to[1] != broker_id}
        self._become(fence(self.cluster, broker_id))

    def return_broker(self, broker_id: int) -> None:
        """Let a dead broker live again; it catches up as time passes."""
        self._become(unfence(self.cluster, broker_id))

    def fail_log_dir(self, broker_id: int, path: str) -> None:
        """Let a log dir go offline, as a full or broken disk does; its broker lives on."""
        self._become(fail_log_dir(self.cluster, broker_id, path))

    def repair_log_dir(self, broker_id: int, log_dir: LogDir) -> None:
        """Let a log dir work again: its replicas catch up."""
        self._become(repair_log_dir(self.cluster, broker_id, log_dir))

    def add_broker(self, broker: Broker) -> None:
        """Let a new broker join."""
        self._become(register(self.cluster, broker))

    def remove_broker(self, broker_id: int) -> None:
        """Unregister a broker."""
        self._become(unregister(self.cluster, broker_id))

    def _offset_at(self, key: TopicPartition, end: int, at: int) -> int | None:
        if at == LATEST:
            return end
        if at <= self._began:
            return 0 if end or at == EARLIEST else None
        return next((first for time, written, first in self._written if written == key and time >= at), None)

    def _keep(self, text: str) -> Answer:
        instead = self._before("keep")
        if instead is None:
            self._locks.keep(text)
        return instead or self._after("keep") or Answer()

    def _send(
        self,
        name: str,
        items: Collection[K],
        effect: Callable[[Cluster], Outcome[K]],
        *,
        is_validated_only: bool = False,
    ) -> Mapping[K, Answer]:
        """Return the answers to a request that changes the cluster, or would change it, unless a fault comes first."""
        if self._lock is not None and not is_validated_only:
            self._lock.check()
        instead = self._before(f"validate.{name}" if is_validated_only else name)
        if instead is not None:
            return dict.fromkeys(items, instead)
        outcome = effect(self.cluster)
        if not is_validated_only:
            self.writes += 1
            self._become(outcome.cluster)
            beside = self._after(name)
            if beside is not None:
                return dict.fromkeys(items, beside)
        denials = {item: outcome.answers[item] for item in items}
        return {item: Answer(one.error, one.message) if one else Answer() for item, one in denials.items()}

    def _check_alive(self, broker_id: int) -> None:
        if not self.cluster.is_alive(broker_id):
            raise ClusterUnavailable(f"Broker {broker_id} does not answer: it is not alive. Start it, then try again.")

    def _before(self, name: str) -> Answer | None:
        return self.fault(name, Moment.BEFORE) if self.fault is not None else None

    def _after(self, name: str) -> Answer | None:
        return self.fault(name, Moment.AFTER) if self.fault is not None else None

    def _pass_time(self, seconds: float) -> None:
        milliseconds = round(seconds * 1000)
        self._become(advance(self.cluster, milliseconds, network_bytes_per_second=self._network_bytes_per_second))

    def _become(self, cluster: Cluster) -> None:
        self.cluster = replace(cluster, observed_at=_text(self.clock.now()))
        if self._save is not None:
            self._save(self.cluster)


def _milliseconds(time: datetime) -> int:
    return (time - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def _time(observed_at: str | None) -> datetime:
    if observed_at is None:
        return START
    time = datetime.fromisoformat(observed_at)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _text(time: datetime) -> str:
    """Return ISO 8601 in UTC, with milliseconds where there are some."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z").replace(".000Z", "Z")
