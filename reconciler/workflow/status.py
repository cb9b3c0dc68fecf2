"""`status`: where a run stands, as the cluster tells it."""

from dataclasses import dataclass, replace

from reconciler.apply.status import run_status
from reconciler.files.plan_file import read_plan
from reconciler.model.status import Status
from reconciler.workflow.inputs import Inputs, cluster_name
from reconciler.workflow.runs import latest_plan, run_journal
from reconciler.workflow.sources import cluster_admin, declared


@dataclass(frozen=True, slots=True)
class Seen:
    """A status, and the cluster that it is of."""

    cluster_name: str
    status: Status


def look_at_run(inputs: Inputs, plan_path: str | None = None, *, previous: Seen | None = None) -> Seen:
    """Return where that plan's run stands, or the latest one on the cluster; with the look before, also how fast."""
    plan = read_plan(plan_path) if plan_path else None
    name = plan.cluster_name if plan else cluster_name(inputs)
    plan = plan or latest_plan(inputs, name)
    events = run_journal(inputs, plan).events if plan else ()
    desired = None if inputs.is_client_given else declared(inputs, name)
    with cluster_admin(replace(inputs, cluster=name), desired) as admin:
        return Seen(name, run_status(plan, admin, events, previous=previous.status if previous else None))
