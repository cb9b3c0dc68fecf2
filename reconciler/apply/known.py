"""What is known here of a plan's run, beside what the cluster shows: is it over, and which throttles are its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.admin.port import ConfigChange, ConfigOperation
from reconciler.apply.course import itinerary
from reconciler.apply.kept_run import KeptRun
from reconciler.apply.seen import first_seen
from reconciler.apply.session import rates_once_asked, recorded_throttles
from reconciler.apply.throttles import (
    Items,
    ThrottleRecord,
    leftovers,
    list_restored,
    our_rates,
    parts,
    rate_restored,
)
from reconciler.model.diagnosis import KnownRun
from reconciler.model.plan import Plan
from reconciler.model.run import Outcome, RunEvent

RUNS = frozenset({"run", "cancel"})
"""The steps whose start and end a journal tells."""

Configs = Mapping[str, str]
Key = tuple[int | str, str]


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
        targets={key: frozenset(course.lists) for key, course in itinerary(plan).courses.items()},
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
    return record.with_rates(found.rates).with_lists(missed)


def has_ended_well(events: Sequence[RunEvent]) -> bool:
    """Whether the last thing that the journal tells of runs is that one reached the plan's end.

    After a cancel the plan may have been applied again elsewhere, and that run have died.
    """
    told = [(event.step, event.outcome) for event in events if event.step in RUNS]
    return told[-1:] == [("run", Outcome.DONE)]


def is_open(events: Sequence[RunEvent]) -> bool:
    """Whether a run, or a cancel, began whose end the journal does not tell: it goes on, or it crashed."""
    told = [event for event in events if event.step in RUNS]
    return bool(told) and told[-1].outcome is Outcome.STARTED


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
