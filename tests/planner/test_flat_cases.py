"""The planner on the flat benchmark clusters: proved, the closed form's bytes and copies, nothing to do afterwards."""

import pytest
from helpers.clusters.flat_clusters import CASE_A, CASE_B, CASE_C, CASE_D, FlatCase
from helpers.plans.oracle import problem_of
from helpers.plans.planning import cluster_after, planned
from helpers.plans.proving import plan_of_placed
from planner.closed_form import sizes_to_copy

from reconciler.proof.check import prove_end

pytestmark = pytest.mark.long

FOUR_RACKS = FlatCase("four-racks", brokers=10, racks=4, topics=12, partitions=20, joining=2)
"""The kind of case e, but small: fewer replicas than racks, brokers that join."""
CASES = [CASE_A, CASE_B, CASE_C, FOUR_RACKS, pytest.param(CASE_D, marks=pytest.mark.deep)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_plan_is_proved_and_copies_the_least_there_is_and_the_reached_state_plans_to_nothing(
    case: FlatCase,
) -> None:
    desired, observed = case.build()
    placed = planned(desired, observed)
    verdict = prove_end(plan_of_placed(desired, observed, placed), desired, observed)
    assert verdict.wrong is None
    assert verdict.copied_partitions == sum(bool(move.added) for move in placed.moves)
    copied = sum(move.bytes for move in placed.moves), sum(len(move.added) for move in placed.moves)
    value = {level.objective: level.value for level in verdict.levels}
    assert (value["bytes"], value["replicas"]) == copied
    if case is not FOUR_RACKS:
        sizes = sizes_to_copy(problem_of(desired, observed))
        assert copied == (sum(sizes), len(sizes))
    assert planned(desired, cluster_after(observed, placed.moves, ())).moves == ()
