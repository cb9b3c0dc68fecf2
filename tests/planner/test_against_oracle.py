"""The planner against enumeration: random tiny clusters, every objective equal to the best there is."""

import pytest
from helpers.exact_flow import flow_leaders, flow_placement
from helpers.oracle import (
    is_feasible,
    leader_worth,
    least_leaders,
    least_placement,
    legal_sets,
    problem_of,
    worth_of,
)
from helpers.planning import cluster_after, planned, replicas_after
from helpers.random_clusters import SMALL, random_cluster, shuffled

from reconciler.model.desired import Within
from reconciler.model.problem import PlacementInfeasible

SEEDS = 800
CHUNK = 100
CHUNKS = [range(start, start + CHUNK) for start in range(0, SEEDS, CHUNK)]


def _problems(seeds: range) -> list[int]:
    """Return the seeds whose clusters have somewhere to put replicas and rules that can hold."""
    found = []
    for seed in seeds:
        problem = problem_of(*random_cluster(seed))
        if problem.capacity and is_feasible(problem):
            found.append(seed)
    return found


def test_there_are_at_least_two_hundred_clusters_to_plan() -> None:
    assert len(_problems(range(SEEDS))) >= 200


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_no_placement_is_more_even_or_copies_fewer_bytes_or_replicas(seeds: range) -> None:
    for seed in _problems(seeds):
        desired, observed = random_cluster(seed)
        problem, target = problem_of(desired, observed), desired.cluster.balance.replicas
        placed = planned(desired, observed)
        least = least_placement(problem, target)
        assert least is not None
        assert worth_of(problem, target, replicas_after(observed, placed)).key == least.key, seed
        assert sum(move.bytes for move in placed.moves) == least.bytes, seed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_every_replica_set_keeps_every_rule(seeds: range) -> None:
    for seed in _problems(seeds):
        desired, observed = random_cluster(seed)
        problem = problem_of(desired, observed)
        reached = replicas_after(observed, planned(desired, observed))
        for demand in problem.demands:
            replicas = reached[demand.topic_partition]
            assert tuple(sorted(replicas)) in legal_sets(demand, problem.rack_of), (seed, demand)
            assert demand.settled is None or replicas == demand.settled, (seed, demand)
        assert len(reached) == len(problem.demands)


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_no_order_of_the_replicas_has_better_leaders_or_changes_fewer(seeds: range) -> None:
    for seed in _problems(seeds):
        desired, observed = random_cluster(seed)
        problem, target = problem_of(desired, observed), desired.cluster.balance.leaders
        reached = replicas_after(observed, planned(desired, observed))
        leaders = {key: replicas[0] for key, replicas in reached.items()}
        assert leader_worth(problem, target, leaders) == least_leaders(problem, target, reached), seed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_the_proof_says_what_the_moves_cost_and_has_no_gap(seeds: range) -> None:
    for seed in _problems(seeds):
        desired, observed = random_cluster(seed)
        placed = planned(desired, observed)
        copied = sum(len(move.added) for move in placed.moves)
        value = sum(move.bytes for move in placed.moves) if placed.proof.objective == "bytes" else copied
        assert placed.proof.value == placed.proof.lower_bound == value, seed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_planning_from_the_reached_state_moves_nothing(seeds: range) -> None:
    for seed in _problems(seeds):
        desired, observed = random_cluster(seed)
        placed = planned(desired, observed)
        again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
        assert (again.moves, again.topic_changes) == ((), ()), seed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_the_order_in_which_brokers_and_topics_are_written_does_not_matter(seeds: range) -> None:
    for seed in _problems(seeds):
        desired, observed = random_cluster(seed)
        assert planned(desired, observed) == planned(shuffled(desired, seed), observed), seed


@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_what_the_rules_forbid_is_refused(seeds: range) -> None:
    feasible = set(_problems(seeds))
    for seed in seeds:
        desired, observed = random_cluster(seed)
        if seed not in feasible and problem_of(desired, observed).capacity:
            with pytest.raises(PlacementInfeasible):
                planned(desired, observed)


@pytest.mark.parametrize("seeds", [range(150), range(150, 300)], ids=str)
def test_forty_partitions_on_nine_brokers_are_placed_as_well_as_the_flow_oracle_does(seeds: range) -> None:
    tried = 0
    for seed in seeds:
        desired, observed = random_cluster(seed, SMALL)
        problem, balance = problem_of(desired, observed), desired.cluster.balance
        free = [demand for demand in problem.demands if demand.settled is None]
        is_plain = problem.is_size_known and all(d.leader_racks is None and not d.must_hold for d in free)
        if not problem.capacity or not is_feasible(problem) or not is_plain:
            continue
        reached = replicas_after(observed, planned(desired, observed))
        best = worth_of(problem, balance.replicas, flow_placement(problem, balance.replicas))
        assert worth_of(problem, balance.replicas, reached) == best, seed
        if not isinstance(balance.leaders, Within):
            leaders = {key: replicas[0] for key, replicas in reached.items()}
            best_leaders = flow_leaders(problem, balance.leaders, reached)
            found = leader_worth(problem, balance.leaders, leaders)
            assert found == leader_worth(problem, balance.leaders, best_leaders), seed
        tried += 1
    assert tried > 30
