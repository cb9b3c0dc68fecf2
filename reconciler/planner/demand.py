"""Desired x observed, in arrays: what has to be placed, what stays put, what each broker may take."""

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
class Slot:
    """A partition to plan for: its rules, its present replicas (none for a new one) and the bytes of one copy.

    `fixed` holds replicas that are decided already: an explicit assignment, or those of a topic nobody declared.
    `need` is how many more are to be found. `lagging` holds the present replicas that are not in sync.
    """

    topic_partition: TopicPartition
    rules: TopicRules
    replicas: tuple[int, ...]
    fixed: tuple[int, ...]
    need: int
    size: int | None
    lagging: frozenset[int] = frozenset()

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
    for name, topic in observed.topics.items():
        if name in doomed:
            continue
        is_asked = only is None or name in only
        for partition in topic.partitions:
            key, replicas = TopicPartition(name, partition.partition), partition.target_replicas
            slot = _slot(desired, rules[name], key, replicas, partition.bytes_to_copy) if is_asked else None
            if slot is None:
                still.append((key, replicas))
            else:
                slots.append(replace(slot, lagging=lagging) if (lagging := partition.lagging) else slot)
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
class Kinds:
    """Demands that slots share: `rows` [kinds], and who may lead them [kinds, brokers], freely or at need alone."""

    rows: Rows
    leadable: Bools
    leadable_at_need: Bools


@dataclass(frozen=True, slots=True)
class Demand:
    """All that is to be placed: slots, the same as arrays, the brokers, and what stays put on each of them.

    `kind` [slots] is the number of each slot's kind, `replicas` [slots, most replicas] the columns of its present ones
    in order, `fixed` of its fixed ones; -1 for a broker that does not take part, or for none. `size` [slots] is the
    bytes of one copy, 0 where unknown or new. `topic` [slots] numbers the slots' `topics`, which are sorted.
    `is_new` [slots]: which of them do not exist yet.
    `base` [brokers] counts replicas that stay, `led` [brokers] the preferred leaders of partitions that stay;
    `base_of_topic` and `led_of_topic` [topics, brokers] those of the slots' topics alone.
    """

    slots: Sequence[Slot]
    bench: Bench
    base: Ints
    led: Ints
    base_of_topic: Ints
    led_of_topic: Ints
    kind: Ints
    kinds: Kinds
    replicas: Ints
    fixed: Ints
    size: Ints
    topic: Ints
    topics: tuple[str, ...]
    is_new: Bools

    @property
    def rows(self) -> Rows:
        """The demands as arrays, one row a slot."""
        rows = self.kinds.rows.take(self.kind)
        return replace(rows, count=np.ones_like(self.kind), topic=self.topic)

    @property
    def is_size_known(self) -> bool:
        """Whether the bytes of each present partition are known."""
        return all(slot.size is not None for slot in self.slots if not slot.is_new)

    @property
    def need(self) -> Ints:
        """How many replicas of each slot are to be found."""
        return self.kinds.rows.need[self.kind]

    def mask(self, columns: Ints) -> Bools:
        """Return [slots, brokers] which brokers are among these columns [slots, some]."""
        found = np.zeros((len(self.slots), len(self.bench.ids)), dtype=np.bool_)
        slot, place = np.nonzero(columns >= 0)
        found[slot, columns[slot, place]] = True
        return found


def demand_of(slots: Sequence[Slot], still: Still, bench: Bench) -> Demand:
    """Return the demand of these slots, given the partitions that stay as they are."""
    kind, kinds = _kinds(slots, bench)
    fixed = _columns([slot.fixed for slot in slots], bench)
    base = bench.tally([replica for _, replicas in still for replica in replicas])
    base += np.bincount(fixed[fixed >= 0], minlength=len(bench.ids))
    names = [slot.topic_partition.topic for slot in slots]
    topics = tuple(sorted(set(names)))
    number = {name: position for position, name in enumerate(topics)}
    beside = [(number[key.topic], replicas) for key, replicas in still if key.topic in number]
    here = [(number[slot.topic_partition.topic], slot.fixed) for slot in slots if slot.fixed]
    return Demand(
        slots=slots,
        bench=bench,
        base=base,
        led=bench.tally([replicas[0] for _, replicas in still if replicas]),
        base_of_topic=_tally([*beside, *here], (len(topics), len(bench.ids)), bench),
        led_of_topic=_tally([(topic, held[:1]) for topic, held in beside], (len(topics), len(bench.ids)), bench),
        kind=kind,
        kinds=kinds,
        replicas=_columns([slot.replicas for slot in slots], bench),
        fixed=fixed,
        size=np.array([0 if slot.is_new else slot.size or 0 for slot in slots], dtype=np.int64),
        topic=np.array([number[name] for name in names], dtype=np.int64),
        topics=topics,
        is_new=np.array([slot.is_new for slot in slots], dtype=np.bool_),
    )


def _tally(held: Sequence[tuple[int, tuple[int, ...]]], shape: tuple[int, int], bench: Bench) -> Ints:
    """Return [topics, brokers] how often each broker is among the replicas of each topic, given by its number."""
    count = np.zeros(shape, dtype=np.int64)
    for topic, replicas in held:
        for broker_id in replicas:
            if broker_id in bench.column:
                count[topic, bench.column[broker_id]] += 1
    return count


def _columns(lists: Sequence[tuple[int, ...]], bench: Bench) -> Ints:
    """Return lists of brokers as columns [lists, longest], -1 where a list has ended."""
    length = np.array([len(each) for each in lists], dtype=np.int64)
    columns = np.full((len(lists), max(1, int(length.max(initial=0)))), -1, dtype=np.int64)
    columns[np.arange(columns.shape[1]) < length[:, None]] = bench.columns(list(chain.from_iterable(lists)))
    return columns


def _kinds(slots: Sequence[Slot], bench: Bench) -> tuple[Ints, Kinds]:
    """Return the kind of each slot, and the kinds."""
    numbers: dict[object, int] = {}
    first: list[Slot] = []
    kind = np.zeros(len(slots), dtype=np.int64)
    for number, slot in enumerate(slots):
        key = _likeness(slot)
        if key not in numbers:
            numbers[key] = len(first)
            first.append(slot)
        kind[number] = numbers[key]
    demands = [_demand(slot, bench) for slot in first]
    shape = (len(first), len(bench.ids))
    allowed = np.array([demand[0] for demand in demands], dtype=np.bool_).reshape(shape)
    racked = (len(first), len(bench.racks))
    low, high = (np.array([demand[part] for demand in demands], dtype=np.int64).reshape(racked) for part in (1, 2))
    rows = Rows(
        count=np.ones(len(first), dtype=np.int64),
        need=np.array([slot.need for slot in first], dtype=np.int64),
        allowed=allowed,
        low=low,
        high=np.minimum(high, room(allowed, bench.rack, len(bench.racks))),
        rack=bench.rack,
        leading=np.array([demand[3] for demand in demands], dtype=np.bool_).reshape(racked),
        topic=np.zeros(len(first), dtype=np.int64),
        column=np.arange(len(bench.ids)),
        brokers=len(bench.ids),
    )
    freely = np.array([bench.mask(slot.rules.leadable) for slot in first], dtype=np.bool_).reshape(shape)
    at_need = np.array([bench.mask(slot.rules.leadable_at_need) for slot in first], dtype=np.bool_).reshape(shape)
    return kind, Kinds(rows, freely, at_need)


def _likeness(slot: Slot) -> object:
    """Return a key that is equal for slots with the same demand only."""
    rules = slot.rules
    shared = (id(rules), slot.need, slot.is_new)
    if slot.need == 0:
        return shared
    if slot.fixed or rules.spread is None or len(rules.keepable) != len(rules.receivable):
        held = tuple(sorted(rules.rack_of.get(replica, NO_RACK) for replica in slot.replicas))
        return (*shared, slot.fixed, held, frozenset(slot.replicas) & (rules.keepable - rules.receivable))
    return shared


def _demand(slot: Slot, bench: Bench) -> tuple[Bools, Ints, Ints, Bools]:
    rules = slot.rules
    may_stay = rules.keepable & frozenset(slot.replicas if slot.need else ())
    may_hold = (rules.receivable | may_stay) - frozenset(slot.fixed)
    allowed = bench.mask(may_hold)
    fixed_racks = [rules.rack_of.get(replica, NO_RACK) for replica in slot.fixed]
    limits = rules.rack_limits(len(slot.fixed) + slot.need, slot.replicas)
    places = [int(allowed[bench.rack == rack].sum()) for rack in range(len(bench.racks))]
    low, high = [], []
    for name in bench.racks:
        least, most = limits.get(name, (0, 0))
        there = fixed_racks.count(name)
        low.append(max(0, least - there))
        high.append(max(0, most - there))
    if slot.fixed and (sum(map(min, places, high)) < slot.need or sum(low) > slot.need):
        low, high = [0] * len(low), [slot.need] * len(high)
    if slot.fixed:
        low = list(map(min, low, places))
    leads = bool(rules.declared and rules.declared.placement.racks_leader) and not slot.fixed
    wanted = rules.declared.placement.racks_leader if rules.declared and leads else None
    leading = np.array([wanted is not None and name in wanted for name in bench.racks], dtype=np.bool_)
    return allowed, np.array(low, dtype=np.int64), np.array(high, dtype=np.int64), leading
