"""Reads from, and writes to, the journal of a plan's runs; the file behind it is handed in by the workflow.

A journal is an aid, never the truth: a run ends right without it. So whatever in it does not look as expected is passed
over, and it can name no config that a run does not change.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from reconciler.apply.throttles import Configs, Entry, Items, ThrottleRecord
from reconciler.model.cluster import ALTER_LOG_DIRS_RATE, BROKER_LEASES, TOPIC_THROTTLES
from reconciler.model.plan import Rollback
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunEvent, RunFailed

RUNS = frozenset({"run", "cancel"})
"""The steps whose start and end a journal tells."""

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_HALF = re.compile("[\ud800-\udfff]")

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


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a journal tells of its plan's runs, read once."""

    has_events: bool
    is_open: bool
    """A run, or a cancel, began whose end is not told: it goes on, or it crashed."""
    has_ended_well: bool
    """The last thing told of runs is that one reached the plan's end. Not so after a cancel: the plan may have been
    applied again elsewhere, and that run have died."""
    began: str | None
    """When the last run, or cancel, began, in ISO 8601."""
    throttles: ThrottleRecord
    """What was put on and not taken off since."""
    lists_once_extended: Mapping[tuple[str, str], Entry]
    """Every list that runs have added to, taken off since or not: as it was before the last, and all items."""
    rates_once_asked: Items
    """Every rate that runs were asked to throttle to, and the plan's own beside it."""
    _seen: tuple[tuple[int | str, str, str | None], ...]

    def first_seen(self, rollback: Rollback) -> Rollback:
        """Return the rollback with the throttles that were there when the runs first looked at them."""
        topics = {topic: dict(keys) for topic, keys in rollback.topic_throttles.items()}
        brokers = {broker: dict(keys) for broker, keys in rollback.broker_throttles.items()}
        # The first look counts: later ones are read backwards, so that it is written last.
        for where, key, value in reversed(self._seen):
            keys = brokers.setdefault(where, {}) if isinstance(where, int) else topics.setdefault(where, {})
            keys.pop(key, None)
            keys.update({} if value is None else {key: value})
        return replace(rollback, topic_throttles=topics, broker_throttles=brokers)


def recorded(events: Sequence[RunEvent]) -> Recorded:
    """Return what these events, oldest first, tell of the runs of their plan."""
    throttles, lists = ThrottleRecord(), dict[tuple[str, str], Entry]()
    rates, seen = set[str](), []
    told = [event for event in events if event.step in RUNS]
    for event in events:
        if event.step == "throttle" and event.outcome is Outcome.STARTED:
            put = _throttles_of(event)
            throttles = throttles.plus(put)
            for key, entry in put.lists.items():
                lists[key] = Entry(entry.before, entry.items | lists.get(key, entry).items)
        elif event.step == "unthrottle" and event.outcome is Outcome.DONE:
            throttles = throttles.less(_throttles_of(event))
        elif event.step in RUNS and event.outcome is Outcome.DONE and event.detail.get("leftoverThrottles") == []:
            # It went by the cluster's record where there is one: what another machine took off stands in no line here.
            throttles = ThrottleRecord()
        elif event.step == "rate":
            ours = event.detail.get("ours")
            rates.update(map(str, ours) if isinstance(ours, (list, tuple)) else ())
        found = event.detail.get(SEEN)
        for row in found if isinstance(found, list) else ():
            match row:
                case [int() | str() as where, str() as name, (None | str()) as value] if _is_place(where) and (
                    value is None or _is_value(value)
                ):
                    seen.append((where, name, value))
    began = [event.time.isoformat() for event in told if event.outcome is Outcome.STARTED]
    return Recorded(
        has_events=bool(events),
        is_open=bool(told) and told[-1].outcome is Outcome.STARTED,
        has_ended_well=bool(told) and (told[-1].step, told[-1].outcome) == ("run", Outcome.DONE),
        began=began[-1] if began else None,
        throttles=throttles,
        lists_once_extended=lists,
        rates_once_asked=frozenset(rates),
        _seen=tuple(seen),
    )


def throttle_detail(record: ThrottleRecord) -> dict[str, object]:
    """Return a throttle record as the detail of an event."""
    rates = [[broker, key, before] for (broker, key), before in sorted(record.rates.items())]
    lists = [[topic, key, e.before, ",".join(sorted(e.items))] for (topic, key), e in sorted(record.lists.items())]
    return {"rates": rates, "lists": lists}


def _throttles_of(event: RunEvent) -> ThrottleRecord:
    """Return the record in an event's detail, less what does not look like one."""
    rates = _rows(event, "rates", 3, BROKER_LEASES)
    lists = _rows(event, "lists", 4, TOPIC_THROTTLES)
    put = [row for row in lists if isinstance(row[0], str) and _is_value(row[3])]
    return ThrottleRecord(
        {(int(str(row[0])), str(row[1])): _text(row[2]) for row in rates if type(row[0]) is int},
        {(str(r[0]), str(r[1])): Entry(_text(r[2]), frozenset(str(r[3]).split(",")) - {""}) for r in put},
    )


def _rows(event: RunEvent, name: str, width: int, keys: Collection[str]) -> list[list[object]]:
    """Return the rows of that name; none of a config that no run changes: a file must not be able to set it.

    A broken disk, or a hand, may have left anything in the others: they are passed over.
    """
    found = event.detail.get(name)
    if not isinstance(found, (list, tuple)):
        return []
    rows = [list(row) for row in found if isinstance(row, (list, tuple)) and len(row) == width]
    return [row for row in rows if _is_place(row[0]) and row[1] in keys and (row[2] is None or _is_value(row[2]))]


def _is_place(value: object) -> bool:
    """Whether that is a broker's id, or a topic's name, as Kafka allows them."""
    if isinstance(value, str):
        return _TOPIC.fullmatch(value) is not None
    return type(value) is int and 0 <= value < 2**31


def _is_value(value: object) -> bool:
    """Whether that is a text that can be sent: JSON may hold half of a character."""
    return isinstance(value, str) and _HALF.search(value) is None


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def seen_detail(
    ours: ThrottleRecord, brokers: Mapping[int, Configs], topics: Mapping[str, Configs]
) -> dict[str, object]:
    """Return what is there of throttles, less what is ours, as part of an event's detail: where, key, value."""
    seen: list[list[object]] = []
    for broker, config in sorted(brokers.items()):
        # Few runs have to do with log dirs, and most journals nothing to say of their rate.
        keys = [
            key for key in BROKER_LEASES if key != ALTER_LOG_DIRS_RATE or key in config or (broker, key) in ours.rates
        ]
        seen += [[broker, key, ours.rates.get((broker, key), config.get(key))] for key in keys]
    for topic, config in sorted(topics.items()):
        for key in TOPIC_THROTTLES:
            entry = ours.lists.get((topic, key))
            seen.append([topic, key, entry.before if entry else config.get(key)])
    return {SEEN: seen}
