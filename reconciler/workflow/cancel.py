"""`cancel`: stops what is in flight of a run, on a legal state."""

from collections.abc import Callable
from dataclasses import replace

from reconciler.apply.cancel import cancel_run
from reconciler.model.run import RunResult
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.rollback import plan_to_cancel
from reconciler.workflow.runs import run_journal
from reconciler.workflow.sources import cluster_admin, declared


def cancel(
    inputs: Inputs,
    plan_path: str | None = None,
    *,
    notify: Callable[[str], None] = lambda _told: None,
    should_stop: Callable[[], str | None] = lambda: None,
) -> RunResult:
    """Cancel the run of that plan, or the latest one on the cluster; `notify` is told what keeps it waiting.

    A KeyboardInterrupt once `should_stop` gives a reason raises StoppedEarly, which names what is left.
    """
    plan = plan_to_cancel(inputs, plan_path)
    desired = None if inputs.is_client_given else declared(inputs, plan.cluster_name)
    with cluster_admin(replace(inputs, cluster=plan.cluster_name), desired) as admin:
        return cancel_run(plan, admin, run_journal(inputs, plan), notify=notify, should_stop=should_stop)
