"""Desired x observed, in arrays: what has to be placed, what stays put, what each broker may take."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.diff.broken import assigned
from reconciler.diff.rules import LEAVING, NO_RACK, TopicRules
from reconciler.model.change import Changes, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.network import Bools, Ints
from reconciler.planner.rows import Rows


@dataclass(frozen=True, slots=True)
class Slot:
    """A partition to plan for: its rules, its present replicas (none for a new one) and the bytes of one copy.

    `fixed` holds replicas that are decided already: an explicit assignment, or those of a topic nobody declared.
    `need` is how many more are to be found.
    """

    topic_partition: TopicPartition
    rules: TopicRules
    replicas: tuple[int, ...]
    fixed: tuple[int, ...]
    need: int
    size: int | None

    @property
    def is_new(self) -> bool:
        """Whether the partition does not exist yet."""
        return not self.replicas


Still = Sequence[tuple[TopicPartition, tuple[int, ...]]]
"""Partitions that stay as they are, with their replicas."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The brokers that take part: alive, neither draining nor absent; arrays run parallel to `ids`."""

    ids: tuple[int, ...]
    column: Mapping[int, int]
    capacity: Ints
    rack: Ints
    racks: tuple[str, ...]

    def mask(self, broker_ids: Collection[int]) -> Bools:
        """Return which of the brokers are among these."""
        found = np.zeros(len(self.ids), dtype=np.bool_)
        found[[self.column[broker_id] for broker_id in broker_ids if broker_id in self.column]] = True
        return found

    def tally(self, replicas: Iterable[int]) -> Ints:
        """Return how often each broker occurs."""
        count = np.zeros(len(self.ids), dtype=np.int64)
        for broker_id in replicas:
            if broker_id in self.column:
                count[self.column[broker_id]] += 1
        return count


def bench_of(desired: Desired, observed: Cluster) -> Bench:
    """Return the brokers that take part, by id."""
    ids = tuple(
        broker_id
        for broker_id in sorted(observed.brokers)
        if observed.is_alive(broker_id) and desired.cluster.broker(broker_id).state not in LEAVING
    )
    names = [observed.brokers[broker_id].rack or NO_RACK for broker_id in ids]
    racks = tuple(sorted(set(names)))
    return Bench(
        ids=ids,
        column={broker_id: column for column, broker_id in enumerate(ids)},
        capacity=np.array([desired.cluster.broker(broker_id).capacity for broker_id in ids], dtype=np.int64),
        rack=np.array([racks.index(name) for name in names], dtype=np.int64),
        racks=racks,
    )


def slots_of(
    desired: Desired,
    observed: Cluster,
    rules: Mapping[str, TopicRules],
    changes: Changes,
    only: Collection[str] | None,
) -> tuple[Sequence[Slot], Still]:
    """Return the partitions to plan for, sorted, and those that stay as they are with their replicas."""
    doomed = {change.topic for change in changes.topic_changes if isinstance(change, DeleteTopic)}
    slots: list[Slot] = []
    still = []
    for topic_partition, partition in observed.partitions():
        name = topic_partition.topic
        if name in doomed:
            continue
        replicas = partition.target_replicas
        slot = None
        if only is None or name in only:
            slot = _slot(desired, rules[name], topic_partition, replicas, partition.bytes_to_copy)
        if slot is None:
            still.append((topic_partition, replicas))
        else:
            slots.append(slot)
    slots += _new_slots(observed, rules, changes, only)
    return sorted(slots, key=lambda slot: slot.topic_partition), still


def _slot(
    desired: Desired,
    rules: TopicRules,
    topic_partition: TopicPartition,
    replicas: tuple[int, ...],
    size: int | None,
) -> Slot | None:
    """Return what is to be placed of an existing partition, None where it stays as it is."""
    if rules.is_frozen:
        return None
    explicit = assigned(rules, topic_partition.partition)
    if explicit is not None:
        return Slot(topic_partition, rules, replicas, explicit, 0, size)
    if rules.is_managed:
        return Slot(topic_partition, rules, replicas, (), rules.target_factor(replicas), size)
    if not any(desired.cluster.broker(replica).state in LEAVING for replica in replicas):
        return None
    # A dead replica goes as well: a reassignment never ends while its target holds one.
    staying = tuple(replica for replica in replicas if replica in rules.keepable)
    return Slot(topic_partition, rules, replicas, staying, len(replicas) - len(staying), size)


def _new_slots(
    observed: Cluster, rules: Mapping[str, TopicRules], changes: Changes, only: Collection[str] | None
) -> Iterator[Slot]:
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
            yield Slot(TopicPartition(change.topic, number), rule, (), explicit or (), need, 0)


@dataclass(frozen=True, slots=True)
class Demand:
    """All that is to be placed: slots, the same as arrays, the brokers, and what stays put on each of them.

    `base` [brokers] counts replicas that stay, `led` [brokers] the preferred leaders of partitions that stay.
    """

    slots: Sequence[Slot]
    rows: Rows
    bench: Bench
    base: Ints
    led: Ints

    @property
    def is_size_known(self) -> bool:
        """Whether the bytes of each present partition are known."""
        return all(slot.size is not None for slot in self.slots if not slot.is_new)


def demand_of(slots: Sequence[Slot], still: Still, bench: Bench) -> Demand:
    """Return the demand of these slots, given the partitions that stay as they are."""
    base = bench.tally(replica for _, replicas in still for replica in replicas)
    base += bench.tally(replica for slot in slots for replica in slot.fixed)
    led = bench.tally(replicas[0] for _, replicas in still if replicas)
    return Demand(slots, rows_of(slots, bench), bench, base, led)


def rows_of(slots: Sequence[Slot], bench: Bench) -> Rows:
    """Return the slots' demands as arrays, one row a slot."""
    shape = (len(slots), len(bench.ids))
    allowed = np.zeros(shape, dtype=np.bool_)
    low = np.zeros((len(slots), len(bench.racks)), dtype=np.int64)
    high = np.zeros_like(low)
    leading = np.zeros(low.shape, dtype=np.bool_)
    shared: dict[object, tuple[Bools, Ints, Ints, Bools]] = {}
    for number, slot in enumerate(slots):
        key = _likeness(slot)
        if key not in shared:
            shared[key] = _demand(slot, bench)
        allowed[number], low[number], high[number], leading[number] = shared[key]
    return Rows(
        count=np.ones(len(slots), dtype=np.int64),
        need=np.array([slot.need for slot in slots], dtype=np.int64),
        allowed=allowed,
        low=low,
        high=high,
        rack=bench.rack,
        leading=leading,
    )


def _likeness(slot: Slot) -> object:
    """Return a key that is equal for slots with the same demand."""
    rules = slot.rules
    kept_only = frozenset(slot.replicas) & (rules.keepable - rules.receivable)
    held: object = None
    if rules.spread is None and not slot.is_new:
        held = tuple(sorted(rules.rack_of.get(replica, NO_RACK) for replica in slot.replicas))
    return (
        rules.receivable,
        rules.spread,
        rules.racks,
        rules.leadable_at_need,
        slot.need,
        kept_only,
        held,
        slot.is_new,
        frozenset(slot.fixed),
    )


def _demand(slot: Slot, bench: Bench) -> tuple[Bools, Ints, Ints, Bools]:
    rules = slot.rules
    may_hold = (rules.receivable | (rules.keepable & frozenset(slot.replicas))) - frozenset(slot.fixed)
    allowed = bench.mask(may_hold)
    fixed_racks = [rules.rack_of.get(replica, NO_RACK) for replica in slot.fixed]
    limits = rules.rack_limits(len(slot.fixed) + slot.need, slot.replicas)
    room = [int(allowed[bench.rack == rack].sum()) for rack in range(len(bench.racks))]
    low, high = [], []
    for name in bench.racks:
        least, most = limits.get(name, (0, 0))
        there = fixed_racks.count(name)
        low.append(max(0, least - there))
        high.append(max(0, most - there))
    if slot.fixed and (sum(map(min, room, high)) < slot.need or sum(low) > slot.need):
        low, high = [0] * len(low), [slot.need] * len(high)
    if slot.fixed:
        low = list(map(min, low, room))
    leads = bool(rules.declared and rules.declared.placement.racks_leader) and not slot.fixed
    wanted = rules.declared.placement.racks_leader if rules.declared and leads else None
    leading = np.array([wanted is not None and name in wanted for name in bench.racks], dtype=np.bool_)
    return allowed, np.array(low, dtype=np.int64), np.array(high, dtype=np.int64), leading
