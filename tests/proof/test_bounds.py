"""The proof's bounds at any prices, against enumeration: they follow from the prices alone, however bad these are."""

from random import Random

import pytest
from helpers.oracle import is_feasible, least_placement, problem_of, reached_replicas
from helpers.proving import leader_bounds_by_enumeration, provable_plan, replica_bounds_by_enumeration
from helpers.random_clusters import random_cluster, with_unknown_sizes

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Off
from reconciler.model.plan import PriceLevel
from reconciler.model.stage import ReassignStage
from reconciler.proof.bounds import leader_bounds, leader_measures, replica_bounds, replica_measures
from reconciler.proof.demands import demands_of
from reconciler.proof.reached import reached

CHUNKS = [range(start, start + 100) for start in range(1000, 1400, 100)]


def _prices(random: Random, brokers: tuple[int, ...]) -> dict[int, int]:
    spread = random.choice([0, 1, 3, 20])
    return {broker_id: random.randint(-spread, spread) for broker_id in brokers}


def _case(seed: int) -> tuple[Desired, Cluster]:
    desired, observed = random_cluster(seed)
    return desired, with_unknown_sizes(observed, seed) if seed % 3 == 0 else observed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_the_bounds_on_replicas_are_what_enumeration_gives(seeds: range) -> None:
    for seed in seeds:
        desired, observed = _case(seed)
        problem, balance, random = problem_of(desired, observed), desired.cluster.balance, Random(seed)
        if not is_feasible(problem):
            continue
        plan = provable_plan(desired, observed)
        names = random.sample(["bytes", "replicas"], 2)
        if not isinstance(balance.replicas, Off):
            names.insert(random.randint(0, 1), "replicas balance")
        levels = [(name, _prices(random, problem.brokers)) for name in names]
        demands = demands_of(desired, observed)
        holdings, measures = replica_measures(demands, balance, reached(plan, demands, observed))
        found = replica_bounds(demands, holdings, measures, [PriceLevel(name, 0, 0, prices) for name, prices in levels])
        assert found == replica_bounds_by_enumeration(problem, balance.replicas, levels), seed
        least = least_placement(problem, balance.replicas)
        assert least is not None
        if names[0] == "replicas balance":
            assert found[0] <= least.balance, seed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_the_bounds_on_leaders_are_what_enumeration_gives(seeds: range) -> None:
    for seed in seeds:
        desired, observed = _case(seed)
        problem, balance, random = problem_of(desired, observed), desired.cluster.balance, Random(seed)
        if not is_feasible(problem):
            continue
        plan = provable_plan(desired, observed)
        names = ["leaders changed"] if isinstance(balance.leaders, Off) else ["leaders balance", "leaders changed"]
        levels = [(name, _prices(random, problem.brokers)) for name in names]
        demands = demands_of(desired, observed)
        end = reached(plan, demands, observed)
        holdings, measures = leader_measures(demands, balance, end)
        prices = [PriceLevel(name, 0, 0, prices) for name, prices in levels]
        moves = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        placed = reached_replicas(observed, moves, plan.topic_changes)
        assert leader_bounds(demands, holdings, measures, prices, end) == leader_bounds_by_enumeration(
            problem, balance.leaders, placed, levels
        ), seed
