"""A plan made while replicas move takes what is in flight as arrived, and says so; it is no internal error."""

from dataclasses import replace
from random import Random

import pytest
from helpers.clusters.random_clusters import random_cluster

from reconciler.model.cluster import Cluster, Partition, Topic
from reconciler.model.problem import PlacementInfeasible
from reconciler.model.stage import ReassignStage
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

SEEDS = 120


def with_flights(observed: Cluster, seed: int) -> Cluster:
    """Return the cluster with every second partition or so on the way to a broker, away from its last one."""
    random = Random(seed)
    alive = [broker.id for broker in observed.brokers.values() if not broker.is_fenced]

    def perhaps(partition: Partition) -> Partition:
        others = [broker for broker in alive if broker not in partition.replicas]
        if not others or set(partition.isr) != set(partition.replicas) or random.random() < 0.5:
            return partition
        added, removed = random.choice(others), partition.replicas[-1]
        union = (*partition.replicas, added)
        return replace(
            partition, replicas=union, adding_replicas=(added,), removing_replicas=(removed,), sizes=(), log_dirs=()
        )

    def flown(topic: Topic) -> Topic:
        return replace(topic, partitions=tuple(perhaps(partition) for partition in topic.partitions))

    return replace(observed, topics={name: flown(topic) for name, topic in observed.topics.items()})


def test_partitions_in_flight_are_moved_on_from_their_target() -> None:
    moved_on = 0
    for seed in range(SEEDS):
        desired, observed = random_cluster(seed)
        flying = with_flights(observed, seed)
        try:
            plan = plan_of(desired, flying)
        except PlacementInfeasible:
            continue
        moves = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        first = {move.topic_partition: move for move in reversed(moves)}
        for key, move in first.items():
            partition = flying.partition(key)
            assert partition is not None
            assert move.from_replicas == partition.target_replicas
            moved_on += partition.is_reassigning
        told = any(warning.code == "KR802" for warning in plan.warnings)
        assert told == any(partition.is_reassigning for _, partition in flying.partitions()), seed
    assert moved_on > SEEDS // 10
