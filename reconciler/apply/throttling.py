"""Puts throttles on a cluster, and records what was there before; `unthrottling` takes exactly them off again."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from reconciler.admin.port import Admin, Answer, ConfigChange, ConfigOperation
from reconciler.apply.course import itinerary
from reconciler.apply.crash import crash_point
from reconciler.apply.kept_run import KeptRun, kept_run
from reconciler.apply.known import has_ended_well, with_leftovers
from reconciler.apply.observed import Observed, look, replaced_topics
from reconciler.apply.seen import seen_detail
from reconciler.apply.session import (
    Session,
    lists_once_extended,
    rates_once_asked,
    recorded_throttles,
    refusal,
    refused,
    throttle_detail,
    told_answer,
)
from reconciler.apply.tally import moves_under_way
from reconciler.apply.throttles import (
    EVERYTHING,
    Entry,
    Items,
    ThrottleRecord,
    appended,
    lists_before,
    lists_to_extend,
    rates_to_set,
    throttled_brokers,
    throttled_lists,
    wanted_lists,
    wanted_rates,
)
from reconciler.model.cluster import CORDONED_LOG_DIRS
from reconciler.model.move import Move
from reconciler.model.problem import ClusterUnavailable, MissingRight
from reconciler.model.run import Outcome
from reconciler.model.stage import ReassignStage
from reconciler.model.wording import named_some

TOPICS_A_REQUEST = 500
_LOOK_AGAIN = frozenset({"INVALID_CONFIG"})
"""An APPEND to a list that became `*` since it was read; what is needed is computed anew."""


def adopt_leftovers(session: Session, observed: Observed, *, is_reading_needed: bool = True) -> None:
    """Take into the session's record what an earlier run of this plan left on the cluster.

    Where `is_reading_needed` is false, what cannot be read raises nothing: what is recorded goes by itself.

    The journal alone is believed where it tells of a run that reached the plan's end, and its moves are there still:
    else the plan may have been applied elsewhere since.
    """
    plan, events = session.itinerary.plan, session.journal.events
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
        is_begun = session.itinerary.is_begun(observed)
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
    return not has_ended_well(events) or session.itinerary.is_under_way(observed)


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
    is_own = kept is not None and kept.plan_id == session.itinerary.plan.id
    is_other = kept is not None and not is_own and bool(moves_of(kept, session.admin))
    session.kept, session.other_run = (None, kept) if is_other else (kept, None)


def moves_of(kept: KeptRun, admin: Admin) -> tuple[Move, ...]:
    """Return the moves of a recorded run that are in flight, or were cancelled without their order being restored."""
    course = itinerary(kept.plan(""))
    return moves_under_way(course, look(admin, course.topics, ids=kept.topic_ids))


def _adopt(session: Session, kept: KeptRun) -> None:
    """Take over what the cluster's own record says a run has left: it knows better than any guess."""
    is_own = kept.plan_id == session.itinerary.plan.id
    if not is_own and not kept.throttles.is_empty:
        owners = [
            *(f"broker {one}" for one in kept.throttles.brokers),
            *(f"topic {one}" for one in kept.throttles.topics),
        ]
        session.say(f"{kept} has left throttles, which come off first: {named_some(owners)}")
    earlier = ThrottleRecord() if is_own else session.throttles
    session.throttles = earlier.with_rates(kept.throttles.rates).with_lists(kept.throttles.lists)
    session.other_rates |= kept.ours
    if is_own and kept.rate is not None and not kept.is_over:
        session.throttle_to(kept.rate)
        session.say(
            f"the throttle is {kept.rate} B/s, as this plan's run was asked for; reconciler throttle changes it"
        )


def _topic_configs(session: Session, names: Collection[str]) -> Mapping[str, Mapping[str, str]]:
    """Return the overrides of these topics; one that was made again since the plan is another, and left out."""
    configs = session.admin.topic_configs(names)
    replaced = replaced_topics(session.admin.topics(names), session.itinerary.plan.topic_ids)
    return {name: configs[name] for name in configs if name not in replaced}


def put_throttles(session: Session, stage: ReassignStage) -> frozenset[int] | None:
    """Put a stage's throttles on where they are missing; return the brokers that have them now.

    None where Kafka wants to be asked again; a broker that does not answer is left out.
    """
    rates, lists = wanted_rates(stage), wanted_lists(stage)
    topics = sorted({topic for topic, _ in lists})
    broker_configs = session.admin.broker_configs(sorted(rates)) if rates else {}
    topic_configs = session.admin.topic_configs(topics) if topics else {}
    ours = session.our_rates
    to_set = rates_to_set(rates, broker_configs, session.throttles, ours, session.confirmed_rates)
    first_lists = {**lists_before(topic_configs, session.earlier_lists), **session.first_lists}
    to_append = lists_to_extend(lists, topic_configs, session.confirmed_items, first_lists)
    if not to_set and not to_append:
        return frozenset(broker_configs)
    changed_rates = [(broker, change.key) for broker, changes in to_set.items() for change in changes]
    for broker, key in changed_rates:
        value = broker_configs[broker].get(key)
        if value is not None and value not in ours:
            # Somebody set it since an earlier run of the plan recorded what was there.
            session.first_rates[broker, key] = value
        session.first_rates.setdefault((broker, key), value)
    for topic, key in to_append:
        session.first_lists.setdefault((topic, key), first_lists.get((topic, key), topic_configs[topic].get(key)))
    # What this run found first is what was there before; what a later stage finds may be ours.
    added = ThrottleRecord(
        {key: session.first_rates[key] for key in changed_rates},
        {key: Entry(session.first_lists[key], items) for key, items in to_append.items()},
    )
    crash_point("intent.before")
    # The record goes before the deed: after a crash in between, there is merely nothing to take off.
    seen = seen_detail(session.throttles, broker_configs, topic_configs)
    session.tell("throttle", Outcome.STARTED, **throttle_detail(added), **seen)
    session.throttles = session.throttles.with_rates(added.rates).with_lists(added.lists)
    crash_point("intent.told")
    session.keep()
    crash_point("intent.written")
    is_settled = _set_rates(session, to_set) and _extend_lists(session, to_append)
    session.tell("throttle", Outcome.DONE if is_settled else Outcome.FAILED)
    return frozenset(broker_configs) if is_settled else None


def put_cordons(session: Session) -> None:
    """Cordon the log dirs of the brokers that the plan empties, so that Kafka gives them nothing new meanwhile.

    A cordon goes on once a move is under way: anybody may set the same `*`, and by the move or a rate, who has not this
    run's journal can tell whose it is. A broker that its operator cordons, or opens again during the run, stays as
    they want it. What cannot be cordoned is told, and emptied all the same.
    """
    brokers = () if session.are_cordons_on else session.itinerary.plan.cordoned
    configs = session.patiently(lambda: session.admin.broker_configs(brokers)) if brokers else {}
    log_dirs = session.patiently(lambda: session.admin.disks(sorted(configs))).log_dirs if configs else {}
    for broker in sorted(configs):
        key = (broker, CORDONED_LOG_DIRS)
        value = configs[broker].get(CORDONED_LOG_DIRS)
        # What an earlier run left was put back a moment ago, and may show still: the record knows better.
        is_known = key in session.first_rates
        before = session.first_rates.setdefault(key, value)
        is_closed = all(one.is_cordoned for one in log_dirs.get(broker, ())) and not is_known
        if key in session.throttles.rates or before == EVERYTHING or is_closed:
            continue
        added = ThrottleRecord({key: before})
        seen = seen_detail(session.throttles.with_rates(added.rates), {broker: configs[broker]}, {})
        session.tell("throttle", Outcome.STARTED, **throttle_detail(added), **seen)
        session.throttles = session.throttles.with_rates(added.rates)
        session.keep()
        crash_point("intent.written")
        refused_for = _cordon(session, broker)
        session.tell("throttle", Outcome.FAILED if refused_for else Outcome.DONE)
        if refused_for:
            session.say(f"broker {broker} is emptied without its log dirs being cordoned: {refused_for}")
    session.are_cordons_on = True


def _cordon(session: Session, broker: int) -> str | None:
    """Cordon a broker's log dirs; return why that was refused."""
    change = ConfigChange(CORDONED_LOG_DIRS, ConfigOperation.SET, EVERYTHING)
    try:
        answer = session.patiently(lambda: session.write(lambda: session.admin.alter_broker_configs(broker, [change])))
    except ClusterUnavailable as error:
        return str(error)
    crash_point("throttle.broker")
    return None if answer.is_ok else told_answer(answer)


def _set_rates(session: Session, to_set: Mapping[int, tuple[ConfigChange, ...]]) -> bool:
    answers: dict[int, Answer] = {}
    for broker, changes in to_set.items():
        answers[broker] = session.write(lambda b=broker, c=changes: session.admin.alter_broker_configs(b, c))  # type: ignore[misc]
        crash_point("throttle.broker")
        if answers[broker].is_ok:
            session.confirmed_rates.update({(broker, change.key): change.value for change in changes})
    final = refused(answers)
    if final:
        raise refusal("the throttle of brokers", final, session.itinerary.again)
    return all(answer.is_ok for answer in answers.values())


def _extend_lists(session: Session, to_append: Mapping[tuple[str, str], Items]) -> bool:
    answers = _alter_topics(session, appended(to_append), "throttle.topic")
    for topic, key in to_append:
        if answers[topic].is_ok:
            items = session.confirmed_items.get((topic, key), frozenset())
            session.confirmed_items[topic, key] = items | to_append[topic, key]
    final = {topic: answer for topic, answer in refused(answers).items() if answer.error not in _LOOK_AGAIN}
    if final:
        raise refusal("the throttle lists of topics", final, session.itinerary.again)
    return all(answer.is_ok for answer in answers.values())


def _alter_topics(session: Session, changes: Mapping[str, tuple[ConfigChange, ...]], point: str) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    for batch in topic_batches(changes):
        answers.update(session.write(lambda b=batch: session.admin.alter_topic_configs(b)))  # type: ignore[misc]
        crash_point(point)
    return answers


def topic_batches(changes: Mapping[str, Sequence[ConfigChange]]) -> Iterator[dict[str, tuple[ConfigChange, ...]]]:
    """Return the changes in parts as large as one request."""
    topics = sorted(changes)
    for start in range(0, len(topics), TOPICS_A_REQUEST):
        yield {topic: tuple(changes[topic]) for topic in topics[start : start + TOPICS_A_REQUEST]}
