"""Holds all partitions of a cluster as columns: what there may be a million of is no value each.

A row is a partition, in the order of topics and numbers. What looks at every partition computes with whole columns;
what looks at few takes a `Partition` from `Rows`, which makes it when it is asked for.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from reconciler.model.cluster import Partition
from reconciler.model.columns import NONE, Bools, Ints, distinct, lists_of, places_in
from reconciler.model.topic_partition import TopicPartition, named

UNTOLD = -2
"""In all of a row of `sizes` or `log_dirs`: the partition has no such list."""


class Rare(NamedTuple):
    """What few partitions have: a reassignment in flight, eligible leaders."""

    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


def beside(brokers: Ints, replicas: Ints, values: Ints) -> Ints:
    """Return the value [rows, some] of the replica on each of these brokers; NONE where a row has no replica there.

    `brokers`: [rows, some]; `replicas` and `values`: [rows, width], side by side.
    """
    found = np.full(brokers.shape, NONE, dtype=np.int64)
    for place in range(replicas.shape[1]):
        np.copyto(found, values[:, place : place + 1], where=brokers == replicas[:, place : place + 1])
    return found


@dataclass(frozen=True, eq=False)
class PartitionTable:
    """The columns, each with a row a partition. Lists of brokers are as wide as the longest, and end with NONE."""

    topics: tuple[str, ...]
    start: Ints  # [topics + 1]: the first row of each topic, and behind the last one
    number: Ints  # [rows]: the partition's number in its topic
    leader: Ints  # [rows]
    replicas: Ints  # [rows, width]: in order
    isr: Ints  # [rows, width of its own]
    sizes: Ints  # [rows, width]: bytes of each replica
    log_dirs: Ints  # [rows, width]: positions in `paths`
    paths: tuple[str, ...]
    end_offset: Ints  # [rows]
    untiered_bytes: Ints  # [rows]
    rare: Mapping[int, Rare]  # by row, ascending

    @cached_property
    def topic(self) -> Ints:
        """The position in `topics` of each row's topic."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.start))

    @cached_property
    def target(self) -> Ints:
        """The ordered replicas [rows, width] once the reassignments in flight have ended."""
        moving = [row for row, rare in self.rare.items() if rare.removing_replicas]
        if not moving:
            return self.replicas
        target = self.replicas.copy()
        for row in moving:
            staying = [one for one in target[row].tolist() if one not in self.rare[row].removing_replicas]
            target[row] = staying + [NONE] * (target.shape[1] - len(staying))
        return target

    @cached_property
    def brokers(self) -> Ints:
        """The brokers that hold a replica, or are to, ascending."""
        return distinct(self.target)

    @cached_property
    def place(self) -> Ints:
        """The position in `brokers` [rows, width] of each replica in `target`; NONE behind the last."""
        return places_in(self.brokers, self.target)

    @cached_property
    def factor(self) -> Ints:
        """How many replicas each partition has once the reassignments in flight have ended."""
        count: Ints = (self.target >= 0).sum(axis=1)
        return count

    @property
    def bytes_on_brokers(self) -> Ints:
        """Bytes of one replica in its log dir, as `Partition.bytes_on_brokers` says; below 0: unknown."""
        leaders = np.where(self.replicas == self.leader[:, None], self.sizes, NONE).max(axis=1, initial=NONE)
        known = np.where(leaders >= 0, leaders, self.sizes.max(axis=1, initial=NONE))
        return np.where((self.replicas < 0).all(axis=1), NONE, known)

    @cached_property
    def bytes_to_copy(self) -> Ints:
        """What one new replica copies, as `Partition.bytes_to_copy` says."""
        return np.where(self.untiered_bytes >= 0, self.untiered_bytes, self.bytes_on_brokers)

    @cached_property
    def lagging(self) -> Bools:
        """Which replicas [rows, width] are out of sync; none where nobody is in sync."""
        is_in = np.zeros(self.replicas.shape, dtype=np.bool_)
        for place in range(self.isr.shape[1]):
            is_in |= self.replicas == self.isr[:, place : place + 1]
        return (self.replicas >= 0) & ~is_in & (self.isr[:, :1] >= 0).any(axis=1, keepdims=True)

    @property
    def waiting(self) -> Bools:
        """Which preferred leaders are in sync and do not lead, as `in_sync.waiting_leader` says."""
        preferred = self.target[:, 0]
        is_in_sync = (self.isr == preferred[:, None]).any(axis=1)
        found: Bools = (preferred != self.leader) & (preferred >= 0) & is_in_sync
        return found

    @property
    def reassigning(self) -> list[int]:
        """The rows of which a reassignment is in flight."""
        return [row for row, rare in self.rare.items() if rare.adding_replicas or rare.removing_replicas]

    def sizes_on(self, rows: Ints, brokers: Ints) -> Ints:
        """Return the bytes [rows, some] that these rows have on these brokers, or would copy there; 0 where unknown."""
        found = beside(brokers, self.replicas[rows], self.sizes[rows])
        return np.where(found >= 0, found, np.maximum(self.bytes_to_copy[rows], 0)[:, None])

    def on_target(self, values: Ints) -> Ints:
        """Return what stands beside `replicas`, [rows, width], beside `target` instead; NONE for a new replica."""
        return values if self.target is self.replicas else beside(self.target, self.replicas, values)

    def rows_of(self, keys: Iterable[TopicPartition]) -> Ints:
        """Return the row of each of these partitions, NONE where there is no such partition."""
        wanted, position = [*keys], dict[str, int]()
        topic = np.array([position.setdefault(name, len(position)) for name, _ in wanted], dtype=np.int64)
        return self.rows_at((*position,), topic, np.array([number for _, number in wanted], dtype=np.int64))

    def rows_at(self, names: tuple[str, ...], topic: Ints, number: Ints) -> Ints:
        """Return the row of each partition of these columns, NONE where there is no such partition.

        `topic`: positions in `names`.
        """
        known = self._places.get(names)
        if known is None:
            position = {name: place for place, name in enumerate(self.topics)}
            known = np.array([position.get(name, NONE) for name in names], dtype=np.int64)
            self._places[names] = known
        place = known[topic]
        row = self.start[place] + number
        return np.where((place >= 0) & (row < self.start[place + 1]), row, NONE)

    def leaders(self, rows: Ints) -> Ints:
        """Return who leads each of these rows; NONE for nobody, and where the row is NONE."""
        found = np.full(len(rows), NONE, dtype=np.int64)
        found[rows >= 0] = self.leader[rows[rows >= 0]]
        return found

    def key(self, row: int) -> TopicPartition:
        """Return the row's topic and number."""
        return TopicPartition(self.topics[self.topic[row]], int(self.number[row]))

    def targets(self, rows: Ints) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        """Yield the key and the target replicas of each of these rows."""
        keys = named(self.topics, self.topic[rows].tolist(), self.number[rows].tolist())
        return zip(keys, lists_of(self.target[rows]), strict=True)

    def of_topic(self, position: int) -> "Rows":
        """Return the partitions of a topic."""
        return Rows(self, int(self.start[position]), int(self.start[position + 1]))

    def value(self, row: int) -> Partition:
        """Return that row as a value, made once: what is asked for by itself is asked for again."""
        made = self._made
        if row not in made:
            made[row] = next(self.values(row, row + 1))
        return made[row]

    def each(self, start: int, stop: int) -> Iterable[Partition]:
        """Return a topic's rows as values; who looks through a topic twice does so often, and then they are kept.

        A run does, and the simulated controller; a plan does not.
        """
        known, rows = self._looked_at, (start, stop)
        if rows not in known:
            known[rows] = None
            return self.values(start, stop)
        kept = known[rows]
        if kept is None:
            kept = known[rows] = (*self.values(start, stop),)
        return kept

    @cached_property
    def _places(self) -> dict[tuple[str, ...], Ints]:
        """The positions in `topics` of names that were asked for: those of a plan's moves are, many times."""
        return {}

    @cached_property
    def _made(self) -> dict[int, Partition]:
        return {}

    @cached_property
    def _looked_at(self) -> dict[tuple[int, int], tuple[Partition, ...] | None]:
        """The partitions of topics that were looked through; None where that was once."""
        return {}

    def values(self, start: int, stop: int) -> Iterator[Partition]:
        """Yield these rows as values."""
        rows = slice(start, stop)
        columns = (self.number, self.leader, self.replicas, self.isr, self.sizes, self.log_dirs)
        known = (self.end_offset, self.untiered_bytes)
        lists = zip(*(each[rows].tolist() for each in (*columns, *known)), strict=True)
        for row, (number, leader, replicas, isr, sizes, log_dirs, end_offset, untiered) in enumerate(lists, start):
            held = tuple([one for one in replicas if one >= 0])
            yield Partition(
                number,
                None if leader < 0 else leader,
                held,
                held if isr == replicas else tuple([one for one in isr if one >= 0]),
                sizes=() if UNTOLD in sizes else tuple([None if one < 0 else one for one in sizes[: len(held)]]),
                log_dirs=()
                if UNTOLD in log_dirs
                else tuple([None if one < 0 else self.paths[one] for one in log_dirs[: len(held)]]),
                end_offset=None if end_offset < 0 else end_offset,
                untiered_bytes=None if untiered < 0 else untiered,
                **(self.rare[row]._asdict() if row in self.rare else {}),
            )


@dataclass(frozen=True, slots=True, eq=False)
class Rows(Sequence[Partition]):
    """Rows of a table as a sequence of partitions, each made when it is asked for; equal to a tuple of the same.

    `changed`: by index, what stands in the place of a row.
    """

    table: PartitionTable
    start: int
    stop: int
    changed: Mapping[int, Partition] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[Partition]:
        rows = self.table.each(self.start, self.stop)
        return (self.changed.get(index, row) for index, row in enumerate(rows)) if self.changed else iter(rows)

    @overload
    def __getitem__(self, index: int) -> Partition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Partition, ...]: ...
    def __getitem__(self, index: int | slice) -> Partition | tuple[Partition, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        row = range(self.start, self.stop)[index]
        return self.changed.get(row - self.start) or self.table.value(row)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows | tuple) or len(self) != len(other):
            return False
        is_same = isinstance(other, Rows) and (self.table, self.start) == (other.table, other.start)
        return (is_same and self.changed == other.changed) or tuple(self) == tuple(other)  # type: ignore[union-attr]

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def with_changed(self, changed: Mapping[int, Partition]) -> "Rows":
        """Return the same with these partitions in their places."""
        return Rows(self.table, self.start, self.stop, {**self.changed, **changed})
