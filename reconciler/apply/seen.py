"""What was there of throttles before this plan's runs, as far as a journal tells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.apply.throttles import ThrottleRecord
from reconciler.model.cluster import BROKER_LEASES, TOPIC_THROTTLES
from reconciler.model.plan import Rollback
from reconciler.model.run import RunEvent

SEEN = "seen"


def seen_detail(
    ours: ThrottleRecord, brokers: Mapping[int, Mapping[str, str]], topics: Mapping[str, Mapping[str, str]]
) -> dict[str, object]:
    """Return what is there of throttles, less what is ours, as part of an event's detail: where, key, value."""
    seen: list[list[object]] = []
    for broker, config in sorted(brokers.items()):
        seen += [[broker, key, ours.rates.get((broker, key), config.get(key))] for key in BROKER_LEASES]
    for topic, config in sorted(topics.items()):
        for key in TOPIC_THROTTLES:
            entry = ours.lists.get((topic, key))
            seen.append([topic, key, entry.before if entry else config.get(key)])
    return {SEEN: seen}


def first_seen(events: Sequence[RunEvent], rollback: Rollback) -> Rollback:
    """Return the rollback with the throttles that were there when the journal's runs first looked at them."""
    topics = {topic: dict(keys) for topic, keys in rollback.topic_throttles.items()}
    brokers = {broker: dict(keys) for broker, keys in rollback.broker_throttles.items()}
    known: set[tuple[int | str, str]] = set()
    for where, key, value in _rows(events):
        if (where, key) in known:
            continue
        known.add((where, key))
        keys = brokers.setdefault(where, {}) if isinstance(where, int) else topics.setdefault(where, {})
        keys.pop(key, None)
        keys.update({} if value is None else {key: value})
    return replace(rollback, topic_throttles=topics, broker_throttles=brokers)


def _rows(events: Sequence[RunEvent]) -> Iterator[tuple[int | str, str, str | None]]:
    """Yield the rows of all events; a journal is an aid, so what does not look like one is passed over."""
    for event in events:
        found = event.detail.get(SEEN)
        for row in found if isinstance(found, list) else ():
            match row:
                case [int() | str() as where, str() as key, (None | str()) as value]:
                    yield where, key, value
