"""Writes and reads the record of a run that is kept in the cluster: enough to clean up after it without its plan.

The journal stays the story of a run. This is only what nobody could tell without it: who runs which plan, how far it
is, what was there before each throttle, and the moves that may be in flight. It is kept as the metadata of the lock
group's offsets, which brokers bound (`offset.metadata.max.bytes`, 4 KiB a partition), so what moves imply is left out.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Self

from reconciler.admin.port import Admin
from reconciler.apply.partition_path import cancelled
from reconciler.apply.throttles import Entry, Items, ThrottleRecord, parts, wanted_lists
from reconciler.model.cluster import BROKER_LEASES, FOLLOWER_THROTTLED_REPLICAS, TOPIC_THROTTLES
from reconciler.model.lock import Holder
from reconciler.model.move import DirMove, Move, Reason
from reconciler.model.plan import Plan, Restore, Rollback, Source
from reconciler.model.problem import MissingRight, Refused
from reconciler.model.stage import CopyingStage, LogDirsStage, ReassignStage
from reconciler.model.topic_partition import TopicPartition

_INSIDE = Reason.LOG_DIRS
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

    def __str__(self) -> str:
        return f"the run of plan {self.plan_id} (started by {self.started_by} at {self.by.since})"

    @property
    def started_by(self) -> str:
        """Who started it, in words."""
        return f"{self.by.user} on {self.by.host}, process {self.by.pid}"

    def in_form(self, form: RecordForm) -> Self:
        """Return the record with as much as that form keeps."""
        is_whole = self.is_whole and form is RecordForm.WHOLE
        return replace(self, is_whole=is_whole, is_bare=self.is_bare or form is RecordForm.BARE)

    def plan(self, cluster_id: str) -> Plan:
        """Return as much of the plan as is kept: one stage, and the lists and leaders that its moves go back to."""
        back = (Restore(m.topic_partition, m.from_replicas, self._leader(m)) for m in self.moves)
        return Plan(
            self.cluster_name,
            cluster_id,
            Source(""),
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
        inside = {"dirs": self._dirs()} if self.dir_moves and self.is_whole else {}
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
            **inside,
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
        rates = [int(value) for value in self.ours if value.isdecimal()]
        rate = self.rate or max(rates, default=None)
        if self.dir_moves:
            return LogDirsStage(self.stage, self.dir_moves, rate)
        return ReassignStage(self.stage, self.moves, rate)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Return the run in this text, None where it is no such text, or of a version that is not known here."""
        try:
            fields = json.loads(text)
            by = Holder.read(fields["by"])
            if fields["version"] != VERSION or by is None:
                return None
            return cls._of(fields, by)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            return None

    @classmethod
    def _of(cls, fields: Mapping[str, Any], by: Holder) -> Self:
        rows = [(TopicPartition(name, int(row[0])), row) for name, _, rows in fields["moves"] for row in rows]
        moves = tuple(Move(key, tuple(row[1]), tuple(row[2]), int(row[3]), Reason.BALANCE) for key, row in rows)
        inside = [
            (name, topic_id, DirMove(TopicPartition(name, int(number)), int(broker), start, end, int(size), _INSIDE))
            for broker, start, end, topics in fields.get("dirs", ())
            for name, topic_id, found in topics
            for number, size in found
        ]
        ids = [(name, topic_id) for name, topic_id, _ in (*fields["moves"], *inside)]
        run = cls(
            plan_id=fields["plan"],
            cluster_name=fields["cluster"],
            by=by,
            stage=fields["stage"],
            stages=fields["stages"],
            is_over=fields["over"],
            rate=fields["rate"],
            ours=frozenset(fields["ours"]),
            moves=moves,
            dir_moves=tuple(move for _, _, move in inside),
            leaders={key: row[4] for key, row in rows if len(row) > 4},  # noqa: PLR2004 - the form of a row
            topic_ids={name: topic_id for name, topic_id in ids if topic_id is not None},
            is_whole=fields["whole"],
            is_bare=fields["rates"] is None,
        )
        if run.is_bare:
            return run
        implied = wanted_lists(run._stage())
        throttles = ThrottleRecord(
            {(int(b), key): before for b, key, before in fields["rates"] if key in BROKER_LEASES},
            {
                (topic, key): _entry(before, items, implied.get((topic, key), frozenset()))
                for topic, key, before, *items in fields["lists"]
                if key in TOPIC_THROTTLES
            },
        )
        return replace(run, throttles=throttles)


class UnknownRecord(Refused):
    """What is kept in the cluster is no record that can be read here: nothing may be written over it (exit code 3)."""

    code = "KR460"


def read_record(admin: Admin) -> RunRecord | None:
    """Return the record that the last run left in the cluster, None where there is none, or none to be seen.

    Raises UnknownRecord.
    """
    try:
        text = admin.kept()
    except MissingRight:
        return None
    run = RunRecord.read(text)
    if run is None and text:
        raise UnknownRecord(
            "The record of a run that is kept in the cluster cannot be read: another release of reconciler wrote it. "
            "Nothing was changed. Clean up after that run with that release, or with a newer one: `reconciler doctor "
            "--fix throttles`."
        )
    return run if run is None or run.is_whole else _completed(run, admin)


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
