"""What every part of staging asks about brokers and partitions, resolved once."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.diff.rules import LEAVING, TopicRules
from reconciler.model.cluster import Cluster, Partition
from reconciler.model.desired import BrokerState, Desired
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Situation:
    """The cluster as the first stage finds it.

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

    def leader(self, topic_partition: TopicPartition, partition: Partition) -> int | None:
        """Return who leads when the partition's first move begins."""
        return self.elected.get(topic_partition, partition.leader)


def situation(
    observed: Cluster,
    desired: Desired,
    rules: Mapping[str, TopicRules],
    elected: Mapping[TopicPartition, int],
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
