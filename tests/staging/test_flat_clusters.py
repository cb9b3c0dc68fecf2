"""The small flat benchmark clusters: their stages come as close to the bound as they did when measured."""

from dataclasses import replace

import pytest
from helpers.clusters.flat_clusters import CASES
from helpers.plans.planning import planned

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.desired import MovePolicy
from reconciler.model.stage import ReassignStage
from reconciler.staging.estimate import busiest_broker_seconds, served_moves
from reconciler.staging.stages import stage_moves


@pytest.mark.parametrize(
    ("name", "per_broker", "over_bound", "most"),
    [("a", 10, 1.04, 5), ("a", 100, 1.04, 5), ("b", 10, 1.01, 5), ("b", 100, 1.01, 5), ("c", 10, 1.01, 1)],
)
def test_the_time_of_the_run_is_close_to_its_busiest_brokers(
    name: str, per_broker: int, over_bound: float, most: int
) -> None:
    desired, observed = CASES[name].build()
    rules = topic_rules(desired, observed)
    elections, moves = compare(desired, observed, rules).elections, planned(desired, observed).moves
    policy = MovePolicy(throttle_bytes_per_second=50 * 2**20, per_broker=per_broker)
    wanted = replace(desired, cluster=replace(desired.cluster, moves=policy))
    found = stage_moves(moves, (), elections, observed=observed, desired=wanted, rules=rules).stages
    seconds = [stage.estimated_seconds for stage in found if isinstance(stage, ReassignStage)]
    assert sum(seconds) <= over_bound * busiest_broker_seconds(served_moves(found, observed), policy)
    assert len(seconds) <= most + sum(estimate == 0 for estimate in seconds)
