"""Holds all partitions of a cluster as columns: what there may be a million of is no value each.

A row is a partition, in the order of topics and numbers. What looks at every partition computes with whole columns;
what looks at few takes a `Partition` from `Rows`, which makes it when it is asked for.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.topic_partition import TopicPartition

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NONE = -1
"""In any column: nobody, nothing, unknown; behind the last item of a list."""
UNTOLD = -2
"""In all of a row of `sizes` or `log_dirs`: the partition has no such list."""


class Rare(NamedTuple):
    """What few partitions have: a reassignment in flight, eligible leaders."""

    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None


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
        ids = np.unique(self.target)
        return ids[ids >= 0]

    @cached_property
    def place(self) -> Ints:
        """The position in `brokers` [rows, width] of each replica in `target`; NONE behind the last."""
        return np.where(self.target >= 0, np.searchsorted(self.brokers, self.target), NONE)

    @cached_property
    def factor(self) -> Ints:
        """How many replicas each partition has once the reassignments in flight have ended."""
        count: Ints = (self.target >= 0).sum(axis=1)
        return count

    @cached_property
    def bytes_to_copy(self) -> Ints:
        """What one new replica copies, as `Partition.bytes_to_copy` says."""
        leaders = np.where(self.replicas == self.leader[:, None], self.sizes, NONE).max(axis=1, initial=NONE)
        known = np.where(leaders >= 0, leaders, self.sizes.max(axis=1, initial=NONE))
        known = np.where((self.replicas < 0).all(axis=1), NONE, known)
        return np.where(self.untiered_bytes >= 0, self.untiered_bytes, known)

    @cached_property
    def lagging(self) -> Bools:
        """Which replicas [rows, width] are out of sync; none where nobody is in sync."""
        is_in = np.zeros(self.replicas.shape, dtype=np.bool_)
        for place in range(self.isr.shape[1]):
            is_in |= self.replicas == self.isr[:, place : place + 1]
        return (self.replicas >= 0) & ~is_in & (self.isr[:, :1] >= 0).any(axis=1, keepdims=True)

    @property
    def reassigning(self) -> list[int]:
        """The rows of which a reassignment is in flight."""
        return [row for row, rare in self.rare.items() if rare.adding_replicas or rare.removing_replicas]

    def sizes_on(self, rows: Ints, brokers: Ints) -> Ints:
        """Return the bytes [rows, some] that these rows have on these brokers, or would copy there; 0 where unknown."""
        found = np.full(brokers.shape, NONE, dtype=np.int64)
        replicas, sizes = self.replicas[rows], self.sizes[rows]
        for place in range(replicas.shape[1]):
            np.copyto(found, sizes[:, place : place + 1], where=brokers == replicas[:, place : place + 1])
        return np.where(found >= 0, found, np.maximum(self.bytes_to_copy[rows], 0)[:, None])

    def rows_of(self, keys: Iterable[TopicPartition]) -> Ints:
        """Return the row of each of these partitions, NONE where there is no such partition."""
        starts, position = self.start.tolist(), {name: place for place, name in enumerate(self.topics)}
        found = []
        for name, number in keys:
            place = position.get(name, NONE)
            is_there = place >= 0 and starts[place] + number < starts[place + 1]
            found.append(starts[place] + number if is_there else NONE)
        return np.array(found, dtype=np.int64)

    def key(self, row: int) -> TopicPartition:
        """Return the row's topic and number."""
        return TopicPartition(self.topics[self.topic[row]], int(self.number[row]))

    def targets(self, rows: Ints) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        """Yield the key and the target replicas of each of these rows."""
        columns = self.topic[rows].tolist(), self.number[rows].tolist(), self.target[rows].tolist()
        for topic, number, replicas in zip(*columns, strict=True):
            yield TopicPartition(self.topics[topic], number), tuple([one for one in replicas if one >= 0])

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


def sums(brokers: Ints, amounts: Ints) -> dict[int, int]:
    """Return the exact sum of the amounts beside each broker; NONE is no broker."""
    is_one = brokers >= 0
    ids, place = np.unique(brokers[is_one], return_inverse=True)
    counted = amounts[is_one]
    is_wide = int(counted.max(initial=0)) > ((1 << 62) // max(1, len(counted)))
    total = np.zeros(len(ids), dtype=np.object_ if is_wide else np.int64)
    np.add.at(total, place, counted.astype(total.dtype))
    return dict(zip(ids.tolist(), total.tolist(), strict=True))


def alike(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the first row of each kind, ascending, and the kind of each row; rows of a kind are equal throughout."""
    code = np.zeros_like(columns[0])
    for column in columns:
        least = int(column.min(initial=0))
        span = int(column.max(initial=0)) - least + 1
        if int(code.max(initial=0)) >= (1 << 62) // span:
            code = np.unique(code, return_inverse=True)[1]
        code = code * span + (column - least)
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[kind]


def table_of(cluster: Cluster) -> PartitionTable:
    """Return the table of all partitions of a cluster: the one whose rows they are, else a new one, made once."""
    if cluster.made_table is None:
        # What follows from a frozen value may be kept in it.
        object.__setattr__(cluster, "made_table", _whole(cluster.topics) or _made(cluster.topics))
    table: PartitionTable = cluster.made_table
    return table


def in_rows(cluster: Cluster, table: PartitionTable | None = None) -> Cluster:
    """Return the cluster with its partitions in a table: in this one, which has all of its topics, else in its own."""
    table = table or table_of(cluster)
    topics = {
        name: replace(cluster.topics[name], partitions=table.of_topic(at)) for at, name in enumerate(table.topics)
    }
    return replace(cluster, topics=topics)


def _whole(topics: Mapping[str, Topic]) -> PartitionTable | None:
    """Return the table of which these topics' partitions are all rows, if there is one."""
    held = [topic.partitions for topic in topics.values()]
    table = held[0].table if held and isinstance(held[0], Rows) else None
    if table is None or table.topics != (*topics,):
        return None
    ends = zip(held, table.start[:-1].tolist(), table.start[1:].tolist(), strict=True)
    is_whole = all(
        isinstance(one, Rows) and one.table is table and (one.start, one.stop, one.changed) == (start, stop, {})
        for one, start, stop in ends
    )
    return table if is_whole else None


def _made(topics: Mapping[str, Topic]) -> PartitionTable:
    columns = Columns()
    for name, topic in topics.items():
        columns.add(name, Facts.of(topic.partitions))
    return columns.table()


@dataclass(slots=True)
class _Lists:
    """Lists of numbers, one behind the other."""

    flat: "array[int]" = field(default_factory=lambda: array("q"))
    length: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, lists: Sequence[Sequence[int]]) -> None:
        self.length.fromlist([*map(len, lists)])
        self.flat.fromlist([*chain.from_iterable(lists)])  # twice as fast as `extend`

    def padded(self, width: int, empty: int = NONE) -> Ints:
        """Return them as rows of that width at least; one without items is full of `empty`."""
        length, flat = _column(self.length), _column(self.flat)
        width = max(width, int(length.max(initial=0)))
        if not len(flat):
            return np.broadcast_to(np.int64(empty), (len(length), width))
        if length.min(initial=width) == width:
            return flat.reshape(len(length), width)
        rows = np.where(length == 0, empty, NONE)[:, None].repeat(width, axis=1)
        rows[np.arange(width) < length[:, None]] = flat
        return rows


def padded(lists: Sequence[Sequence[int]]) -> Ints:
    """Return lists of brokers as rows as wide as the longest, NONE where a list has ended."""
    made = _Lists()
    made.add(lists)
    return made.padded(1)


def _column(numbers: "array[int]") -> Ints:
    return np.frombuffer(numbers, dtype=np.int64) if numbers else np.empty(0, dtype=np.int64)


class Facts(NamedTuple):
    """The fields of some partitions, each as a list with an item a partition; what is not told may be None."""

    partition: Sequence[int]
    leader: Sequence[int | None]
    replicas: Sequence[Sequence[int]]
    isr: Sequence[Sequence[int]]
    adding_replicas: Sequence[tuple[int, ...] | None]
    removing_replicas: Sequence[tuple[int, ...] | None]
    sizes: Sequence[Sequence[int | None] | None]
    log_dirs: Sequence[Sequence[str | None] | None]
    end_offset: Sequence[int | None]
    elr: Sequence[tuple[int, ...] | None]
    last_known_elr: Sequence[tuple[int, ...] | None]
    untiered_bytes: Sequence[int | None]

    @classmethod
    def of(cls, partitions: Sequence[object]) -> "Facts":
        """Return the fields of these, which have all of them."""
        return cls(*zip(*map(_FIELDS, partitions), strict=True)) if partitions else cls(*[()] * len(cls._fields))


_FIELDS = attrgetter(*Facts._fields)


class Columns:
    """Takes partitions, topic by topic, and makes a table of them."""

    def __init__(self) -> None:
        self._topics: list[str] = []
        self._start = array("q", [0])
        self._number, self._leader, self._end_offset, self._untiered = (array("q") for _ in range(4))
        self._replicas, self._isr, self._sizes, self._log_dirs = (_Lists() for _ in range(4))
        self._paths: dict[str | None, int] = {None: NONE}
        self._rare: dict[int, Rare] = {}

    def add(self, topic: str, facts: Facts) -> None:
        """Take the partitions of one more topic."""
        first = len(self._number)
        self._topics.append(topic)
        self._number.fromlist([*facts.partition])
        self._start.append(len(self._number))
        self._leader.fromlist([*_known(facts.leader)])
        self._end_offset.fromlist([*_known(facts.end_offset)])
        self._untiered.fromlist([*_known(facts.untiered_bytes)])
        self._replicas.add(facts.replicas)
        self._isr.add(facts.isr)
        self._sizes.add([_known(sizes or ()) for sizes in facts.sizes])
        self._log_dirs.add([self._numbers(paths) if paths else () for paths in facts.log_dirs])
        rare = (facts.adding_replicas, facts.removing_replicas, facts.elr, facts.last_known_elr)
        if any(map(any, rare[:2])) or any(each.count(None) < len(each) for each in rare[2:]):
            for row, (adding, removing, *elr) in enumerate(zip(*rare, strict=True), first):
                if adding or removing or elr != [None, None]:
                    self._rare[row] = Rare(adding or (), removing or (), *elr)

    def _numbers(self, paths: Iterable[str | None]) -> list[int]:
        return [self._paths.setdefault(path, len(self._paths) - 1) for path in paths]

    def table(self) -> PartitionTable:
        """Return the table of all that was taken."""
        replicas = self._replicas.padded(1)
        width = replicas.shape[1]
        return PartitionTable(
            topics=(*self._topics,),
            start=_column(self._start),
            number=_column(self._number),
            leader=_column(self._leader),
            replicas=replicas,
            isr=self._isr.padded(1),
            sizes=self._sizes.padded(width, UNTOLD)[:, :width],
            log_dirs=self._log_dirs.padded(width, UNTOLD)[:, :width],
            paths=tuple(path for path in self._paths if path is not None),
            end_offset=_column(self._end_offset),
            untiered_bytes=_column(self._untiered),
            rare=self._rare,
        )


def _known(numbers: Sequence[int | None]) -> Sequence[int]:
    return [NONE if each is None else each for each in numbers] if None in numbers else numbers  # type: ignore[return-value]
