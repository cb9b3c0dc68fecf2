"""`throttle`: another rate for a run that is on, asked of whoever holds the cluster's lock."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from reconciler.admin.port import Admin
from reconciler.admin.waits import waiting_for
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.kept_run import kept_run
from reconciler.model.lock import Holder, purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.saved_plan import plan_named
from reconciler.workflow.sources import cluster_admin, declared_cluster

TAKEN_UP = timedelta(seconds=30)
PAUSE_SECONDS = 0.5


class NotRunning(ReconcilerError):
    """No run of the plan is on, so there is no rate to change."""

    code = "KR458"


@dataclass(frozen=True, slots=True)
class Throttled:
    """Who runs the plan and has read what was asked; `is_taken_up`: its record in the cluster tells of the new rate."""

    plan: Plan
    holder: Holder
    is_taken_up: bool


def throttle(
    inputs: Inputs, plan_path: str, rate: int, *, notify: Callable[[str], None] = lambda _told: None
) -> Throttled:
    """Ask the run of that plan for another rate, in bytes per second, and wait until it has taken it up.

    Raises NotRunning where no run of the plan is on.
    """
    plan = plan_named(inputs, plan_path)
    desired = None if inputs.is_client_given else declared_cluster(inputs, plan.cluster_name)
    with cluster_admin(replace(inputs, cluster=plan.cluster_name), desired) as admin:
        check_plan_is_for(plan, admin.cluster_id())
        _running(plan, admin.lock_holder())
        holder = _running(plan, admin.ask_rate(purpose_of_run(plan.id), rate, waiting=notify))
        with waiting_for("the run to tell that it has taken the rate up"):
            is_taken_up = _is_taken_up(admin, rate)
        if not is_taken_up and admin.lock_holder() is None:
            raise NotRunning(f"the run of plan {plan.id} has ended, before it told whether it took the rate up")
        return Throttled(plan, holder, is_taken_up)


def _running(plan: Plan, holder: Holder | None) -> Holder:
    if holder is not None and holder.purpose == purpose_of_run(plan.id):
        return holder
    by = f"the lock of cluster {plan.cluster_name} is held by {holder}"
    nobody = f"nobody holds the lock of cluster {plan.cluster_name}"
    raise NotRunning(f"no run of plan {plan.id} is on: {nobody if holder is None else by}. Nothing was changed")


def _is_taken_up(admin: Admin, rate: int) -> bool:
    """Wait until the run has written the rate into its record; one that keeps none never does."""
    end = admin.clock.now() + TAKEN_UP
    while admin.clock.now() < end:
        record = kept_run(admin)
        if record is None:
            return False
        if record.rate == rate:
            return True
        admin.clock.sleep(PAUSE_SECONDS)
    return False
