"""Whose run `status` looks at: the plan named must be for the cluster that answers, one found here is passed over."""

from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.plans.small_runs import RATE, move, plan_of
from helpers.program.documents import write_simulated

from reconciler.files.plan_file import with_id, write_plan
from reconciler.model.plan import Plan
from reconciler.model.problem import StalePlan
from reconciler.model.stage import ReassignStage
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.runs import keep_plan
from reconciler.workflow.status import look_at_run

HERE = Inputs(cluster="small")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Return a plan for the simulated cluster of the working folder."""
    monkeypatch.chdir(tmp_path)
    before = small_cluster("orders-0: 1,2,3 size 1000")
    write_simulated(before)
    return with_id(plan_of([ReassignStage(1, (move("orders-0", "1,2,3", "1,2,4"),), RATE)], before))


def test_a_plan_that_never_ran_is_no_run(plan: Plan) -> None:
    write_plan(plan, "plan.json")
    status = look_at_run(HERE, "plan.json")
    assert (status.plan_id, status.stage, status.has_begun) == (plan.id, 1, False)


def test_a_plan_for_another_cluster_is_refused(plan: Plan) -> None:
    write_plan(with_id(replace(plan, cluster_id="another")), "plan.json")
    with pytest.raises(StalePlan, match="the plan is for cluster another, but simulated answers") as refused:
        look_at_run(HERE, "plan.json")
    assert refused.value.code == "KR501"


def test_a_run_kept_here_of_another_cluster_under_the_same_name_is_not_this_clusters(plan: Plan) -> None:
    keep_plan(HERE, plan)
    assert look_at_run(HERE).plan_id == plan.id
    Path("runs", "small", f"{plan.id}.plan.json").unlink()
    keep_plan(HERE, with_id(replace(plan, cluster_id="another")))
    assert look_at_run(HERE).plan_id is None
