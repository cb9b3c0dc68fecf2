"""On tiny clusters every legal ordered placement is tried: bounds, values and bands against what is found so."""

from collections import Counter

import pytest
from helpers.clusters.random_clusters import SMALL
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, legal_sets
from helpers.plans.planning import cluster_after, replicas_after
from planner.load_balance.enumerated import bytes_copied, least_within, outside
from planner.load_balance.planning import planned_with, random_loads

pytestmark = pytest.mark.long


@parts("seeds", range(0, 160, 8), deep=range(160))
def test_bounds_lie_below_the_best_placement_and_values_above_and_nearly_all_bands_that_can_be_kept_are(
    seeds: range,
) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed)
        if not is_feasible(problem):
            continue
        least = least_within(desired, observed, loads)
        if least is None:
            continue
        placed = planned_with(desired, observed, loads)
        lists = replicas_after(observed, placed)
        value = bytes_copied(problem, lists)
        is_kept = not outside(problem, desired.cluster.balance, loads, lists)
        if least.bytes_copied is None:
            assert not is_kept
            seen["unattainable"] += 1
            continue
        seen["attainable"] += 1
        if is_kept and problem.is_size_known:
            assert placed.proof.objective == "bytes"
            assert placed.proof.lower_bound <= least.bytes_copied <= value == placed.proof.value, seed
            seen["least"] += value == least.bytes_copied
        seen["kept"] += is_kept
    assert seen["attainable"] > len(seeds) / 7
    assert seen["unattainable"] > len(seeds) / 7
    assert seen["kept"] >= 0.9 * seen["attainable"], seen
    assert seen["least"] >= 0.75 * seen["attainable"], seen


@parts("seeds", range(0, 100, 10), deep=range(100))
def test_every_placement_is_legal_and_planning_from_it_again_changes_nothing(seeds: range) -> None:
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed)
        if not is_feasible(problem):
            continue
        placed = planned_with(desired, observed, loads)
        lists = replicas_after(observed, placed)
        for demand in problem.demands:
            replicas = lists[demand.topic_partition]
            assert tuple(sorted(replicas)) in legal_sets(demand, problem.rack_of), (seed, demand.topic_partition)
            if demand.settled is None:
                tiers = (demand.leading, demand.leading_at_need, frozenset(replicas))
                assert replicas[0] in next(tier for tier in tiers if tier & set(replicas)), (seed, demand)
        reached = cluster_after(observed, placed.moves, placed.topic_changes)
        again = planned_with(desired, reached, loads)
        assert not again.moves, (seed, again.moves)


@pytest.mark.parametrize("seed", [116, 214, 243, 500])
def test_planning_again_changes_nothing_where_a_first_plan_narrows_or_widens_what_may_be_chosen(seed: int) -> None:
    desired, observed, loads, _ = random_loads(seed, SMALL)
    placed = planned_with(desired, observed, loads)
    assert placed.moves or placed.topic_changes
    assert not planned_with(desired, cluster_after(observed, placed.moves, placed.topic_changes), loads).moves


@parts("seeds", range(0, 80, 8), deep=range(80))
def test_each_measure_outside_its_band_is_told(seeds: range) -> None:
    told = 0
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed)
        if not is_feasible(problem):
            continue
        placed = planned_with(desired, observed, loads)
        lists = replicas_after(observed, placed)
        found = {name for name, _ in outside(problem, desired.cluster.balance, loads, lists)} - {"replicas", "leaders"}
        warned = {problem.message.split(":")[0] for problem in placed.warnings if problem.code == "KR842"}
        assert {f"balance.{name}" for name in found} == warned - {"balance.replicas", "balance.leaders"}, seed
        told += len(found)
    assert told > len(seeds) / 4
