"""Makes the table of a cluster's partitions: of values, or of what a reader finds; and says whether it can be."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from reconciler.model.cluster import Cluster, Topic
from reconciler.model.columns import NONE, Ints, Lists, column, counted, is_repeated
from reconciler.model.partition_table import UNTOLD, PartitionTable, Rare, Rows


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


def is_sound(table: PartitionTable) -> bool:
    """Whether the partitions can be, as `model.cluster` has it: numbers without a gap, brokers each once, and held."""
    position = counted(np.diff(table.start))
    lists = [table.replicas, table.isr, *(_row(found) for rare in table.rare.values() for found in rare)]
    rows = [*(row for row, rare in table.rare.items() for _ in rare)]
    return bool(
        (position == table.number).all()
        and (table.replicas[:, 0] >= 0).all()
        and not any(is_repeated(each).any() for each in lists)
        and all(_is_held(found, table.replicas) for found in (table.isr, table.leader[:, None]))
        and all(_is_held(found, table.replicas[row : row + 1]) for found, row in zip(lists[2:], rows, strict=True))
    )


def _row(found: Sequence[int] | None) -> Ints:
    return np.array([found or ()], dtype=np.int64)


def _is_held(lists: Ints, replicas: Ints) -> bool:
    """Whether each of these brokers is one of its partition's replicas."""
    return all(bool(((one[:, None] == replicas).any(axis=1) | (one < 0)).all()) for one in lists.T)


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
        self._replicas, self._isr, self._sizes, self._log_dirs = (Lists() for _ in range(4))
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
            start=column(self._start),
            number=column(self._number),
            leader=column(self._leader),
            replicas=replicas,
            isr=self._isr.padded(1),
            sizes=self._sizes.padded(width, UNTOLD)[:, :width],
            log_dirs=self._log_dirs.padded(width, UNTOLD)[:, :width],
            paths=tuple(path for path in self._paths if path is not None),
            end_offset=column(self._end_offset),
            untiered_bytes=column(self._untiered),
            rare=self._rare,
        )


def _known(numbers: Sequence[int | None]) -> Sequence[int]:
    return [NONE if each is None else each for each in numbers] if None in numbers else numbers  # type: ignore[return-value]
