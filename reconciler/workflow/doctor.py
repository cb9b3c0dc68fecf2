"""Finds what is wrong with a cluster, or with its snapshot, and takes off throttles that runs left behind."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from reconciler.admin.port import Admin, ProgressHook, Reassignment
from reconciler.apply.answers import told_answer
from reconciler.apply.run_record import UNREADABLE, kept_record
from reconciler.apply.session import Belief
from reconciler.diff.doctor.diagnose import diagnose
from reconciler.diff.doctor.transactions import MAX_TIMEOUT, late_since
from reconciler.model.cluster import (
    AUTO_REBALANCE,
    REBALANCE_INTERVAL,
    UNCLEAN_ELECTION,
    Broker,
    Cluster,
    LogDir,
    Partition,
    Topic,
    leaders_of,
)
from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Diagnosis, FoundThrottle
from reconciler.model.in_sync import MIN_ISR
from reconciler.model.lock import LOCK_GROUP
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    ClusterUnavailable,
    InvalidInput,
    MissingRight,
    Problem,
    ReconcilerError,
    Refused,
)
from reconciler.model.run import RunResult
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import DiskReport, LateTransactions, Vitals
from reconciler.model.words import counted
from reconciler.workflow.copies import CopiesSeen, look_at_copies
from reconciler.workflow.inputs import Inputs, name_meant
from reconciler.workflow.runs import RunTraces, as_known, known_runs, still_on, take_off
from reconciler.workflow.saved_plan import plan_named
from reconciler.workflow.sources import client_cautions, cluster_admin, declared_as_far, declared_cluster

T = TypeVar("T")

SETTINGS = (AUTO_REBALANCE, REBALANCE_INTERVAL, MIN_ISR, UNCLEAN_ELECTION, MAX_TIMEOUT)
"""The static settings of brokers that findings depend on."""
DESCRIBE_CONFIGS = "DescribeConfigs"
"""The right to read a topic's configs: only of topics where this user has it are they asked for."""
NOT_IN_SNAPSHOT = (
    "what a snapshot does not hold: rights, versions of features, strays, lag, the lock, the quorum, transactions"
)
NO_SETTINGS = "static settings of brokers: snapshots hold them since 1.1"


@dataclass(frozen=True, slots=True)
class Visit:
    """A doctor beside one cluster: looks, and takes off what runs left. `name` is None where it is not declared.

    `unread`: what of the declared could not be read.
    """

    name: str | None
    admin: Admin
    inputs: Inputs
    desired: Desired | None
    plan: Plan | None
    unread: tuple[str, ...] = ()

    def look(self, progress: ProgressHook | None = None, *, is_cleaned_up: bool = False) -> Diagnosis:
        """Return what is found now; `is_cleaned_up`: a value that no known run sets is no leftover."""
        vitals = examine(self.admin, sorted(self.desired.topics) if self.desired is not None else (), progress=progress)
        copies = CopiesSeen()
        if self.desired is not None:
            copies = look_at_copies(self.inputs, self.desired.cluster, vitals.cluster, self.admin, progress)
        vitals = replace(vitals, unexamined=(*vitals.unexamined, *copies.unexamined, *self.unread))
        try:
            known = as_known(self._known(), vitals.cluster, self.admin)
        except (InvalidInput, ClusterUnavailable, Refused) as error:
            known = ()
            vitals = replace(
                vitals, unexamined=(*vitals.unexamined, f"runs that were started here, or elsewhere: {error}")
            )
        return diagnose(
            vitals,
            known,
            desired=self.desired,
            cautions=(*client_cautions(replace(self.inputs, cluster=self.name), self.desired), *self._unreadable()),
            of_copies=copies.findings,
            is_cleaned_up=is_cleaned_up,
        )

    def look_once_unlocked(self, notify: Callable[[str], None]) -> Diagnosis:
        """Return what is found once no run is going on: LockHeld says whose is, a dead one's lock is waited for."""
        self.admin.lock("doctor --fix throttles", waiting=notify).release()
        return self.look()

    def take_off(self) -> tuple[RunResult, ...]:
        """Bring throttles that runs left back to what they were; raises Refused while a run is going on.

        The record in the cluster is believed: whoever asks for this was shown what it names.
        """
        return take_off(self._known(), self.admin, Belief.ALL)

    def still_on(self, wanted: Sequence[FoundThrottle]) -> tuple[FoundThrottle, ...]:
        """Look at what was to be put back, and return what is not."""
        return still_on(wanted, self.admin)

    def settle(self) -> bool:
        """Remove the record of a run that died and left nothing; return whether it was looked after.

        Left where it is, it would name a rate as the run's that an operator sets later. Moves in flight need it.
        """
        dead = [one for one in self._known() if one.record is not None]
        with suppress(Refused):
            return bool(dead and take_off(dead, self.admin))
        return False

    def drop_record(self, digest: str) -> None:
        """Remove what the cluster keeps in place of a run's record; raises ReconcilerError where that is another."""
        with self.admin.lock("doctor --drop-record") as lock:
            stored = kept_record(self.admin)
            if not stored.text or stored.digest != digest:
                other = f"one of digest {stored.digest}" if stored.text else "none"
                raise ReconcilerError(
                    f"no record of digest {digest} is stored in the cluster, but {other}: nothing was removed",
                    code=UNREADABLE,
                )
            answer = lock.keep("")
            if not answer.is_ok:
                raise ReconcilerError(f"the record stays: {told_answer(answer)}", code=UNREADABLE)

    def _unreadable(self) -> Iterator[Problem]:
        """Yield what the cluster keeps in place of a run's record, where it is none that can be read."""
        with suppress(ClusterUnavailable):
            stored = kept_record(self.admin)
            if stored.text and stored.run is None:
                yield Problem(stored.code, stored.untouched)

    def _known(self) -> tuple[RunTraces, ...]:
        return known_runs(self.inputs, self.name, self.admin, self.plan)


@contextmanager
def visit(inputs: Inputs, plan_path: str | None = None) -> Iterator[Visit]:
    """Yield the doctor of the cluster that is named, or that is reached by what the caller gave."""
    plan, name = _plan_and_name(inputs, plan_path)
    desired, unread = declared_as_far(inputs, name) if name is not None else (None, None)
    with cluster_admin(replace(inputs, cluster=name), desired) as admin:
        yield Visit(name, admin, inputs, desired, plan, (unread,) if unread else ())


def look_at_snapshot(inputs: Inputs, plan_path: str | None = None) -> tuple[str | None, Diagnosis]:
    """Return what can be told from the snapshot that is named, and the cluster's name where it is declared."""
    from reconciler.files.snapshot import read_snapshot

    plan, name = _plan_and_name(inputs, plan_path)
    desired = declared_cluster(inputs, name) if name is not None else None
    cluster = read_snapshot(str(inputs.state))
    known = as_known(known_runs(inputs, name, None, plan), cluster)
    settings = {broker.id: broker.settings for broker in cluster.brokers.values() if broker.settings}
    unexamined = (NOT_IN_SNAPSHOT,) if settings else (NOT_IN_SNAPSHOT, NO_SETTINGS)
    copies = CopiesSeen()
    if desired is not None:
        copies = look_at_copies(inputs, desired.cluster, cluster, None)
    vitals = Vitals(cluster, settings=settings, unexamined=(*unexamined, *copies.unexamined))
    return name, diagnose(vitals, known, desired=desired, is_snapshot=True, of_copies=copies.findings)


def _plan_and_name(inputs: Inputs, plan_path: str | None) -> tuple[Plan | None, str | None]:
    plan = plan_named(inputs, plan_path) if plan_path else None
    return plan, plan.cluster_name if plan is not None else name_meant(inputs)


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
    read = reader.read("topic configs", lambda: admin.topic_configs(told))
    configs = read or {}
    if len(told) < len(seen):
        reader.unexamined.append(f"configs of {len(seen) - len(told)} topics: a right is missing")
    if rights.hidden:
        reader.unexamined.append(f"{len(rights.hidden)} topics that this user may not describe")
    broker_configs = reader.read("broker configs", lambda: admin.broker_configs(alive)) or {}
    settings = reader.read("broker settings", lambda: admin.broker_settings(alive, SETTINGS)) or {}
    late_before = late_since(settings, admin.clock.now())
    late = (
        reader.read("open transactions", lambda: admin.late_transactions(leaders_of(seen.values()), late_before))
        or LateTransactions()
    )
    reader.unexamined += _unjudged(late)
    quorum = reader.read("the quorum", admin.quorum)
    holder = reader.read("the lock", admin.lock_holder)
    cluster = Cluster(
        cluster_id,
        brokers={one.id: _broker(one, broker_configs, disks) for one in brokers.values()},
        topics={name: _topic(topic, configs.get(name, {}), flights) for name, topic in sorted(seen.items())},
        observed_at=observed_at,
        kafka_version=features.kafka_version if features is not None else None,
        controller_id=quorum.leader if quorum is not None else None,
    )
    return Vitals(
        cluster,
        features,
        rights,
        disks,
        settings,
        quorum=quorum,
        locked_by=str(holder) if holder is not None else None,
        transactions=late,
        unexamined=tuple(reader.unexamined),
        has_topic_configs=read is not None,
    )


def _unjudged(late: LateTransactions) -> Iterator[str]:
    if late.hidden:
        yield (
            f"whether {counted(late.hidden, 'late transaction')} will ever end: Describe is missing on transactional "
            "ids (kafka-acls --add --allow-principal User:NAME --operation Describe --transactional-id '*')"
        )
    if late.untold:
        yield f"whose transactions are open at {counted(late.untold, 'partition')}: Read on their topics is missing"


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
