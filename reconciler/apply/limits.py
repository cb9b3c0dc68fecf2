"""Refuses what is left of a plan where it no longer fits the cluster as it is now, or what is declared by now.

Only what the plan adds to is refused: a broker that is beyond a limit already may be relieved. A plan that takes
another one back is held by the room on disks alone, because a way back must stay open.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.admin.port import DiskUse
from reconciler.apply.flows import Arrival, Flow, Now
from reconciler.apply.observed import Observed
from reconciler.apply.session import Session
from reconciler.apply.standings import elections_due
from reconciler.apply.throttling import refuses_cordoned
from reconciler.model.change import AlterConfigs
from reconciler.model.cluster import CORDONED_LOG_DIRS, Cluster, Partition, Topic
from reconciler.model.desired import BrokerState, DesiredBroker, DesiredCluster, Limits, LogDirState, Window
from reconciler.model.in_sync import MIN_ISR, whole_number
from reconciler.model.move import Reason
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    BELOW_MIN_ISR,
    DISK_USE,
    STAGE_LIMIT,
    MissingRight,
    Problem,
    Refused,
    Severity,
    lines_of,
)
from reconciler.model.stage import ElectStage, ReassignStage, Stage, moves_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import FEW, MANY, counted, labelled, named_some, percent, size

NO_ROOM = "KR456"  # A disk that gets full goes offline with all that is on it.
CLOSED = "KR461"  # A broker takes no new replica, or no leadership, by now.
FEW_REPLICAS = "KR462"  # A topic would have fewer replicas than its min.insync.replicas.

_CLOSED_STATES = (BrokerState.CORDONED, BrokerState.DRAINING, BrokerState.ABSENT)
_NOT_LEADING = (BrokerState.MAINTENANCE, BrokerState.DRAINING, BrokerState.ABSENT)
_NEW_PLAN = "make a new plan"
_UNCHECKED = "whether its disks have room for what the plan copies was not looked at"

Place = tuple[int, str | None]
"""A log dir of a broker; None for all its log dirs together."""
OwnersCheck = Callable[[Plan, Cluster], Sequence[Problem]]
"""Returns what a plan breaks of the limits of owners, on the cluster as it is now."""


@dataclass(frozen=True, slots=True)
class ApplyRules:
    """Holds what the files declare when the run begins; empty if there are no files."""

    cluster: DesiredCluster | None = None
    owners: OwnersCheck | None = None
    """None where no owner has limits, or the files cannot be read."""
    refuse: Callable[[], None] = lambda: None
    """Raises Refused where the files forbid the plan as a whole; called before a run begins."""

    @property
    def windows(self) -> Sequence[Window]:
        """When a run may work."""
        return self.cluster.windows if self.cluster is not None else ()

    @property
    def limits(self) -> Limits:
        """The limits of the cluster."""
        return self.cluster.limits if self.cluster is not None else Limits()

    def broker(self, broker_id: int) -> DesiredBroker:
        """Return what is declared of that broker."""
        return self.cluster.broker(broker_id) if self.cluster is not None else DesiredBroker(broker_id)


NOTHING_DECLARED = ApplyRules()


def check_limits(
    session: Session, declared: ApplyRules, stages: Sequence[Stage], observed: Observed, *, is_first: bool
) -> None:
    """Raise Refused if what is left of these stages does not fit. `observed` is a look at all their topics."""
    now = Now(session.paths, observed)
    flows = now.flows(stages)
    arrivals = [arrival for flow in flows for arrival in flow.arrivals]
    listed = {broker for flow in flows for move in flow.moves for broker in move.to_replicas}
    if arrivals or listed:
        leaders = {now.leader(one.key) for one in arrivals}
        asked = {broker for broker in {*leaders, *listed, *(one.broker for one in arrivals)} if broker is not None}
        keys = {move.topic_partition for move in moves_of(stages)} | {one.key for one in arrivals}
        disks = _disks_of(session, filter(observed.is_alive, asked), keys, is_room_needed=bool(arrivals))
        now = replace(now, disks=disks)
        flows = now.flows(stages)
    unknown = {one.broker for flow in flows for one in flow.arrivals if one.bytes and not _is_known(now, one.broker)}
    if unknown & session.paths.plan.disk_capacity.keys():
        _say_once(session, f"{labelled('broker', sorted(unknown))} did not say what is free: {_UNCHECKED}")
    problems = [*disk_problems(now, flows, declared), *_cordon_problems(session, now, flows)]
    if session.paths.plan.source.rolls_back is None:
        problems += [*state_problems(now, flows, declared), *min_isr_problems(now, stages)]
        problems += _counted_problems(session, now, flows, declared)
    if problems:
        state = "nothing has been changed" if is_first else "no further stage begins"
        told = named_some(lines_of(problems), MANY, "\n")
        raise Refused(f"the plan no longer fits the cluster as it is, so {state}: {told}", code=problems[0].code)


def _disks_of(
    session: Session, brokers: Iterable[int], keys: Iterable[TopicPartition], *, is_room_needed: bool
) -> DiskUse:
    """Return the log dirs of these brokers; empty, and reported once if room is needed, if a right is missing."""
    try:
        return session.admin.disks(sorted(brokers), sorted(keys))
    except MissingRight as error:
        if is_room_needed:
            _say_once(session, f"{error}: {_UNCHECKED}")
        return DiskUse()


def _say_once(session: Session, text: str) -> None:
    if text not in session.messages:
        session.say(text)


# Disks


def _is_known(now: Now, broker: int) -> bool:
    return now.broker(broker).used_bytes is not None


def disk_problems(now: Now, flows: Sequence[Flow], declared: ApplyRules) -> Iterator[Problem]:
    """Yield a problem for each disk that what is left would fill beyond its size, or beyond limits.diskUse."""
    used, totals = _disks_now(now)
    reported = set[Place]()
    for flow in flows:
        arriving, looked_at = Counter[Place](), set[Place]()
        for one in flow.arrivals:
            place, whole = (one.broker, one.path), (one.broker, None)
            # If the log dir of a replica is not known, only the sum of the log dirs is checked.
            looked_at.add(place if place in totals else whole)
            for each in {place, whole} & totals.keys():
                arriving[each] += one.bytes
        for place in sorted(looked_at & (+arriving).keys() - reported, key=lambda each: (each[0], each[1] or "")):
            figures = (used[place], arriving[place], totals[place])
            found = _disk_problem(now, flow.stage, place, figures, declared)
            if found is not None:
                reported.add(place)
                yield found
        used.update(arriving)
        for gone in flow.departures:
            for each in {(gone.broker, gone.path), (gone.broker, None)} & totals.keys():
                used[each] -= gone.bytes


def _disks_now(now: Now) -> tuple[Counter[Place], dict[Place, int]]:
    """Return what is used of each disk, and its size, where both are known."""
    used, totals = Counter[Place](), dict[Place, int]()
    for broker in (now.broker(broker_id) for broker_id in now.disks.log_dirs):
        if broker.used_bytes is not None and broker.total_bytes is not None:
            used[broker.id, None], totals[broker.id, None] = broker.used_bytes, broker.total_bytes
        for one in broker.sized_dirs if len(broker.sized_dirs) > 1 else ():
            used[broker.id, one.path], totals[broker.id, one.path] = one.used, one.total
    return used, totals


def _disk_problem(
    now: Now, stage: Stage, place: Place, figures: tuple[int, int, int], declared: ApplyRules
) -> Problem | None:
    before, arriving, total = figures
    where = f"broker {place[0]}" if place[1] is None else f"log dir {place[1]} of broker {place[0]}"
    copies = f"stage {stage.number} copies {size(arriving)} to {where}"
    hint = f"make room on it and {now.paths.again}, or {_NEW_PLAN}"
    if before + arriving > total:
        message = f"{copies}, which has {size(max(0, total - before))} left; a disk that gets full goes offline: {hint}"
        return Problem(NO_ROOM, message, severity=Severity.VIOLATION)
    share = declared.limits.disk_use if now.paths.plan.source.rolls_back is None else None
    excess = before + arriving - int(total * share) if share is not None else 0
    if share is None or excess <= 0:
        return None
    message = (
        f"{copies}, which would then hold {size(before + arriving)} of {size(total)}: {size(excess)} ({excess} bytes)"
        f" more than limits.diskUse {percent(share, digits=4)} allows: {hint}"
    )
    return Problem(DISK_USE, message, declared.limits.at.get("diskUse"), Severity.VIOLATION)


# States of brokers


def state_problems(now: Now, flows: Sequence[Flow], declared: ApplyRules) -> Iterator[Problem]:
    """Yield a problem for each broker that takes no new replica by now, or is not to lead."""
    coming, leading = dict[tuple[int, str], list[str]](), dict[int, list[str]]()
    for flow in flows:
        for arrival in flow.arrivals:
            why = _closed_by(now, declared, arrival)
            if why is not None:
                coming.setdefault((arrival.broker, why), []).append(str(arrival.key))
        for key, leader, others in _new_leaders(now, flow):
            could_lead = any(declared.broker(other).state not in _NOT_LEADING for other in others)
            if could_lead and declared.broker(leader).state in _NOT_LEADING:
                leading.setdefault(leader, []).append(str(key))
    for (broker, why), keys in sorted(coming.items()):
        message = f"{named_some(dict.fromkeys(keys), FEW)} would come to broker {broker}, {why}: {_NEW_PLAN}"
        yield Problem(CLOSED, message, declared.broker(broker).at, Severity.VIOLATION)
    for broker, keys in sorted(leading.items()):
        state = f"which is declared {declared.broker(broker).state} by now"
        message = f"{named_some(dict.fromkeys(keys), FEW)} would be led by broker {broker}, {state}: {_NEW_PLAN}"
        yield Problem(CLOSED, message, declared.broker(broker).at, Severity.VIOLATION)


def _closed_by(now: Now, declared: ApplyRules, arrival: Arrival) -> str | None:
    """Return why a broker takes this replica no more, None where it does."""
    desired, broker = declared.broker(arrival.broker), now.broker(arrival.broker)
    closed = {one.path for one in desired.log_dirs if one.state is not LogDirState.ACTIVE}
    paths = {one.path for one in broker.log_dirs}
    if arrival.is_inside:
        return f"into log dir {arrival.path}, which is declared closed by now" if arrival.path in closed else None
    if desired.state in _CLOSED_STATES:
        return f"which is declared {desired.state} by now"
    if paths and broker.is_cordoned and not desired.is_active_written:
        return "whose log dirs are all cordoned in Kafka by now (cordoned.log.dirs)"
    return (
        "whose log dirs are all closed by now" if paths and closed and paths <= closed | broker.cordoned_dirs else None
    )


def _cordon_problems(session: Session, now: Now, flows: Sequence[Flow]) -> Iterator[Problem]:
    """Yield a problem for each broker that somebody else has cordoned, so that Kafka refuses lists that name it."""
    named: dict[int, dict[str, None]] = {}
    for move in (move for flow in flows for move in flow.moves):
        for broker in move.to_replicas:
            is_own = (broker, CORDONED_LOG_DIRS) in session.throttles.on.rates
            if now.broker(broker).log_dirs and now.broker(broker).is_cordoned and not is_own:
                named.setdefault(broker, {})[str(move.topic_partition)] = None
    if named and not refuses_cordoned(session.admin):
        return
    for broker, keys in sorted(named.items()):
        text = f"{named_some(keys, FEW)} would be on broker {broker}, whose log dirs are all cordoned in Kafka"
        hint = "Kafka refuses such lists (since 4.4), so remove cordoned.log.dirs for the run"
        yield Problem(CLOSED, f"{text}: {hint}, or {_NEW_PLAN}", severity=Severity.VIOLATION)


def _new_leaders(now: Now, flow: Flow) -> Iterator[tuple[TopicPartition, int, tuple[int, ...]]]:
    """Yield each partition that gets another leader, that leader, and the replicas beside it.

    A written assignment may have any broker lead. A new partition's leader needs no plan to mend it.
    """
    for move in flow.moves:
        if move.to_replicas[0] != move.from_replicas[0] and move.reason is not Reason.ASSIGNMENT:
            yield move.topic_partition, move.to_replicas[0], move.to_replicas[1:]
    if isinstance(flow.stage, ElectStage | ReassignStage):
        for election in elections_due(now.paths, flow.stage, now.observed):
            path = now.paths.by_partition.get(election.topic_partition)
            if path is not None and path.moves[-1].reason is Reason.ASSIGNMENT:
                continue
            replicas = now.replicas(election.topic_partition)
            yield election.topic_partition, election.leader, tuple(one for one in replicas if one != election.leader)


# min.insync.replicas


def lowered_topics(stages: Iterable[Stage]) -> frozenset[str]:
    """Return the topics that these stages give fewer replicas."""
    lowering = (move for move in moves_of(stages) if len(move.to_replicas) < len(move.from_replicas))
    return frozenset(move.topic_partition.topic for move in lowering)


def min_isr_problems(now: Now, stages: Sequence[Stage]) -> Iterator[Problem]:
    """Yield each topic that the plan leaves with fewer replicas than its own min ISR, and did not when it was made."""
    plan = now.paths.plan
    if any(warning.code == BELOW_MIN_ISR for warning in plan.warnings):
        return
    ends = {move.topic_partition: move.to_replicas for move in moves_of(stages)}
    raised = {
        change.topic: whole_number(change.set.get(MIN_ISR)) or 0
        for change in plan.topic_changes
        if isinstance(change, AlterConfigs) and MIN_ISR in {*change.set, *change.delete}
    }
    for name in sorted(lowered_topics(stages) | raised.keys() & now.observed.topics.keys()):
        present = whole_number(now.observed.configs.get(name, {}).get(MIN_ISR)) or 0
        keys = [TopicPartition(name, one.partition) for one in now.observed.topics[name].partitions]
        needed = raised.get(name, present)
        factor = min((len(ends.get(key, now.replicas(key))) for key in keys), default=needed)
        if factor < needed:
            message = f"topic {name} would have {counted(factor, 'replica')} and {MIN_ISR} {needed}"
            text = f"{message}: somebody changed one of them since the plan was made; {_NEW_PLAN}"
            yield Problem(FEW_REPLICAS, text, severity=Severity.VIOLATION)


# Counts over all topics


def _counted_problems(session: Session, now: Now, flows: Sequence[Flow], declared: ApplyRules) -> Iterator[Problem]:
    """Yield a problem for each broken limits.replicasPerBroker, and for each broken limit of an owner."""
    is_limited = declared.limits.replicas_per_broker is not None
    is_adding = any(arrival.is_new for flow in flows for arrival in flow.arrivals)
    if is_adding and (is_limited or declared.owners is not None):
        topics = session.admin.topics(None)
        yield from count_problems(now, flows, topics, declared)
        if declared.owners is not None:
            yield from _owner_problems(session, now, flows, topics, check=declared.owners)


def count_problems(
    now: Now, flows: Sequence[Flow], topics: Mapping[str, Topic], declared: ApplyRules
) -> Iterator[Problem]:
    """Yield a problem for each broker that would hold more replicas than limits.replicasPerBroker allows."""
    limit = declared.limits.replicas_per_broker
    if limit is None:
        return
    count, reported = Counter[int](), set[int]()
    for topic in topics.values():
        for partition in topic.partitions:
            key = TopicPartition(topic.name, partition.partition)
            # Reassignments of others count at their targets, as in a plan.
            is_ours = key in now.paths.by_partition
            count.update(now.replicas(key) if is_ours else _target(now, key, partition))
    for flow in flows:
        arriving = Counter(one.broker for one in flow.arrivals if one.is_new)
        count.update(arriving)
        for broker in sorted(arriving.keys() - reported):
            if count[broker] > limit:
                reported.add(broker)
                message = (
                    f"broker {broker} would hold {count[broker]} replicas in stage {flow.stage.number},"
                    f" {count[broker] - limit} more than limits.replicasPerBroker, {limit}, allows: {_NEW_PLAN}"
                )
                yield Problem(STAGE_LIMIT, message, declared.limits.at.get("replicasPerBroker"), Severity.VIOLATION)
        count.subtract(one.broker for one in flow.departures if not one.is_inside)


def _target(now: Now, key: TopicPartition, partition: Partition) -> tuple[int, ...]:
    """Return the replicas of a partition once what is in flight has ended."""
    flight = now.observed.reassignments.get(key)
    return flight.target_replicas if flight is not None else partition.replicas


def _owner_problems(
    session: Session, now: Now, flows: Sequence[Flow], topics: Mapping[str, Topic], *, check: OwnersCheck
) -> Sequence[Problem]:
    """Return what is left of the plan breaks of the limits of owners, on all topics as they are now."""
    alive = filter(now.observed.is_alive, now.observed.brokers)
    keys = [TopicPartition(topic.name, one.partition) for topic in topics.values() for one in topic.partitions]
    sizes = _disks_of(session, alive, keys, is_room_needed=True).replica_bytes

    def with_sizes(key: TopicPartition, partition: Partition) -> Partition:
        replicas = _target(now, key, partition)
        held = tuple(sizes.get((key, broker)) for broker in replicas)
        isr = tuple(broker for broker in partition.isr if broker in replicas)
        return replace(partition, leader=None, replicas=replicas, isr=isr, sizes=held)

    sized = {
        name: replace(
            topic, partitions=tuple(with_sizes(TopicPartition(name, one.partition), one) for one in topic.partitions)
        )
        for name, topic in topics.items()
    }
    made = {key.topic for flow in flows for key in flow.created}
    rest = replace(
        now.paths.plan,
        topic_changes=tuple(change for change in now.paths.plan.topic_changes if change.topic in made),
        stages=tuple(flow.stage for flow in flows),
    )
    return check(rest, Cluster(now.paths.plan.cluster_id, brokers=now.observed.brokers, topics=sized))
