"""Turns desired and observed states into arrays: what has to be placed, what stays, which brokers are eligible.

Everything below this module computes with whole arrays, because there may be 200,000 partitions; everything above it
speaks of topics and brokers. Partitions that follow the same rules are a class, so rules are looked at once a class.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from reconciler.diff.broken import assigned
from reconciler.diff.rules import LEAVING, NO_RACK, TopicRules
from reconciler.model.change import Changes, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.partition_table import NONE, PartitionTable, alike, padded, table_of
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.rows import Bools, Ints, Rows, room


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
class PartitionsToPlace(Sequence[PartitionToPlace]):
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

    @overload
    def __getitem__(self, index: int) -> PartitionToPlace: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[PartitionToPlace]: ...
    def __getitem__(self, index: int | slice) -> PartitionToPlace | Sequence[PartitionToPlace]:
        found = self.at(range(len(self))[index] if isinstance(index, slice) else [range(len(self))[index]])
        return [*found] if isinstance(index, slice) else next(found)

    def __iter__(self) -> Iterator[PartitionToPlace]:
        return self.at(range(len(self)))

    def rows_of(self, keys: Collection[TopicPartition]) -> Ints:
        """Return the rows of those among these partitions that are to be placed."""
        position = {name: place for place, name in enumerate(self.topics)}
        wanted = np.array([(position.get(name, NONE), number) for name, number in keys], dtype=np.int64).reshape(-1, 2)
        span = 1 + max(self.number.max(initial=0), wanted[:, 1].max(initial=0))
        return np.flatnonzero(np.isin(self.topic * span + self.number, wanted[:, 0] * span + wanted[:, 1]))

    def unlike(self) -> Iterator[PartitionToPlace]:
        """Yield the first of those of each topic that have the same choice, and each of which something is fixed."""
        first, _ = alike([self.topic, *_likeness(self)])
        return self.at(sorted({*first.tolist(), *self.fixed}))

    def at(self, rows: Sequence[int]) -> Iterator[PartitionToPlace]:
        """Yield these rows as values."""
        columns = (self.topic, self.number, self.replicas, self.need, self.size)
        lists = (column[np.asarray(rows, dtype=np.int64)].tolist() for column in columns)
        for row, topic, number, replicas, need, size in zip(rows, *lists, strict=True):
            yield PartitionToPlace(
                TopicPartition(self.topics[topic], number),
                self.rules[topic],
                tuple([one for one in replicas if one >= 0]),
                self.fixed.get(row, ()),
                need,
                None if size < 0 else size,
                self.lagging.get(row, frozenset()),
            )


Unmoved = Sequence[tuple[TopicPartition, tuple[int, ...]]]
"""Partitions that stay as they are, with their replicas."""


@dataclass(frozen=True, eq=False)
class Staying(Unmoved):
    """The partitions of a table that stay as they are, each a value when it is asked for."""

    table: PartitionTable
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> tuple[TopicPartition, tuple[int, ...]]: ...
    @overload
    def __getitem__(self, index: slice) -> Unmoved: ...
    def __getitem__(self, index: int | slice) -> tuple[TopicPartition, tuple[int, ...]] | Unmoved:
        return [*self][index]

    def __iter__(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        return self.table.targets(self.rows)


@dataclass(frozen=True, slots=True)
class EligibleBrokers:
    """The brokers that take part: alive, neither draining nor absent; arrays run parallel to `ids`."""

    ids: tuple[int, ...]  # ascending
    column: Mapping[int, int]  # a broker id's place in the arrays, which have a column for each broker
    capacity: Ints  # weights as declared: only their proportion counts
    rack: Ints  # positions in `racks`
    racks: tuple[str, ...]

    def mask(self, broker_ids: Collection[int]) -> Bools:
        """Return which of the brokers are among these."""
        found = np.zeros(len(self.ids), dtype=np.bool_)
        found[[self.column[broker_id] for broker_id in broker_ids if broker_id in self.column]] = True
        return found

    def columns(self, broker_ids: Sequence[int] | Ints) -> Ints:
        """Return the column of each broker, -1 for one that does not take part."""
        wanted, ids = np.asarray(broker_ids, dtype=np.int64), np.asarray(self.ids, dtype=np.int64)
        if not len(ids):
            return np.full(wanted.shape, -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
        return np.where(ids[place] == wanted, place, -1)


def eligible_brokers(desired: Desired, observed: Cluster) -> EligibleBrokers:
    """Return the brokers that take part, by id."""
    ids = tuple(
        broker_id
        for broker_id in sorted(observed.brokers)
        if observed.is_alive(broker_id) and desired.cluster.broker(broker_id).state not in LEAVING
    )
    names = [observed.brokers[broker_id].rack or NO_RACK for broker_id in ids]
    racks = tuple(sorted(set(names)))
    return EligibleBrokers(
        ids=ids,
        column={broker_id: column for column, broker_id in enumerate(ids)},
        capacity=np.array([desired.cluster.broker(broker_id).capacity for broker_id in ids], dtype=np.int64),
        rack=np.array([racks.index(name) for name in names], dtype=np.int64),
        racks=racks,
    )


def partitions_to_place(
    desired: Desired,
    observed: Cluster,
    rules: Mapping[str, TopicRules],
    changes: Changes,
    only: Collection[str] | None,
) -> tuple[PartitionsToPlace, Unmoved]:
    """Return the partitions to plan for, sorted, and those that stay as they are with their replicas."""
    doomed = {change.topic for change in changes.topic_changes if isinstance(change, DeleteTopic)}
    table = table_of(observed)
    topics = [(name, rules[name]) for name in table.topics]
    is_there, is_asked, is_managed = (
        np.array(column, dtype=np.bool_)[table.topic]
        for column in (
            [name not in doomed for name, _ in topics],
            [(only is None or name in only) and not rule.is_frozen for name, rule in topics],
            [rule.is_managed for _, rule in topics],
        )
    )
    leaving = [one for one in table.brokers.tolist() if desired.cluster.broker(one).state in LEAVING]
    is_open = is_there & is_asked & (is_managed | np.isin(table.target, leaving).any(axis=1))
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
    return PartitionsToPlace(
        topics=(*names,),
        rules=tuple(rules[name] for name in names),
        topic=topic[order],
        number=number[order],
        replicas=replicas[order],
        need=np.concatenate([part.need for part in parts])[order],
        size=np.concatenate([part.size for part in parts])[order],
        fixed={
            moved[row]: ids
            for row, ids in (*there.fixed.items(), *((len(there) + row, ids) for row, ids in new.fixed.items()))
        },
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


@dataclass(frozen=True, slots=True)
class RuleClasses:
    """The choices that partitions with the same rules share, one row a class."""

    rows: Rows
    leadable: Bools  # [classes, brokers]: who may lead
    leadable_at_need: Bools  # [classes, brokers]: who may lead where no replica is on a broker that may


@dataclass(frozen=True, slots=True)
class PlacementTask:
    """All that is to be placed, as arrays with a row a partition; -1 is a broker that takes no part, or none."""

    partitions: PartitionsToPlace
    eligible: EligibleBrokers
    base: Ints  # [brokers]: replicas that stay, whatever is chosen
    led: Ints  # [brokers]: preferred leaders of partitions that stay
    base_of_topic: Ints  # [topics, brokers]: the part of `base` that belongs to the topics below
    led_of_topic: Ints  # [topics, brokers]
    rule_class: Ints  # [partitions]: positions in `rule_classes`
    rule_classes: RuleClasses
    replicas: Ints  # [partitions, most replicas]: columns of the present ones, in order
    fixed: Ints  # [partitions, most fixed]: columns of the decided ones, in order
    size: Ints  # [partitions]: bytes of one copy; 0 where new or unknown, so ask `is_size_known` before adding up
    topic: Ints  # [partitions]: positions in `topics`
    topics: tuple[str, ...]  # those of the partitions to place, sorted
    is_new: Bools  # [partitions]

    @property
    def rows(self) -> Rows:
        """The choices as arrays, one row a partition."""
        rows = self.rule_classes.rows.take(self.rule_class)
        return replace(rows, count=np.ones_like(self.rule_class), topic=self.topic)

    @property
    def is_size_known(self) -> bool:
        """Whether the bytes of each present partition are known."""
        return bool((self.is_new | (self.partitions.size >= 0)).all())

    @property
    def need(self) -> Ints:
        """How many replicas of each partition are to be found."""
        return self.rule_classes.rows.need[self.rule_class]

    def mask(self, columns: Ints) -> Bools:
        """Return [partitions, brokers] which brokers are among these columns [partitions, some]."""
        found = np.zeros((len(self.partitions), len(self.eligible.ids)), dtype=np.bool_)
        row, place = np.nonzero(columns >= 0)
        found[row, columns[row, place]] = True
        return found


def placement_task(partitions: PartitionsToPlace, unmoved: Unmoved, eligible: EligibleBrokers) -> PlacementTask:
    """Return the task of placing these partitions, beside those that stay as they are."""
    rule_class, rule_classes = _rule_classes(partitions, eligible)
    fixed = np.full((len(partitions), max(map(len, partitions.fixed.values()), default=1)), NONE, dtype=np.int64)
    for row, replicas in partitions.fixed.items():
        fixed[row, : len(replicas)] = replicas
    fixed = eligible.columns(fixed)
    number = {name: position for position, name in enumerate(partitions.topics)}
    topic, staying = _beside(unmoved, number, eligible)
    shape = (len(number), len(eligible.ids))
    return PlacementTask(
        partitions=partitions,
        eligible=eligible,
        base=_counts(staying, shape[1:]) + _counts(fixed, shape[1:]),
        led=_counts(staying[:, :1], shape[1:]),
        base_of_topic=_counts(staying, shape, topic) + _counts(fixed, shape, partitions.topic),
        led_of_topic=_counts(staying[:, :1], shape, topic),
        rule_class=rule_class,
        rule_classes=rule_classes,
        replicas=eligible.columns(partitions.replicas),
        fixed=fixed,
        size=np.where(partitions.is_new, 0, np.maximum(partitions.size, 0)),
        topic=partitions.topic,
        topics=partitions.topics,
        is_new=partitions.is_new,
    )


def _beside(unmoved: Unmoved, number: Mapping[str, int], eligible: EligibleBrokers) -> tuple[Ints, Ints]:
    """Return the numbers of the topics of these partitions, -1 for others, and the columns of their replicas."""
    if isinstance(unmoved, Staying):
        of_topic = np.array([number.get(name, NONE) for name in unmoved.table.topics], dtype=np.int64)
        return of_topic[unmoved.table.topic[unmoved.rows]], eligible.columns(unmoved.table.target[unmoved.rows])
    topic = np.array([number.get(key.topic, NONE) for key, _ in unmoved], dtype=np.int64)
    return topic, eligible.columns(padded([replicas for _, replicas in unmoved]))


def _counts(columns: Ints, shape: tuple[int, ...], topic: Ints | None = None) -> Ints:
    """Return how often each broker is among these columns [rows, some]; with a topic for each row, topic by topic."""
    count = np.zeros(shape, dtype=np.int64)
    is_counted = columns >= 0 if topic is None else (columns >= 0) & (topic[:, None] >= 0)
    row, place = np.nonzero(is_counted)
    held = columns[row, place]
    np.add.at(count, held if topic is None else (topic[row], held), 1)
    return count


def _rule_classes(partitions: PartitionsToPlace, eligible: EligibleBrokers) -> tuple[Ints, RuleClasses]:
    """Return the class of each partition, and the classes."""
    picked, rule_class = alike(_likeness(partitions))
    first = [*partitions.at(picked.tolist())]
    choices = [_choice_of(partition, eligible) for partition in first]
    shape, racked = (len(first), len(eligible.ids)), (len(first), len(eligible.racks))
    allowed = np.array([choice[0] for choice in choices], dtype=np.bool_).reshape(shape)
    low, high = (np.array([choice[part] for choice in choices], dtype=np.int64).reshape(racked) for part in (1, 2))
    rows = Rows(
        count=np.ones(len(first), dtype=np.int64),
        need=np.array([partition.need for partition in first], dtype=np.int64),
        allowed=allowed,
        low=low,
        high=np.minimum(high, room(allowed, eligible.rack, len(eligible.racks))),
        rack=eligible.rack,
        leading=np.array([choice[3] for choice in choices], dtype=np.bool_).reshape(racked),
        topic=np.zeros(len(first), dtype=np.int64),
        column=np.arange(len(eligible.ids)),
        brokers=len(eligible.ids),
    )
    freely, at_need = (
        np.array([eligible.mask(who) for who in each], dtype=np.bool_).reshape(shape)
        for each in ([one.rules.leadable for one in first], [one.rules.leadable_at_need for one in first])
    )
    return rule_class, RuleClasses(rows, freely, at_need)


def _likeness(partitions: PartitionsToPlace) -> list[Ints]:
    """Return columns that are equal only for partitions with the same choice."""
    kinds: dict[object, int] = {}
    of_topic = [kinds.setdefault(_same_for_topics(rule), len(kinds)) for rule in partitions.rules]
    shared = [np.array(of_topic, dtype=np.int64)[partitions.topic], partitions.need, partitions.is_new.astype(np.int64)]
    # What is fixed, no written spread and brokers that may only keep a replica make a choice of the present replicas.
    is_own = np.array(
        [rule.spread is None or len(rule.keepable) != len(rule.receivable) for rule in partitions.rules], dtype=np.bool_
    )[partitions.topic]
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


def _same_for_topics(rules: TopicRules) -> object:
    who = (rules.receivable, rules.keepable, rules.leadable, rules.leadable_at_need)
    leading = rules.declared.placement.racks_leader if rules.declared else None
    return who, rules.spread, rules.racks, leading


def _choice_of(partition: PartitionToPlace, eligible: EligibleBrokers) -> tuple[Bools, Ints, Ints, Bools]:
    """Return who may hold the replicas to be found, the fewest and most of each rack, and the racks that must lead."""
    rules, fixed = partition.rules, partition.fixed
    may_stay = rules.keepable & frozenset(partition.replicas if partition.need else ())
    may_hold = (rules.receivable | may_stay) - frozenset(fixed)
    allowed = eligible.mask(may_hold)
    fixed_racks = [rules.rack_of.get(replica, NO_RACK) for replica in fixed]
    limits = rules.rack_limits(len(fixed) + partition.need, partition.replicas)
    places = [int(allowed[eligible.rack == rack].sum()) for rack in range(len(eligible.racks))]
    low, high = [], []
    for name in eligible.racks:
        least, most = limits.get(name, (0, 0))
        there = fixed_racks.count(name)
        low.append(max(0, least - there))
        high.append(max(0, most - there))
    # What stays of an undeclared topic may break the racks' limits already; then they bind nothing beside it.
    if fixed and (sum(map(min, places, high)) < partition.need or sum(low) > partition.need):
        low, high = [0] * len(low), [partition.need] * len(high)
    if fixed:
        low = list(map(min, low, places))
    leads = bool(rules.declared and rules.declared.placement.racks_leader) and not fixed
    wanted = rules.declared.placement.racks_leader if rules.declared and leads else None
    leading = np.array([wanted is not None and name in wanted for name in eligible.racks], dtype=np.bool_)
    return allowed, np.array(low, dtype=np.int64), np.array(high, dtype=np.int64), leading
