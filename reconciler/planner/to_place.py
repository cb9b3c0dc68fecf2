"""Gathers what is to be placed and what stays, as columns: who looks at few partitions takes them as values.

Rules are looked at once for each kind of partition: those of equal rules, with as many replicas to be found.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.diff.broken import assigned
from reconciler.diff.leaderless import has_source
from reconciler.diff.rules import LEAVING, NO_RACK, TopicRules
from reconciler.model.change import Changes, CreatePartitions, CreateTopic
from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, Bools, Ints, alike, lists_of, padded
from reconciler.model.desired import Desired
from reconciler.model.partition_table import PartitionTable
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition, named


@dataclass(frozen=True, slots=True)
class PartitionToPlace:
    """A partition to plan for, with its rules and where it is now."""

    topic_partition: TopicPartition
    rules: TopicRules
    replicas: tuple[int, ...]  # the present ones in order; none for a new partition
    fixed: tuple[int, ...]  # decided already: an explicit assignment, or what stays of a topic that nobody declared
    need: int  # how many more are to be found, beside the fixed ones
    size: int | None  # bytes of one copy, None where unknown
    lagging: frozenset[int] = frozenset()  # the present replicas that are not in sync

    @property
    def is_new(self) -> bool:
        """Whether the partition does not exist yet."""
        return not self.replicas


@dataclass(frozen=True, eq=False)
class PartitionsToPlace(Iterable[PartitionToPlace]):
    """The partitions to plan for as columns, sorted; each is a value when it is asked for."""

    topics: tuple[str, ...]  # sorted
    rules: tuple[TopicRules, ...]  # of each topic
    topic: Ints  # [rows]: positions in `topics`
    number: Ints  # [rows]: the partition's number
    replicas: Ints  # [rows, width]: the present ones in order, -1 behind the last
    need: Ints  # [rows]
    size: Ints  # [rows]: -1 where unknown
    fixed: Mapping[int, tuple[int, ...]]  # by row, where any is
    lagging: Mapping[int, frozenset[int]]  # by row, where any is

    @classmethod
    def of(cls, partitions: Iterable[PartitionToPlace]) -> "PartitionsToPlace":
        """Return the columns of these partitions."""
        found = sorted(partitions, key=lambda each: each.topic_partition)
        rules = {each.topic_partition.topic: each.rules for each in found}
        number = {name: position for position, name in enumerate(rules)}
        return cls(
            topics=(*rules,),
            rules=(*rules.values(),),
            topic=np.array([number[each.topic_partition.topic] for each in found], dtype=np.int64),
            number=np.array([each.topic_partition.partition for each in found], dtype=np.int64),
            replicas=padded([each.replicas for each in found]),
            need=np.array([each.need for each in found], dtype=np.int64),
            size=np.array([NONE if each.size is None else each.size for each in found], dtype=np.int64),
            fixed={row: each.fixed for row, each in enumerate(found) if each.fixed},
            lagging={row: each.lagging for row, each in enumerate(found) if each.lagging},
        )

    @property
    def is_new(self) -> Bools:
        """Which of them do not exist yet."""
        return self.replicas[:, 0] < 0

    def __len__(self) -> int:
        return len(self.number)

    def __iter__(self) -> Iterator[PartitionToPlace]:
        return self.at(range(len(self)))

    def rows_of(self, keys: Collection[TopicPartition]) -> Ints:
        """Return the rows of those among these partitions that are to be placed."""
        position = {name: place for place, name in enumerate(self.topics)}
        wanted = np.array([(position.get(name, NONE), number) for name, number in keys], dtype=np.int64).reshape(-1, 2)
        span = 1 + max(self.number.max(initial=0), wanted[:, 1].max(initial=0))
        return np.flatnonzero(np.isin(self.topic * span + self.number, wanted[:, 0] * span + wanted[:, 1]))

    def keys(self, rows: Ints) -> Iterator[TopicPartition]:
        """Yield the topics and numbers of these rows."""
        return named(self.topics, self.topic[rows].tolist(), self.number[rows].tolist())

    def unlike(self) -> Iterator[PartitionToPlace]:
        """Yield the first of those of each topic that have the same choice, and each of which something is fixed."""
        first, _ = alike([self.topic, *likeness(self)])
        return self.at(sorted({*first.tolist(), *self.fixed}))

    def at(self, rows: Sequence[int]) -> Iterator[PartitionToPlace]:
        """Yield these rows as values."""
        some = np.asarray(rows, dtype=np.int64)
        columns = (column[some].tolist() for column in (self.topic, self.need, self.size))
        each = zip(rows, self.keys(some), lists_of(self.replicas[some]), *columns, strict=True)
        for row, key, replicas, topic, need, size in each:
            fixed, lagging = self.fixed.get(row, ()), self.lagging.get(row, frozenset())
            known = None if size < 0 else size
            yield PartitionToPlace(key, self.rules[topic], replicas, fixed, need, known, lagging)


Unmoved = Iterable[tuple[TopicPartition, tuple[int, ...]]]
"""Partitions that stay as they are, with their replicas."""


@dataclass(frozen=True, slots=True)
class Staying(Unmoved):
    """The partitions of a table that stay as they are, each a value when it is asked for."""

    table: PartitionTable
    rows: Ints

    def __iter__(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        return self.table.targets(self.rows)


def partitions_to_place(
    desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules], changes: Changes, only: Collection[str] | None
) -> tuple[PartitionsToPlace, Unmoved]:
    """Return the partitions to plan for, sorted, and those that stay as they are with their replicas."""
    table, deleted = table_of(observed), changes.deleted
    topics = [(name, rules[name]) for name in table.topics]
    of_topics = [
        (
            name not in deleted,
            (only is None or name in only) and not rule.is_frozen,
            rule.has_placement,
            rule.is_managed,
        )
        for name, rule in topics
    ]
    columns = np.array(of_topics, dtype=np.bool_).reshape(-1, 4).T
    is_there, is_asked, has_placement, is_managed = (column[table.topic] for column in columns)
    leaving = [one for one in table.brokers.tolist() if desired.cluster.broker(one).state in LEAVING]
    dead = [one for one in table.brokers.tolist() if not observed.is_alive(one)]
    # Only a file that places a topic moves its replicas for a dead broker, which may just be restarting.
    is_open = has_placement | (is_managed & ~np.isin(table.target, dead).any(axis=1))
    is_open |= np.isin(table.target, leaving).any(axis=1)
    is_open &= is_there & is_asked & has_source(observed)
    rows = np.flatnonzero(is_open)
    factor = np.array([rule.replication_factor or 0 for _, rule in topics], dtype=np.int64)[table.topic[rows]]
    need = np.where(factor > 0, factor, table.factor[rows])
    fixed = {}
    is_free = np.array([rule.is_managed and rule.assignment is None for _, rule in topics], dtype=np.bool_)
    for row in np.flatnonzero(~is_free[table.topic[rows]]).tolist():
        (key, replicas), rule = next(table.targets(rows[row : row + 1])), topics[table.topic[rows[row]]][1]
        explicit = assigned(rule, key.partition)
        # A dead replica goes as well: a reassignment never ends while its target holds one.
        staying = tuple(replica for replica in replicas if replica in rule.keepable)
        if explicit is not None:
            fixed[row], need[row] = explicit, 0
        elif not rule.is_managed:
            fixed[row], need[row] = staying, len(replicas) - len(staying)
    lagging = {}
    for row in np.flatnonzero(table.lagging[rows].any(axis=1)).tolist():
        lagging[row] = frozenset(table.replicas[rows[row]][table.lagging[rows[row]]].tolist())
    there = PartitionsToPlace(
        topics=table.topics,
        rules=tuple(rule for _, rule in topics),
        topic=table.topic[rows],
        number=table.number[rows],
        replicas=table.target[rows],
        need=need,
        size=table.bytes_to_copy[rows],
        fixed={row: replicas for row, replicas in fixed.items() if replicas},
        lagging=lagging,
    )
    new = PartitionsToPlace.of(_new_partitions(observed, rules, changes, only))
    return _joined(there, new), Staying(table, np.flatnonzero(is_there & ~is_open))


def _joined(there: PartitionsToPlace, new: PartitionsToPlace) -> PartitionsToPlace:
    """Return both in one, sorted, with the topics alone of which there is a partition."""
    parts = (there, new)
    rules = {part.topics[topic]: part.rules[topic] for part in parts for topic in np.unique(part.topic).tolist()}
    names = sorted(rules)
    position = {name: place for place, name in enumerate(names)}
    topic = np.concatenate(
        [np.array([position.get(name, NONE) for name in part.topics], dtype=np.int64)[part.topic] for part in parts]
    )
    number = np.concatenate([part.number for part in parts])
    order = np.lexsort((number, topic))
    place = np.argsort(order)
    width = max(part.replicas.shape[1] for part in parts)
    replicas = np.full((len(order), width), NONE, dtype=np.int64)
    replicas[: len(there), : there.replicas.shape[1]] = there.replicas
    moved = [*place.tolist()]
    fixed = {**there.fixed, **{len(there) + row: ids for row, ids in new.fixed.items()}}
    return PartitionsToPlace(
        topics=(*names,),
        rules=tuple(rules[name] for name in names),
        topic=topic[order],
        number=number[order],
        replicas=replicas[order],
        need=np.concatenate([part.need for part in parts])[order],
        size=np.concatenate([part.size for part in parts])[order],
        fixed={moved[row]: ids for row, ids in fixed.items()},
        lagging={moved[row]: ids for row, ids in there.lagging.items()},
    )


def _new_partitions(
    observed: Cluster, rules: Mapping[str, TopicRules], changes: Changes, only: Collection[str] | None
) -> Iterator[PartitionToPlace]:
    for change in changes.topic_changes:
        if not isinstance(change, CreateTopic | CreatePartitions) or (only is not None and change.topic not in only):
            continue
        rule = rules[change.topic]
        if isinstance(change, CreateTopic):
            numbers, factor = range(change.partitions), change.replication_factor
        else:
            numbers = range(change.from_count, change.to_count)
            factor = rule.target_factor(observed.topics[change.topic].partitions[0].target_replicas)
        for number in numbers:
            explicit = assigned(rule, number)
            need = 0 if explicit else factor
            yield PartitionToPlace(TopicPartition(change.topic, number), rule, (), explicit or (), need, 0)


def likeness(partitions: PartitionsToPlace) -> list[Ints]:
    """Return columns that are equal only for partitions with the same choice."""
    kinds: dict[object, int] = {}
    of_topic = [kinds.setdefault(rule.choice, len(kinds)) for rule in partitions.rules]
    shared = [np.array(of_topic, dtype=np.int64)[partitions.topic], partitions.need, partitions.is_new.astype(np.int64)]
    # What is fixed makes a choice of the present replicas too.
    is_own = np.array([rule.asks_for_present for rule in partitions.rules], dtype=np.bool_)[partitions.topic]
    is_own[[*partitions.fixed]] = True
    own = np.flatnonzero(is_own & (partitions.need > 0))
    keys: dict[object, int] = {}
    of_row = np.zeros(len(partitions), dtype=np.int64)
    for row, partition in zip(own.tolist(), partitions.at(own.tolist()), strict=True):
        rules = partition.rules
        held = tuple(sorted([rules.rack_of.get(replica, NO_RACK) for replica in partition.replicas]))
        kept_only = frozenset(partition.replicas) & (rules.keepable - rules.receivable)
        of_row[row] = keys.setdefault((partition.fixed, held, kept_only), len(keys) + 1)
    return [*shared, of_row]
