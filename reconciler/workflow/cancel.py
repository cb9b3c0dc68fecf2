"""`cancel`: stops what is in flight of a run, on a legal state."""

from dataclasses import replace

from reconciler.apply.cancel import cancel_run
from reconciler.files.plan_file import read_plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunResult
from reconciler.workflow.inputs import Inputs, cluster_name
from reconciler.workflow.runs import latest_plan, run_journal
from reconciler.workflow.sources import cluster_admin, declared


class NoRun(ReconcilerError):
    """No run is known on this machine, and no plan was named."""

    code = "KR709"


def cancel(inputs: Inputs, plan_path: str | None = None) -> RunResult:
    """Cancel the run of that plan, or the latest one on the cluster."""
    plan = read_plan(plan_path) if plan_path else latest_plan(inputs, cluster_name(inputs))
    if plan is None:
        raise NoRun(
            f"no run of {cluster_name(inputs)} is known here: name the plan that it runs: reconciler cancel PLAN"
        )
    desired = None if inputs.is_client_given else declared(inputs, plan.cluster_name)
    with cluster_admin(replace(inputs, cluster=plan.cluster_name), desired) as admin:
        return cancel_run(plan, admin, run_journal(inputs, plan))
