"""Looks where a run is, as the cluster shows it; writes nowhere."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.run_record import RunRecord, read_record
from reconciler.apply.status import Watcher
from reconciler.model.plan import Plan
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.status import Status
from reconciler.workflow.inputs import Inputs, cluster_name
from reconciler.workflow.runs import kept_plan, latest_plan, run_journal
from reconciler.workflow.saved_plan import plan_named
from reconciler.workflow.sources import cluster_admin, declared_cluster, simulated


@dataclass(slots=True)
class Watched:
    """One cluster and the plan whose run is looked at; each look but the first also tells how fast it goes.

    `name`: None for a cluster that the caller brought without naming it: no run of it is known here.
    """

    name: str | None
    inputs: Inputs
    plan: Plan | None
    watcher: Watcher
    reopen: Callable[[], Admin] | None = None
    is_named: bool = False

    def look(self) -> Status:
        """Return where the run is.

        Where no plan is named, it is the run whose record the cluster keeps, whoever has its plan.
        """
        if self.reopen is not None and self.watcher.previous is not None:
            self.watcher.admin = self.reopen()
        admin = self.watcher.admin
        record = self.watcher.record = _record(admin)
        if record is None or self.is_named or (self.plan is not None and self.plan.id == record.plan_id):
            return self._seen(self.plan)
        known = kept_plan(self.inputs, self.name or record.cluster_name, record.plan_id)
        if known is not None:
            return self._seen(known)
        seen = self._seen(record.plan(admin.cluster_id()), has_journal=False)
        return replace(seen, stage=record.stage, stages=record.stages, stages_done=max(0, record.stage - 1))

    def _seen(self, plan: Plan | None, *, has_journal: bool = True) -> Status:
        events = run_journal(self.inputs, plan).events if plan is not None and has_journal else ()
        self.watcher.plan = plan
        return self.watcher.look(events)


def _record(admin: Admin) -> RunRecord | None:
    """Return the record in the cluster; one that cannot be had keeps nobody from looking."""
    with suppress(ClusterUnavailable):
        return read_record(admin)
    return None


@contextmanager
def watched(inputs: Inputs, plan_path: str | None = None) -> Iterator[Watched]:
    """Yield the run of that plan, or the latest one on the cluster, to be looked at as often as wanted.

    Raises StalePlan where the plan named is for another cluster; one that was only found here is then passed over.
    """
    plan = plan_named(inputs, plan_path) if plan_path else None
    is_nameless = plan is None and inputs.is_client_given and not inputs.cluster
    name = None if is_nameless else plan.cluster_name if plan else cluster_name(inputs)
    plan = plan or (latest_plan(inputs, name) if name is not None else None)
    desired = None if inputs.is_client_given or name is None else declared_cluster(inputs, name)
    here = replace(inputs, cluster=name)
    with ExitStack() as opened:

        def open_cluster() -> Admin:
            return opened.enter_context(cluster_admin(here, desired))

        admin = open_cluster()
        if plan is not None and plan_path is not None:
            check_plan_is_for(plan, admin.cluster_id())
        elif plan is not None and plan.cluster_id != admin.cluster_id():
            plan = None
        # A simulated cluster is a file, which other processes write: it is read anew for each look.
        reopen = open_cluster if simulated(inputs, desired) is not None else None
        yield Watched(
            name, inputs, plan, Watcher(plan, admin, cluster_name=name), reopen, is_named=plan_path is not None
        )


def look_at_run(inputs: Inputs, plan_path: str | None = None) -> Status:
    """Return where that plan's run stands, or the latest one on the cluster."""
    with watched(inputs, plan_path) as run:
        return run.look()
