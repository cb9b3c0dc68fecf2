"""The planner on the flat benchmark clusters: bytes of the oracle, counts as even as can be, no rack broken."""

from collections import Counter
from functools import cache

import pytest
from helpers.clusters.flat_clusters import CASES, FlatCase
from helpers.plans.oracle import Problem, leader_worth, problem_of, rack_excess, worth_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from planner.closed_form import one_replica_a_rack
from planner.exact_flow import flow_leaders, flow_placement

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Even
from reconciler.planner.place import Placed

pytestmark = pytest.mark.long

NAMES = ["a", "b", "c", pytest.param("d", marks=pytest.mark.deep)]
NO_EXCESS = (0, 0, 0)
FOUR_RACKS = FlatCase("four-racks", brokers=10, racks=4, topics=12, partitions=20, joining=2)
"""The kind of case e, small enough for the flow oracle: fewer replicas than racks, brokers that join."""


@cache
def _solved(name: str) -> tuple[Desired, Cluster, Problem, Placed]:
    desired, observed = (FOUR_RACKS if name == FOUR_RACKS.name else CASES[name]).build()
    return desired, observed, problem_of(desired, observed), planned(desired, observed)


@pytest.mark.parametrize("name", NAMES)
def test_bytes_and_copies_are_the_least_there_are(name: str) -> None:
    _, _, problem, placed = _solved(name)
    optimum = one_replica_a_rack(problem)
    assert sum(move.bytes for move in placed.moves) == optimum.bytes == placed.proof.lower_bound
    assert sum(len(move.added) for move in placed.moves) == optimum.copies


@pytest.mark.parametrize("name", [*NAMES, FOUR_RACKS.name])
def test_no_rack_is_broken_and_no_leaving_broker_keeps_a_replica(name: str) -> None:
    _, observed, problem, placed = _solved(name)
    reached = replicas_after(observed, placed)
    for demand in problem.demands:
        replicas = reached[demand.topic_partition]
        assert len(set(replicas)) == len(replicas) == demand.need
        assert rack_excess(demand, problem.rack_of, replicas) == NO_EXCESS
        assert demand.allowed.issuperset(replicas)


@pytest.mark.parametrize("name", ["a", "b", "c", FOUR_RACKS.name])
def test_every_objective_equals_the_flow_oracles(name: str) -> None:
    _, observed, problem, placed = _solved(name)
    best = worth_of(problem, Even(), flow_placement(problem, Even()))
    assert worth_of(problem, Even(), replicas_after(observed, placed)) == best


@pytest.mark.parametrize("name", ["a", "b", "c", FOUR_RACKS.name])
def test_leaders_are_as_even_as_the_replicas_allow_with_the_fewest_changes(name: str) -> None:
    _, observed, problem, placed = _solved(name)
    reached = replicas_after(observed, placed)
    best = leader_worth(problem, Even(), flow_leaders(problem, Even(), reached))
    assert leader_worth(problem, Even(), {key: replicas[0] for key, replicas in reached.items()}) == best


@pytest.mark.parametrize("name", NAMES)
def test_the_reached_state_plans_to_nothing(name: str) -> None:
    desired, observed, _, placed = _solved(name)
    assert planned(desired, cluster_after(observed, placed.moves, ())).moves == ()


@pytest.mark.deep
def test_twenty_thousand_partitions_leave_a_broker_within_what_racks_allow() -> None:
    _, observed, _, placed = _solved("d")
    reached = replicas_after(observed, placed)
    counts = Counter(replica for replicas in reached.values() for replica in replicas)
    assert 59 not in counts
    assert max(counts.values()) == 1053
