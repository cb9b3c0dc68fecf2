"""The proof's bounds at any prices, against enumeration: they follow from the prices alone, however bad these are."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

import pytest
from helpers.clusters.random_clusters import random_cluster, with_unknown_sizes
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, least_placement, problem_of, reached_replicas
from helpers.plans.proving import leader_bounds_by_enumeration, provable_plan, replica_bounds_by_enumeration

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Even
from reconciler.model.plan import PriceLevel
from reconciler.model.stage import ReassignStage
from reconciler.proof.bounds import Holdings, Measure, leader_bounds, leader_measures, replica_bounds, replica_measures
from reconciler.proof.counts import Squares
from reconciler.proof.demands import Demands, demands_of
from reconciler.proof.reached import reached

pytestmark = pytest.mark.long

some_seeds = parts("seeds", range(1000, 1400, 16), deep=range(1000, 1400))


def _level(random: Random, name: str, desired: Desired, observed: Cluster) -> PriceLevel:
    """Return an objective with prices drawn at random, those of topics now and then."""
    demands = demands_of(desired, observed)

    def prices() -> dict[int, int]:
        spread = random.choice([0, 1, 3, 20])
        return {broker_id: random.randint(-spread, spread) for broker_id in demands.brokers.ids}

    topics = demands.topics if name.startswith("topic") or random.random() < 0.2 else ()
    return PriceLevel(name, 0, 0, prices(), {topic: prices() for topic in topics if random.random() < 0.8})


def _cases(seeds: range) -> Iterator[tuple[Random, Desired, Cluster]]:
    """Yield states that can be planned; some ask for even topics, some do not know every size."""
    for seed in seeds:
        random = Random(seed)
        desired, observed = random_cluster(seed)
        if random.random() < 0.4:
            balance = replace(desired.cluster.balance, topics=Even())
            desired = replace(desired, cluster=replace(desired.cluster, balance=balance))
        if is_feasible(problem_of(desired, observed)):
            yield random, desired, with_unknown_sizes(observed, seed) if random.random() < 0.3 else observed


@some_seeds
def test_the_bounds_on_replicas_are_what_enumeration_gives(seeds: range) -> None:
    for random, desired, observed in _cases(seeds):
        problem, balance = problem_of(desired, observed), desired.cluster.balance
        demands = demands_of(desired, observed)
        end = reached(provable_plan(desired, observed), demands)
        holdings, measures = replica_measures(demands, balance, end)
        names = random.sample(sorted(measures), len(measures))
        levels = [_level(random, name, desired, observed) for name in names]
        found = replica_bounds(demands, holdings, measures, levels)
        expected = replica_bounds_by_enumeration(problem, balance, levels)
        expected = [
            bound - _left_alone(demands, holdings, measures, name) for name, bound in zip(names, expected, strict=True)
        ]
        assert found == expected
        least = least_placement(problem, balance.replicas)
        assert least is not None
        if names[0] == "replicas balance":
            assert found[0] <= least.balance


@some_seeds
def test_the_bounds_on_leaders_are_what_enumeration_gives(seeds: range) -> None:
    for random, desired, observed in _cases(seeds):
        problem, balance = problem_of(desired, observed), desired.cluster.balance
        demands, plan = demands_of(desired, observed), provable_plan(desired, observed)
        end = reached(plan, demands)
        holdings, measures = leader_measures(demands, balance, end)
        names = random.sample(sorted(measures), len(measures))
        levels = [_level(random, name, desired, observed) for name in names]
        found = leader_bounds(demands, holdings, measures, levels, end)
        moves = [move for stage in plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        placed = reached_replicas(observed, moves, plan.topic_changes)
        expected = leader_bounds_by_enumeration(problem, balance, placed, levels)
        assert found == [
            bound - _left_alone(demands, holdings, measures, name) for name, bound in zip(names, expected, strict=True)
        ]


def _left_alone(demands: Demands, holdings: Holdings, measures: Mapping[str, Measure], name: str) -> int:
    """Return what enumeration counts beside: how uneven the topics are of which no plan decides anything."""
    if not name.startswith("topic"):
        return 0
    weights = measures[name].topics
    assert isinstance(weights, Squares)
    return weights.value(holdings.final[~holdings.weighed]) if len(demands.topics) else 0
