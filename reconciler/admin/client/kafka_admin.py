"""Offers the port over real connections; what each method returns and raises is said there, in `admin.port`."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from kafka.protocol.admin import DescribeLogDirsRequest

from reconciler.admin.client import group_writes, groups, log_dirs, observe, records, requests, transactions, vitals
from reconciler.admin.client.connecting import open_wire
from reconciler.admin.client.lock import ClusterLock, ask_rate, lock_holder, take_lock
from reconciler.admin.client.lock_kept import kept
from reconciler.admin.client.lock_member import now
from reconciler.admin.client.offsets import (
    Leaders,
    Offsets,
    end_offsets,
    log_offsets,
    newest_records,
    with_untiered_bytes,
)
from reconciler.admin.client.properties import translate
from reconciler.admin.client.wire import Wire
from reconciler.admin.holder import this_process
from reconciler.admin.port import Answer, Clock, DiskUse, ProgressHook, Reassignment, Records, WaitHook
from reconciler.admin.waits import waiting_for
from reconciler.model.change import ConfigChange, CreatePartitions, CreateTopic
from reconciler.model.cluster import Broker, Cluster, Group, Partition, Topic, leaders_of
from reconciler.model.lock import Holder, RateRequest
from reconciler.model.problem import MissingRight
from reconciler.model.sample import ClusterSample
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, Features, LateTransactions, Quorum, Rights
from reconciler.model.words import listed

logger = logging.getLogger(__name__)

LAG_TRIES = 5
LAG_SECONDS = 0.5
"""How often, and how far apart, a broker is asked again: it may not have applied yet what the controller wrote."""


class RealClock:
    """The machine's clock as it stood at first; from then on time passes evenly, whatever it is set to meanwhile."""

    def __init__(self) -> None:
        self._first, self._began = datetime.now(UTC), now()

    def now(self) -> datetime:
        """Return the time in UTC."""
        return self._first + timedelta(seconds=now() - self._began)

    def time_of_day(self) -> datetime:
        """Return what the machine's clock shows at this moment, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        time.sleep(seconds)


def connect(properties: Mapping[str, str]) -> "KafkaAdmin":
    """Return an admin for the cluster that these client properties name, connected.

    Raises InvalidInput for properties that mean nothing, ClusterUnavailable, within about 15 seconds, where no broker
    answers or the login is refused.
    """
    with waiting_for("a broker to connect to"):
        return KafkaAdmin(open_wire(translate(properties)))


@dataclass(slots=True)
class KafkaAdmin:
    """One real cluster; the methods are those of `reconciler.admin.port.Admin`."""

    wire: Wire
    clock: Clock = field(default_factory=RealClock)

    def observe(self, *, has_groups: bool = False, progress: ProgressHook | None = None) -> Cluster:
        tell = progress or (lambda _what, _done, _all: None)
        observed_at = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        cluster_id, brokers = observe.cluster_id_and_brokers(self.wire)
        alive = [broker.id for broker in brokers.values() if not broker.is_fenced]
        with _step(tell, "topics"):
            topics = observe.with_eligible_leaders(self.wire, observe.topics_with_reassignments(self.wire))
        with _step(tell, "log dirs"):
            disks = log_dirs.disks(self.wire, alive)
            _warn_of_silent(self.wire, {*alive} - disks.log_dirs.keys())
            observe.check_for_hidden_topics(self.wire, topics, (key for key, _ in disks.replica_paths))
        configs = self._configs_of(topics, tell)
        with _step(tell, "end offsets"):
            offsets = end_offsets(self.wire, leaders_of(topics.values()))
        with _step(tell, "broker configs"):
            brokers = observe.with_configs(self.wire, brokers)
        with _step(tell, "groups"):
            found_groups = self._groups(alive) if has_groups else None
        # A topic without configs was deleted while we read.
        completed = {
            name: _completed(topic, configs[name], disks, offsets) for name, topic in topics.items() if name in configs
        }
        return Cluster(
            cluster_id=cluster_id,
            brokers={id_: _with_disks(broker, disks) for id_, broker in brokers.items()},
            topics=with_untiered_bytes(self.wire, completed, brokers),
            groups=found_groups or (),
            observed_at=observed_at,
            kafka_version=observe.kafka_version(self.wire),
            controller_id=observe.controller_id(self.wire),
            has_groups=found_groups is not None,
        )

    def sample(self) -> ClusterSample:
        return log_dirs.sample(self.wire)

    def cluster_id(self) -> str:
        return observe.cluster_id_and_brokers(self.wire)[0]

    def lock(
        self, purpose: str, *, digest: str = "", waiting: WaitHook | None = None, stopping: str | None = None
    ) -> ClusterLock:
        return take_lock(self.wire, this_process(purpose, self.clock.now(), digest), waiting, stopping)

    def lock_holder(self) -> Holder | None:
        return lock_holder(self.wire)

    def kept(self) -> str:
        return kept(self.wire)

    def ask_rate(self, of: str, rate: int, *, waiting: WaitHook | None = None) -> Holder | None:
        return ask_rate(self.wire, RateRequest(of, this_process("throttle", self.clock.now()), rate), waiting)

    def brokers(self) -> Mapping[int, Broker]:
        return observe.cluster_id_and_brokers(self.wire)[1]

    def topics(self, names: Collection[str] | None) -> Mapping[str, Topic]:
        return observe.topics(self.wire, names)

    def with_eligible_leaders(self, topics: Mapping[str, Topic]) -> Mapping[str, Topic]:
        return observe.with_eligible_leaders(self.wire, topics)

    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        return observe.reassignments(self.wire)

    def disks(self, broker_ids: Collection[int], topic_partitions: Collection[TopicPartition] = ()) -> DiskUse:
        return log_dirs.disks(self.wire, broker_ids, topic_partitions)

    def topic_configs(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return self._agreed(partial(observe.topic_configs, self.wire), names)

    def topic_settings(self, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
        return self._agreed(partial(observe.topic_configs, self.wire, sources=observe.NOT_DEFAULT), names)

    def broker_configs(self, broker_ids: Collection[int]) -> Mapping[int, Mapping[str, str]]:
        return observe.broker_configs(self.wire, broker_ids)

    def broker_settings(self, broker_ids: Collection[int], keys: Collection[str]) -> Mapping[int, Mapping[str, str]]:
        return observe.broker_settings(self.wire, broker_ids, keys)

    def disk_report(self) -> DiskReport:
        return log_dirs.disk_report(self.wire, self._alive())

    def features(self) -> Features:
        return vitals.features(self.wire)

    def lacking(self) -> tuple[str, ...]:
        return vitals.lacking(self.wire)

    def quorum(self) -> Quorum:
        return vitals.quorum(self.wire)

    def late_transactions(self, leaders: Mapping[TopicPartition, int | None], before_ms: int) -> LateTransactions:
        return transactions.late_transactions(self.wire, leaders, before_ms)

    def rights(self, topics: Collection[str] = (), groups: Collection[str] = ()) -> Rights:
        return vitals.rights(self.wire, topics, groups)

    def reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        *,
        is_replication_factor_change_allowed: bool = True,
    ) -> Mapping[TopicPartition, Answer]:
        return requests.reassign(
            self.wire, targets, is_replication_factor_change_allowed=is_replication_factor_change_allowed
        )

    def choose_log_dirs(self, broker_id: int, choices: Mapping[TopicPartition, str]) -> Mapping[TopicPartition, Answer]:
        return requests.choose_log_dirs(self.wire, broker_id, choices)

    def elect_preferred_leaders(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Answer]:
        return requests.elect_preferred_leaders(self.wire, topic_partitions)

    def create_topics(self, changes: Sequence[CreateTopic], *, is_validated_only: bool = False) -> Mapping[str, Answer]:
        return requests.create_topics(self.wire, changes, is_validated_only=is_validated_only)

    def create_partitions(
        self, changes: Sequence[CreatePartitions], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        return requests.create_partitions(self.wire, changes, is_validated_only=is_validated_only)

    def delete_topics(self, names: Collection[str]) -> Mapping[str, Answer]:
        return requests.delete_topics(self.wire, names)

    def alter_topic_configs(
        self, changes: Mapping[str, Sequence[ConfigChange]], *, is_validated_only: bool = False
    ) -> Mapping[str, Answer]:
        return requests.alter_topic_configs(self.wire, changes, is_validated_only=is_validated_only)

    def alter_broker_configs(self, broker_id: int, changes: Sequence[ConfigChange]) -> Answer:
        return requests.alter_broker_configs(self.wire, broker_id, changes)

    def groups(self, group_ids: Collection[str] | None = None, but: Collection[str] = ()) -> Mapping[str, Group]:
        return groups.all_groups(self.wire, self._alive(), group_ids, but)

    def log_offsets(self, topic_partitions: Collection[TopicPartition], at: int) -> Mapping[TopicPartition, int | None]:
        return self._of_leaders(topic_partitions, lambda leaders: log_offsets(self.wire, leaders, at))

    def newest_records(self, topic_partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int | None]:
        return self._of_leaders(topic_partitions, partial(newest_records, self.wire))

    def _of_leaders(
        self, topic_partitions: Collection[TopicPartition], ask: Callable[[Leaders], Offsets]
    ) -> Mapping[TopicPartition, int | None]:
        found: dict[TopicPartition, int | None] = {}
        # A broker that is no leader any more, or not yet, tells nothing of the partition, and metadata may lag behind.
        for turn in range(LAG_TRIES):
            missing = set(topic_partitions) - found.keys()
            leaders = leaders_of(observe.topics(self.wire, {key.topic for key in missing}).values())
            asked = {key: leaders[key] for key in missing if leaders.get(key) is not None}
            if not asked:
                break
            if turn:
                self.clock.sleep(LAG_SECONDS)
            found |= ask(asked)
        return dict(sorted(found.items()))

    def records(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Records]:
        return records.records(self.wire, positions)

    def commit_offsets(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, Answer]:
        return group_writes.commit_offsets(self.wire, group_id, offsets)

    def delete_groups(self, group_ids: Collection[str]) -> Mapping[str, Answer]:
        return group_writes.delete_groups(self.wire, group_ids)

    def close(self) -> None:
        self.wire.close()

    def _alive(self) -> list[int]:
        return [broker.id for broker in self.brokers().values() if not broker.is_fenced]

    def _groups(self, alive: Collection[int]) -> tuple[Group, ...] | None:
        """Return all groups, None where some may not be described: what is read of topics would seem to be less."""
        try:
            return groups.groups(self.wire, alive)
        except MissingRight as error:
            logger.warning("Groups are left out, and who reads a topic is unknown. %s (KR613)", error)
            return None

    def _configs_of(self, names: Collection[str], tell: ProgressHook) -> dict[str, dict[str, str]]:
        tell("topic configs", 0, len(names))
        read = partial(observe.topic_configs, self.wire, tick=partial(tell, "topic configs"))
        found = self._agreed(read, names)
        tell("topic configs", len(names), len(names))
        return found

    def _agreed(
        self, read: Callable[[Collection[str]], dict[str, dict[str, str]]], names: Collection[str]
    ) -> dict[str, dict[str, str]]:
        """Return the configs of topics; one that is lacking was deleted: metadata, asked again, does not list it.

        A broker that lags behind is given some time. Raises NamesDiffer where it stays so.
        """
        found = read(names)
        for turn in range(LAG_TRIES + 1):
            missing = [name for name in names if name not in found]
            listed_still = sorted(observe.topics(self.wire, missing))
            if not listed_still:
                break
            if turn == LAG_TRIES:
                raise observe.names_differ("Metadata", listed_still, "DescribeConfigs")
            self.clock.sleep(LAG_SECONDS)
            found |= read(listed_still)
        return found


@contextmanager
def _step(tell: ProgressHook, what: str) -> Iterator[None]:
    tell(what, 0, 1)
    yield
    tell(what, 1, 1)


def _warn_of_silent(wire: Wire, brokers: Collection[int]) -> None:
    if brokers and wire.is_supported(DescribeLogDirsRequest, 0):
        logger.warning(
            "No answer came from %s, which the cluster counts as alive: log dirs, sizes and configs there, and groups "
            "that are coordinated there, are unknown. See whether it hangs, then look again. (KR654)",
            f"broker{'s' if len(brokers) > 1 else ''} {listed(sorted(brokers))}",
        )


def _with_disks(broker: Broker, disks: DiskUse) -> Broker:
    futures = (disks.futures[key] for key in sorted(disks.futures) if key[1] == broker.id)
    return replace(broker, log_dirs=disks.log_dirs.get(broker.id, ()), future_replicas=tuple(futures))


def _completed(
    topic: Topic, configs: Mapping[str, str], disks: DiskUse, offsets: Mapping[TopicPartition, int]
) -> Topic:
    def completed(partition: Partition) -> Partition:
        key = TopicPartition(topic.name, partition.partition)
        paths = tuple(disks.replica_paths.get((key, broker)) for broker in partition.replicas)
        sizes = tuple(disks.replica_bytes.get((key, broker)) for broker in partition.replicas)
        is_known = any(path is not None for path in paths)
        return replace(
            partition, sizes=sizes if is_known else (), log_dirs=paths if is_known else (), end_offset=offsets.get(key)
        )

    return replace(topic, configs=configs, partitions=tuple(map(completed, topic.partitions)))
