"""Finds whose each throttle is, and which of them no one waits for."""

from collections.abc import Iterator, Sequence

from reconciler.model.cluster import BROKER_LEASES, CORDONED_LOG_DIRS, TOPIC_THROTTLES
from reconciler.model.diagnosis import Finding, FoundThrottle, KnownRun, Whose
from reconciler.model.problem import Severity
from reconciler.model.vitals import Vitals
from reconciler.model.words import counted, few

_LONGEST_VALUE = 40


def found_throttles(vitals: Vitals, known: Sequence[KnownRun]) -> tuple[FoundThrottle, ...]:
    """Return every throttle key that is set, brokers first, each with whose it is; `known`: the latest run first.

    Of cordons only a run's: what an operator cordons is told with the log dirs.
    """
    cluster = vitals.cluster
    of_brokers = [
        _found(broker.id, key, broker.configs[key], known, vitals)
        for broker in cluster.brokers.values()
        for key in BROKER_LEASES
        if key in broker.configs
    ]
    of_brokers = [one for one in of_brokers if one.key != CORDONED_LOG_DIRS or one.whose is not Whose.OTHER]
    of_topics = [
        _found(topic.name, key, topic.configs[key], known, vitals)
        for topic in cluster.topics.values()
        for key in TOPIC_THROTTLES
        if key in topic.configs
    ]
    return (*of_brokers, *of_topics)


def _found(owner: int | str, key: str, value: str, known: Sequence[KnownRun], vitals: Vitals) -> FoundThrottle:
    for run in known:
        if (owner, key) in run.throttles:
            is_going = vitals.locked_by is not None and run.is_open
            whose = Whose.RUN if is_going else Whose.LEFTOVER
            return FoundThrottle(owner, key, value, whose, run.plan_id, run.throttles[owner, key])
    return FoundThrottle(owner, key, value, Whose.OTHER)


def findings(throttles: Sequence[FoundThrottle], *, is_moving: bool) -> Iterator[Finding]:
    """Yield what is left over, of ours and of others; `is_moving`: some reassignment is in flight, and may need it."""
    for plan_id in sorted({one.plan_id for one in throttles if one.whose is Whose.LEFTOVER and one.plan_id}):
        left = [one for one in throttles if one.whose is Whose.LEFTOVER and one.plan_id == plan_id]
        yield Finding(
            "KR670",
            Severity.WARNING,
            f"{counted(len(left), 'throttle')} left by the run of plan {plan_id}: {few(_names(left))}; {_harm(left)}",
            "apply its plan again, or reconciler cancel: both take them off"
            if is_moving
            else "reconciler doctor --fix throttles",
            brokers=_brokers(left),
            topics=_topics(left),
        )
    others = [one for one in throttles if one.whose is Whose.OTHER]
    lists = [one for one in others if isinstance(one.owner, str) and one.value]
    rates = [one for one in others if isinstance(one.owner, int)]
    if lists and not is_moving:
        yield Finding(
            "KR671",
            Severity.WARNING,
            f"{counted(len(lists), 'list')} of throttled replicas that no run known here set, while nothing moves: "
            f"{few(_names(lists))}; a listed replica that falls out of the ISR is held back",
            "if it is nobody's: kafka-configs --alter --entity-type topics --entity-name TOPIC --delete-config KEY; "
            "doctor never touches it",
            brokers=_brokers(lists),
            topics=_topics(lists),
        )
    if rates and not is_moving:
        yield Finding(
            "KR672",
            Severity.NOTE,
            f"{counted(len(rates), 'throttle rate')} that no run known here set, while nothing moves: "
            f"{few(_names(rates))}; a rate alone holds nothing back",
            "leave it if it is wanted for the next move; doctor never touches it",
            brokers=_brokers(rates),
            topics=_topics(rates),
        )


def _harm(left: Sequence[FoundThrottle]) -> str:
    if all(one.key == CORDONED_LOG_DIRS for one in left):
        return "a cordoned broker gets no new replica"
    return "a listed replica that falls out of the ISR is held back too"


def _names(throttles: Sequence[FoundThrottle]) -> list[str]:
    return [
        f"{'broker' if isinstance(one.owner, int) else 'topic'} {one.owner} {one.key}={_shortened(one.value)}"
        for one in throttles
    ]


def _shortened(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."


def _brokers(throttles: Sequence[FoundThrottle]) -> tuple[int, ...]:
    return tuple(sorted({one.owner for one in throttles if isinstance(one.owner, int)}))


def _topics(throttles: Sequence[FoundThrottle]) -> tuple[str, ...]:
    return tuple(sorted({one.owner for one in throttles if isinstance(one.owner, str)}))
