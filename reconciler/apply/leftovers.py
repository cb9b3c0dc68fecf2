"""Finds what earlier runs left on the cluster, takes it over into a new run, or puts it back.

Three sources, the surest first: the record in the cluster, the journal of this machine, and last a guess: rates that
the plan sets, and list items that it adds, which were not there when the plan's runs first looked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.dir_moves import DirPlace, dir_place
from reconciler.apply.journal import Journal, Recorded, recorded
from reconciler.apply.observed import Observed, look, replaced_topics
from reconciler.apply.partition_path import paths_of
from reconciler.apply.run_record import RunRecord, read_record
from reconciler.apply.session import Session
from reconciler.apply.standings import under_way
from reconciler.apply.throttles import (
    Configs,
    Entry,
    Items,
    Key,
    ThrottleRecord,
    list_restored,
    our_rates,
    parts,
    rate_restored,
    throttled_brokers,
    throttled_lists,
    throttled_rates,
)
from reconciler.apply.throttling import take_all_off
from reconciler.apply.withdraw import seen_as_far_as_visible, unseen_moves
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import ALTER_LOG_DIRS_RATE, BROKER_THROTTLES, CORDONED_LOG_DIRS
from reconciler.model.diagnosis import KnownRun
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import RunEvent, RunResult, RunState
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some, rate


def adopt_leftovers(session: Session, observed: Observed, *, is_reading_needed: bool = True) -> None:
    """Take into the session's record what an earlier run of this plan left on the cluster.

    Where `is_reading_needed` is false, what cannot be read raises nothing: what is recorded goes by itself.

    If the journal says that a run reached the plan's end, and its moves are still in place, the journal is trusted.
    Otherwise the cluster is searched too, as the plan may have been applied from another machine since.
    """
    plan, told = session.paths.plan, recorded(session.journal.events)
    find_record(session)
    session.throttles, session.other_rates = told.throttles, told.rates_once_asked
    if session.record is not None:
        _adopt(session, session.record)
    elif _may_have_left_more(session, told, observed):
        brokers = sorted(throttled_brokers(plan).union(plan.cordoned))
        topics = sorted({topic for topic, _ in throttled_lists(plan)})
        try:
            broker_configs = session.admin.broker_configs(brokers) if brokers else {}
            topic_configs = session.admin.topic_configs(topics) if topics else {}
            # A topic that was made again since the plan is another one: nothing on it is ours.
            replaced = replaced_topics(session.admin.topics(topics), plan.topic_ids) if topics else {}
        except (MissingRight, ClusterUnavailable) as error:
            if is_reading_needed:
                raise
            session.say(f"what the plan's runs left and did not record could not be looked for: {error}")
            broker_configs, topic_configs, replaced = {}, {}, {}
        theirs = {name: topic_configs[name] for name in topic_configs if name not in replaced}
        is_begun = session.paths.is_begun(observed)
        session.throttles = _with_leftovers(plan, told, broker_configs, theirs, is_begun=is_begun)
    # A value that an earlier run set is not what was there before: its record says what was.
    session.first_rates = dict(session.throttles.rates)
    session.first_lists = {key: entry.before for key, entry in session.throttles.lists.items()}
    session.earlier_lists = {**session.throttles.lists, **told.lists_once_extended}


def _may_have_left_more(session: Session, told: Recorded, observed: Observed) -> bool:
    """Whether a run of this plan may have left what neither journal nor record tells of.

    If a record can be kept but there is none, no run needs cleaning up: a rate that looks like ours is somebody's own.
    """
    # Every run keeps its record before it puts the first throttle on, where the cluster takes one.
    if not told.has_events and session.other_record is None and _try_empty_record(session):
        return False
    is_at_end = all(dir_place(move, observed) is DirPlace.AT_END for move in session.paths.dir_moves)
    return not told.has_ended_well or session.paths.is_under_way(observed) or not is_at_end


def _try_empty_record(session: Session) -> bool:
    """Write an empty record, as none is there, and return whether the cluster took it: whether one can be kept."""
    lock = session.lock
    try:
        return lock is not None and session.patiently(lambda: lock.keep("")).is_ok
    except (MissingRight, ClusterUnavailable):
        return False


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


def _adopt(session: Session, record: RunRecord) -> None:
    """Take over what the cluster's own record says a run has left: it knows better than any guess."""
    is_own = record.plan_id == session.paths.plan.id
    if not is_own and not record.throttles.is_empty:
        owners = [
            *(f"broker {one}" for one in record.throttles.brokers),
            *(f"topic {one}" for one in record.throttles.topics),
        ]
        session.say(f"{record} has left throttles, which come off first: {named_some(owners)}")
    earlier = ThrottleRecord() if is_own else session.throttles
    session.throttles = earlier.plus(record.throttles)
    session.other_rates |= record.ours
    if is_own and record.rate is not None and not record.is_over:
        session.throttle_to(record.rate)
        adopted = f"the throttle is {rate(record.rate)}, as this plan's run was asked for"
        session.say(f"{adopted}; reconciler throttle changes it")


def leftovers(
    plan: Plan, broker_configs: Mapping[int, Configs], topic_configs: Mapping[str, Configs], *, is_begun: bool = False
) -> ThrottleRecord:
    """Return what looks as if an earlier run of this plan had left it on the cluster.

    That is rates that this plan sets, and list items that a stage of it adds, unless they were there when the plan was
    made, which keeps the throttles seen then. Rates go on first and off last: without one, no item is ours. Anybody
    may cordon a broker by the same `*`, so one is ours only beside a rate of ours, or where a run `is_begun` that is
    not known here.
    """
    ours, before = our_rates(plan), plan.rollback
    keys = (*BROKER_THROTTLES, ALTER_LOG_DIRS_RATE)
    has_rate = any(config.get(key) in ours for config in broker_configs.values() for key in keys)

    def rates_left(keys: Iterable[tuple[int, str]]) -> dict[tuple[int, str], str | None]:
        then = {(broker, key): before.broker_throttles.get(broker, {}).get(key) for broker, key in sorted(keys)}
        now = {(broker, key): broker_configs.get(broker, {}).get(key) for broker, key in then}
        return {at: then[at] for at in then if now[at] in ours and now[at] != then[at]}

    rates = rates_left(throttled_rates(plan))
    cordons = rates_left((broker, CORDONED_LOG_DIRS) for broker in plan.cordoned) if rates or is_begun else {}
    lists: dict[tuple[str, str], Entry] = {}
    for (topic, key), items in sorted(throttled_lists(plan).items()) if has_rate else ():
        then = before.topic_throttles.get(topic, {}).get(key)
        left = (items - set(parts(then))) & set(parts(topic_configs.get(topic, {}).get(key)))
        if left:
            lists[topic, key] = Entry(then, left)
    return ThrottleRecord(dict(sorted({**rates, **cordons}.items())), lists)


def known_run(
    plan: Plan,
    events: Sequence[RunEvent],
    broker_configs: Mapping[int, Configs],
    topic_configs: Mapping[str, Configs],
    record: RunRecord | None = None,
) -> KnownRun:
    """Return what is known of that plan's run; the configs are those of the brokers and topics that could be asked.

    `record`: the one in the cluster, where there is one, which knows better than a journal of this machine.
    """
    told = recorded(events)
    throttles = record.throttles if record is not None else told.throttles
    if record is None and not told.has_ended_well:
        throttles = _with_leftovers(plan, told, broker_configs, topic_configs)
    ours = our_rates(plan) | told.rates_once_asked | (record.ours if record is not None else frozenset())
    return KnownRun(
        plan_id=plan.id,
        is_open=not record.is_over if record is not None else told.is_open,
        by=record.started_by if record is not None else None,
        began=record.by.since if record is not None else told.began,
        targets={key: frozenset(path.lists) for key, path in paths_of(plan).by_partition.items()},
        throttles=dict(_visible(ours, throttles, broker_configs, topic_configs)),
        unrestored=tuple(broker for broker in throttles.brokers if broker not in broker_configs),
    )


def _with_leftovers(
    plan: Plan,
    told: Recorded,
    broker_configs: Mapping[int, Configs],
    topic_configs: Mapping[str, Configs],
    *,
    is_begun: bool = False,
) -> ThrottleRecord:
    """Return what the journal says is on the cluster, and what a run that died elsewhere may have put there.

    What looks like ours is ours, judged by what was there when this plan's runs, or else the plan, first looked.
    `is_begun`: the cluster shows that a run of the plan began; one without a journal here was started elsewhere.
    """
    first = replace(plan, rollback=told.first_seen(plan.rollback))
    found = leftovers(first, broker_configs, topic_configs, is_begun=is_begun and not told.has_events)
    missed = {key: entry for key, entry in found.lists.items() if key not in told.throttles.lists}
    return told.throttles.plus(ThrottleRecord(found.rates, missed))


def _visible(
    ours: Items, throttles: ThrottleRecord, broker_configs: Mapping[int, Configs], topic_configs: Mapping[str, Configs]
) -> Iterator[tuple[Key, str | None]]:
    """Yield what taking our part off would change, and to what; None: the key goes."""
    for (broker, key), before in sorted(throttles.rates.items()):
        if broker in broker_configs:
            value = broker_configs[broker].get(key)
            yield from _changed((broker, key), value, rate_restored(key, before, value, ours))
    for (topic, key), entry in sorted(throttles.lists.items()):
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
    if not under_way and (session.record is not None or not session.throttles.is_empty):
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
    adopt_leftovers(session, observed, is_reading_needed=False)
    seen = (move.topic_partition for move in under_way(session.paths, observed))
    return (*seen, *unseen_moves(session.paths, observed, hidden))
