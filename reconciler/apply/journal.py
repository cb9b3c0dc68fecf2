"""Reads from, and writes to, the journal of a plan's runs; the file behind it is handed in by the workflow.

A journal is an aid, never the truth: a run ends right without it. So whatever in it does not look as expected is passed
over, and it can name no config that a run does not change.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from reconciler.apply.throttles import Entry, Items, ThrottleRecord
from reconciler.model.cluster import BROKER_LEASES, TOPIC_THROTTLES
from reconciler.model.plan import Rollback
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunEvent, RunFailed

RUNS = frozenset({"run", "cancel"})
"""The steps whose start and end a journal tells."""

SEEN = "seen"
"""The member of an event's detail that tells what was there of throttles."""


class Journal(Protocol):
    """The events of one plan's runs. An aid, never the truth: without it a run must still end right."""

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start, oldest first."""

    def read_again(self) -> None:
        """Take into `events` what another process has written since the start."""

    def append(self, event: RunEvent, /) -> None:
        """Write one more event, durably: it is read again after a crash that follows."""


class MemoryJournal:
    """A journal that ends with the process: for a run whose record nobody keeps."""

    def __init__(self, events: Sequence[RunEvent] = ()) -> None:
        self._before = tuple(events)
        self.appended: list[RunEvent] = []

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start."""
        return self._before

    def read_again(self) -> None:
        """Change nothing: nobody else writes into this process."""

    def append(self, event: RunEvent, /) -> None:
        """Keep one more event."""
        self.appended.append(event)


class DispensableJournal:
    """A journal that whoever puts things back goes on without: that it cannot be written is told, once."""

    def __init__(self, journal: Journal, say: Callable[[str], None]) -> None:
        self._journal = journal
        self._say = say
        self._is_broken = False

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start."""
        return self._journal.events

    def read_again(self) -> None:
        """Take into `events` what another process has written since the start."""
        self._journal.read_again()

    def append(self, event: RunEvent, /) -> None:
        """Write one more event, unless one before it could not be written."""
        if self._is_broken:
            return
        try:
            self._journal.append(event)
        except (OSError, ReconcilerError) as error:
            self._is_broken = True
            code = f" ({error.code})" if isinstance(error, RunFailed) else ""
            self._say(f"{error}. This goes on without it: what is to be put back, the cluster shows{code}")


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


def recorded_throttles(events: Sequence[RunEvent]) -> ThrottleRecord:
    """Return what the journal says is on the cluster: what was put on and not taken off since."""
    record = ThrottleRecord()
    for event in events:
        if event.step == "throttle" and event.outcome is Outcome.STARTED:
            record = record.plus(ThrottleRecord(_rates_of(event), _lists_of(event)))
        if event.step == "unthrottle" and event.outcome is Outcome.DONE:
            record = record.less(ThrottleRecord(_rates_of(event), _lists_of(event)))
    return record


def lists_once_extended(events: Sequence[RunEvent]) -> Mapping[tuple[str, str], Entry]:
    """Return every list that runs have added to, taken off since or not: as it was before the last, and all items."""
    found: dict[tuple[str, str], Entry] = {}
    for event in events:
        if event.step == "throttle" and event.outcome is Outcome.STARTED:
            for key, entry in _lists_of(event).items():
                found[key] = Entry(entry.before, entry.items | found.get(key, entry).items)
    return found


def rates_once_asked(events: Sequence[RunEvent]) -> Items:
    """Return every rate that runs were asked to throttle to, and the plan's own beside it."""
    found = [event.detail.get("ours") for event in events if event.step == "rate"]
    return frozenset(str(rate) for rates in found if isinstance(rates, (list, tuple)) for rate in rates)


def throttle_detail(record: ThrottleRecord) -> dict[str, object]:
    """Return a throttle record as the detail of an event."""
    rates = [[broker, key, before] for (broker, key), before in sorted(record.rates.items())]
    lists = [[topic, key, e.before, ",".join(sorted(e.items))] for (topic, key), e in sorted(record.lists.items())]
    return {"rates": rates, "lists": lists}


def _rates_of(event: RunEvent) -> dict[tuple[int, str], str | None]:
    rows = _rows(event, "rates", 3, BROKER_LEASES)
    return {(int(str(row[0])), str(row[1])): _text(row[2]) for row in rows}


def _lists_of(event: RunEvent) -> dict[tuple[str, str], Entry]:
    rows = _rows(event, "lists", 4, TOPIC_THROTTLES)
    return {(str(r[0]), str(r[1])): Entry(_text(r[2]), frozenset(str(r[3]).split(",")) - {""}) for r in rows}


def _rows(event: RunEvent, name: str, width: int, keys: Collection[str]) -> list[list[object]]:
    """Return the rows of that name; a journal is an aid, so what does not look like one is passed over.

    So is any config that no run changes: a file must not be able to set it.
    """
    found = event.detail.get(name)
    if not isinstance(found, (list, tuple)):
        return []
    return [list(row) for row in found if isinstance(row, (list, tuple)) and len(row) == width and row[1] in keys]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


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
    for where, key, value in _seen_rows(events):
        if (where, key) in known:
            continue
        known.add((where, key))
        keys = brokers.setdefault(where, {}) if isinstance(where, int) else topics.setdefault(where, {})
        keys.pop(key, None)
        keys.update({} if value is None else {key: value})
    return replace(rollback, topic_throttles=topics, broker_throttles=brokers)


def _seen_rows(events: Sequence[RunEvent]) -> Iterator[tuple[int | str, str, str | None]]:
    """Yield the rows of all events; a journal is an aid, so what does not look like one is passed over."""
    for event in events:
        found = event.detail.get(SEEN)
        for row in found if isinstance(found, list) else ():
            match row:
                case [int() | str() as where, str() as key, (None | str()) as value]:
                    yield where, key, value
