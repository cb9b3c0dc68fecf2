"""Writes and reads the record of a run that is kept in the cluster: enough to clean up after it without its plan.

The journal stays the story of a run. This is only what nobody could tell without it: who runs which plan, how far it
is, what was there before each throttle, and the moves that may be in flight. It is kept as the metadata of the lock
group's offsets, which brokers bound (`offset.metadata.max.bytes`, 4 KiB a partition), so what moves imply is left out.

Whoever may read the group and `__consumer_offsets` can write a record, so it is a hint, never an order: `leftovers`
says what each verb takes from it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from hashlib import sha256
from typing import Any, Self

from reconciler.admin.port import Admin
from reconciler.apply.partition_path import cancelled
from reconciler.apply.throttles import Entry, Items, ThrottleRecord, parts, wanted_lists
from reconciler.model.cluster import (
    BROKER_LEASES,
    CORDONED_LOG_DIRS,
    FOLLOWER_THROTTLED_REPLICAS,
    TOPIC_THROTTLES,
)
from reconciler.model.lock import Holder
from reconciler.model.move import DirMove, Move, Reason
from reconciler.model.plan import OF_RECORD, Plan, Restore, Rollback, Source
from reconciler.model.problem import MissingRight
from reconciler.model.run import RECORDED
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition

_INSIDE = Reason.LOG_DIRS
UNREADABLE = "KR460"
VERSION = 1
"""Of the record's form; a record of another version is left as it is, and told of (KR460)."""


class RecordForm(Enum):
    """How much of a record is kept, the most first: brokers bound its length (`offset.metadata.max.bytes`)."""

    WHOLE = auto()
    SHORT = auto()
    """Without moves and the items of lists."""
    BARE = auto()
    """Without throttles: who runs which plan, since when, and by which rates."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run's record."""

    plan_id: str
    cluster_name: str
    by: Holder
    stage: int = 0
    """Where the run is, of `stages`."""
    stages: int = 0
    is_over: bool = False
    """The run has ended, and what stands here is still to be put back."""
    rate: int | None = None
    """What it was asked to throttle to meanwhile, in bytes per second."""
    ours: Items = frozenset()
    """Every value that it sets on brokers."""
    throttles: ThrottleRecord = field(default_factory=ThrottleRecord)
    moves: tuple[Move, ...] = ()
    """Those of its stage."""
    dir_moves: tuple[DirMove, ...] = ()
    """Those of its stage, where that moves replicas between log dirs."""
    leaders: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    """Who led before, where that is not the first replica."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = True
    """False where moves and the items of lists were too many to be kept: `completed` finds what the cluster shows."""
    is_bare: bool = False
    """Not even its throttles could be kept: it says who runs which plan, and by which rates."""
    other: str = ""
    """The record that stood there before, of another run: it is put back when this one ends."""

    def __str__(self) -> str:
        return f"the run of plan {self.plan_id} (started by {self.started_by} at {self.by.since})"

    @property
    def started_by(self) -> str:
        """Who started it, in words."""
        return f"{self.by.user} on {self.by.host}, process {self.by.pid}"

    def in_form(self, form: RecordForm) -> Self:
        """Return the record with as much as that form keeps."""
        is_whole = self.is_whole and form is RecordForm.WHOLE
        is_bare = self.is_bare or form is RecordForm.BARE
        return replace(self, is_whole=is_whole, is_bare=is_bare, other=self.other if is_whole else "")

    def plan(self, cluster_id: str) -> Plan:
        """Return as much of the plan as is kept: one stage, and the lists and leaders that its moves go back to."""
        back = (Restore(m.topic_partition, m.from_replicas, self._leader(m)) for m in self.moves)
        return Plan(
            self.cluster_name,
            cluster_id,
            Source(OF_RECORD),
            id=self.plan_id,
            digest=self.by.digest,
            stages=(self._stage(),) if self.moves or self.dir_moves else (),
            rollback=Rollback(tuple(back)),
            topic_ids=self.topic_ids,
        )

    def written(self) -> str:
        """Return the text that `read` takes."""
        return json.dumps(self._fields(), separators=(",", ":"))

    def _fields(self) -> dict[str, Any]:
        topics: dict[str, list[list[object]]] = {}
        for move in self.moves if self.is_whole else ():
            key = move.topic_partition
            row: list[object] = [key.partition, move.from_replicas, move.to_replicas, move.bytes]
            topics.setdefault(key.topic, []).append([*row, self.leaders[key]] if key in self.leaders else row)
        implied = wanted_lists(self._stage())
        more: dict[str, object] = {"dirs": self._dirs()} if self.dir_moves and self.is_whole else {}
        more |= {"other": self.other} if self.other else {}
        lists = [
            [*key, entry.before, *self._items(entry, implied.get(key, frozenset()))]
            for key, entry in sorted(self.throttles.lists.items())
        ]
        return {
            "version": VERSION,
            "plan": self.plan_id,
            "cluster": self.cluster_name,
            "by": self.by.written(),
            "stage": self.stage,
            "stages": self.stages,
            "over": self.is_over,
            "rate": self.rate,
            "ours": sorted(self.ours),
            "rates": None if self.is_bare else [[*key, before] for key, before in sorted(self.throttles.rates.items())],
            "lists": None if self.is_bare else lists,
            "moves": [[name, self.topic_ids.get(name), rows] for name, rows in sorted(topics.items())],
            "whole": self.is_whole,
            **more,
        }

    def _dirs(self) -> list[list[object]]:
        """Return the moves between log dirs by broker and by their two log dirs: paths are long, and are said once."""
        groups: dict[tuple[int, str, str], dict[str, list[list[int]]]] = {}
        for move in self.dir_moves:
            topics = groups.setdefault((move.broker, move.from_dir, move.to_dir), {})
            topics.setdefault(move.topic_partition.topic, []).append([move.topic_partition.partition, move.bytes])
        return [
            [*place, [[name, self.topic_ids.get(name), rows] for name, rows in sorted(topics.items())]]
            for place, topics in sorted(groups.items())
        ]

    def _items(self, entry: Entry, implied: Items) -> list[str]:
        """Return a list's items where the moves do not imply them."""
        is_implied = not self.is_whole or entry.items == implied - set(parts(entry.before))
        return [] if is_implied else [",".join(sorted(entry.items))]

    def _leader(self, move: Move) -> int | None:
        return self.leaders.get(move.topic_partition, move.from_replicas[0])

    def _stage(self) -> CopyingStage:
        rates = [int(value) for value in self.ours if value not in {"", "*"}]
        rate = self.rate or max(rates, default=None)
        if self.dir_moves:
            return LogDirsStage(self.stage, self.dir_moves, rate)
        return ReassignStage(self.stage, self.moves, rate)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the run in this text, None where it is no such text, or of a version that is not known here.

        Anybody who may read the group can write such a text, so each type, range and count in it is checked.
        """
        try:
            fields = json.loads(text) if len(text) <= MOST_CHARACTERS else {}
            by = Holder.read(fields["by"])
            if fields["version"] != VERSION or by is None:
                return None
            return cls._of(fields, by)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return None

    @classmethod
    def _of(cls, fields: Mapping[str, Any], by: Holder) -> Self:
        topics = [(_text(name, TOPIC), topic_id, rows) for name, topic_id, rows in fields["moves"]]
        rows = [(TopicPartition(name, _number(row[0])), row) for name, _, rows in topics for row in rows]
        moves = tuple(
            Move(key, _replicas(row[1]), _replicas(row[2]), _number(row[3], MOST_BYTES), Reason.BALANCE)
            for key, row in rows
        )
        inside = [
            (_text(name, TOPIC), topic_id, (_number(broker), _text(start, PATH), _text(end, PATH)), rows)
            for broker, start, end, dir_topics in fields.get("dirs", ())
            for name, topic_id, rows in dir_topics
        ]
        dir_moves = tuple(
            DirMove(TopicPartition(name, _number(number)), *place, _number(size, MOST_BYTES), _INSIDE)
            for name, _, place, rows in inside
            for number, size in rows
        )
        ids = [*((name, topic_id) for name, topic_id, _ in topics), *((name, one) for name, one, _, _ in inside)]
        rate = fields["rate"]
        run = cls(
            plan_id=_text(fields["plan"], NAME),
            cluster_name=_text(fields["cluster"], NAME),
            by=by,
            stage=_number(fields["stage"]),
            stages=_number(fields["stages"]),
            is_over=_flag(fields["over"]),
            rate=None if rate is None else _number(rate, MOST_BYTES),
            ours=frozenset(_text(value, RATE) for value in fields["ours"]),
            moves=moves,
            dir_moves=dir_moves,
            leaders={key: _number_or_none(row[4]) for key, row in rows if len(row) > 4},  # noqa: PLR2004 - the form of a row
            topic_ids={name: _text(topic_id, TOPIC) for name, topic_id in ids if topic_id is not None},
            is_whole=_flag(fields["whole"]),
            is_bare=fields["rates"] is None,
            other=_text(fields.get("other", ""), ANYTHING),
        )
        places = [*(move.topic_partition for move in moves), *((one.topic_partition, one.broker) for one in dir_moves)]
        is_still = any(move.from_replicas == move.to_replicas for move in moves)
        is_still = is_still or any(one.from_dir == one.to_dir for one in dir_moves)
        if len(places) > MOST_MOVES or len({*places}) < len(places) or is_still or (moves and dir_moves):
            raise ValueError(places)
        return run if run.is_bare else replace(run, throttles=run._throttles_in(fields))

    def _throttles_in(self, fields: Mapping[str, Any]) -> ThrottleRecord:
        rates = {(_number(broker), key): before for broker, key, before in fields["rates"] if key in BROKER_LEASES}
        for (_, key), before in rates.items():
            _text("" if before is None else before, PATH if key == CORDONED_LOG_DIRS else RATE)
        implied = wanted_lists(self._stage())
        lists = {
            (_text(topic, TOPIC), key): _entry(
                None if before is None else _text(before, ITEMS),
                [_text(each, ITEMS) for each in items],
                implied.get((topic, key), frozenset()),
            )
            for topic, key, before, *items in fields["lists"]
            if key in TOPIC_THROTTLES
        }
        if max(len(rates), len(lists)) > MOST_MOVES:
            raise ValueError(len(rates), len(lists))
        return ThrottleRecord(rates, lists)


MOST_MOVES = 20_000
"""Of one record. Two lists a topic, and so many rates, may stand there too."""
MOST_CHARACTERS = 2 * 1024 * 1024
"""Of one record as text: 20,000 moves take half of them."""
MOST_BYTES = 2**63 - 1
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
NAME = re.compile(r"[\w.-]{1,255}")
RATE = re.compile(r"\*|\s*[0-9]{0,19}\s*")
PATH = re.compile(r"[^\x00-\x1f]{0,4096}")
ITEMS = re.compile(r"[0-9:,*\s]*")
ANYTHING = re.compile(r".*", re.DOTALL)


def _number(value: object, most: int = 2**31 - 1) -> int:
    """Return a whole number from 0 to `most`; raises ValueError for anything else."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(value)
    return value


def _number_or_none(value: object) -> int | None:
    return None if value is None else _number(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - one error for whatever is not as it has to be
    return value


def _text(value: object, form: re.Pattern[str]) -> str:
    """Return a text of that form; raises ValueError for anything else."""
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise ValueError(value)
    return value


def _replicas(value: Sequence[object]) -> tuple[int, ...]:
    """Return a list of replicas; raises ValueError where it is empty or names a broker twice."""
    replicas = tuple(map(_number, value))
    if not replicas or len({*replicas}) < len(replicas):
        raise ValueError(value)
    return replicas


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """What the cluster keeps of a run: a text, and the run in it, None where it is none that can be read here."""

    text: str = ""
    run: RunRecord | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what that text says."""
        return cls(text, RunRecord.read(text))

    @property
    def digest(self) -> str:
        """What tells this text from any other, in twelve characters."""
        return sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:12]

    def __str__(self) -> str:
        if self.run is not None:
            return f"{self.run} has left its record in the cluster"
        return (
            f"The cluster keeps a text ({self.digest}) in place of a run's record, and it is none that can be read here"
        )

    @property
    def untouched(self) -> str:
        """What is said of a record of another run, which a verb leaves alone."""
        if self.run is not None:
            name = self.run.cluster_name
            way = f"`reconciler doctor --cluster {name} --fix throttles` shows what it names, and asks"
            return f"{self}; others can write it, so nothing was touched by it: {way}"
        way = f"if no newer release runs here, `reconciler doctor --drop-record {self.digest}` removes it"
        return f"{self}: another release wrote it, or somebody else did. It is not believed, and stays; {way}"

    @property
    def code(self) -> str:
        """The code of that sentence."""
        return UNREADABLE if self.run is None else RECORDED


def kept_record(admin: Admin) -> KeptRecord:
    """Return what the last run left in the cluster; nothing where this user may not see it."""
    try:
        found = KeptRecord.of(admin.kept())
    except MissingRight:
        return KeptRecord()
    return found if found.run is None or found.run.is_whole else replace(found, run=_completed(found.run, admin))


def read_record(admin: Admin) -> RunRecord | None:
    """Return the record that the last run left in the cluster, None where there is none that can be read."""
    return kept_record(admin).run


def _entry(before: str | None, items: Sequence[str], implied: Items) -> Entry:
    given = frozenset(items[0].split(",")) - {""} if items else implied - set(parts(before))
    return Entry(before, given)


def _completed(run: RunRecord, admin: Admin) -> RunRecord:
    """Return the run with the items that its lists show now, and the moves in flight that these name.

    Such a move goes back to the order that Kafka's own cancel leaves: the one before is not known.
    """
    flights = admin.reassignments()
    topics = sorted({key.topic for key in flights}) if run.is_bare else run.throttles.topics
    configs = admin.topic_configs(topics) if topics else {}
    unnamed = {(topic, key): Entry(None) for topic in topics for key in TOPIC_THROTTLES} if run.is_bare else {}
    lists = {
        (topic, key): _entry(entry.before, (), frozenset(parts(configs.get(topic, {}).get(key))))
        for (topic, key), entry in {**unnamed, **run.throttles.lists}.items()
    }
    moves = []
    for key, one in sorted(flights.items()):
        entry = lists.get((key.topic, FOLLOWER_THROTTLED_REPLICAS), Entry(None))
        if one.adding_replicas and entry.items.issuperset(f"{key.partition}:{b}" for b in one.adding_replicas):
            before = cancelled(tuple(set(one.replicas) - set(one.adding_replicas)), one.target_replicas)
            moves.append(Move(key, before, one.target_replicas, 0, Reason.BALANCE, is_size_known=False))
    # A bare record does not know the values before the run, so it puts no throttle back.
    kept = ThrottleRecord() if run.is_bare else ThrottleRecord(run.throttles.rates, lists)
    return replace(run, throttles=kept, moves=tuple(moves))
