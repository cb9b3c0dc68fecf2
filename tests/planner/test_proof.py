"""The proof's prices, checked by plain sums: they alone show that no placement copies less."""

from collections import defaultdict
from collections.abc import Mapping

import pytest
from helpers.clusters.flat_clusters import CASES
from helpers.clusters.random_clusters import random_cluster
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible, lagrangian_bound, problem_of
from helpers.plans.planning import planned

pytestmark = pytest.mark.long


@parts("seeds", range(0, 400, 8), deep=range(400))
def test_the_prices_alone_prove_the_value(seeds: range) -> None:
    for seed in seeds:
        desired, observed = random_cluster(seed)
        problem = problem_of(desired, observed)
        if is_feasible(problem):
            proof = planned(desired, observed).proof
            target, is_in_bytes = desired.cluster.balance.replicas, proof.objective == "bytes"
            assert lagrangian_bound(problem, target, proof.joint_prices, is_in_bytes=is_in_bytes) == proof.value, seed


@pytest.mark.parametrize("name", ["a", "b", "c", pytest.param("d", marks=pytest.mark.deep)])
def test_the_prices_of_a_flat_cluster_prove_its_bytes(name: str) -> None:
    desired, observed = CASES[name].build()
    proof = planned(desired, observed).proof
    assert _bound_of_racks(problem_of(desired, observed), proof.joint_prices) == proof.value


def _bound_of_racks(problem: Problem, prices: Mapping[int, int]) -> int:
    """Return the bound where each partition has one replica a rack and each rack's counts are floor or ceiling."""
    brokers = defaultdict(list)
    for broker_id in problem.brokers:
        brokers[problem.rack_of[broker_id]].append(broker_id)
    bound = 0
    for members in brokers.values():
        dearest = sorted((prices.get(broker_id, 0) for broker_id in members), reverse=True)
        cheapest = dearest[-1]
        for demand in problem.demands:
            copied = cheapest + (demand.size or 0)
            kept = [prices.get(broker_id, 0) for broker_id in demand.current if broker_id in members]
            bound += min([copied, *kept])
        floor, extra = divmod(len(problem.demands), len(members))
        bound -= floor * sum(dearest) + sum(dearest[:extra])
    return bound
