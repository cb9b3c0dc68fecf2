"""The small flat benchmark clusters: their stages come as close to the bound as they did when measured."""

from dataclasses import replace

import pytest
from helpers.clusters import flat_clusters
from helpers.clusters.flat_clusters import CASES, FlatCase
from helpers.plans.planning import planned

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.desired import MovePolicy
from reconciler.model.stage import ReassignStage
from reconciler.staging.estimate import busiest_broker_seconds, served_moves
from reconciler.staging.stages import stage_moves

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("name", "per_broker", "over_bound", "most"), [("a", 10, 1.04, 5), ("b", 100, 1.01, 5), ("c", 10, 1.01, 1)]
)
def test_the_time_of_the_run_is_close_to_its_busiest_brokers(
    name: str, per_broker: int, over_bound: float, most: int
) -> None:
    seconds, bound = _staged(CASES[name], per_broker)
    assert sum(seconds) <= over_bound * bound
    assert len(seconds) <= most + sum(estimate == 0 for estimate in seconds)


def test_a_drain_with_three_huge_copies_is_close_to_its_busiest_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_clusters, "SIGMA", 1.6)
    seconds, bound = _staged(CASES["d"], 10)
    assert sum(seconds) <= 1.02 * bound


def test_large_copies_that_meet_at_two_brokers_end_hardly_later_than_their_bytes() -> None:
    seconds, bound = _staged(replace(CASES["d"], before=2, leaving=()), 10)
    assert sum(seconds) <= 1.012 * bound


def _staged(case: FlatCase, per_broker: int) -> tuple[list[int], int]:
    """Return how long each stage takes, and what the busiest broker needs for all."""
    desired, observed = case.build()
    rules = topic_rules(desired, observed)
    elections, moves = compare(desired, observed, rules).elections, planned(desired, observed).moves
    policy = MovePolicy(throttle_bytes_per_second=50 * 2**20, per_broker=per_broker)
    wanted = replace(desired, cluster=replace(desired.cluster, moves=policy))
    found = stage_moves(moves, (), elections, observed=observed, desired=wanted, rules=rules).stages
    seconds = [stage.estimated_seconds for stage in found if isinstance(stage, ReassignStage)]
    return seconds, busiest_broker_seconds(served_moves(found, observed), policy)
