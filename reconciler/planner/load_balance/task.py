"""Slots and loads in arrays: what each partition may choose, what it carries, what stays where it is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.diff.rules import NO_RACK
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.placement_task import EligibleBrokers, PartitionToPlace, Unmoved
from reconciler.planner.rows import Bools, Ints

MEASURES = ("replicas", "leaders", "disk", "networkIn", "networkOut")
REPLICAS, LEADERS, DISK, NETWORK_IN, NETWORK_OUT = range(len(MEASURES))
LEADER_MEASURES = (LEADERS, NETWORK_OUT)
ABSENT = -1


@dataclass(frozen=True, slots=True)
class Weights:
    """What one replica (`replica`) and, beyond that, the leader (`leader`) of each row carries: [rows, measures]."""

    replica: Ints
    leader: Ints


@dataclass(frozen=True, slots=True)
class LoadTask:
    """All partitions with something to choose, one row each, and the loads that no choice changes.

    `allowed`, `forced`, `held` [rows, brokers]: who may hold a replica, who must, who does. `need` [rows]: replicas.
    `low`, `high` [rows, racks]: fewest and most in a rack. `leader` [rows]: the present leader's column, -1 for none.
    `leading`, `leading_at_need` [rows, brokers]: who may lead, who may while no other replica can. `is_new` [rows].
    `size` [rows]: bytes of one copy. `stays` [rows]: whether the present placement is legal. `base` [measures,
    brokers]: what partitions without a choice carry. `kinds`: the rows that share need and rack limits, kind by kind;
    `columns`: the brokers of each rack; `may_lead_second` [rows]: where a set without any of `leading` is possible.
    """

    partitions: tuple[PartitionToPlace, ...]
    eligible: EligibleBrokers
    allowed: Bools
    forced: Bools
    held: Bools
    need: Ints
    low: Ints
    high: Ints
    leader: Ints
    leading: Bools
    leading_at_need: Bools
    is_new: Bools
    size: Ints
    stays: Bools
    weights: Weights
    base: Ints
    kinds: tuple[Ints, ...]
    columns: tuple[Ints, ...]
    may_lead_second: Bools

    @property
    def brokers(self) -> int:
        """How many brokers take part."""
        return len(self.eligible.ids)

    def loads(self, members: Bools, leader: Ints, counted: Bools | None = None) -> Ints:
        """Return [measures, brokers]: what brokers carry with these members [rows, brokers] and leaders [rows].

        With `counted` [rows], of these rows only.
        """
        rows = np.arange(len(self.need)) if counted is None else np.flatnonzero(counted)
        total = self.base.copy()
        for measure in range(len(MEASURES)):
            weight = self.weights.replica[rows, measure]
            if weight.any():
                total[measure] += (weight[:, None] * members[rows]).sum(axis=0)
            np.add.at(total[measure], leader[rows], self.weights.leader[rows, measure])
        return total


def load_task(
    partitions: Sequence[PartitionToPlace],
    unmoved: Unmoved,
    eligible: EligibleBrokers,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
) -> LoadTask:
    """Return the task; `load_of` has disk bytes, bytes in and bytes out of each partition, none left unknown."""
    free = tuple(partition for partition in partitions if partition.need > 0)
    shape = (len(free), len(eligible.ids))
    allowed, forced, held, leading, at_need = (np.zeros(shape, dtype=np.bool_) for _ in range(5))
    low = np.zeros((len(free), len(eligible.racks)), dtype=np.int64)
    high = np.zeros_like(low)
    shared: dict[object, _Choice] = {}
    leader = np.full(len(free), ABSENT, dtype=np.int64)
    for row, partition in enumerate(free):
        key = _likeness(partition)
        if key not in shared:
            shared[key] = _choice(partition, eligible)
        choice = shared[key]
        allowed[row], low[row], high[row] = choice.allowed, choice.low, choice.high
        leading[row], at_need[row] = choice.leading, choice.leading_at_need
        columns = [eligible.column[replica] for replica in partition.replicas if replica in eligible.column]
        held[row, columns] = True
        if partition.fixed:
            forced[row] = eligible.mask(partition.fixed)
        if partition.replicas and partition.replicas[0] in eligible.column:
            leader[row] = eligible.column[partition.replicas[0]]
    need = np.array([partition.need + len(partition.fixed) for partition in free], dtype=np.int64)
    task = LoadTask(
        partitions=free,
        eligible=eligible,
        allowed=allowed,
        forced=forced,
        held=held,
        need=need,
        low=low,
        high=high,
        leader=leader,
        leading=leading,
        leading_at_need=at_need,
        is_new=np.array([partition.is_new for partition in free], dtype=np.bool_),
        size=np.array([0 if partition.is_new else partition.size or 0 for partition in free], dtype=np.int64),
        stays=np.zeros(len(free), dtype=np.bool_),
        weights=_weights([load_of[partition.topic_partition] for partition in free], need),
        base=_base(partitions, unmoved, eligible, load_of),
        kinds=_kinds(need, low, high),
        columns=tuple(np.flatnonzero(eligible.rack == rack) for rack in range(len(eligible.racks))),
        may_lead_second=~(forced & leading).any(axis=1) & ((allowed & ~leading).sum(axis=1) >= need),
    )
    task.stays[:] = _stays(task)
    return task


def _kinds(need: Ints, low: Ints, high: Ints) -> tuple[Ints, ...]:
    """Return the rows that share need and rack limits, kind by kind."""
    if not len(need):
        return ()
    _, kind = np.unique(np.concatenate([need[:, None], low, high], axis=1), axis=0, return_inverse=True)
    return tuple(np.flatnonzero(kind == number) for number in range(int(kind.max()) + 1))


def _weights(loads: Sequence[tuple[int, int, int]], need: Ints) -> Weights:
    carried = np.array(loads, dtype=np.int64).reshape(len(loads), 3)
    one, none = np.ones_like(need), np.zeros_like(need)
    disk, taken, sent = carried.T
    return Weights(
        replica=np.stack([one, none, disk, taken, none], axis=1),
        leader=np.stack([none, one, none, none, sent + (need - 1) * taken], axis=1),
    )


def _base(
    partitions: Iterable[PartitionToPlace],
    unmoved: Unmoved,
    eligible: EligibleBrokers,
    load_of: Mapping[TopicPartition, tuple[int, int, int]],
) -> Ints:
    base = np.zeros((len(MEASURES), len(eligible.ids)), dtype=np.int64)
    decided = [(partition.topic_partition, partition.fixed) for partition in partitions if partition.need == 0]
    for key, replicas in (*unmoved, *decided):
        disk, taken, sent = load_of[key]
        for number, replica in enumerate(replicas):
            if replica in eligible.column:
                column = eligible.column[replica]
                base[[REPLICAS, DISK, NETWORK_IN], column] += (1, disk, taken)
                if number == 0:
                    base[[LEADERS, NETWORK_OUT], column] += (1, sent + (len(replicas) - 1) * taken)
    return base


@dataclass(frozen=True, slots=True)
class _Choice:
    """What like partitions may choose."""

    allowed: Bools
    low: Ints
    high: Ints
    leading: Bools
    leading_at_need: Bools


def _likeness(partition: PartitionToPlace) -> object:
    """Return a key that is equal for partitions with the same choice."""
    rules = partition.rules
    kept_only = frozenset(partition.replicas) & (rules.keepable - rules.receivable)
    held: object = None
    if rules.spread is None and not partition.is_new:
        held = tuple(sorted(rules.rack_of.get(replica, NO_RACK) for replica in partition.replicas))
    return (
        rules.receivable,
        rules.spread,
        rules.racks,
        rules.leadable,
        rules.leadable_at_need,
        partition.need,
        kept_only,
        held,
        partition.is_new,
        partition.fixed,
    )


def _choice(partition: PartitionToPlace, eligible: EligibleBrokers) -> _Choice:
    rules = partition.rules
    allowed = eligible.mask(
        rules.receivable | (rules.keepable & frozenset(partition.replicas)) | frozenset(partition.fixed)
    )
    need = len(partition.fixed) + partition.need
    limits = rules.rack_limits(need, partition.replicas)
    room = [int(allowed[eligible.rack == rack].sum()) for rack in range(len(eligible.racks))]
    fixed = [rules.rack_of.get(replica, NO_RACK) for replica in partition.fixed]
    low, high = [], []
    for name, most_there in zip(eligible.racks, room, strict=True):
        least, most = limits.get(name, (0, 0))
        there = fixed.count(name)
        low.append(min(max(least, there), most_there) if fixed else least)
        high.append(min(max(most, there), most_there))
    if fixed and (sum(high) < need or sum(low) > need):
        low, high = [fixed.count(name) for name in eligible.racks], room
    return _Choice(
        allowed,
        np.array(low, dtype=np.int64),
        np.array(high, dtype=np.int64),
        *_leaders(partition, allowed, eligible),
    )


def _leaders(partition: PartitionToPlace, allowed: Bools, eligible: EligibleBrokers) -> tuple[Bools, Bools]:
    """Return who may lead, and who may where none of those is a replica."""
    rules = partition.rules
    at_need = allowed & eligible.mask(rules.leadable_at_need)
    if not at_need.any():
        at_need = allowed
    first = allowed & eligible.mask(rules.leadable)
    return (first, at_need) if first.any() else (at_need, at_need)


def _stays(task: LoadTask) -> Bools:
    """Return which rows may stay as they are: the set and its leader."""
    held, rows = task.held, np.arange(len(task.need))
    present = np.array([len(partition.replicas) for partition in task.partitions], dtype=np.int64)
    fine = ~task.is_new & (held.sum(axis=1) == task.need) & (present == task.need)
    fine &= ~(held & ~task.allowed).any(axis=1) & ~(task.forced & ~held).any(axis=1)
    for rack in range(len(task.eligible.racks)):
        there = held[:, task.eligible.rack == rack].sum(axis=1)
        fine &= (task.low[:, rack] <= there) & (there <= task.high[:, rack])
    first, second = held & task.leading, held & task.leading_at_need
    leads = np.where(first.any(axis=1), first[rows, task.leader], second[rows, task.leader])
    result: Bools = fine & (task.leader >= 0) & leads
    return result
