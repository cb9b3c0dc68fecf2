"""The pass at given prices against every legal ordered placement tried."""

from random import Random

import numpy as np
from helpers.plans.oracle import Demand, Problem, is_feasible, legal_sets
from planner.loaded.planning import random_loads

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.planner.demand import bench_of, slots_of
from reconciler.planner.loaded.cheapest import Costs, cheapest, cost_of
from reconciler.planner.loaded.task import Task, task_of

CHANGE = 3


def _task(desired: Desired, observed: Cluster, problem: Problem) -> Task:
    rules = topic_rules(desired, observed)
    slots, still = slots_of(desired, observed, rules, compare(desired, observed, rules), None)
    load_of = {demand.topic_partition: (7, 5, 3) for demand in problem.demands}
    return task_of(slots, still, bench_of(desired, observed), load_of)


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
        prices = np.array([[random.randint(-40, 40) for _ in range(task.brokers)] for _ in range(5)], dtype=np.int64)
        costs = Costs(prices, 11 * task.size + 1, CHANGE)
        picked = cheapest(task, costs)
        assert (cost_of(task, costs, picked.members, picked.leader) == picked.cost).all(), seed
        demand_of = {demand.topic_partition: demand for demand in problem.demands}
        for row, slot in enumerate(task.slots):
            demand = demand_of[slot.topic_partition]
            placements = _placements(demand, problem)
            best = min(_cost(task, row, demand, costs, placement) for placement in placements)
            assert int(picked.cost[row]) == best, (seed, slot.topic_partition)
            ids = task.bench.ids
            members = tuple(ids[column] for column in np.flatnonzero(picked.members[row]))
            assert (ids[picked.leader[row]], members) in placements, (seed, slot.topic_partition)
            looked_at += 1
    assert looked_at > 250


def _cost(task: Task, row: int, demand: Demand, costs: Costs, placement: tuple[int, tuple[int, ...]]) -> int:
    leader, replicas = placement
    prices: list[list[int]] = costs.prices.T.tolist()
    price = {broker_id: prices[task.bench.column[broker_id]] for broker_id in replicas}
    copied = demand.copied(replicas) * int(costs.copy[row])
    held = sum(each[0] + 7 * each[2] + 5 * each[3] for each in price.values())
    lead = price[leader][1] + (3 + (len(replicas) - 1) * 5) * price[leader][4]
    changed = CHANGE if demand.current and demand.current[0] != leader else 0
    return copied + held + lead + changed
