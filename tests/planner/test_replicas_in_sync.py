"""Of equal plans, the one that keeps the fewest replicas out of sync; bytes, copies and balance come before it."""

import random
from collections import Counter
from itertools import combinations, product

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.planning import cluster_after, planned, replicas_after

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Placement, Spread

Value = tuple[int, int, int]
"""Squares of the brokers' counts, replicas out of sync that stay, leaders changed."""


def _lowered(observed: Cluster, factor: int, balance: Balance | None = None) -> Desired:
    placement = Placement(racks_spread=Spread.IGNORE)
    topics = {name: DesiredTopic(name, replication_factor=factor, placement=placement) for name in observed.topics}
    return Desired(DesiredCluster("c", balance=balance or Balance()), topics)


def _drawn(rng: random.Random) -> Cluster:
    lines = []
    for number in range(rng.randint(1, 4)):
        replicas = rng.sample([1, 2, 3, 4], 3)
        in_sync = rng.sample(replicas, rng.randint(1, 3))
        lines.append(f"t-{number}: {_text(replicas)} isr {_text(in_sync)} size 7")
    return small_cluster(*lines, brokers=range(1, 5))


def _text(broker_ids: list[int]) -> str:
    return ",".join(map(str, broker_ids))


def _value(observed: Cluster, reached: list[tuple[int, ...]]) -> Value:
    partitions = observed.topics["t"].partitions
    counts = Counter(replica for replicas in reached for replica in replicas)
    lagging = sum(
        replica not in partition.isr
        for partition, replicas in zip(partitions, reached, strict=True)
        for replica in replicas
    )
    changed = sum(partition.replicas[0] != replicas[0] for partition, replicas in zip(partitions, reached, strict=True))
    return sum(count * count for count in counts.values()), lagging, changed


def _best(observed: Cluster, factor: int) -> Value:
    """Return the least value of all ways to drop replicas, nothing being copied."""
    choices = [combinations(partition.replicas, factor) for partition in observed.topics["t"].partitions]
    return min(_value(observed, list(reached)) for reached in product(*choices))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_what_is_dropped_is_out_of_sync_wherever_that_costs_nothing_that_comes_first(seed: int) -> None:
    rng = random.Random(seed)
    observed, factor = _drawn(rng), rng.randint(1, 2)
    found = planned(_lowered(observed, factor), observed)
    after = replicas_after(observed, found)
    assert not any(move.added for move in found.moves)
    assert _value(observed, [after[key] for key in sorted(after)]) == _best(observed, factor)
    reached = cluster_after(observed, found.moves, found.topic_changes)
    assert not planned(_lowered(reached, factor), reached).moves


def test_the_leader_in_sync_stays_though_another_is_the_preferred_one() -> None:
    observed = small_cluster("t-0: 1,2 isr 2 leader 2 size 5", "t-1: 2,3 isr 3 size 5", "t-2: 3,1 isr 1 size 5")
    moves = planned(_lowered(observed, 1), observed).moves
    assert [move.to_replicas for move in moves] == [(2,), (3,), (1,)]


def test_an_even_balance_comes_first() -> None:
    observed = small_cluster("t-0: 1,2 isr 2 size 5", "t-1: 1,2 isr 2 size 5", brokers=(1, 2))
    moves = planned(_lowered(observed, 1, Balance(replicas=Even())), observed).moves
    assert sorted(move.to_replicas for move in moves) == [(1,), (2,)]


def test_where_a_replica_has_to_go_elsewhere_it_is_one_out_of_sync() -> None:
    lines = [f"t-{number}: 1,2 isr {'1,2' if number != 2 else 2} size 5" for number in range(4)]
    observed = small_cluster(*lines, brokers=(1, 2, 3))
    desired = _lowered(observed, 2, Balance(replicas=Even()))
    moves = {str(move.topic_partition): move for move in planned(desired, observed).moves}
    assert moves["t-2"].removed == (1,)


def test_a_partition_that_nobody_has_in_sync_drops_like_any_other() -> None:
    observed = small_cluster("t-0: 1,2 isr , leader 1 size 5", brokers=(1, 2))
    (move,) = planned(_lowered(observed, 1), observed).moves
    assert move.to_replicas == (1,)
