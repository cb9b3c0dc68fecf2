"""The planner against enumeration: random tiny clusters, every objective equal to the best there is."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest
from helpers.clusters.random_clusters import random_cluster, shuffled, with_unknown_sizes
from helpers.depth import parts
from helpers.plans.oracle import (
    Problem,
    is_feasible,
    leader_worth,
    least_leaders,
    least_placement,
    legal_sets,
    problem_of,
    worth_of,
)
from helpers.plans.planning import cluster_after, planned, replicas_after

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Placement
from reconciler.model.problem import PlacementInfeasible
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner import goal, objectives, sparse_flow, start
from reconciler.planner.place import Placed

pytestmark = pytest.mark.long

WHOLE = range(800)
PART = WHOLE[::20]

all_seeds = parts("seeds", PART, deep=WHOLE)
half_of_the_seeds = parts("seeds", PART[:20], deep=WHOLE[:400])


@dataclass(frozen=True, slots=True)
class _Solved:
    """A random cluster that can be planned, and its plan."""

    seed: int
    desired: Desired
    observed: Cluster
    problem: Problem
    placed: Placed
    reached: Mapping[TopicPartition, tuple[int, ...]]


@cache
def _solved(seeds: range) -> list[_Solved]:
    """Return what is planned for those seeds whose rules can hold."""
    found = []
    for seed in seeds:
        desired, observed = random_cluster(seed)
        problem = problem_of(desired, observed)
        if is_feasible(problem):
            placed = planned(desired, observed)
            found.append(_Solved(seed, desired, observed, problem, placed, replicas_after(observed, placed)))
    return found


@all_seeds
def test_at_least_a_quarter_of_the_clusters_can_be_planned(seeds: range) -> None:
    assert len(_solved(seeds)) >= len(seeds) / 4


@all_seeds
def test_no_placement_is_more_even_or_copies_fewer_bytes_or_replicas(seeds: range) -> None:
    for case in _solved(seeds):
        target = case.desired.cluster.balance.replicas
        least = least_placement(case.problem, target)
        assert least is not None
        found = worth_of(case.problem, target, case.reached)
        assert found.least_of(case.problem, target) == least.least_of(case.problem, target), case.seed
        assert sum(move.bytes for move in case.placed.moves) == least.bytes, case.seed


@all_seeds
def test_every_replica_set_keeps_every_rule(seeds: range) -> None:
    for case in _solved(seeds):
        for demand in case.problem.demands:
            replicas = case.reached[demand.topic_partition]
            assert tuple(sorted(replicas)) in legal_sets(demand, case.problem.rack_of), (case.seed, demand)
            assert demand.settled is None or replicas == demand.settled, (case.seed, demand)
        assert len(case.reached) == len(case.problem.demands)


@all_seeds
def test_no_order_of_the_replicas_has_better_leaders_or_changes_fewer(seeds: range) -> None:
    for case in _solved(seeds):
        target = case.desired.cluster.balance.leaders
        leaders = {key: replicas[0] for key, replicas in case.reached.items()}
        best = least_leaders(case.problem, target, case.reached)
        assert leader_worth(case.problem, target, leaders) == best, case.seed


@all_seeds
def test_the_proof_says_what_the_moves_cost_and_has_no_gap(seeds: range) -> None:
    for case in _solved(seeds):
        moves, proof = case.placed.moves, case.placed.proof
        is_in_bytes = proof.objective == "bytes"
        value = sum(move.bytes if is_in_bytes else len(move.added) for move in moves)
        assert proof.value == proof.lower_bound == value, case.seed


@all_seeds
def test_planning_from_the_reached_state_moves_nothing(seeds: range) -> None:
    for case in _solved(seeds):
        after = cluster_after(case.observed, case.placed.moves, case.placed.topic_changes)
        again = planned(case.desired, after)
        assert (len(again.moves), again.topic_changes) == (0, ()), case.seed


@all_seeds
def test_the_order_in_which_brokers_and_topics_are_written_does_not_matter(seeds: range) -> None:
    for case in _solved(seeds):
        assert planned(shuffled(case.desired, case.seed), case.observed) == case.placed, case.seed


@all_seeds
def test_what_the_rules_forbid_is_refused(seeds: range) -> None:
    feasible = {case.seed for case in _solved(seeds)}
    for seed in sorted(set(seeds) - feasible):
        with pytest.raises(PlacementInfeasible):
            planned(*random_cluster(seed))


@half_of_the_seeds
def test_where_a_size_is_unknown_the_fewest_replicas_are_copied_then_the_fewest_known_bytes(seeds: range) -> None:
    for case in _solved(seeds):
        observed = with_unknown_sizes(case.observed, case.seed)
        problem, target = problem_of(case.desired, observed), case.desired.cluster.balance.replicas
        least = least_placement(problem, target)
        assert least is not None
        reached = replicas_after(observed, planned(case.desired, observed))
        found = worth_of(problem, target, reached)
        assert found.least_of(problem, target) == least.least_of(problem, target), case.seed


@pytest.mark.parametrize(("is_known", "copies"), [(True, 2), (False, 1)])
def test_two_small_copies_are_better_than_a_large_one_unless_a_size_is_unknown(*, is_known: bool, copies: int) -> None:
    allowed = {"large": {1, 3}, "small": {1, 2}, "other": {2, 3}, "still": {4}}
    sizes = {"large": 1000, "small": 1, "other": 1, "still": 1 if is_known else None}
    there = {"large": 1, "small": 1, "other": 2, "still": 4}
    topics = {name: Topic(name, (Partition(0, b, (b,), (b,), sizes=(sizes[name],)),)) for name, b in there.items()}
    declared = {name: DesiredTopic(name, placement=Placement(brokers_only=frozenset(allowed[name]))) for name in there}
    desired = Desired(DesiredCluster("c", balance=Balance(replicas=Even())), declared)
    placed = planned(desired, Cluster("c", {b: Broker(b) for b in (1, 2, 3, 4)}, topics))
    assert sum(len(move.added) for move in placed.moves) == copies
    assert placed.proof.objective == ("bytes" if is_known else "replicas")


@half_of_the_seeds
def test_how_far_a_count_is_from_its_fair_share_does_not_matter(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = _solved(seeds)
    monkeypatch.setattr(objectives, "BROKER_WINDOW", 1)
    for case in cases:
        target = case.desired.cluster.balance.replicas
        reached = replicas_after(case.observed, planned(case.desired, case.observed))
        worth = worth_of(case.problem, target, case.reached)
        assert worth_of(case.problem, target, reached) == worth, case.seed


@half_of_the_seeds
def test_what_the_flow_leaves_out_at_first_does_not_matter(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = _solved(seeds)
    monkeypatch.setattr(sparse_flow, "FEW_ARCS", 0)
    monkeypatch.setattr(start, "SPARE_ROWS", 1)
    monkeypatch.setattr(goal, "CHUNK", 3)
    for case in cases:
        target = case.desired.cluster.balance.replicas
        placed = planned(case.desired, case.observed)
        worth = worth_of(case.problem, target, case.reached)
        assert worth_of(case.problem, target, replicas_after(case.observed, placed)) == worth, case.seed
        assert placed.proof.value == placed.proof.lower_bound, case.seed
