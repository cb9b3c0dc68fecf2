"""Finds what earlier runs left on the cluster, takes it over into a new run, or puts it back.

Three sources say what a run set. The cluster itself shows it beside the plan (`evidence`). The journal of this machine
is its own, and believed. The record in the cluster can be written by whoever may read the lock's group, so by itself it
changes nothing: it says which rates a run was asked for, and what `doctor --fix throttles`, or `cancel` without a plan,
names key by key before it asks.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.dir_moves import DirPlace, dir_moves_under_way, dir_place
from reconciler.apply.evidence import Evidence, evidence
from reconciler.apply.journal import Journal, Recorded, recorded
from reconciler.apply.observed import Observed, look
from reconciler.apply.partition_path import PlanPaths, paths_of
from reconciler.apply.run_record import KeptRecord, RunRecord, kept_record
from reconciler.apply.session import Belief, Session
from reconciler.apply.standings import moves_to_take_back, stages_done, under_way
from reconciler.apply.throttles import (
    Items,
    Key,
    ThrottleRecord,
    list_restored,
    our_rates,
    parts,
    rate_bounds,
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
from reconciler.model.plan import Plan, Rollback
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import RunEvent, RunResult, RunState
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import rate


def adopt_leftovers(session: Session, observed: Observed, *, is_cleaning: bool = False) -> None:
    """Take the throttles that earlier runs of this plan left into the session, and the values that may be theirs.

    `is_cleaning`: the caller only puts things back, so a missing right or answer raises no error.
    """
    journal, throttles = recorded(session.journal.events), session.throttles
    find_record(session)
    say_other_record(session)
    session.other_rates = journal.rates_once_asked
    if session.record is not None:
        _adopt_rate(session, session.record)
    traces = _Traces(session.paths, journal, session.record, session.rate_bounds)
    session.other_rates |= traces.rates.union(filter(None, [traces.rate_asked]))
    seen = partial(_seen, session, observed, is_cleaning=is_cleaning)
    shown = traces.completed(observed, seen)
    claims = ThrottleRecord()
    if session.belief is not Belief.NOTHING and session.record is not None:
        claims = traces.claims(seen())
        session.other_rates |= session.record.ours
    if session.belief is Belief.TO_TAKE_OFF:
        claims = ThrottleRecord(
            dict.fromkeys(claims.rates), {key: replace(entry, before=None) for key, entry in claims.lists.items()}
        )
    throttles.on = claims.plus(shown.throttles)
    throttles.recorded = traces.claims_beside(throttles.on) if session.belief is not Belief.ALL else ThrottleRecord()
    # Before a run of the plan began, a rate like the plan's is an operator's own.
    undecided = shown.undecided if is_cleaning or shown.is_begun else {}
    known: Collection[Key] = throttles.on.plus(throttles.recorded).keys
    throttles.undecided = {key: entry for key, entry in undecided.items() if key not in known}
    # A value that an earlier run set is not what was there before: its record says what was.
    throttles.first_rates = dict(throttles.on.rates)
    throttles.first_lists = {key: entry.before for key, entry in throttles.on.lists.items()}
    throttles.earlier_lists = {**throttles.on.lists, **journal.lists_once_extended}


@dataclass(frozen=True, slots=True)
class _Traces:
    """Holds the written traces of a plan's runs: the journal of this machine, and the cluster's record.

    The journal is this machine's own, and believed. The record is a hint: of the rates that the runs were asked for.
    """

    paths: PlanPaths
    journal: Recorded
    record: RunRecord | None
    bounds: tuple[int, int]
    """The least and the greatest rate that may be asked for."""

    @property
    def rates(self) -> Items:
        """Every value that the runs set on brokers, but for what only the record of a plan that is at hand names."""
        asked = self.record.ours if self.record is not None and self.paths.is_of_record else frozenset()
        return our_rates(self.paths.plan) | self.journal.rates_once_asked | asked

    @property
    def rate_asked(self) -> str | None:
        """The rate that the run was asked for, as the record says, if it may be asked for."""
        asked, (low, high) = self.record.rate if self.record is not None else None, self.bounds
        return str(asked) if asked is not None and low <= asked <= high else None

    @property
    def before(self) -> Rollback:
        """The throttles that were there before the plan's runs, as its rollback and the journal say."""
        return self.journal.first_seen(self.paths.plan.rollback)

    def claims_beside(self, on: ThrottleRecord) -> ThrottleRecord:
        """Return what the record says was set, or was there before, where nothing else says it."""
        recorded_throttles = self.record.throttles if self.record is not None else ThrottleRecord()
        return ThrottleRecord(
            {
                key: before
                for key, before in recorded_throttles.rates.items()
                if key not in on.rates or before not in {None, on.rates[key]}
            },
            {
                key: entry
                for key, entry in recorded_throttles.lists.items()
                if key not in on.lists or entry.before not in {None, on.lists[key].before}
            },
        )

    def claims(self, observed: Observed) -> ThrottleRecord:
        """Return what of the record a clean-up could change, as the look with configs shows it, or could not ask."""
        recorded_throttles = self.record.throttles if self.record is not None else ThrottleRecord()
        shown = dict(_visible(self.rates.union(self.record.ours if self.record else ()), recorded_throttles, observed))
        return ThrottleRecord(
            {
                (broker, key): before
                for (broker, key), before in recorded_throttles.rates.items()
                if (broker, key) in shown or not observed.is_alive(broker)
            },
            {key: entry for key, entry in recorded_throttles.lists.items() if key in shown},
        )

    def is_look_needed(self, observed: Observed) -> bool:
        """Whether the runs may have left what the journal does not say.

        A journal that says that a run ended well is believed while all is in place, and no record stands there: the
        plan may have been applied again on another machine since.
        """
        is_at_end = all(dir_place(move, observed) is DirPlace.AT_END for move in self.paths.dir_moves)
        is_in_place = self.paths.has_ended(observed) and is_at_end
        return self.record is not None or not (self.journal.has_ended_well and is_in_place)

    def completed(self, observed: Observed, with_configs: Callable[[], Observed]) -> Evidence:
        """Return the journal's throttles, completed by the cluster's; configs are read only if they are needed."""
        start = self.journal.throttles
        if self.paths.is_of_record or not self.is_look_needed(observed):
            return Evidence(start)
        shown = evidence(self.paths, with_configs(), self.before, self.rates, self.rate_asked)
        lists = {key: entry for key, entry in shown.throttles.lists.items() if key not in start.lists}
        rates = shown.throttles.rates
        if self.journal.has_events and not shown.throttles.lists:
            # The journal here knows each cordon that its runs set. Another one is an operator's, who may set the same.
            rates = {key: before for key, before in rates.items() if key[1] != CORDONED_LOG_DIRS}
        undecided = {key: entry for key, entry in shown.undecided.items() if key not in start.keys}
        return replace(shown, throttles=start.plus(ThrottleRecord(rates, lists)), undecided=undecided)


def _seen(session: Session, observed: Observed, *, is_cleaning: bool) -> Observed:
    """Return the look with configs; where these cannot be read, and the caller `is_cleaning`, without."""
    try:
        plan, of_record = session.paths.plan, session.record.throttles if session.record else ThrottleRecord()
        brokers = throttled_brokers(plan).union(plan.cordoned, of_record.brokers)
        topics = {topic for topic, _ in throttled_lists(plan)}.union(of_record.topics)
        return with_configs(observed, session.admin, brokers, topics)
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
    """Take what stands in the cluster into the session: the record of this plan's run, or another text."""
    stored = kept_record(session.admin)
    is_own = stored.run is not None and stored.run.plan_id == session.paths.plan.id
    session.record = stored.run if is_own else None
    session.other_record = KeptRecord.of(stored.run.other) if is_own and stored.run is not None else stored
    other = session.other_record.run
    if other is not None and other.throttles.is_empty and not (other.is_bare or other.moves or other.dir_moves):
        session.other_record = KeptRecord.of(other.other)  # it names nothing, so nothing is lost with it


def say_other_record(session: Session) -> None:
    """Say, once, that another text than this plan's record stands in the cluster, and what to do about it."""
    other = session.other_record
    text = f"{other.untouched} ({other.code})"
    if other.text and text not in session.messages:
        session.say(text)


def moves_of(record: RunRecord, admin: Admin) -> tuple[Move | DirMove, ...]:
    """Return those moves of a recorded run that are in flight just as it says."""
    paths = paths_of(record.plan(""))
    observed = look(admin, paths.topics, ids=record.topic_ids, dir_moves=paths.dir_moves)
    return (*moves_to_take_back(paths, observed), *dir_moves_under_way(paths, observed))


def _adopt_rate(session: Session, record: RunRecord) -> None:
    """Go on with the rate that the run of this plan was asked for, as its record says, if it may be asked for."""
    low, high = session.rate_bounds
    if record.rate is None or record.is_over or session.paths.is_of_record or record.rate == session.rate:
        return
    if not low <= record.rate <= high:
        session.say(f"the run's record names a rate of {rate(record.rate)}, which nobody may ask for: it is left out")
        return
    session.throttle_to(record.rate)
    adopted = f"the throttle is {rate(record.rate)}, as this plan's run was asked for by its record"
    session.say(f"{adopted}; reconciler throttle changes it")


def known_run(plan: Plan, events: Sequence[RunEvent], observed: Observed, record: RunRecord | None = None) -> KnownRun:
    """Return what is known of that plan's run; `observed` shows brokers and the plan's topics with their configs.

    `record`: the one in the cluster, where there is one.
    """
    bounds, asked = rate_bounds(plan), record.rate if record is not None else None
    paths = paths_of(plan)
    if asked is not None and bounds[0] <= asked <= bounds[1]:
        paths = paths.throttled_to(asked)
    traces = _Traces(paths, recorded(events), record, bounds)
    shown = traces.completed(observed, lambda: observed)
    claimed_rates = record.ours if record is not None else frozenset()
    throttles = dict(_visible(traces.rates | claimed_rates, shown.throttles, observed))
    claims = dict(_visible(traces.rates | claimed_rates, traces.claims(observed), observed))
    rated = {*shown.throttles.brokers, *(record.throttles.brokers if record is not None else ())}
    return KnownRun(
        plan_id=plan.id,
        is_open=_is_open(traces, observed, shown),
        by=record.started_by if record is not None else None,
        began=record.by.since if record is not None else traces.journal.began,
        targets={key: frozenset(path.lists) for key, path in traces.paths.by_partition.items()},
        throttles=throttles,
        claims={key: after for key, after in claims.items() if key not in throttles or throttles[key] != after},
        undecided=frozenset(shown.undecided),
        unrestored=tuple(sorted(broker for broker in rated if not observed.is_alive(broker))),
        is_record_bare=record is not None and record.is_bare and traces.paths.is_of_record,
    )


def _is_open(traces: _Traces, observed: Observed, shown: Evidence) -> bool:
    """Whether a run has not ended: a journal that lacks its end is outdated once the cluster shows all of it done."""
    if traces.record is not None and not traces.record.is_over:
        return True
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
    plan: Plan,
    admin: Admin,
    journal: Journal,
    *,
    belief: Belief = Belief.NOTHING,
    notify: Callable[[str], None] | None = None,
) -> RunResult:
    """Bring back every throttle that a run of this plan left; nothing while its moves are in flight.

    Raises LockHeld, where there is one to bring back and another run is on: it may be that run's.
    """
    session = Session(admin, journal, paths_of(plan), belief=belief)
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
