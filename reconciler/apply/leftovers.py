"""Finds what earlier runs left on the cluster, takes it over into a new run, or puts it back.

Three sources, the surest first: the record in the cluster, the journal of this machine, and last a guess: rates that
the plan sets, and list items that it adds, which were not there when the plan's runs first looked.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.admin.port import Admin, ConfigChange, ConfigOperation
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.journal import (
    RUNS,
    Journal,
    first_seen,
    has_ended_well,
    is_open,
    lists_once_extended,
    rates_once_asked,
    recorded_throttles,
)
from reconciler.apply.kept_run import KeptRun, kept_run
from reconciler.apply.observed import Observed, look, replaced_topics
from reconciler.apply.partition_path import paths_of
from reconciler.apply.session import Session
from reconciler.apply.standings import moves_under_way
from reconciler.apply.throttles import (
    Entry,
    Items,
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
from reconciler.model.cluster import BROKER_THROTTLES, CORDONED_LOG_DIRS
from reconciler.model.diagnosis import KnownRun
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import Outcome, RunEvent, RunResult, RunState
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

Configs = Mapping[str, str]

Key = tuple[int | str, str]


def adopt_leftovers(session: Session, observed: Observed, *, is_reading_needed: bool = True) -> None:
    """Take into the session's record what an earlier run of this plan left on the cluster.

    Where `is_reading_needed` is false, what cannot be read raises nothing: what is recorded goes by itself.

    The journal alone is believed where it tells of a run that reached the plan's end, and its moves are there still:
    else the plan may have been applied elsewhere since.
    """
    plan, events = session.paths.plan, session.journal.events
    find_record(session)
    session.throttles = recorded_throttles(events)
    session.other_rates = rates_once_asked(events)
    if session.kept is not None:
        _adopt(session, session.kept)
    elif _may_have_left_more(session, observed):
        brokers = sorted(throttled_brokers(plan).union(plan.cordoned))
        topics = sorted({topic for topic, _ in throttled_lists(plan)})
        try:
            broker_configs = session.admin.broker_configs(brokers) if brokers else {}
            topic_configs = _topic_configs(session, topics) if topics else {}
        except (MissingRight, ClusterUnavailable) as error:
            if is_reading_needed:
                raise
            session.say(f"what the plan's runs left and did not record could not be looked for: {error}")
            broker_configs, topic_configs = {}, {}
        is_begun = session.paths.is_begun(observed)
        session.throttles = with_leftovers(plan, events, broker_configs, topic_configs, is_begun=is_begun)
    session.first_rates = dict(session.throttles.rates)
    session.first_lists = {key: entry.before for key, entry in session.throttles.lists.items()}
    session.earlier_lists = {**session.throttles.lists, **lists_once_extended(events)}


def _may_have_left_more(session: Session, observed: Observed) -> bool:
    """Whether a run of this plan may have left what neither journal nor record tells of.

    Where a record can be kept, none means that no run is to be cleaned up after: a rate that looks like ours is
    somebody's own.
    """
    events = session.journal.events
    if not events and session.other_run is None and _is_record_taken(session):
        return False
    return not has_ended_well(events) or session.paths.is_under_way(observed)


def _is_record_taken(session: Session) -> bool:
    """Whether a record of this run can be kept in the cluster: tried with an empty one, as none is there."""
    lock = session.lock
    try:
        return lock is not None and session.patiently(lambda: lock.keep("")).is_ok
    except (MissingRight, ClusterUnavailable):
        return False


def find_record(session: Session) -> None:
    """Take the record that stands in the cluster into the session, if it is this plan's, or its moves have ended.

    Anybody may clean up after such a run; any other one's record stays as it is.
    """
    kept = kept_run(session.admin)
    is_own = kept is not None and kept.plan_id == session.paths.plan.id
    is_other = kept is not None and not is_own and bool(moves_of(kept, session.admin))
    session.kept, session.other_run = (None, kept) if is_other else (kept, None)


def moves_of(kept: KeptRun, admin: Admin) -> tuple[Move, ...]:
    """Return the moves of a recorded run that are in flight, or were cancelled without their order being restored."""
    paths = paths_of(kept.plan(""))
    return moves_under_way(paths, look(admin, paths.topics, ids=kept.topic_ids))


def _adopt(session: Session, kept: KeptRun) -> None:
    """Take over what the cluster's own record says a run has left: it knows better than any guess."""
    is_own = kept.plan_id == session.paths.plan.id
    if not is_own and not kept.throttles.is_empty:
        owners = [
            *(f"broker {one}" for one in kept.throttles.brokers),
            *(f"topic {one}" for one in kept.throttles.topics),
        ]
        session.say(f"{kept} has left throttles, which come off first: {named_some(owners)}")
    earlier = ThrottleRecord() if is_own else session.throttles
    session.throttles = earlier.plus(kept.throttles)
    session.other_rates |= kept.ours
    if is_own and kept.rate is not None and not kept.is_over:
        session.throttle_to(kept.rate)
        session.say(
            f"the throttle is {kept.rate} B/s, as this plan's run was asked for; reconciler throttle changes it"
        )


def _topic_configs(session: Session, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the overrides of these topics; one that was made again since the plan is another, and left out."""
    configs = session.admin.topic_configs(names)
    replaced = replaced_topics(session.admin.topics(names), session.paths.plan.topic_ids)
    return {name: configs[name] for name in configs if name not in replaced}


def leftovers(
    plan: Plan,
    broker_configs: Mapping[int, Mapping[str, str]],
    topic_configs: Mapping[str, Mapping[str, str]],
    *,
    is_begun: bool = False,
) -> ThrottleRecord:
    """Return what looks as if an earlier run of this plan had left it on the cluster.

    That is rates that this plan sets, and list items that a stage of it adds, unless they were there when the plan was
    made, which keeps the throttles seen then. Rates go on first and off last: without one, no item is ours. Anybody
    may cordon a broker by the same `*`, so one is ours only beside a rate of ours, or where a run `is_begun` that is
    not known here.
    """
    ours = our_rates(plan)
    has_rate = any(config.get(key) in ours for config in broker_configs.values() for key in BROKER_THROTTLES)
    rates = _rates_left(plan, broker_configs, ())
    return ThrottleRecord(
        _rates_left(plan, broker_configs, plan.cordoned) if rates or is_begun else rates,
        _lists_left(plan, topic_configs) if has_rate else {},
    )


def _rates_left(
    plan: Plan, configs: Mapping[int, Mapping[str, str]], cordoned: Iterable[int]
) -> dict[tuple[int, str], str | None]:
    ours = our_rates(plan)
    keys = [(broker, key) for broker in throttled_brokers(plan) for key in BROKER_THROTTLES]
    keys += [(broker, CORDONED_LOG_DIRS) for broker in cordoned]
    found: dict[tuple[int, str], str | None] = {}
    for broker, key in sorted(one for one in keys if one[0] in configs):
        value = configs[broker].get(key)
        before = plan.rollback.broker_throttles.get(broker, {}).get(key)
        if value in ours and value != before:
            found[broker, key] = before
    return found


def _lists_left(plan: Plan, configs: Mapping[str, Mapping[str, str]]) -> dict[tuple[str, str], Entry]:
    found: dict[tuple[str, str], Entry] = {}
    for (topic, key), items in sorted(throttled_lists(plan).items()):
        before = plan.rollback.topic_throttles.get(topic, {}).get(key)
        left = (items - set(parts(before))) & set(parts(configs.get(topic, {}).get(key)))
        if left:
            found[topic, key] = Entry(before, left)
    return found


def known_run(
    plan: Plan,
    events: Sequence[RunEvent],
    broker_configs: Mapping[int, Configs],
    topic_configs: Mapping[str, Configs],
    kept: KeptRun | None = None,
) -> KnownRun:
    """Return what is known of that plan's run; the configs are those of the brokers and topics that could be asked.

    `kept`: its record in the cluster, where there is one, which knows better than a journal of this machine.
    """
    record = kept.throttles if kept is not None else recorded_throttles(events)
    if kept is None and not has_ended_well(events):
        record = with_leftovers(plan, events, broker_configs, topic_configs)
    began = [event.time.isoformat() for event in events if event.step in RUNS and event.outcome is Outcome.STARTED]
    ours = our_rates(plan) | rates_once_asked(events) | (kept.ours if kept is not None else frozenset())
    return KnownRun(
        plan_id=plan.id,
        is_open=not kept.is_over if kept is not None else is_open(events),
        by=kept.started_by if kept is not None else None,
        began=kept.by.since if kept is not None else next(reversed(began), None),
        targets={key: frozenset(path.lists) for key, path in paths_of(plan).by_partition.items()},
        throttles=dict(_visible(ours, record, broker_configs, topic_configs)),
        unpaid=tuple(broker for broker in record.brokers if broker not in broker_configs),
    )


def with_leftovers(
    plan: Plan,
    events: Sequence[RunEvent],
    broker_configs: Mapping[int, Configs],
    topic_configs: Mapping[str, Configs],
    *,
    is_begun: bool = False,
) -> ThrottleRecord:
    """Return what the journal says is on the cluster, and what a run that died elsewhere may have put there.

    What looks like ours is ours, judged by what was there when this plan's runs, or else the plan, first looked.
    `is_begun`: the cluster shows that a run of the plan began; one without a journal here was started elsewhere.
    """
    record = recorded_throttles(events)
    first = replace(plan, rollback=first_seen(events, plan.rollback))
    found = leftovers(first, broker_configs, topic_configs, is_begun=is_begun and not events)
    missed = {key: entry for key, entry in found.lists.items() if key not in record.lists}
    return record.plus(ThrottleRecord(found.rates, missed))


def _visible(
    ours: Items,
    record: ThrottleRecord,
    broker_configs: Mapping[int, Configs],
    topic_configs: Mapping[str, Configs],
) -> Iterator[tuple[Key, str | None]]:
    """Yield what taking our part off would change, and to what; None: the key goes."""
    for (broker, key), before in sorted(record.rates.items()):
        if broker in broker_configs:
            value = broker_configs[broker].get(key)
            yield from _changed((broker, key), value, rate_restored(key, before, value, ours))
    for (topic, key), entry in sorted(record.lists.items()):
        if topic in topic_configs:
            value = topic_configs[topic].get(key)
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
    if not under_way and (session.kept is not None or not session.throttles.is_empty):
        with admin.lock(f"restoring the throttles of plan {plan.id}", waiting=notify) as session.lock:
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
    adopt_leftovers(session, observed, is_reading_needed=False)
    seen = (move.topic_partition for move in moves_under_way(session.paths, observed))
    return (*seen, *unseen_moves(session.paths, observed, hidden))
