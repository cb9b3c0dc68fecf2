"""Finds what earlier runs left on the cluster, takes it over into a new run, or puts it back.

Two sources say what a run set: its record in the cluster, and the journal of this machine. Either may be gone, so what
the cluster itself shows (`evidence`) completes them: a record that is gone never means that nothing is left.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.dir_moves import DirPlace, dir_place
from reconciler.apply.evidence import Evidence, evidence
from reconciler.apply.journal import Journal, Recorded, recorded
from reconciler.apply.observed import Observed, look
from reconciler.apply.partition_path import PlanPaths, paths_of
from reconciler.apply.run_record import RunRecord, read_record
from reconciler.apply.session import Session
from reconciler.apply.standings import stages_done, under_way
from reconciler.apply.throttles import (
    Items,
    Key,
    ThrottleRecord,
    list_restored,
    our_rates,
    parts,
    rate_restored,
    throttled_brokers,
    throttled_lists,
)
from reconciler.apply.throttling import take_all_off
from reconciler.apply.withdraw import seen_as_far_as_visible, unseen_moves
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import CORDONED_LOG_DIRS
from reconciler.model.diagnosis import KnownRun
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import RunEvent, RunResult, RunState
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some, owner_name, rate


def adopt_leftovers(session: Session, observed: Observed, *, is_cleaning: bool = False) -> None:
    """Take the throttles that earlier runs of this plan left into the session, and the values that may be theirs.

    `is_cleaning`: the caller only puts things back, so a missing right or answer raises no error.
    """
    journal, throttles = recorded(session.journal.events), session.throttles
    find_record(session)
    record = session.record
    is_own = record is not None and record.plan_id == session.paths.plan.id
    session.other_rates = journal.rates_once_asked
    if record is not None:
        _adopt(session, record, is_own=is_own)
    traces = _Traces(session.paths, journal, record if is_own else None)
    shown = traces.completed(observed, lambda: _seen(session, observed, is_cleaning=is_cleaning))
    others = record.throttles if record is not None and not is_own else ThrottleRecord()
    throttles.on = shown.throttles.plus(others)
    # Before a run of the plan began, a rate like the plan's is an operator's own.
    throttles.undecided = shown.undecided if is_cleaning or shown.is_begun else {}
    # A value that an earlier run set is not what was there before: its record says what was.
    throttles.first_rates = dict(throttles.on.rates)
    throttles.first_lists = {key: entry.before for key, entry in throttles.on.lists.items()}
    throttles.earlier_lists = {**throttles.on.lists, **journal.lists_once_extended}


@dataclass(frozen=True, slots=True)
class _Traces:
    """Holds the written traces of a plan's runs: the journal of this machine, and the cluster's record."""

    paths: PlanPaths
    journal: Recorded
    record: RunRecord | None

    @property
    def rates(self) -> Items:
        """Every value that the runs set on brokers."""
        asked = self.record.ours if self.record is not None else frozenset()
        return our_rates(self.paths.plan) | self.journal.rates_once_asked | asked

    @property
    def throttles(self) -> ThrottleRecord:
        """The throttles that are on, by the record if there is one, else by the journal.

        A record that is not whole was completed by guesses as it was read. A plan at hand knows better.
        """
        record = self.record
        if record is None or record.is_bare:
            return self.journal.throttles
        if record.is_whole or _is_of_record(self.paths.plan):
            return record.throttles
        items, lists = throttled_lists(self.paths.plan), record.throttles.lists
        own = {key: replace(lists[key], items=lists[key].items & items[key]) for key in lists if key in items}
        return replace(record.throttles, lists=own)

    def is_look_needed(self, observed: Observed) -> bool:
        """Whether the runs may have left what neither journal nor record says.

        A whole record covers all that its run set. A journal that says that a run ended well is believed while all is
        in place: the plan may have been applied again on another machine since.
        """
        if self.record is not None:
            return not (self.record.is_whole or _is_of_record(self.paths.plan))
        is_at_end = all(dir_place(move, observed) is DirPlace.AT_END for move in self.paths.dir_moves)
        return not (self.journal.has_ended_well and self.paths.has_ended(observed) and is_at_end)

    def completed(self, observed: Observed, with_configs: Callable[[], Observed]) -> Evidence:
        """Return the written throttles, completed by the cluster's; configs are read only if they are needed."""
        start = self.throttles
        if not self.is_look_needed(observed):
            return Evidence(start)
        shown = evidence(self.paths, with_configs(), self.journal.first_seen(self.paths.plan.rollback), self.rates)
        lists = {key: entry for key, entry in shown.throttles.lists.items() if key not in start.lists}
        rates = shown.throttles.rates
        if self.journal.has_events and not shown.throttles.lists:
            # The journal here knows each cordon that its runs set. Another one is an operator's, who may set the same.
            rates = {key: before for key, before in rates.items() if key[1] != CORDONED_LOG_DIRS}
        known: Collection[Key] = {*start.rates, *start.lists}
        undecided = {key: entry for key, entry in shown.undecided.items() if key not in known}
        return replace(shown, throttles=start.plus(ThrottleRecord(rates, lists)), undecided=undecided)


def _is_of_record(plan: Plan) -> bool:
    """Whether a plan was made from a run's record: it does not know what was set before the run."""
    return not plan.source.desired_digest


def _seen(session: Session, observed: Observed, *, is_cleaning: bool) -> Observed:
    """Return the look with configs; where these cannot be read, and the caller `is_cleaning`, without."""
    try:
        plan = session.paths.plan
        brokers = throttled_brokers(plan).union(plan.cordoned)
        return with_configs(observed, session.admin, brokers, {topic for topic, _ in throttled_lists(plan)})
    except (MissingRight, ClusterUnavailable) as error:
        if not is_cleaning:
            raise
        session.say(f"what the plan's runs left and did not record could not be looked for: {error}")
        return observed


def with_configs(observed: Observed, admin: Admin, brokers: Collection[int], topics: Collection[str]) -> Observed:
    """Return the look with the configs of these brokers and topics."""
    broker_configs = admin.broker_configs(sorted(brokers)) if brokers else {}
    topic_configs = admin.topic_configs(sorted(topics)) if topics else {}
    alive = {one: replace(observed.brokers[one], configs=broker_configs[one]) for one in broker_configs}
    # A topic that was made again since the plan is another topic, and carries no entry of the plan.
    own = {name: topic_configs[name] for name in topic_configs if name not in observed.replaced}
    return replace(observed, brokers={**observed.brokers, **alive}, configs={**observed.configs, **own})


def find_record(session: Session) -> None:
    """Take the record that stands in the cluster into the session, if it is this plan's, or its moves have ended.

    Anybody may clean up after such a run; any other one's record stays as it is.
    """
    record = read_record(session.admin)
    is_own = record is not None and record.plan_id == session.paths.plan.id
    is_other = record is not None and not is_own and bool(moves_of(record, session.admin))
    session.record, session.other_record = (None, record) if is_other else (record, None)


def moves_of(record: RunRecord, admin: Admin) -> tuple[Move | DirMove, ...]:
    """Return the moves of a recorded run that are in flight, or were cancelled without their order being restored."""
    paths = paths_of(record.plan(""))
    return under_way(paths, look(admin, paths.topics, ids=record.topic_ids, dir_moves=paths.dir_moves))


def _adopt(session: Session, record: RunRecord, *, is_own: bool) -> None:
    """Take over the rates of the run that the cluster's own record names, and say what it left."""
    if not is_own and not record.throttles.is_empty:
        owners = [*map(owner_name, record.throttles.brokers), *map(owner_name, record.throttles.topics)]
        session.say(f"{record} has left throttles, which come off first: {named_some(owners)}")
    if not is_own and record.is_bare:
        by_plan = "with its plan, reconciler doctor PLAN --fix throttles takes off what it left"
        session.say(f"{record} was too large for its record, which names no throttle: {by_plan}")
    session.other_rates |= record.ours
    if is_own and record.rate is not None and not record.is_over:
        session.throttle_to(record.rate)
        adopted = f"the throttle is {rate(record.rate)}, as this plan's run was asked for"
        session.say(f"{adopted}; reconciler throttle changes it")


def known_run(plan: Plan, events: Sequence[RunEvent], observed: Observed, record: RunRecord | None = None) -> KnownRun:
    """Return what is known of that plan's run; `observed` shows brokers and the plan's topics with their configs.

    `record`: the one in the cluster, where there is one, which knows better than a journal of this machine.
    """
    traces = _Traces(paths_of(plan), recorded(events), record)
    shown = traces.completed(observed, lambda: observed)
    return KnownRun(
        plan_id=plan.id,
        is_open=_is_open(traces, observed, shown),
        by=record.started_by if record is not None else None,
        began=record.by.since if record is not None else traces.journal.began,
        targets={key: frozenset(path.lists) for key, path in traces.paths.by_partition.items()},
        throttles=dict(_visible(traces.rates, shown.throttles, observed)),
        undecided=frozenset(shown.undecided),
        unrestored=tuple(broker for broker in shown.throttles.brokers if not observed.is_alive(broker)),
        is_record_bare=record is not None and record.is_bare and _is_of_record(plan),
    )


def _is_open(traces: _Traces, observed: Observed, shown: Evidence) -> bool:
    """Whether a run has not ended: a journal that lacks its end is outdated once the cluster shows all of it done."""
    if traces.record is not None:
        return not traces.record.is_over
    is_done = stages_done(traces.paths, observed) == len(traces.paths.plan.stages) and not shown.throttles.lists
    return traces.journal.is_open and not is_done


def _visible(ours: Items, throttles: ThrottleRecord, observed: Observed) -> Iterator[tuple[Key, str | None]]:
    """Yield each key that a clean-up changes, with its value afterwards; None: the key is removed."""
    for (broker, key), before in sorted(throttles.rates.items()):
        if observed.is_alive(broker):
            value = observed.brokers[broker].configs.get(key)
            yield from _changed((broker, key), value, rate_restored(key, before, value, ours))
    for (topic, key), entry in sorted(throttles.lists.items()):
        if topic in observed.configs:
            value = observed.configs[topic].get(key)
            yield from _changed((topic, key), value, list_restored(key, entry, value))


def _changed(key: Key, value: str | None, change: ConfigChange | None) -> Iterator[tuple[Key, str | None]]:
    after = value if change is None else _after(change, value)
    if after != value:
        yield key, after


def _after(change: ConfigChange, value: str | None) -> str | None:
    """Return what a key holds after a change, as Kafka does it."""
    match change.operation:
        case ConfigOperation.DELETE:
            return None
        case ConfigOperation.SUBTRACT:
            # SUBTRACT leaves the key with what remains, an empty value where nothing does; only DELETE removes the key.
            gone = set(parts(change.value))
            return None if value is None else ",".join(item for item in parts(value) if item not in gone)
        case _:
            return change.value


def restore_throttles(
    plan: Plan, admin: Admin, journal: Journal, *, notify: Callable[[str], None] | None = None
) -> RunResult:
    """Bring back every throttle that a run of this plan left; nothing while its moves are in flight.

    Raises LockHeld, where there is one to bring back and another run is on: it may be that run's.
    """
    session = Session(admin, journal, paths_of(plan))
    check_plan_is_for(plan, admin.cluster_id())
    under_way = _left(session)
    if not under_way and (session.record is not None or not session.throttles.on.is_empty):
        with admin.lock(f"restoring the throttles of plan {plan.id}", waiting=notify) as session.lock:
            # Before the lock was held, another process may have put it back, or begun a run.
            under_way = _left(session)
            if not under_way:
                take_all_off(session)
    if under_way:
        session.messages.append(f"{len(under_way)} moves of the plan are in flight: their throttles stay on")
        return session.result(RunState.STOPPED, under_way)
    return session.result(RunState.DONE)


def _left(session: Session) -> tuple[TopicPartition, ...]:
    """Take the throttles that are left into the session, and return the partitions that are on their way."""
    observed, hidden = seen_as_far_as_visible(session, session.paths.topics)
    adopt_leftovers(session, observed, is_cleaning=True)
    seen = (move.topic_partition for move in under_way(session.paths, observed))
    return (*seen, *unseen_moves(session.paths, observed, hidden))
