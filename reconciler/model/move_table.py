"""Holds moves as columns: there may be a million, and hardly any of them is looked at by itself.

A row is a move. What looks at every move computes with whole columns; who looks at few takes a `Move`, made when it is
asked for.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from reconciler.model.columns import (
    NONE,
    Bools,
    Ints,
    beside_each_other,
    exact,
    is_missing,
    is_unlike,
    lists_of,
    padded,
    rows_of_each,
)
from reconciler.model.move import NONE_ASKED, Move, Reason
from reconciler.model.on_demand import SelfWritten
from reconciler.model.partition_table import PartitionTable
from reconciler.model.problem import Location
from reconciler.model.stage import ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition, named

_COLUMNS = ("topic", "number", "before", "after", "bytes", "why", "is_size_known")


class Why(NamedTuple):
    """What asks for moves, and where it is written."""

    reason: Reason
    at: Location | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Moves(SelfWritten[Move]):
    """The columns, each with a row a move; as a sequence, equal to a tuple of the same moves."""

    topics: tuple[str, ...]
    topic: Ints  # [rows]: positions in `topics`
    number: Ints  # [rows]: the partition's number in its topic
    before: Ints  # [rows, some]: the ordered replicas, NONE behind the last
    after: Ints  # [rows, some]: likewise
    bytes: Ints  # [rows]
    whys: tuple[Why, ...]
    why: Ints  # [rows]: positions in `whys`
    is_size_known: Bools  # [rows]
    log_dirs: Mapping[int, Mapping[int, str]] = field(default_factory=dict)  # by row, where any is asked for

    @classmethod
    def of(cls, moves: Iterable[Move]) -> "Moves":
        """Return the columns of these moves."""
        if isinstance(moves, Moves):
            return moves
        some = [*moves]
        topics: dict[str, int] = {}
        whys: dict[Why, int] = {}
        return cls(
            topic=np.array([topics.setdefault(each.topic_partition.topic, len(topics)) for each in some], np.int64),
            number=np.array([each.topic_partition.partition for each in some], np.int64),
            before=padded([each.from_replicas for each in some]),
            after=padded([each.to_replicas for each in some]),
            bytes=exact([each.bytes for each in some]),
            why=np.array([whys.setdefault(Why(each.reason, each.at), len(whys)) for each in some], np.int64),
            is_size_known=np.array([each.is_size_known for each in some], np.bool_),
            log_dirs={row: each.log_dirs for row, each in enumerate(some) if each.log_dirs},
            topics=(*topics,),
            whys=(*whys,),
        )

    @classmethod
    def joined(cls, parts: Sequence["Moves"]) -> "Moves":
        """Return the moves of all parts, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        topics: dict[str, int] = {}
        whys: dict[Why, int] = {}
        topic, why, log_dirs, start = list[Ints](), list[Ints](), dict[int, Mapping[int, str]](), 0
        for part in parts:
            # Parts of one table share its names.
            is_alike = start and part.topics is parts[0].topics and part.whys is parts[0].whys
            topic.append(part.topic if is_alike else _numbered(part.topics, topics)[part.topic])
            why.append(part.why if is_alike else _numbered(part.whys, whys)[part.why])
            log_dirs |= {start + row: asked for row, asked in part.log_dirs.items()}
            start += len(part)
        return cls(
            topic=_concatenated(topic),
            number=_concatenated([part.number for part in parts]),
            before=beside_each_other([part.before for part in parts]),
            after=beside_each_other([part.after for part in parts]),
            bytes=_concatenated([part.bytes for part in parts]),
            why=_concatenated(why),
            is_size_known=np.concatenate([np.zeros(0, np.bool_), *(part.is_size_known for part in parts)]),
            log_dirs=log_dirs,
            topics=(*topics,),
            whys=(*whys,),
        )

    def part(self, rows: Ints) -> "Moves":
        """Return these rows, in this order."""
        asked = self.log_dirs
        found = rows_of_each(self, _COLUMNS, rows)
        if not asked:
            return found
        return replace(found, log_dirs={new: asked[row] for new, row in enumerate(rows.tolist()) if row in asked})

    @cached_property
    def is_added(self) -> Bools:
        """Which replicas after [rows, some] have to be copied."""
        return is_missing(self.after, self.before)

    @cached_property
    def is_removed(self) -> Bools:
        """Which replicas before [rows, some] go."""
        return is_missing(self.before, self.after)

    @cached_property
    def copies(self) -> Ints:
        """How many replicas each move copies."""
        count: Ints = self.is_added.sum(axis=1)
        return count

    @property
    def is_change(self) -> Bools:
        """Which are moves at all: their two lists are not the same."""
        return is_unlike(self.before, self.after)

    @property
    def bytes_a_copy(self) -> Ints:
        """The bytes that each new replica copies: all of a partition's are whole copies of the same size."""
        found = np.where(self.copies > 0, self.bytes // np.maximum(self.copies, 1), 0)
        # One copy fits 64 bits where several do not.
        return exact(found.tolist()) if found.dtype == np.object_ else found

    @property
    def in_order(self) -> Ints:
        """The rows by topic and partition."""
        rank = np.empty(len(self.topics), dtype=np.int64)
        rank[sorted(range(len(rank)), key=self.topics.__getitem__)] = np.arange(len(rank))
        return np.lexsort((self.number, rank[self.topic]))

    @cached_property
    def partition(self) -> Ints:
        """A number for each row's partition, equal for the moves of one."""
        return self.topic * self._span + self.number

    @property
    def ends(self) -> tuple[Ints, Ints]:
        """The rows of the first and of the last move of each partition, both in the order of `partition`."""
        first = np.unique(self.partition, return_index=True)[1]
        last = len(self) - 1 - np.unique(self.partition[::-1], return_index=True)[1]
        return first, last

    def partitions_of(self, keys: Collection[TopicPartition]) -> Ints:
        """Return the numbers of these partitions; NONE for one of a topic, or a number, that no move has."""
        position = _positions(self.topics)
        topic = np.array([position.get(name, NONE) for name, _ in keys], dtype=np.int64)
        number = np.array([number for _, number in keys], dtype=np.int64)
        return np.where((topic >= 0) & (number < self._span), topic * self._span + number, NONE)

    def rows_of(self, keys: Collection[TopicPartition]) -> Ints:
        """Return the rows, in order, of the moves of these partitions."""
        return np.flatnonzero(np.isin(self.partition, self.partitions_of(keys)))

    def rows_of_topics(self, names: Collection[str]) -> Ints:
        """Return the rows, in order, of the moves of partitions of these topics."""
        position = _positions(self.topics)
        return np.flatnonzero(np.isin(self.topic, [position[name] for name in names if name in position]))

    @property
    def topics_moved(self) -> frozenset[str]:
        """The topics of which a partition moves."""
        return frozenset([self.topics[place] for place in np.unique(self.topic).tolist()])

    def topic_partitions(self) -> Iterator[TopicPartition]:
        """Yield the partition of each row."""
        return named(self.topics, self.topic.tolist(), self.number.tolist())

    def rows_in(self, table: PartitionTable) -> Ints:
        """Return the row of each move's partition in that table; NONE where it has no such partition."""
        return table.rows_at(self.topics, self.topic, self.number)

    def written(self) -> list[dict[str, Any]]:
        """Return each row as `to_json` writes the move that it is."""
        names, whys = self.topics, [{"reason": why.reason.value, **_written_at(why.at)} for why in self.whys]
        rows = [
            {"topic": names[topic], "partition": number, "from": before, "to": after, "bytes": size, **whys[why]}
            for topic, number, before, after, size, why in zip(*self._columns(), strict=True)
        ]
        for row in np.flatnonzero(~self.is_size_known).tolist():
            rows[row]["sizeKnown"] = False
        for row, asked in self.log_dirs.items():
            rows[row]["logDirs"] = {str(broker): path for broker, path in asked.items()}
        return rows

    def __len__(self) -> int:
        return len(self.number)

    @cached_property
    def _span(self) -> int:
        return 1 + int(self.number.max(initial=0))

    def _columns(self) -> tuple[Iterable[Any], ...]:
        lists = [map(list, lists_of(each)) for each in (self.before, self.after)]
        return (self.topic.tolist(), self.number.tolist(), *lists, self.bytes.tolist(), self.why.tolist())

    @cached_property
    def values(self) -> tuple[Move, ...]:
        """The moves themselves."""
        columns = (*self._columns(), self.is_size_known.tolist())
        found = []
        for row, (topic, number, before, after, size, why, is_known) in enumerate(zip(*columns, strict=True)):
            key = TopicPartition(self.topics[topic], number)
            reason, at = self.whys[why]
            asked = self.log_dirs.get(row, NONE_ASKED)
            found.append(Move(key, tuple(before), tuple(after), size, reason, at, is_known, asked))
        return tuple(found)


def table_of_moves(stages: Iterable[Stage]) -> Moves:
    """Return the moves between brokers of these stages, in order."""
    return Moves.joined([Moves.of(stage.moves) for stage in stages if isinstance(stage, ReassignStage)])


@lru_cache(maxsize=8)
def _positions(names: tuple[str, ...]) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(names)}


def _numbered(names: Sequence[Any], known: dict[Any, int]) -> Ints:
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int64)


def _concatenated(columns: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, dtype=np.int64), *columns])


def _written_at(at: Location | None) -> dict[str, str]:
    return {} if at is None else {"at": str(at)}
