"""Puts throttles on a cluster, records what was there before, and takes exactly them off again.

Clean-up never ends at the first error: Kafka itself never removes a throttle, and a listed replica that falls out of
the ISR for another reason is throttled too. So each rate and each list is taken off by itself.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from reconciler.apply.answers import (
    Trouble,
    as_far_as_visible,
    refusal,
    refused,
    removed_key,
    told_answer,
    tried,
    trouble_of,
)
from reconciler.apply.crash import crash_point
from reconciler.apply.journal import seen_detail, throttle_detail
from reconciler.apply.observed import Observed, lasting, replaced_topics
from reconciler.apply.session import TRIES, Session
from reconciler.apply.throttles import (
    EVERYTHING,
    Configs,
    Entry,
    Items,
    Key,
    ThrottleRecord,
    appended,
    leftovers_of,
    list_restored,
    lists_before,
    lists_to_extend,
    parts,
    rate_keys,
    rate_restored,
    rates_to_set,
    recorded_problems,
    throttled_lists,
    wanted_lists,
    wanted_rates,
)
from reconciler.model.change import ConfigChange, ConfigOperation
from reconciler.model.cluster import BROKER_LEASES, CORDONED_LOG_DIRS, CORDONS_REFUSED_SINCE, TOPIC_THROTTLES
from reconciler.model.config_rule import version_of
from reconciler.model.problem import ClusterUnavailable, Problem, ReconcilerError
from reconciler.model.run import Outcome
from reconciler.model.stage import CopyingStage, ReassignStage
from reconciler.model.words import named_some

if TYPE_CHECKING:
    from reconciler.admin.port import Admin, Answer

T = TypeVar("T")
K = TypeVar("K", int, str)

TOPICS_A_REQUEST = 500
"""Two keys a topic stay a tenth of the 10,000 records that the controller takes in one request."""
_LOOK_AGAIN = frozenset({"INVALID_CONFIG"})
"""An APPEND to a list that became `*` since it was read; what is needed is computed anew."""
_DEAD = Trouble("it is not alive")
_SILENT = Trouble("it does not answer", is_passing=True)
_SHOWN_AGAIN = Trouble("Kafka took the request, and a look afterwards shows the value still")
_NONE = Trouble("")


def put_throttles(session: Session, stage: CopyingStage) -> frozenset[int] | None:
    """Put a stage's throttles on where they are missing; return the brokers that have them now.

    None where Kafka wants to be asked again; a broker that does not answer is left out.
    """
    rates, lists = wanted_rates(stage), wanted_lists(stage)
    topics = sorted({topic for topic, _ in lists})
    broker_configs = session.admin.broker_configs(sorted(rates)) if rates else {}
    topic_configs = session.admin.topic_configs(topics) if topics else {}
    ours, known = session.our_rates, session.throttles
    keys = rate_keys(stage)
    to_set = rates_to_set(rates, broker_configs, known.on, ours, known.confirmed_rates, keys=keys)
    first_lists = {**lists_before(topic_configs, known.earlier_lists), **known.first_lists}
    to_append = lists_to_extend(lists, topic_configs, known.confirmed_items, first_lists)
    if not to_set and not to_append:
        return frozenset(broker_configs)
    changed_rates = [(broker, change.key) for broker, changes in to_set.items() for change in changes]
    for broker, key in changed_rates:
        value = broker_configs[broker].get(key)
        if value is not None and value not in ours:
            # Somebody set it since an earlier run of the plan recorded what was there.
            known.first_rates[broker, key] = value
        known.first_rates.setdefault((broker, key), value)
    for topic, key in to_append:
        known.first_lists.setdefault((topic, key), first_lists.get((topic, key), topic_configs[topic].get(key)))
    # What this run found first is what was there before; what a later stage finds may be ours.
    added = ThrottleRecord(
        {key: known.first_rates[key] for key in changed_rates},
        {key: Entry(known.first_lists[key], items) for key, items in to_append.items()},
    )
    crash_point("intent.before")
    _record(session, added, broker_configs, topic_configs)
    # Lists go on before rates and come off after them: whoever finds a rate of the plan's finds its entries beside it.
    is_settled = _extend_lists(session, to_append) and _set_rates(session, to_set)
    session.write_event("throttle", Outcome.DONE if is_settled else Outcome.FAILED)
    return frozenset(broker_configs) if is_settled else None


def _record(
    session: Session, added: ThrottleRecord, broker_configs: Mapping[int, Configs], topic_configs: Mapping[str, Configs]
) -> None:
    """Write down what is about to be put on. The record goes before the deed: a crash in between leaves nothing on."""
    seen = seen_detail(session.throttles.on.plus(added), broker_configs, topic_configs)
    session.write_event("throttle", Outcome.STARTED, **throttle_detail(added), **seen)
    session.throttles.on = session.throttles.on.plus(added)
    crash_point("intent.told")
    session.write_record()
    crash_point("intent.written")


def _set_rates(session: Session, to_set: Mapping[int, tuple[ConfigChange, ...]]) -> bool:
    answers: dict[int, Answer] = {}
    # One request a broker: each takes only its own rates, and one that fails would cost the others' answers.
    for broker, changes in to_set.items():
        answers[broker] = session.write(lambda b=broker, c=changes: session.admin.alter_broker_configs(b, c))  # type: ignore[misc]
        crash_point("throttle.broker")
        if answers[broker].is_ok:
            session.throttles.confirmed_rates.update({(broker, change.key): change.value for change in changes})
    final = refused(answers)
    if final:
        raise refusal("the throttle of brokers", final, session.paths.again)
    return all(answer.is_ok for answer in answers.values())


def _extend_lists(session: Session, to_append: Mapping[tuple[str, str], Items]) -> bool:
    answers: dict[str, Answer] = {}
    for batch in _topic_batches(appended(to_append)):
        answers.update(session.write(lambda b=batch: session.admin.alter_topic_configs(b)))  # type: ignore[misc]
        crash_point("throttle.topic")
    for topic, key in to_append:
        if answers[topic].is_ok:
            items = session.throttles.confirmed_items.get((topic, key), frozenset())
            session.throttles.confirmed_items[topic, key] = items | to_append[topic, key]
    final = {
        t: answer for t, answer in refused(answers).items() if answer.error not in _LOOK_AGAIN or removed_key(answer)
    }
    if final:
        raise refusal("the throttle lists of topics", final, session.paths.again)
    return all(answer.is_ok for answer in answers.values())


def _topic_batches(changes: Mapping[str, Sequence[ConfigChange]]) -> Iterator[dict[str, tuple[ConfigChange, ...]]]:
    topics = sorted(changes)
    for start in range(0, len(topics), TOPICS_A_REQUEST):
        yield {topic: tuple(changes[topic]) for topic in topics[start : start + TOPICS_A_REQUEST]}


def put_cordons(session: Session, stage_number: int) -> None:
    """Cordon the log dirs of the brokers that the plan empties, so that Kafka gives them no new replica meanwhile.

    Since 4.4 a cordon waits while a list of this stage, or of a later one, names its broker: Kafka refuses such a list.
    A cordon goes on once a move is under way. Anybody may set the same `*`, and the move, or a rate, shows a machine
    without the run's journal that the cordon is the run's. A broker that its operator cordons, or opens again during
    the run, stays as they want it. If Kafka refuses a cordon, the run says so and empties the broker all the same.
    """
    brokers = {*session.paths.plan.cordoned} - session.throttles.closed
    if brokers and refuses_cordoned(session.admin):
        stages = (stage for stage in session.paths.plan.stages if stage.number >= stage_number)
        moves = (move for stage in stages if isinstance(stage, ReassignStage) for move in stage.moves)
        brokers = brokers.difference(*(move.to_replicas for move in moves))
    configs = session.patiently(lambda: session.admin.broker_configs(sorted(brokers))) if brokers else {}
    log_dirs = session.patiently(lambda: session.admin.disks(sorted(configs))).log_dirs if configs else {}
    for broker in sorted(configs):
        key = (broker, CORDONED_LOG_DIRS)
        # What an earlier run left was put back a moment ago, and may show still: the record knows better.
        is_known = key in session.throttles.first_rates
        before = session.throttles.first_rates.setdefault(key, configs[broker].get(CORDONED_LOG_DIRS))
        is_closed = all(one.is_cordoned for one in log_dirs.get(broker, ())) and not is_known
        if key in session.throttles.on.rates or before == EVERYTHING or is_closed:
            continue
        _record(session, ThrottleRecord({key: before}), {broker: configs[broker]}, {})
        refused_for = _cordon(session, broker)
        session.write_event("throttle", Outcome.FAILED if refused_for else Outcome.DONE)
        if refused_for:
            session.say(f"broker {broker} is emptied without its log dirs being cordoned: {refused_for}")
    session.throttles.closed.update(brokers)


def refuses_cordoned(admin: "Admin") -> bool:
    """Whether the controller takes no list that names a cordoned broker; an unknown release is taken for a new one."""
    version = version_of(admin.features().kafka_version)
    return version is None or version >= CORDONS_REFUSED_SINCE


def take_cordons_off(session: Session, brokers: Collection[int]) -> bool:
    """Take all cordons of this plan off if any of these brokers has one; return whether any has."""
    is_cordoned = any((broker, CORDONED_LOG_DIRS) in session.throttles.on.rates for broker in brokers)
    if is_cordoned:
        _CleanUp(session).rates({CORDONED_LOG_DIRS})
        session.throttles.closed.clear()
    return is_cordoned


def _cordon(session: Session, broker: int) -> str | None:
    """Cordon a broker's log dirs; return why that was refused."""
    change = ConfigChange(CORDONED_LOG_DIRS, ConfigOperation.SET, EVERYTHING)
    try:
        answer = session.patiently(lambda: session.write(lambda: session.admin.alter_broker_configs(broker, [change])))
    except ClusterUnavailable as error:
        return str(error)
    crash_point("throttle.broker")
    return None if answer.is_ok else told_answer(answer)


def take_all_off(session: Session, *, has_moves: bool = False) -> None:
    """Bring every throttle back to what it was; what cannot be is named in the session's leftovers, never raised.

    While moves of the plan are in flight, throttles stay on: a copy would go on at full speed. This is called once they
    have ended, or were taken back, or cannot be taken back: then the run is over, and nothing would take them off.

    `has_moves`: moves go on, and whoever takes them back later needs the record in the cluster.
    Only a lost lock is raised at once, and a journal that cannot be written once all has been tried.
    """
    left, unwritten = _cleaned_up(session, BROKER_LEASES, is_run_over=True)
    session.leftover_throttles = [*left, *_still_on(session)]
    session.throttles.recorded = _still_claimed(session)
    session.leftover_throttles += recorded_problems(session.throttles.recorded)
    with suppress(ReconcilerError):  # without an answer, the lock or the right, the record stays
        if session.throttles.on.is_empty and session.throttles.recorded.is_empty and not has_moves:
            session.erase_record()
        elif session.record is not None:
            session.write_record(is_over=True)
    if unwritten is not None:
        raise unwritten


def take_throttles_off(session: Session) -> None:
    """Take rates and lists off at the end of a stage, and leave cordons on; what stays on is in the record.

    A request without an answer is repeated until it is answered: it could still take effect, and take the throttle of
    the next stage off.
    """
    _, unwritten = _cleaned_up(session, {*BROKER_LEASES} - {CORDONED_LOG_DIRS}, is_run_over=False)
    if unwritten is not None:
        raise unwritten


def _cleaned_up(
    session: Session, keys: Collection[str], *, is_run_over: bool
) -> tuple[list[Problem], Exception | None]:
    """Take these keys of brokers and all lists off; return what is left, and the journal's first fault.

    If the run is over, its last try writes what was recorded even where nothing could be read.
    """
    unwritten: Exception | None = None
    for attempt in range(TRIES):
        clean_up = _CleanUp(session, is_last=is_run_over and attempt == TRIES - 1)
        troubles = {**clean_up.rates(keys), **clean_up.lists()}
        unwritten = unwritten or clean_up.unwritten
        if not any(one.is_passing for one in troubles.values()):
            break
        if attempt < TRIES - 1:
            session.pause(attempt)
    return leftovers_of(session.throttles.on, troubles), unwritten


def _still_on(session: Session) -> list[Problem]:
    """Look at what was put back, and return what is on still; it is in the session's record again."""
    shown = lasting(session.admin.clock, lambda: _shown(session), is_gone=lambda throttles: throttles.is_empty)
    session.throttles.on = session.throttles.on.plus(shown)
    session.throttles.taken_off = ThrottleRecord()
    return leftovers_of(shown, dict.fromkeys([*shown.rates, *shown.lists], _SHOWN_AGAIN))


def _still_claimed(session: Session) -> ThrottleRecord:
    """Return what only the record says, and what a look does not show to be as it was before."""
    recorded, ours = session.throttles.recorded, session.our_rates
    if recorded.is_empty:
        return recorded
    found = tried(lambda: session.admin.broker_configs(recorded.brokers)) if recorded.rates else {}
    seen = (
        tried(lambda: as_far_as_visible(session.admin.topic_configs, recorded.topics)) if recorded.lists else ({}, {})
    )
    brokers = {} if isinstance(found, Trouble) else found
    topics = {} if isinstance(seen, Trouble) else seen[0]
    return ThrottleRecord(
        {
            (broker, key): before
            for (broker, key), before in recorded.rates.items()
            if broker not in brokers or brokers[broker].get(key) in {*ours, None} - {before}
        },
        {
            (topic, key): entry
            for (topic, key), entry in recorded.lists.items()
            if (value := topics.get(topic, {}).get(key)) != entry.before
            and (entry.items & {*parts(value)} or (topic in topics and value is None))
        },
    )


def _shown(session: Session) -> ThrottleRecord:
    """Return what of that which was put back a look shows to be on; what cannot be read is believed to be back."""
    off, ours = session.throttles.taken_off.less(session.throttles.on), session.our_rates
    found = tried(lambda: session.admin.broker_configs(off.brokers)) if off.rates else {}
    brokers = {} if isinstance(found, Trouble) else found
    seen = tried(lambda: as_far_as_visible(session.admin.topic_configs, off.topics)) if off.lists else ({}, {})
    topics = {} if isinstance(seen, Trouble) else seen[0]
    rates = {
        (broker, key): before
        for (broker, key), before in off.rates.items()
        if (value := brokers.get(broker, {}).get(key)) in ours and value != before
    }
    lists = {
        (topic, key): replace(entry, items=items)
        for (topic, key), entry in off.lists.items()
        if (items := entry.items - {*parts(entry.before)} & {*parts(topics.get(topic, {}).get(key))})
    }
    return ThrottleRecord(rates, lists)


@dataclass(slots=True)
class _CleanUp:
    """One try at everything that is recorded: each broker and topic by itself, whatever becomes of the others."""

    session: Session
    is_last: bool = False
    """Another look would not help: what cannot be read is taken to be as this run left it."""
    barred: Trouble | None = None
    """Why nothing can be written at all just now."""
    unwritten: Exception | None = None
    """The journal's first fault."""
    unseen: dict[int | str, Trouble] = field(default_factory=dict)
    """The brokers and topics that could not be read, and why."""

    def lists(self) -> Mapping[Key, Trouble]:
        """Take our entries off the topics' lists; return what kept some from it: these stay in the record."""
        throttles = ThrottleRecord(lists=self.session.throttles.on.lists)
        if throttles.is_empty:
            return {}
        configs, troubles = self._topic_configs()
        changes = self._list_changes(configs, troubles)
        # A list that Kafka never confirmed, and that shows no item of ours, is no debt if the topic takes no change.
        unset = {
            (topic, key)
            for (topic, key), entry in throttles.lists.items()
            if topic in configs and not entry.items & {*parts(configs[topic].get(key))}
        } - self.session.throttles.confirmed_items.keys()
        self.session.throttles.confirmed_items.clear()
        troubles |= self._alter_topics(changes)
        # A policy may refuse one of a topic's two keys, and Kafka then changes neither: each is tried alone.
        for key in TOPIC_THROTTLES:
            alone = {one: changes[one] for one in changes if one[1] == key and troubles.get(one, _NONE).is_of_one}
            for one in alone:
                del troubles[one]
            troubles |= self._alter_topics(alone)
        troubles = {key: trouble for key, trouble in troubles.items() if not (trouble.is_of_one and key in unset)}
        self._forget(ThrottleRecord(lists={key: one for key, one in throttles.lists.items() if key not in troubles}))
        return troubles

    def _topic_configs(self) -> tuple[Mapping[str, Configs], dict[Key, Trouble]]:
        """Return the lists as read, or as the run left them where they cannot be read; and those to look at again."""
        throttles, ask = self.session.throttles.on, self.session.admin.topic_configs
        found = tried(lambda: as_far_as_visible(ask, throttles.topics))
        configs, unread = ({}, dict.fromkeys(throttles.topics, found)) if isinstance(found, Trouble) else found
        waiting: dict[Key, Trouble] = {}
        left: dict[str, dict[str, str]] = {}
        for (topic, key), entry in throttles.lists.items():
            trouble = unread.get(topic)
            if trouble is not None and self._forbids_a_try(trouble):
                waiting[topic, key] = trouble
            elif trouble is not None:
                items = [*parts(entry.before), *sorted(entry.items - {*parts(entry.before)})]
                left.setdefault(topic, {})[key] = ",".join(items)
        self.unseen |= {topic: unread[topic] for topic in left}
        return {**configs, **left}, waiting

    def _list_changes(
        self, configs: Mapping[str, Configs], waiting: dict[Key, Trouble]
    ) -> dict[tuple[str, str], ConfigChange]:
        """Return the changes that take our items off; none for a topic that is another, or gone, or `waiting`."""
        throttles, plan, record = self.session.throttles.on, self.session.paths.plan, self.session.record
        found = tried(lambda: as_far_as_visible(self.session.admin.topics, throttles.topics))
        if isinstance(found, Trouble) and not self.is_last:
            waiting |= dict.fromkeys(throttles.lists, found)
            return {}
        ids = {**(record.topic_ids if record else {}), **plan.topic_ids}
        replaced = {} if isinstance(found, Trouble) else replaced_topics(found[0], ids)
        ours = throttled_lists(plan)
        changes: dict[tuple[str, str], ConfigChange] = {}
        for (topic, key), entry in sorted(throttles.lists.items()):
            value = configs.get(topic, {}).get(key)
            if topic in replaced:
                # What was meant for the topic before may have been put on this one; nothing else of it is touched.
                entry = Entry(None, entry.items & frozenset(parts(value)))  # noqa: PLW2901 - the same entry, as far as it is there
                if not entry.items:
                    continue
            change = list_restored(key, entry, value, ours.get((topic, key), entry.items))
            if change is not None and topic in configs and (topic, key) not in waiting:
                changes[topic, key] = change
        return changes

    def _alter_topics(self, changes: Mapping[tuple[str, str], ConfigChange]) -> dict[Key, Trouble]:
        """Send these changes, a topic's at once; return what kept some from being made."""
        by_topic: dict[str, list[ConfigChange]] = {}
        for (topic, _), change in changes.items():
            by_topic.setdefault(topic, []).append(change)
        found: dict[Key, Trouble] = {}
        for batch in _topic_batches(by_topic):
            told = self._written(lambda b=batch: self.session.admin.alter_topic_configs(b))  # type: ignore[misc]
            crash_point("unthrottle.topic")
            for topic in batch:
                # A topic that is gone has taken its lists with it.
                is_gone = not isinstance(told, Trouble) and told[topic].error == "UNKNOWN_TOPIC_OR_PARTITION"
                trouble = told if isinstance(told, Trouble) else trouble_of(told[topic])
                if trouble is not None and not is_gone:
                    found |= {(topic, change.key): trouble for change in batch[topic]}
        return found

    def rates(self, keys: Collection[str]) -> Mapping[Key, Trouble]:
        """Bring these keys of brokers back; return what kept some from it: a broker that cannot be asked keeps ours."""
        recorded = self.session.throttles.on.rates
        throttles = ThrottleRecord({one: before for one, before in recorded.items() if one[1] in keys})
        if throttles.is_empty:
            return {}
        configs, silent = self._broker_configs(throttles.brokers)
        troubles: dict[Key, Trouble] = {}
        for broker in throttles.brokers:
            rates = {key: before for (one, key), before in throttles.rates.items() if one == broker}
            if broker in silent:
                troubles |= {(broker, key): silent[broker] for key in rates}
            else:
                troubles |= self._restore_rates(broker, rates, configs.get(broker, {}))
        self._forget(ThrottleRecord({key: one for key, one in throttles.rates.items() if key not in troubles}))
        return troubles

    def _broker_configs(self, brokers: Sequence[int]) -> tuple[Mapping[int, Configs], Mapping[int, Trouble]]:
        """Return the configs of brokers that answer, and of the others why nothing is tried with them now."""
        ask = self.session.admin.broker_configs
        found = tried(lambda: ask(brokers))
        configs: dict[int, Configs] = {}
        unread: dict[int, Trouble] = {}
        for broker in brokers:
            is_alone = isinstance(found, Trouble) and not found.is_shut_out
            told = tried(lambda b=broker: ask([b])) if is_alone else found  # type: ignore[misc]
            if isinstance(told, Trouble):
                unread[broker] = told
            elif broker in told:
                configs[broker] = told[broker]
        missing = [broker for broker in brokers if broker not in configs and broker not in unread]
        registered = tried(self.session.admin.brokers) if missing else {}
        for broker in missing:
            if isinstance(registered, Trouble):
                unread[broker] = registered if registered.is_shut_out else _SILENT
            else:
                unread[broker] = _SILENT if Observed(brokers=registered).is_alive(broker) else _DEAD
        waiting = {b: one for b, one in unread.items() if one is _DEAD or self._forbids_a_try(one)}
        self.unseen |= {broker: unread[broker] for broker in sorted(unread.keys() - waiting.keys())}
        return configs, waiting

    def _forbids_a_try(self, unread: Trouble) -> bool:
        """Whether a value that could not be read stays: another look may show it, or brokers refuse this client."""
        return unread.is_shut_out or (unread.is_passing and not self.is_last)

    def _restore_rates(self, broker: int, keys: Mapping[str, str | None], config: Configs) -> dict[Key, Trouble]:
        """Bring one broker's rates back; return what kept some from it."""
        ours = self.session.our_rates
        changes = [rate_restored(key, before, config.get(key), ours) for key, before in sorted(keys.items())]
        needed = [change for change in changes if change is not None]
        if not needed:
            return {}
        for key in keys:
            self.session.throttles.confirmed_rates.pop((broker, key), None)
        trouble = self._alter_broker(broker, needed)
        if trouble is None:
            return {}
        if not trouble.is_of_one or len(needed) == 1:
            return {(broker, change.key): trouble for change in needed}
        alone = {change.key: self._alter_broker(broker, [change]) for change in needed}
        return {(broker, key): one for key, one in alone.items() if one is not None}

    def _alter_broker(self, broker: int, changes: Sequence[ConfigChange]) -> Trouble | None:
        told = self._written(lambda: self.session.admin.alter_broker_configs(broker, changes))
        crash_point("unthrottle.broker")
        return told if isinstance(told, Trouble) else trouble_of(told)

    def _written(self, request: Callable[[], T]) -> T | Trouble:
        """Send a request that writes; nothing is sent once it is known that nothing can be."""
        if self.barred is not None:
            return self.barred
        told = tried(lambda: self.session.write(request))
        if isinstance(told, Trouble) and told.is_of_all:
            self.barred = told
        return told

    def _say_unseen(self, what: str, owners: Sequence[K]) -> None:
        """Name the owners that were put back unread: somebody may have changed them since."""
        names = [one for one in owners if one in self.unseen]
        if names:
            text = f"put back as recorded, without a look at what is there now, {what} {named_some(names)}"
            text = f"{text}: {self.unseen[names[0]].why}"
            if text not in self.session.messages:
                self.session.messages.append(text)

    def _forget(self, gone: ThrottleRecord) -> None:
        if gone.is_empty:
            return
        self._say_unseen("brokers", gone.brokers)
        self._say_unseen("topics", gone.topics)
        crash_point("unthrottle.sent")
        self.session.throttles.taken_off = self.session.throttles.taken_off.plus(gone)
        try:
            self.session.write_event("unthrottle", Outcome.DONE, **throttle_detail(gone))
        except (OSError, ReconcilerError) as error:
            # The clean-up goes on without a journal; whoever called it is told then.
            self.unwritten = self.unwritten or error
        self.session.throttles.on = self.session.throttles.on.less(gone)
