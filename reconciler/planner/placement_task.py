"""Turns what is to be placed, and who may take it, into the planner's arrays.

Everything below this module computes with whole arrays, because there may be a million partitions; everything above it
speaks of topics and brokers. Partitions that follow the same rules are a class, so rules are looked at once a class.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from reconciler.diff.capacities import capacities
from reconciler.diff.rules import LEAVING, NO_RACK
from reconciler.model.cluster import Cluster
from reconciler.model.columns import NONE, Bools, Ints, alike, padded, places_in
from reconciler.model.desired import Desired, Spread
from reconciler.model.plan import PriceLevel
from reconciler.planner.rows import Rows, marked, room
from reconciler.planner.to_place import PartitionsToPlace, PartitionToPlace, Staying, Unmoved, likeness


@dataclass(frozen=True, slots=True)
class EligibleBrokers:
    """The brokers that take part: alive, neither draining nor absent; arrays run parallel to `ids`."""

    ids: tuple[int, ...]  # ascending
    column: Mapping[int, int]  # a broker id's place in the arrays, which have a column for each broker
    capacity: Mapping[str, Ints]  # weights by measure, of CAPACITIES: only their proportion counts
    foreign: Ints  # bytes that others have on a broker's disks, where disks weigh by their size
    rack: Ints  # positions in `racks`
    racks: tuple[str, ...]
    most: int | None = None  # replicas that a limit allows each, of all topics

    @property
    def is_uniform(self) -> bool:
        """Whether each broker weighs the same in all measures, by one plain weight."""
        first = self.capacity["replicas"]
        return not self.foreign.any() and all((weights == first).all() for weights in self.capacity.values())

    def mask(self, broker_ids: Collection[int]) -> Bools:
        """Return which of the brokers are among these."""
        found = np.zeros(len(self.ids), dtype=np.bool_)
        found[[self.column[broker_id] for broker_id in broker_ids if broker_id in self.column]] = True
        return found

    def at(self, brokers: Ints) -> "EligibleBrokers":
        """Return those in these columns alone, of the same racks."""
        ids = tuple(self.ids[broker] for broker in brokers.tolist())
        capacity = {measure: weights[brokers] for measure, weights in self.capacity.items()}
        column = {broker_id: place for place, broker_id in enumerate(ids)}
        return replace(
            self, ids=ids, column=column, capacity=capacity, foreign=self.foreign[brokers], rack=self.rack[brokers]
        )

    def columns(self, broker_ids: Sequence[int] | Ints) -> Ints:
        """Return the column of each broker, -1 for one that does not take part."""
        return places_in(np.asarray(self.ids, dtype=np.int64), np.asarray(broker_ids, dtype=np.int64))


def eligible_brokers(desired: Desired, observed: Cluster) -> EligibleBrokers:
    """Return the brokers that take part, by id."""
    ids = tuple(
        broker_id
        for broker_id in sorted(observed.brokers)
        if observed.is_alive(broker_id) and desired.cluster.broker(broker_id).state not in LEAVING
    )
    found = capacities(desired, observed)
    names = [observed.brokers[broker_id].rack or NO_RACK for broker_id in ids]
    racks = tuple(sorted(set(names)))
    return EligibleBrokers(
        ids=ids,
        column={broker_id: column for column, broker_id in enumerate(ids)},
        capacity={
            measure: np.array([weights[broker_id] for broker_id in ids], dtype=np.int64)
            for measure, weights in found.of.items()
        },
        foreign=np.array([found.foreign.get(broker_id, 0) for broker_id in ids], dtype=np.int64),
        rack=np.array([racks.index(name) for name in names], dtype=np.int64),
        racks=racks,
        most=desired.cluster.limits.replicas_per_broker,
    )


@dataclass(frozen=True, slots=True)
class RuleClasses:
    """The choices that partitions with the same rules share, one row a class."""

    rows: Rows
    leadable: Bools  # [classes, brokers]: who may lead
    leadable_at_need: Bools  # [classes, brokers]: who may lead where no replica is on a broker that may
    is_strict: Bools  # [classes]: whether the bounds of racks are a rule, which yields to no other


@dataclass(frozen=True, slots=True)
class YieldingSpread:
    """A preferred spread that yields: how far the plan is from it, and what it would be.

    `low`, `high` [classes, racks]: the fewest and the most replicas of one partition.
    """

    level: PriceLevel
    low: Ints
    high: Ints


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
    least: Ints | None = None  # [brokers]: how many of the replicas to be found each has to get; None: any number
    spread: "YieldingSpread | None" = None  # if the spread that is preferred cannot be kept beside the limit

    @property
    def is_size_known(self) -> bool:
        """Whether the bytes of each present partition are known."""
        return bool((self.is_new | (self.partitions.size >= 0)).all())

    @property
    def need(self) -> Ints:
        """How many replicas of each partition are to be found."""
        return self.rule_classes.rows.need[self.rule_class]

    def counts(self, table: Ints, *, are_cells: bool = False) -> Ints:
        """Return how many replicas of a table [partitions, some] each broker has, or each topic on each broker."""
        shape = (len(self.topics), len(self.eligible.ids))
        return _counts(table, shape, self.topic).ravel() if are_cells else _counts(table, shape[1:])

    @property
    def most(self) -> Ints | None:
        """How many of the replicas to be found each broker may get [brokers]; None: any number."""
        return None if self.eligible.most is None else np.maximum(self.eligible.most - self.base, 0)

    def mask(self, columns: Ints) -> Bools:
        """Return [partitions, brokers] which brokers are among these columns [partitions, some]."""
        return marked(columns, len(self.eligible.ids))


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


def forced_bytes(task: PlacementTask) -> int:
    """Return the bytes that explicit assignments copy, which are no choice."""
    rows = np.flatnonzero((task.need == 0) & ~task.is_new)
    fixed, ids = task.fixed[rows], np.array([*task.eligible.ids, NONE])
    there = (ids[fixed][:, :, None] == task.partitions.replicas[rows][:, None, :]).any(axis=2)
    return int((((fixed >= 0) & ~there).sum(axis=1) * task.size[rows]).sum())


def _beside(unmoved: Unmoved, number: Mapping[str, int], eligible: EligibleBrokers) -> tuple[Ints, Ints]:
    """Return the numbers of the topics of these partitions, -1 for others, and the columns of their replicas."""
    if isinstance(unmoved, Staying):
        of_topic = np.array([number.get(name, NONE) for name in unmoved.table.topics], dtype=np.int64)
        return of_topic[unmoved.table.topic[unmoved.rows]], eligible.columns(unmoved.table.target[unmoved.rows])
    pairs = [*unmoved]
    topic = np.array([number.get(key.topic, NONE) for key, _ in pairs], dtype=np.int64)
    return topic, eligible.columns(padded([replicas for _, replicas in pairs]))


def _counts(columns: Ints, shape: tuple[int, ...], topic: Ints | None = None) -> Ints:
    """Return how often each broker is among these columns [rows, some]; with a topic for each row, topic by topic."""
    row, seat = np.nonzero(columns >= 0 if topic is None else (columns >= 0) & (topic[:, None] >= 0))
    place = columns[row, seat] if topic is None else topic[row] * shape[-1] + columns[row, seat]
    return np.bincount(place, minlength=prod(shape)).reshape(shape)


def _rule_classes(partitions: PartitionsToPlace, eligible: EligibleBrokers) -> tuple[Ints, RuleClasses]:
    """Return the class of each partition, and the classes."""
    picked, rule_class = alike(likeness(partitions))
    first = [*partitions.at(picked.tolist())]
    choices = [_choice_of(partition, eligible) for partition in first]
    shape, racked = (len(first), len(eligible.ids)), (len(first), len(eligible.racks))
    allowed = np.array([choice[0] for choice in choices], dtype=np.bool_).reshape(shape)
    low, high = (np.array([choice[part] for choice in choices], dtype=np.int64).reshape(racked) for part in (1, 2))
    need = np.array([partition.need for partition in first], dtype=np.int64)
    rows = Rows.within(need, allowed, low, high, rack=eligible.rack)
    freely = np.array([eligible.mask(one.rules.leadable) for one in first], dtype=np.bool_).reshape(shape)
    at_need = np.array([eligible.mask(one.rules.leadable_at_need) for one in first], dtype=np.bool_).reshape(shape)
    is_strict = np.array([one.rules.spread is Spread.STRICT for one in first], dtype=np.bool_)
    return rule_class, RuleClasses(rows, freely, at_need, is_strict)


def _choice_of(partition: PartitionToPlace, eligible: EligibleBrokers) -> tuple[Bools, Ints, Ints]:
    """Return who may hold the replicas to be found, and the fewest and most of each rack."""
    rules, fixed = partition.rules, partition.fixed
    may_stay = rules.keepable & frozenset(partition.replicas if partition.need else ())
    may_hold = (rules.receivable | may_stay) - frozenset(fixed)
    allowed = eligible.mask(may_hold)
    fixed_racks = [rules.rack_of.get(replica, NO_RACK) for replica in fixed]
    limits = rules.rack_limits(len(fixed) + partition.need, partition.replicas)
    beside = [np.array(limits.get(name, (0, 0))) - fixed_racks.count(name) for name in eligible.racks]
    low, high = np.maximum(np.array(beside, dtype=np.int64).reshape(-1, 2), 0).T
    if fixed:
        places = room(allowed[None], eligible.rack, len(eligible.racks))[0]
        # What stays of an undeclared topic may break the racks' limits already; then they bind nothing beside it.
        if np.minimum(places, high).sum() < partition.need or low.sum() > partition.need:
            low, high = 0 * low, 0 * high + partition.need
        low = np.minimum(low, places)
    return allowed, low, high
