"""Holds one step of a partition's chain of moves, and the situation in which all steps begin."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from reconciler.diff.rules import LEAVING, TopicRules
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import BrokerState, Desired
from reconciler.model.move import Move, Reason
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


class Step(NamedTuple):
    """A move that fits one stage.

    `load`: bytes that each added replica copies. `source`: the leader that serves them. `rest`: bytes of the
    partition's chain from here on. `elected`: the leader to elect once the move has ended, None where Kafka has the
    right one by then. `is_handover`: it only takes the leadership off a broker that must lose it before its data.
    """

    move: Move
    added: tuple[int, ...]
    removed: tuple[int, ...]
    load: int
    source: int | None
    urgency: int
    rest: int
    elected: int | None = None
    is_handover: bool = False


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

    def standings(self, keys: Sequence[TopicPartition]) -> Iterator[Standing]:
        """Yield the standing of each of these partitions; one that was not observed has no leader."""
        table = table_of(self.observed)
        rows = table.rows_of(keys)
        columns = table.leaders(rows), table.isr[rows].tolist(), (rows >= 0).tolist()
        for key, leader, isr, is_known in zip(keys, *columns, strict=True):
            yield Standing(self.elected.get(key, leader), tuple([one for one in isr if one >= 0]) if is_known else ())


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
