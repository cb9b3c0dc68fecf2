"""Holds one step of a partition's chain of moves, and the situation in which all steps begin."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reconciler.diff.rules import LEAVING, TopicRules
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.columns import NONE, Bools, Ints, rows_of_each
from reconciler.model.desired import BrokerState, Desired
from reconciler.model.move import Move, Reason
from reconciler.model.move_table import Moves
from reconciler.model.on_demand import MadeOnDemand
from reconciler.model.table_maker import table_of
from reconciler.model.topic_partition import TopicPartition


class Urgency(IntEnum):
    """Which steps go first; a repair's urgency is its number of in-sync replicas, the fewest first."""

    # The gap between the first two is room for that number; the others need only their order.

    REPAIR = 0
    REPAIRED = 900
    DRAINING = 1000
    RULE = 2000
    BALANCE = 3000
    LEADERS = 4000


URGENCY_OF = {
    Reason.DEAD_BROKER: Urgency.REPAIRED,
    Reason.DRAINING: Urgency.DRAINING,
    Reason.ASSIGNMENT: Urgency.RULE,
    Reason.REPLICATION_FACTOR: Urgency.RULE,
    Reason.RACKS: Urgency.RULE,
    Reason.ELIGIBILITY: Urgency.RULE,
    Reason.NEW_PARTITION: Urgency.RULE,
    Reason.BALANCE: Urgency.BALANCE,
    Reason.LEADERS: Urgency.LEADERS,
}


_COLUMNS = ("source", "urgency", "elected", "is_handover", "depth")


class Step(NamedTuple):
    """A move that fits one stage.

    `load`: bytes that each added replica copies. `source`: the leader that serves them. `elected`: the leader to elect
    once the move has ended, None where Kafka has the right one by then. `is_handover`: it only takes the leadership off
    a broker that must lose it before its data.
    """

    move: Move
    added: tuple[int, ...]
    removed: tuple[int, ...]
    load: int
    source: int | None
    urgency: int
    elected: int | None = None
    is_handover: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Steps(MadeOnDemand[Step]):
    """Steps as columns, a row each."""

    moves: Moves
    source: Ints  # [rows]; NONE for nobody
    urgency: Ints  # [rows]
    elected: Ints  # [rows]; NONE for nobody
    is_handover: Bools  # [rows]
    depth: Ints  # [rows]: how many steps of its chain stand before it

    @classmethod
    def of(cls, chains: Iterable[Sequence[Step]]) -> "Steps":
        """Return the steps of these chains, one behind the other."""
        steps = [(depth, step) for chain in chains for depth, step in enumerate(chain)]
        return cls(
            moves=Moves.of([step.move for _, step in steps]),
            source=_or_none([step.source for _, step in steps]),
            urgency=np.array([step.urgency for _, step in steps], dtype=np.int64),
            elected=_or_none([step.elected for _, step in steps]),
            is_handover=np.array([step.is_handover for _, step in steps], dtype=np.bool_),
            depth=np.array([depth for depth, _ in steps], dtype=np.int64),
        )

    def part(self, rows: Ints) -> "Steps":
        """Return these rows, in this order."""
        return rows_of_each(replace(self, moves=self.moves.part(rows)), _COLUMNS, rows)

    def and_then(self, others: "Steps") -> "Steps":
        """Return these, and the others behind them."""
        columns = {name: np.append(getattr(self, name), getattr(others, name)) for name in _COLUMNS}
        return Steps(Moves.joined([self.moves, others.moves]), **columns)

    @property
    def destinations(self) -> frozenset[int]:
        """The brokers that receive a copy."""
        return frozenset(np.unique(self.moves.after[self.moves.is_added]).tolist())

    def __len__(self) -> int:
        return len(self.urgency)

    @cached_property
    def values(self) -> tuple[Step, ...]:
        """The steps themselves."""
        columns = (self.moves.bytes_a_copy, self.source, self.urgency, self.elected, self.is_handover)
        return tuple(
            Step(
                move,
                move.added,
                move.removed,
                load,
                None if source < 0 else source,
                urgency,
                None if elected < 0 else elected,
                is_handover,
            )
            for move, load, source, urgency, elected, is_handover in zip(
                self.moves, *(column.tolist() for column in columns), strict=True
            )
        )


def _or_none(brokers: Iterable[int | None]) -> Ints:
    return np.array([NONE if one is None else one for one in brokers], dtype=np.int64)


class Standing(NamedTuple):
    """Who leads a partition when its first move begins, and who is in sync with the leader."""

    leader: int | None
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Situation:
    """The cluster as the first stage finds it, resolved once for all parts of staging.

    `leaving`: brokers that are to end empty. `unfit_leaders`: those and the ones in maintenance. `elected` maps a
    partition to the leader that it gets before any data moves. Unless `is_election_wanted`, who may lead goes on
    leading.
    """

    observed: Cluster
    rules: Mapping[str, TopicRules]
    alive: frozenset[int]
    leaving: frozenset[int]
    unfit_leaders: frozenset[int]
    per_partition: int
    elected: Mapping[TopicPartition, int] = field(default_factory=dict)
    is_election_wanted: bool = True

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Return that partition; one that was not observed has no leader and nothing in sync."""
        found = self.observed.partition(topic_partition)
        return found or Partition(topic_partition.partition, leader=None, replicas=(), isr=())

    def standings(self, moves: Moves, leader: Ints) -> Iterator[Standing]:
        """Yield the standing of each move's partition, led as said; one that was not observed has nothing in sync."""
        table = table_of(self.observed)
        rows = moves.rows_in(table)
        columns = leader.tolist(), table.isr[rows].tolist(), (rows >= 0).tolist()
        for one, isr, is_known in zip(*columns, strict=True):
            in_sync = tuple([replica for replica in isr if replica >= 0]) if is_known else ()
            yield Standing(None if one < 0 else one, in_sync)

    def leaders(self, moves: Moves) -> Ints:
        """Return who leads each move's partition when its first move begins; NONE for nobody."""
        table = table_of(self.observed)
        leaders = table.leaders(moves.rows_in(table))
        if self.elected:
            rows = moves.rows_of(self.elected)
            leaders[rows] = [self.elected[key] for key in moves.part(rows).topic_partitions()]
        return leaders


def situation(
    observed: Cluster, desired: Desired, rules: Mapping[str, TopicRules], elected: Mapping[TopicPartition, int]
) -> Situation:
    """Return the situation that these inputs describe."""
    state_of = {broker_id: broker.state for broker_id, broker in desired.cluster.brokers.items()}
    leaving = frozenset(broker_id for broker_id, state in state_of.items() if state in LEAVING)
    resting = frozenset(broker_id for broker_id, state in state_of.items() if state is BrokerState.MAINTENANCE)
    return Situation(
        observed=observed,
        rules=rules,
        alive=frozenset(broker_id for broker_id in observed.brokers if observed.is_alive(broker_id)),
        leaving=leaving,
        unfit_leaders=leaving | resting,
        per_partition=desired.cluster.moves.per_partition,
        elected=elected,
        is_election_wanted=desired.cluster.is_election_wanted,
    )
