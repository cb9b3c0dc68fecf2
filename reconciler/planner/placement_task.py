"""Turns desired and observed states into arrays: what has to be placed, what stays, which brokers are eligible.

Everything below this module computes with whole arrays, because there may be 200,000 partitions; everything above it
speaks of topics and brokers. Partitions that follow the same rules are a class, so rules are looked at once a class.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from reconciler.diff.broken import assigned
from reconciler.diff.rules import LEAVING, NO_RACK, TopicRules
from reconciler.model.change import Changes, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
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


Unmoved = Sequence[tuple[TopicPartition, tuple[int, ...]]]
"""Partitions that stay as they are, with their replicas."""


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

    def tally(self, replicas: Iterable[int]) -> Ints:
        """Return how often each broker occurs."""
        column = self.columns(list(replicas))
        return np.bincount(column[column >= 0], minlength=len(self.ids)).astype(np.int64)


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
) -> tuple[Sequence[PartitionToPlace], Unmoved]:
    """Return the partitions to plan for, sorted, and those that stay as they are with their replicas."""
    doomed = {change.topic for change in changes.topic_changes if isinstance(change, DeleteTopic)}
    to_place: list[PartitionToPlace] = []
    unmoved = []
    for name, topic in observed.topics.items():
        if name in doomed:
            continue
        is_asked = only is None or name in only
        for partition in topic.partitions:
            key, replicas = TopicPartition(name, partition.partition), partition.target_replicas
            found = _existing(desired, rules[name], key, replicas, partition.bytes_to_copy) if is_asked else None
            if found is None:
                unmoved.append((key, replicas))
            else:
                to_place.append(replace(found, lagging=lagging) if (lagging := partition.lagging) else found)
    to_place += _new_partitions(observed, rules, changes, only)
    return sorted(to_place, key=lambda each: each.topic_partition), unmoved


def _existing(
    desired: Desired,
    rules: TopicRules,
    topic_partition: TopicPartition,
    replicas: tuple[int, ...],
    size: int | None,
) -> PartitionToPlace | None:
    """Return what is to be placed of an existing partition, None where it stays as it is."""
    if rules.is_frozen:
        return None
    explicit = assigned(rules, topic_partition.partition)
    if explicit is not None:
        return PartitionToPlace(topic_partition, rules, replicas, explicit, 0, size)
    if rules.is_managed:
        return PartitionToPlace(topic_partition, rules, replicas, (), rules.target_factor(replicas), size)
    if not any(desired.cluster.broker(replica).state in LEAVING for replica in replicas):
        return None
    # A dead replica goes as well: a reassignment never ends while its target holds one.
    staying = tuple(replica for replica in replicas if replica in rules.keepable)
    return PartitionToPlace(topic_partition, rules, replicas, staying, len(replicas) - len(staying), size)


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

    partitions: Sequence[PartitionToPlace]
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
    def is_size_known(self) -> bool:
        """Whether the bytes of each present partition are known."""
        return all(partition.size is not None for partition in self.partitions if not partition.is_new)

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


def placement_task(
    partitions: Sequence[PartitionToPlace], unmoved: Unmoved, eligible: EligibleBrokers
) -> PlacementTask:
    """Return the task of placing these partitions, beside those that stay as they are."""
    rule_class, rule_classes = _rule_classes(partitions, eligible)
    fixed = _columns([partition.fixed for partition in partitions], eligible)
    base = eligible.tally([replica for _, replicas in unmoved for replica in replicas])
    base += np.bincount(fixed[fixed >= 0], minlength=len(eligible.ids))
    names = [partition.topic_partition.topic for partition in partitions]
    topics = tuple(sorted(set(names)))
    number = {name: position for position, name in enumerate(topics)}
    beside = [(number[key.topic], replicas) for key, replicas in unmoved if key.topic in number]
    here = [(number[each.topic_partition.topic], each.fixed) for each in partitions if each.fixed]
    return PlacementTask(
        partitions=partitions,
        eligible=eligible,
        base=base,
        led=eligible.tally([replicas[0] for _, replicas in unmoved if replicas]),
        base_of_topic=_tally([*beside, *here], (len(topics), len(eligible.ids)), eligible),
        led_of_topic=_tally([(topic, held[:1]) for topic, held in beside], (len(topics), len(eligible.ids)), eligible),
        rule_class=rule_class,
        rule_classes=rule_classes,
        replicas=_columns([partition.replicas for partition in partitions], eligible),
        fixed=fixed,
        size=np.array([0 if each.is_new else each.size or 0 for each in partitions], dtype=np.int64),
        topic=np.array([number[name] for name in names], dtype=np.int64),
        topics=topics,
        is_new=np.array([partition.is_new for partition in partitions], dtype=np.bool_),
    )


def _tally(held: Sequence[tuple[int, tuple[int, ...]]], shape: tuple[int, int], eligible: EligibleBrokers) -> Ints:
    """Return [topics, brokers] how often each broker is among the replicas of each topic, given by its number."""
    count = np.zeros(shape, dtype=np.int64)
    for topic, replicas in held:
        for broker_id in replicas:
            if broker_id in eligible.column:
                count[topic, eligible.column[broker_id]] += 1
    return count


def _columns(lists: Sequence[tuple[int, ...]], eligible: EligibleBrokers) -> Ints:
    """Return lists of brokers as columns [lists, longest], -1 where a list has ended."""
    length = np.array([len(each) for each in lists], dtype=np.int64)
    columns = np.full((len(lists), max(1, int(length.max(initial=0)))), -1, dtype=np.int64)
    columns[np.arange(columns.shape[1]) < length[:, None]] = eligible.columns(list(chain.from_iterable(lists)))
    return columns


def _rule_classes(partitions: Sequence[PartitionToPlace], eligible: EligibleBrokers) -> tuple[Ints, RuleClasses]:
    """Return the class of each partition, and the classes."""
    numbers: dict[object, int] = {}
    first: list[PartitionToPlace] = []
    rule_class = np.zeros(len(partitions), dtype=np.int64)
    for row, partition in enumerate(partitions):
        key = _likeness(partition)
        if key not in numbers:
            numbers[key] = len(first)
            first.append(partition)
        rule_class[row] = numbers[key]
    choices = [_choice_of(partition, eligible) for partition in first]
    shape, racked = (len(first), len(eligible.ids)), (len(first), len(eligible.racks))
    allowed = np.array([choice[0] for choice in choices], dtype=np.bool_).reshape(shape)
    low, high = (np.array([choice[part] for choice in choices], dtype=np.int64).reshape(racked) for part in (1, 2))
    rows = Rows(
        need=np.array([partition.need for partition in first], dtype=np.int64),
        allowed=allowed,
        low=low,
        high=np.minimum(high, room(allowed, eligible.rack, len(eligible.racks))),
        rack=eligible.rack,
        leading=np.array([choice[3] for choice in choices], dtype=np.bool_).reshape(racked),
        topic=np.zeros(len(first), dtype=np.int64),
    )
    freely, at_need = (
        np.array([eligible.mask(who) for who in each], dtype=np.bool_).reshape(shape)
        for each in ([one.rules.leadable for one in first], [one.rules.leadable_at_need for one in first])
    )
    return rule_class, RuleClasses(rows, freely, at_need)


def _likeness(partition: PartitionToPlace) -> object:
    """Return a key that is equal only for partitions with the same choice."""
    rules = partition.rules
    # Rules are compared by identity: each topic has one value, and comparing their sets would cost more than it saves.
    shared = (id(rules), partition.need, partition.is_new)
    if partition.need == 0:
        return shared
    if partition.fixed or rules.spread is None or len(rules.keepable) != len(rules.receivable):
        held = tuple(sorted(rules.rack_of.get(replica, NO_RACK) for replica in partition.replicas))
        kept_only = frozenset(partition.replicas) & (rules.keepable - rules.receivable)
        return (*shared, partition.fixed, held, kept_only)
    return shared


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
