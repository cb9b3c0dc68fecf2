"""Finds runs that never told their end, reassignments of nobody known here, and throttles that no one waits for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.model.cluster import (
    ALTER_LOG_DIRS_RATE,
    BROKER_LEASES,
    BROKER_THROTTLES,
    CORDONED_LOG_DIRS,
    TOPIC_THROTTLES,
)
from reconciler.model.diagnosis import Finding, FoundThrottle, KnownRun, Whose
from reconciler.model.problem import Severity
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Vitals
from reconciler.model.words import counted, few, labelled, owner_name

_LONGEST_VALUE = 40
"""More of a throttled list than so many characters says nothing more."""
Flights = Mapping[TopicPartition, tuple[int, ...]]
"""The partitions in flight, and where each goes."""


def findings(vitals: Vitals, known: Sequence[KnownRun]) -> Iterator[Finding]:
    """Yield what is in flight and wrong, or not ours; `known` are the runs known here, the latest first."""
    flights = {key: one.target_replicas for key, one in vitals.cluster.partitions() if one.is_reassigning}
    owners = {
        key: next((run for run in known if target in run.targets.get(key, ())), None) for key, target in flights.items()
    }
    if vitals.locked_by is not None:
        text = f"the cluster is locked by {vitals.locked_by}: a run is going on"
        yield Finding("KR663", Severity.NOTE, text, "reconciler status --watch follows it")
    yield from _foreign({key: target for key, target in flights.items() if owners[key] is None})
    yield from _endless(vitals, flights)
    for run in known:
        ours = tuple(key for key, owner in owners.items() if owner is not None and owner.plan_id == run.plan_id)
        if vitals.locked_by is None and (run.is_open or ours):
            yield _left_by(run, ours)
        if run.unrestored and not (vitals.locked_by is not None and run.is_open):
            yield _unrestored(run)


def _foreign(flights: Flights) -> Iterator[Finding]:
    if flights:
        told = [f"{key} to {list(target)}" for key, target in sorted(flights.items())]
        what = f"{counted(len(flights), 'reassignment')} in flight that no plan known here asked for: {few(told)}"
        advice = "let it end, or see who started it: apply never touches it, and refuses a plan that moves the same"
        yield Finding("KR660", Severity.WARNING, what, advice, partitions=tuple(sorted(flights)))


def _endless(vitals: Vitals, flights: Flights) -> Iterator[Finding]:
    waiting: dict[int, list[TopicPartition]] = {}
    for key, target in sorted(flights.items()):
        for broker in target:
            if not vitals.cluster.is_alive(broker):
                waiting.setdefault(broker, []).append(key)
    for broker, keys in sorted(waiting.items()):
        what = f"{counted(len(keys), 'reassignment')} cannot end: broker {broker} is not alive: {few(keys)}"
        advice = "start the broker, or take them back: reconciler cancel, or kafka-reassign-partitions --cancel"
        yield Finding("KR661", Severity.ERROR, what, advice, brokers=(broker,), partitions=tuple(keys))


def _left_by(run: KnownRun, ours: tuple[TopicPartition, ...]) -> Finding:
    moving = f"; {counted(len(ours), 'move')} in flight: {few(ours)}" if ours else ""
    by = f", started by {run.by}" if run.by else ""
    open_since = f"has not told its end (it began {run.began}{by})"
    state = open_since if run.is_open else "has ended, but not all of its moves"
    what = f"the run of plan {run.plan_id} {state}: it crashed, or goes on elsewhere{moving}"
    advice = "if it does not go on: apply the plan again to finish it, or reconciler cancel to take it back"
    return Finding("KR662", Severity.WARNING, what, advice, partitions=ours)


def _unrestored(run: KnownRun) -> Finding:
    what = (
        f"{labelled('broker', run.unrestored)} may keep a throttle rate of the run of plan {run.plan_id}, and cannot "
        "be asked"
    )
    advice = "start it; then the next apply, cancel, or doctor --fix throttles takes the rate off"
    return Finding("KR673", Severity.WARNING, what, advice, brokers=run.unrestored)


def found_throttles(
    vitals: Vitals, known: Sequence[KnownRun], *, is_cleaned_up: bool = False
) -> tuple[FoundThrottle, ...]:
    """Return every throttle key that is set, brokers first, each with whose it is; `known`: the latest run first.

    Then those that are not set, where a run's record in the cluster says that they were.

    Of cordons, and of rates of copies between log dirs, only a run's: what an operator cordons is told with the log
    dirs, and the rate of theirs harms nothing.
    """
    cluster = vitals.cluster
    owners: list[tuple[int | str, Sequence[str], Mapping[str, str]]] = [
        *((broker.id, BROKER_LEASES, broker.configs) for broker in cluster.brokers.values()),
        *((topic.name, TOPIC_THROTTLES, topic.configs) for topic in cluster.topics.values()),
    ]
    set_there = [(owner, key, configs[key]) for owner, keys, configs in owners for key in keys if key in configs]
    claims = {place for run in known for place in run.claims}.difference((owner, key) for owner, key, _ in set_there)
    not_set = ((owner, key, None) for owner, key in sorted(claims, key=str))
    found = tuple(_found(*each, known, vitals) for each in (*set_there, *not_set))
    if not is_cleaned_up and (not known or any(run.is_record_bare for run in known)):
        found = _perhaps_of_a_run(found)
    ours_alone = {CORDONED_LOG_DIRS, ALTER_LOG_DIRS_RATE}
    return tuple(one for one in found if one.key not in ours_alone or one.whose is not Whose.OTHER)


def _found(owner: int | str, key: str, value: str | None, known: Sequence[KnownRun], vitals: Vitals) -> FoundThrottle:
    for run in known:
        for whose, after in ((Whose.RECORDED, run.claims), (Whose.LEFTOVER, run.throttles)):
            if (owner, key) in after:
                is_going = vitals.locked_by is not None and run.is_open
                found = Whose.RUN if is_going else whose
                return FoundThrottle(owner, key, value, found, run.plan_id, after[owner, key])
        if (owner, key) in run.undecided:
            return FoundThrottle(owner, key, value, Whose.UNDECIDED, run.plan_id)
    return FoundThrottle(owner, key, value, Whose.OTHER)


def _perhaps_of_a_run(found: Sequence[FoundThrottle]) -> tuple[FoundThrottle, ...]:
    """Return the throttles where no run is known: what runs set, and operators rarely do, may be a run's.

    That is a list of single replicas, as an operator throttles a topic by `*`; the rates of the brokers that it names,
    and the same rates of others; and `*` as the log dirs that are cordoned.
    """
    entries = [one for one in found if isinstance(one.owner, str) and one.value not in {None, "", "*"}]
    items = [item for one in entries for item in (one.value or "").split(",")]
    brokers = {int(item.rpartition(":")[2]) for item in items if ":" in item}
    perhaps = {(one.owner, one.key) for one in entries}
    rates = [one for one in found if one.key in BROKER_THROTTLES]
    # A run sets one rate everywhere. An entry does not name each of its brokers if `*` covers them.
    values = {one.value for one in rates if one.owner in brokers}
    perhaps |= {(one.owner, one.key) for one in rates if one.value in values}
    perhaps |= {(one.owner, one.key) for one in found if one.key == CORDONED_LOG_DIRS and one.value == "*"}
    return tuple(
        replace(one, whose=Whose.UNDECIDED) if (one.owner, one.key) in perhaps and one.whose is Whose.OTHER else one
        for one in found
    )


def of_throttles(throttles: Sequence[FoundThrottle], *, is_moving: bool) -> Iterator[Finding]:
    """Yield what is left over, of ours and of others; `is_moving`: some reassignment is in flight, and may need it."""
    for plan_id in sorted({one.plan_id for one in throttles if one.whose is Whose.LEFTOVER and one.plan_id}):
        left = [one for one in throttles if one.whose is Whose.LEFTOVER and one.plan_id == plan_id]
        what = f"{counted(len(left), 'throttle')} left by the run of plan {plan_id}: {few(_names(left))}; {_harm(left)}"
        advice = (
            "apply its plan again, or reconciler cancel: both take them off"
            if is_moving
            else "reconciler doctor --fix throttles"
        )
        yield _about(left, "KR670", Severity.WARNING, what, advice)
    for plan_id in sorted({one.plan_id for one in throttles if one.whose is Whose.RECORDED and one.plan_id}):
        claims = [one for one in throttles if one.whose is Whose.RECORDED and one.plan_id == plan_id]
        what = (
            f"{counted(len(claims), 'throttle')} left by the run of plan {plan_id}, as only its record in the cluster "
        )
        what += f"says, which others can write: {few(_names(claims))}"
        advice = "reconciler doctor --fix throttles shows what each goes back to, and asks"
        yield _about(claims, "KR675", Severity.WARNING, what, advice)
    for plan_id in sorted({one.plan_id for one in throttles if one.whose is Whose.UNDECIDED and one.plan_id}):
        perhaps = [one for one in throttles if one.whose is Whose.UNDECIDED and one.plan_id == plan_id]
        what = f"{counted(len(perhaps), 'throttle')} as plan {plan_id} sets it, and nothing else of a run: "
        advice = "nothing shows whether a run or somebody else set it; doctor never touches it"
        yield _about(perhaps, "KR674", Severity.WARNING, f"{what}{few(_names(perhaps))}", advice)
    unknown = {Whose.OTHER, Whose.UNDECIDED}
    others = [one for one in throttles if one.whose in unknown and one.plan_id is None and not is_moving]
    lists = [one for one in others if isinstance(one.owner, str) and one.value]
    rates = [one for one in others if isinstance(one.owner, int)]
    if lists:
        yield _about(
            lists,
            "KR671",
            Severity.WARNING,
            f"{counted(len(lists), 'list')} of throttled replicas that no run known here set, while nothing moves: "
            f"{few(_names(lists))}; a listed replica that falls out of the ISR is held back",
            "if it is nobody's: kafka-configs --alter --entity-type topics --entity-name TOPIC --delete-config KEY; "
            "doctor never touches it",
        )
    if rates:
        what = (
            f"{counted(len(rates), 'throttle rate')} that no run known here set, while nothing moves: "
            f"{few(_names(rates))}; a rate alone holds nothing back"
        )
        advice = "leave it if it is wanted for the next move; doctor never touches it"
        yield _about(rates, "KR672", Severity.NOTE, what, advice)


def _about(throttles: Sequence[FoundThrottle], code: str, severity: Severity, message: str, following: str) -> Finding:
    owners = {one.owner for one in throttles}
    brokers = tuple(sorted(owner for owner in owners if isinstance(owner, int)))
    topics = tuple(sorted(owner for owner in owners if isinstance(owner, str)))
    return Finding(code, severity, message, following, brokers=brokers, topics=topics)


def _harm(left: Sequence[FoundThrottle]) -> str:
    if all(one.key == CORDONED_LOG_DIRS for one in left):
        return "a cordoned broker gets no new replica"
    if all(one.key == ALTER_LOG_DIRS_RATE for one in left):
        return "what is copied between log dirs is held back"
    return "a listed replica that falls out of the ISR is held back too"


def _names(throttles: Sequence[FoundThrottle]) -> list[str]:
    return [
        f"{owner_name(one.owner)} {one.key}" + (" (not set)" if one.value is None else f"={_shortened(one.value)}")
        for one in throttles
    ]


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
