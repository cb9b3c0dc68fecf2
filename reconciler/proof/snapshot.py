"""Makes the proof's own columns of a snapshot's partitions and of a plan's moves.

Both may have a million rows. The readers of files keep such rows as columns, and the proof takes their columns as they
were read. It goes through values one by one. It computes itself what follows from them, such as the bytes of a copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from reconciler.model.cluster import Cluster, Partition
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.arithmetic import NONE, Bools, Ints, is_new, stacked, table_of_lists


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """All partitions, one row each, by topic and number. Lists of brokers end with NONE.

    `target` [rows, width] are the replicas that a reassignment in flight leads to, else those that are there. `size` is
    the bytes that one new replica copies, NONE where unknown. `untiered` is what a tiered topic has not tiered yet.
    """

    topics: tuple[str, ...]
    start: Ints  # [topics + 1]: the first row of each topic, and the number of rows
    topic: Ints
    number: Ints
    target: Ints
    size: Ints
    untiered: Ints
    replicas: Ints
    sizes: Ints  # [rows, width]: bytes of each of `replicas`, below 0 where unknown
    isr: Ints
    is_in_flight: Bools  # [rows]: a reassignment is
    has_source: Bools  # [rows]: there is a leader, which lives or has a living replica in sync beside it

    def rows_of(self, topics: Sequence[str], topic: Ints, number: Ints) -> Ints:
        """Return the row of each partition, NONE where there is none; `topic` are positions in `topics`."""
        position = {name: place for place, name in enumerate(self.topics)}
        place = np.array([position.get(name, NONE) for name in topics], dtype=np.int64)[topic]
        row = self.start[place] + number
        return np.where((place >= 0) & (number >= 0) & (row < self.start[place + 1]), row, NONE)


@dataclass(frozen=True, slots=True, eq=False)
class PlannedMoves:
    """The moves between brokers of all stages, one row each, in order. `topic`: positions in `topics`."""

    topics: tuple[str, ...]
    topic: Ints
    number: Ints
    before: Ints  # [rows, width]: the ordered replicas
    after: Ints
    bytes: Ints
    is_size_known: Bools
    stage: Ints  # [rows]: the number of each move's stage

    def __len__(self) -> int:
        return len(self.number)

    def key(self, row: int) -> TopicPartition:
        """Return the partition that moves."""
        return TopicPartition(self.topics[self.topic[row]], int(self.number[row]))

    @property
    def copies(self) -> Ints:
        """How many replicas each move copies."""
        count: Ints = is_new(self.after, self.before).sum(axis=1)
        return count


class _Rows(Protocol):
    """The partitions of a topic as a reader keeps them: some rows of its columns, few of them changed."""

    table: Any
    start: int
    stop: int
    changed: Mapping[int, Partition]


@dataclass(frozen=True, slots=True)
class _Facts:
    """The columns of one topic. `removing`: by row in flight, the replicas that the reassignment takes away."""

    leader: Ints
    replicas: Ints
    isr: Ints
    sizes: Ints
    untiered: Ints
    removing: Mapping[int, Sequence[int]]


def snapshot_of(observed: Cluster) -> Snapshot:
    """Return the columns of all partitions of that cluster."""
    facts = [_facts_of(topic.partitions) for topic in observed.topics.values()]
    counts = [len(topic.leader) for topic in facts]
    start = np.cumsum([0, *counts])
    leader, untiered = (_joined([getattr(topic, name) for topic in facts]) for name in ("leader", "untiered"))
    replicas, isr = stacked([topic.replicas for topic in facts]), stacked([topic.isr for topic in facts])
    living = [broker.id for broker in observed.brokers.values() if not broker.is_fenced]
    sizes = stacked([topic.sizes for topic in facts])[:, : replicas.shape[1]]
    removing = {
        first + row: broker_ids
        for first, topic in zip(start.tolist(), facts, strict=False)
        for row, broker_ids in topic.removing.items()
    }
    return Snapshot(
        topics=(*observed.topics,),
        start=start,
        topic=np.repeat(np.arange(len(facts)), counts),
        number=np.arange(start[-1]) - np.repeat(start[:-1], counts),
        target=_targets(replicas, removing),
        size=_bytes_of_a_copy(replicas, leader, sizes, untiered),
        untiered=untiered,
        replicas=replicas,
        sizes=sizes,
        isr=isr,
        is_in_flight=np.isin(np.arange(start[-1]), [*removing]),
        has_source=(leader >= 0) & np.isin(np.column_stack([leader, isr]), living).any(axis=1),
    )


def _joined(columns: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, dtype=np.int64), *columns])


def _facts_of(partitions: Sequence[Partition]) -> _Facts:
    rows = cast("_Rows", partitions)
    if not hasattr(partitions, "table") or rows.changed:
        return _facts_of_values(partitions)
    table, part = rows.table, slice(rows.start, rows.stop)
    in_flight = [row for row in range(rows.start, rows.stop) if row in table.rare] if table.rare else []
    removing = {
        row - rows.start: rare.removing_replicas
        for row in in_flight
        if (rare := table.rare[row]).adding_replicas or rare.removing_replicas
    }
    leader, replicas, isr = table.leader[part], table.replicas[part], table.isr[part]
    return _Facts(leader, replicas, isr, table.sizes[part], table.untiered_bytes[part], removing)


def _facts_of_values(partitions: Sequence[Partition]) -> _Facts:
    def column(values: Sequence[int | None]) -> Ints:
        return np.array([NONE if value is None else value for value in values], dtype=np.int64)

    replicas = table_of_lists([partition.replicas for partition in partitions])
    sizes = np.full(replicas.shape, NONE)
    for row, partition in enumerate(partitions):
        sizes[row, : len(partition.sizes)] = column(partition.sizes)
    return _Facts(
        column([partition.leader for partition in partitions]),
        replicas,
        table_of_lists([partition.isr for partition in partitions]),
        sizes,
        column([partition.untiered_bytes for partition in partitions]),
        {
            row: partition.removing_replicas
            for row, partition in enumerate(partitions)
            if partition.adding_replicas or partition.removing_replicas
        },
    )


def _targets(replicas: Ints, removing: Mapping[int, Sequence[int]]) -> Ints:
    """Return the replicas without those that a reassignment takes away, in their order."""
    target = replicas.copy()
    for row, leaving in removing.items():
        staying = [broker_id for broker_id in replicas[row].tolist() if broker_id not in leaving]
        target[row] = [*staying, *[NONE] * (replicas.shape[1] - len(staying))]
    return target


def _bytes_of_a_copy(replicas: Ints, leader: Ints, sizes: Ints, untiered: Ints) -> Ints:
    """Return what one new replica copies: the untiered bytes, else the leader's, else the most that any has."""
    of_leader = np.full(len(leader), NONE)
    for column, size in zip(replicas.T, sizes.T, strict=True):
        of_leader = np.where((column == leader) & (leader >= 0), size, of_leader)
    largest = np.maximum(sizes.max(axis=1, initial=NONE), NONE)
    on_disk = np.where(of_leader >= 0, of_leader, largest)
    return np.where(untiered >= 0, untiered, on_disk)


def moves_of(plan: Plan) -> PlannedMoves:
    """Return the moves between brokers of all stages."""
    stages = [stage for stage in plan.stages if isinstance(stage, ReassignStage)]
    numbers, parts = [stage.number for stage in stages], [_moves_of(stage.moves) for stage in stages]
    position: dict[str, int] = {}
    places = [[position.setdefault(name, len(position)) for name in part.topics] for part in parts]
    return PlannedMoves(
        topics=(*position,),
        topic=_joined([np.array(place)[part.topic] for place, part in zip(places, parts, strict=True)]),
        number=_joined([part.number for part in parts]),
        before=stacked([part.before for part in parts]),
        after=stacked([part.after for part in parts]),
        bytes=_joined([part.bytes for part in parts]),
        is_size_known=_joined([part.is_size_known for part in parts]) > 0,
        stage=_joined([np.full(len(part.number), number) for number, part in zip(numbers, parts, strict=True)]),
    )


def _moves_of(moves: Sequence[Move]) -> PlannedMoves:
    if hasattr(moves, "topics"):  # as a reader or the planner keeps them: columns of the same names
        return cast("PlannedMoves", moves)
    position: dict[str, int] = {}
    keys, sizes = [move.topic_partition for move in moves], [move.bytes for move in moves]
    return PlannedMoves(
        topic=np.array([position.setdefault(name, len(position)) for name, _ in keys], dtype=np.int64),
        topics=(*position,),
        number=np.array([number for _, number in keys], dtype=np.int64),
        before=table_of_lists([move.from_replicas for move in moves]),
        after=table_of_lists([move.to_replicas for move in moves]),
        bytes=np.array(sizes, dtype=object if max(sizes, default=0) > np.iinfo(np.int64).max else np.int64),
        is_size_known=np.array([move.is_size_known for move in moves], dtype=np.bool_),
        stage=np.zeros(len(moves), dtype=np.int64),
    )
