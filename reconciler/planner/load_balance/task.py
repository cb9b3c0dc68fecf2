"""Adds what each partition carries to a placement task: the arrays that a balance of disks and network works on.

Six measures are balanced at once. A replica adds one count, its bytes on disk and the bytes a second it takes in. The
leader adds one lead, what it sends: to its consumers, and once more all it takes in to each follower; and what it takes
in from producers alone. Where topics are balanced too, each one's replicas and leads are two measures more.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.load_balance.measured import Carried
from reconciler.planner.placement_task import EligibleBrokers, PlacementTask
from reconciler.planner.rows import room
from reconciler.planner.to_place import PartitionToPlace, Unmoved

MEASURES = ("replicas", "leaders", "disk", "networkIn", "networkOut", "leaderIn")
"""The rows of each array of [measures], by the names that `balance` and a proof's prices have for them."""
REPLICAS, LEADERS, DISK, NETWORK_IN, NETWORK_OUT, LEADER_IN = range(len(MEASURES))
COUNTS = (REPLICAS, LEADERS)
OF_SETS = (REPLICAS, DISK, NETWORK_IN)  # what follows from who holds a replica
OF_LEADERS = (LEADERS, NETWORK_OUT, LEADER_IN)  # what follows from who leads
TOPICS = len(MEASURES)  # where the measures of topics begin: replicas of each, and of all others; leads likewise
CAPACITY_OF = ("replicas", "leaders", "disk", "network", "network", "network")
"""What a broker's fair share of each measure goes by, of CAPACITIES."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What partitions carry: [rows, measures]."""

    replica: Ints  # each replica, the leader's included
    leader: Ints  # the leader's replica, beyond that


LAST = 3
"""Behind every rank of those that may lead."""


@dataclass(frozen=True, eq=False)
class LoadTask:
    """The partitions with something to choose, one row each, and the loads that no choice changes."""

    partitions: tuple[PartitionToPlace, ...]
    eligible: EligibleBrokers
    allowed: Bools  # [rows, brokers]: who may hold a replica
    forced: Bools  # [rows, brokers]: who must
    held: Bools  # [rows, brokers]: who does now
    need: Ints  # [rows]: replicas, the forced ones included
    low: Ints  # [rows, racks]: the fewest replicas in a rack
    high: Ints  # [rows, racks]: the most
    leader: Ints  # [rows]: the present preferred leader's column; -1 where it takes no part or there is none
    leading: Bools  # [rows, brokers]: who is to lead
    rank: Ints  # [rows, brokers]: the replica with the least may lead; 0 for `leading`
    may_lead_second: Bools  # [rows]: whether a legal set without any of `leading` is possible
    is_new: Bools  # [rows]
    size: Ints  # [rows]: bytes of one copy, which is what moving costs; not the disk weight, which may be measured
    is_size_known: bool  # whether copies cost bytes; else each costs one, and `size` holds zeros
    stays: Bools  # [rows]: whether the present placement is legal
    weights: Weights
    base: Ints  # [measures, brokers]: what partitions without a choice carry
    topics: tuple[str, ...]  # those whose replicas and leads are balanced by themselves
    topic: Ints  # [rows]: positions in `topics`, behind the last for others

    @property
    def of_sets(self) -> tuple[int, ...]:
        """The measures that follow from who holds a replica."""
        return (*OF_SETS, *range(TOPICS, TOPICS + len(self.topics)))

    @property
    def of_leaders(self) -> tuple[int, ...]:
        """The measures that follow from who leads."""
        first = TOPICS + len(self.topics) + 1
        return (*OF_LEADERS, *range(first, first + len(self.topics)))

    @property
    def counts(self) -> tuple[int, ...]:
        """The measures that are counts."""
        return (*COUNTS, *range(TOPICS, len(self.base)))

    def of_topic(self, rows: Ints, *, leads: bool = False) -> Ints:
        """Return the measure of the replicas, or leads, of each row's topic; only where topics are balanced."""
        return self.topic[rows] + (TOPICS + len(self.topics) + 1 if leads else TOPICS)

    def leaders_of(self, members: Bools) -> Ints:
        """Return [rows] who leads these members [rows, brokers]: the present leader where it may, else the first."""
        rank = np.where(members, self.rank, LAST)
        rows, first = np.arange(len(rank)), rank.min(axis=1)
        is_kept = (self.leader >= 0) & (rank[rows, self.leader] == first)
        return np.where(is_kept, self.leader, rank.argmin(axis=1))

    def replica_weight(self, row: int) -> Ints:
        """Return [measures]: what a replica of that row carries."""
        weight = np.zeros(len(self.base), dtype=np.int64)
        weight[:TOPICS] = self.weights.replica[row]
        if self.topics:
            weight[TOPICS + self.topic[row]] = 1
        return weight

    def weight_of(self, measure: int) -> Ints:
        """Return [rows]: what a replica that leads carries of that measure."""
        if measure < TOPICS:
            return np.asarray(self.weights.replica[:, measure] + self.weights.leader[:, measure])
        return np.asarray(self.topic == (measure - TOPICS) % (len(self.topics) + 1)).astype(np.int64)

    @property
    def brokers(self) -> int:
        """How many brokers take part."""
        return len(self.eligible.ids)

    @cached_property
    def alike(self) -> tuple[Ints, ...]:
        """The rows that share need and rack limits, class by class."""
        _, of_row = np.unique(np.column_stack([self.need, self.low, self.high]), axis=0, return_inverse=True)
        return tuple(np.flatnonzero(of_row == number) for number in range(int(of_row.max(initial=-1)) + 1))

    @cached_property
    def rack_brokers(self) -> tuple[Ints, ...]:
        """The brokers of each rack."""
        return tuple(np.flatnonzero(self.eligible.rack == rack) for rack in range(len(self.eligible.racks)))

    def by_rack(self, mask: Bools) -> Ints:
        """Return [rows, racks] how many brokers of each rack a mask [rows, brokers] marks."""
        return room(mask, self.eligible.rack, len(self.eligible.racks))

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
        if self.topics:
            row, broker = np.nonzero(members[rows])
            np.add.at(total, (self.of_topic(rows[row]), broker), 1)
            np.add.at(total, (self.of_topic(rows, leads=True), leader[rows]), 1)
        return total

    def carried(self, row: int, members: Ints | Bools, leader: int) -> Ints:
        """Return [measures, brokers]: what brokers carry of one row with these members and that leader."""
        load = np.zeros((len(self.base), self.brokers), dtype=np.int64)
        load[:TOPICS, members] = self.weights.replica[row][:, None]
        load[:TOPICS, leader] += self.weights.leader[row]
        if self.topics:
            one = np.array([row])
            load[self.of_topic(one), members] = 1
            load[self.of_topic(one, leads=True), leader] = 1
        return load


def load_task(
    whole: PlacementTask, unmoved: Unmoved, load_of: Mapping[TopicPartition, Carried], topics: Sequence[str] = ()
) -> LoadTask:
    """Return the task of all partitions with something to choose; `load_of` knows every partition's load.

    `topics` are those to be balanced by themselves.
    """
    open_rows = np.flatnonzero(whole.need > 0)
    partitions = tuple(whole.partitions.at(open_rows.tolist()))
    eligible, rule_class = whole.eligible, whole.rule_class[open_rows]
    rows = whole.rule_classes.rows.take(rule_class)
    held, forced = whole.mask(whole.replicas)[open_rows], whole.mask(whole.fixed)[open_rows]
    forced_there = room(forced, eligible.rack, len(eligible.racks))
    allowed, need = rows.allowed | forced, rows.need + forced.sum(axis=1)
    # Where none may lead freely, those lead that may at need; where these are none either, any replica does.
    rank = 2 - whole.rule_classes.leadable_at_need[rule_class].astype(np.int64)
    rank -= whole.rule_classes.leadable[rule_class]
    rank = np.maximum(rank - np.where(allowed, rank, LAST).min(axis=1, keepdims=True), 0)
    leading = allowed & (rank == 0)
    base = [_base_loads(whole, unmoved, load_of), *_base_of_topics(whole, forced, open_rows, topics)]
    task = LoadTask(
        partitions=partitions,
        eligible=eligible,
        allowed=allowed,
        forced=forced,
        held=held,
        need=need,
        low=rows.low + forced_there,
        high=rows.high + forced_there,
        leader=whole.replicas[open_rows, 0],
        leading=leading,
        rank=rank,
        may_lead_second=~(forced & leading).any(axis=1) & ((allowed & ~leading).sum(axis=1) >= need),
        is_new=whole.is_new[open_rows],
        size=whole.size[open_rows],
        is_size_known=whole.is_size_known,
        stays=np.zeros(len(need), dtype=np.bool_),
        weights=_weights([load_of[each.topic_partition] for each in partitions], need),
        base=np.concatenate(base),
        topics=tuple(topics),
        topic=_positions(whole, topics)[whole.topic[open_rows]],
    )
    task.stays[:] = _stays(task)
    return task


def _weights(loads: Sequence[Carried], need: Ints) -> Weights:
    one, none = np.ones_like(need), np.zeros_like(need)
    disk, taken, sent = np.array(loads, dtype=np.int64).reshape(len(loads), 3).T
    return Weights(
        replica=np.stack([one, none, disk, taken, none, none], axis=1),
        leader=np.stack([none, one, none, none, sent + (need - 1) * taken, taken], axis=1),
    )


def _base_loads(whole: PlacementTask, unmoved: Unmoved, load_of: Mapping[TopicPartition, Carried]) -> Ints:
    """Return [measures, brokers]: what those carry that stay, those of which every replica is decided, and others."""
    eligible = whole.eligible
    base = np.zeros((len(MEASURES), len(eligible.ids)), dtype=np.int64)
    base[DISK] = eligible.foreign
    decided = [(each.topic_partition, each.fixed) for each in whole.partitions if each.need == 0]
    for key, replicas in (*unmoved, *decided):
        disk, taken, sent = load_of[key]
        for number, replica in enumerate(replicas):
            if replica in eligible.column:
                column = eligible.column[replica]
                base[[REPLICAS, DISK, NETWORK_IN], column] += (1, disk, taken)
                if number == 0:
                    base[list(OF_LEADERS), column] += (1, sent + (len(replicas) - 1) * taken, taken)
    return base


def _positions(whole: PlacementTask, topics: Sequence[str]) -> Ints:
    """Return the position of each topic of the whole task among these, behind the last for others."""
    place = {name: position for position, name in enumerate(topics)}
    return np.array([place.get(name, len(topics)) for name in whole.topics], dtype=np.int64)


def _base_of_topics(whole: PlacementTask, forced: Bools, open_rows: Ints, topics: Sequence[str]) -> Iterator[Ints]:
    """Yield the replicas, then the leads, that no choice changes: of these topics, and of all others [.., brokers]."""
    if not topics:
        return
    base, led = whole.base_of_topic.copy(), whole.led_of_topic.copy()
    np.subtract.at(base, whole.topic[open_rows], forced.astype(np.int64))
    decided = np.flatnonzero((whole.need == 0) & (whole.fixed[:, 0] >= 0))
    np.add.at(led, (whole.topic[decided], whole.fixed[decided, 0]), 1)
    for each in (base, led):
        found = np.zeros((len(topics) + 1, each.shape[1]), dtype=np.int64)
        np.add.at(found, _positions(whole, topics), each)
        yield found


def _stays(task: LoadTask) -> Bools:
    """Return which rows may stay as they are: the set and its leader."""
    held, rows = task.held, np.arange(len(task.need))
    present = np.array([len(partition.replicas) for partition in task.partitions], dtype=np.int64)
    fine = ~task.is_new & (held.sum(axis=1) == task.need) & (present == task.need)
    fine &= ~(held & ~task.allowed).any(axis=1) & ~(task.forced & ~held).any(axis=1)
    count = task.by_rack(held)
    fine &= ((task.low <= count) & (count <= task.high)).all(axis=1)
    first = np.where(held, task.rank, LAST).min(axis=1)
    result: Bools = fine & (task.leader >= 0) & (task.rank[rows, task.leader] == first)
    return result
