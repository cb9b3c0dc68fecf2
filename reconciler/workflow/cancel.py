"""`cancel`: stops what is in flight of a run, on a legal state."""

from collections.abc import Callable
from dataclasses import replace

from reconciler.admin.port import Admin
from reconciler.apply.cancel import cancel_run
from reconciler.apply.journal import Journal, MemoryJournal
from reconciler.apply.kept_run import kept_run
from reconciler.model.plan import Plan
from reconciler.model.run import RunResult
from reconciler.model.words import named_some
from reconciler.workflow.inputs import Inputs, cluster_name
from reconciler.workflow.rollback import plan_to_cancel
from reconciler.workflow.runs import kept_plan, run_journal
from reconciler.workflow.saved_plan import plan_named
from reconciler.workflow.sources import cluster_admin, declared_cluster


def cancel(
    inputs: Inputs,
    plan_path: str | None = None,
    *,
    notify: Callable[[str], None] = lambda _told: None,
    should_stop: Callable[[], str | None] = lambda: None,
) -> RunResult:
    """Cancel the run of that plan, or the one that the cluster's record names, or the last one known here.

    `notify` is told what keeps it waiting, and what no plan tells. A KeyboardInterrupt once `should_stop` gives a
    reason raises StoppedEarly, which names what is left.
    """
    named = plan_named(inputs, plan_path) if plan_path else None
    is_nameless = named is None and inputs.is_client_given and not inputs.cluster
    name = named.cluster_name if named else None if is_nameless else cluster_name(inputs)
    desired = None if inputs.is_client_given or name is None else declared_cluster(inputs, name)
    with cluster_admin(replace(inputs, cluster=name), desired) as admin:
        plan, journal = (named, run_journal(inputs, named)) if named else _found(inputs, name, admin, notify)
        return cancel_run(plan, admin, journal, notify=notify, should_stop=should_stop)


def _found(inputs: Inputs, name: str | None, admin: Admin, notify: Callable[[str], None]) -> tuple[Plan, Journal]:
    """Return the plan whose run is to be cancelled where none is named: the cluster knows best."""
    record = kept_run(admin)
    if record is None:
        plan = plan_to_cancel(inputs if name else replace(inputs, cluster=admin.cluster_id()))
        return plan, run_journal(inputs, plan)
    known = kept_plan(inputs, name or record.cluster_name, record.plan_id)
    if known is not None:
        return known, run_journal(inputs, known)
    notify(f"{record}, stage {record.stage} of {record.stages}: its plan is not here, its record in the cluster is")
    if record.moves and not record.is_whole:
        moves = named_some(str(move.topic_partition) for move in record.moves)
        notify(
            f"the order of replicas before the run is not in that record: {moves}; Kafka's own cancel leaves another"
        )
    return record.plan(admin.cluster_id()), MemoryJournal()
