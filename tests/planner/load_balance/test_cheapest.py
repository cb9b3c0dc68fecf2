"""The pass at given prices against every legal ordered placement tried."""

from random import Random

import numpy as np
from helpers.plans.oracle import Demand, Problem, is_feasible, legal_sets
from planner.load_balance.planning import random_loads

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.planner.load_balance.pricing import Costs, cheapest, cost_of
from reconciler.planner.load_balance.task import LoadTask, load_task
from reconciler.planner.placement_task import eligible_brokers, placement_task
from reconciler.planner.to_place import partitions_to_place

CHANGE = 3


def _task(desired: Desired, observed: Cluster, problem: Problem) -> LoadTask:
    rules = topic_rules(desired, observed)
    partitions, unmoved = partitions_to_place(desired, observed, rules, compare(desired, observed, rules), None)
    load_of = {demand.topic_partition: (7, 5, 3) for demand in problem.demands}
    return load_task(placement_task(partitions, unmoved, eligible_brokers(desired, observed)), unmoved, load_of)


def _placements(demand: Demand, problem: Problem) -> list[tuple[int, tuple[int, ...]]]:
    found = []
    for replicas in legal_sets(demand, problem.rack_of):
        tiers = (demand.leading, demand.leading_at_need, frozenset(replicas))
        leaders = next(sorted(tier & set(replicas)) for tier in tiers if tier & set(replicas))
        found += [(leader, replicas) for leader in leaders]
    return found


def test_the_cheapest_placement_is_as_cheap_as_the_best_of_all_and_legal() -> None:
    looked_at = 0
    for seed in range(200):
        desired, observed, _, problem = random_loads(seed)
        if not is_feasible(problem):
            continue
        task = _task(desired, observed, problem)
        random = Random(seed)
        prices = np.array([[random.randint(-40, 40) for _ in range(task.brokers)] for _ in range(6)], dtype=np.int64)
        costs = Costs(prices, 11 * task.size + 1, CHANGE)
        picked = cheapest(task, costs)
        assert (cost_of(task, costs, picked.members, picked.leader) == picked.cost).all(), seed
        demand_of = {demand.topic_partition: demand for demand in problem.demands}
        for row, partition in enumerate(task.partitions):
            demand = demand_of[partition.topic_partition]
            placements = _placements(demand, problem)
            best = min(_cost(task, row, demand, costs, placement) for placement in placements)
            assert int(picked.cost[row]) == best, (seed, partition.topic_partition)
            ids = task.eligible.ids
            members = tuple(ids[column] for column in np.flatnonzero(picked.members[row]))
            assert (ids[picked.leader[row]], members) in placements, (seed, partition.topic_partition)
            looked_at += 1
    assert looked_at > 250


def _cost(task: LoadTask, row: int, demand: Demand, costs: Costs, placement: tuple[int, tuple[int, ...]]) -> int:
    leader, replicas = placement
    prices: list[list[int]] = costs.prices.T.tolist()
    price = {broker_id: prices[task.eligible.column[broker_id]] for broker_id in replicas}
    copied = demand.copied(replicas) * int(costs.copy[row])
    held = sum(each[0] + 7 * each[2] + 5 * each[3] for each in price.values())
    lead = price[leader][1] + (3 + (len(replicas) - 1) * 5) * price[leader][4] + 5 * price[leader][5]
    changed = CHANGE if demand.current and demand.current[0] != leader else 0
    return copied + held + lead + changed
