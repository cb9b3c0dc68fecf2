"""What makes a plan stale, and what keeps a stage from beginning, by values alone."""

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import move, plan_of

from reconciler.apply.checks import check_stage, check_still_valid
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import paths_of
from reconciler.model.cluster import Cluster
from reconciler.model.problem import Refused, StalePlan
from reconciler.model.stage import ReassignStage

STAGE = ReassignStage(1, (move("a-0", "1,2,3", "1,2,4"),))
PATH = paths_of(plan_of([STAGE], small_cluster("a-0: 1,2,3")))


def seen(cluster: Cluster) -> Observed:
    return Observed(topics=cluster.topics, brokers=cluster.brokers)


def test_a_stage_that_moves_to_a_dead_broker_does_not_begin() -> None:
    with pytest.raises(
        Refused, match=r"stage 1 moves a-0 to \[1, 2, 4\], but broker 4 is not alive; start it"
    ) as error:
        check_stage(PATH, STAGE, seen(small_cluster("a-0: 1,2,3", fenced=[4])))
    assert error.value.code == "KR420"
    check_stage(PATH, STAGE, seen(small_cluster("a-0: 1,2,3", fenced=[3, 5])))


@pytest.mark.parametrize(
    ("line", "found"),
    [("a-0: 1,2,5", r"\[1, 2, 5\]"), ("a-1: 1,2,3", "no such partition"), ("b-0: 1", "no such topic")],
)
def test_a_plan_is_stale_where_a_partition_is_neither_before_nor_behind_its_move(line: str, found: str) -> None:
    with pytest.raises(StalePlan, match=rf"a-0: expected \[1, 2, 3\] or \[1, 2, 4\], found {found}") as error:
        check_still_valid(PATH, [STAGE], seen(small_cluster(line)))
    assert error.value.code == "KR502"
    check_still_valid(PATH, [STAGE], seen(small_cluster("a-0: 1,2,4")))
