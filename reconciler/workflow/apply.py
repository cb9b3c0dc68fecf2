"""Runs a saved plan on its cluster, move for move, or refuses it; changes the rate of a run that goes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from reconciler.admin.port import Admin
from reconciler.admin.waits import waiting_for
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.limits import NOTHING_DECLARED, ApplyRules
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import read_record
from reconciler.apply.throttles import rate_bounds
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredCluster
from reconciler.model.lock import Holder, purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, ReconcilerError, Refused
from reconciler.model.run import AskedThrottle, RunProgress, RunResult
from reconciler.model.words import rate as rate_in_words
from reconciler.workflow.inputs import Inputs, cluster_names
from reconciler.workflow.mirrors import is_simulated, source_names
from reconciler.workflow.plan import make_plan
from reconciler.workflow.runs import keep_plan, restore_leftovers, run_journal
from reconciler.workflow.saved_plan import plan_named, refuse_supposed
from reconciler.workflow.sources import cluster_admin, declared, declared_as_far, declared_cluster, simulated
from reconciler.workflow.still_asked import refuse_withdrawn

TAKEN_UP = timedelta(seconds=30)
PAUSE_SECONDS = 0.5


def plan_to_apply(inputs: Inputs, path: str, reviewed_digest: str | None = None) -> Plan:
    """Return the plan in that file.

    Raises InvalidInput where it was changed or cut short, NotNamed where another cluster than its own is named, Refused
    where it is of a supposed state, or its digest is not the reviewed one.
    """
    plan = plan_named(inputs, path, reviewed_digest)
    refuse_supposed(plan, "is never applied")
    return plan


@dataclass(frozen=True, slots=True)
class Applied:
    """How a run ended, and whether its cluster, and so its time, is simulated."""

    result: RunResult
    is_simulated: bool = False


def apply_plan(
    inputs: Inputs,
    plan: Plan,
    *,
    is_dry_run: bool = False,
    is_asked_again: bool = False,
    has_log_dirs: bool = False,
    max_duration: timedelta | None = None,
    should_stop: Callable[[], str | None] = lambda: None,
    progress: Callable[[RunProgress], None] | None = None,
    notify: Callable[[str], None] = lambda _told: None,
) -> Applied:
    """Run the plan, or go on with it; the cluster is found by the plan's own name for it, or by the client given.

    What is declared holds either way. `is_asked_again`: the plan is named by its digest, so it may destroy what the
    files no longer ask for. `notify` is told at once what a user should know of before the end.
    """
    desired, unread = declared_as_far(inputs, plan.cluster_name)
    if desired is None and plan.cluster_name in cluster_names(inputs.root):
        desired, unread = Desired(DesiredCluster(plan.cluster_name)), "the Cluster document"
    if unread is not None:
        notify(f"limits of owners are not looked at, because not all files can be read: {unread}")
    journal = run_journal(inputs, plan)
    with cluster_admin(replace(inputs, cluster=plan.cluster_name), desired) as admin:
        if not is_dry_run:
            for restored in restore_leftovers(inputs, admin, plan):
                notify(f"throttles of ended runs: {restored}")
            keep_plan(inputs, plan)
        refuse = partial(
            refuse_withdrawn, inputs, plan, admin, desired, unread=unread, is_asked_again=is_asked_again, notify=notify
        )
        ended = run_plan(
            plan,
            admin,
            journal,
            progress=progress,
            deadline=admin.clock.now() + max_duration if max_duration is not None else None,
            should_stop=should_stop,
            declared=_declared(desired, refuse),
            is_dry_run=is_dry_run,
            has_log_dirs=has_log_dirs,
            notify=notify,
        )
        return Applied(ended, simulated(inputs, desired) is not None)


def _declared(desired: Desired | None, refuse: Callable[[], None]) -> ApplyRules:
    """Return what a run is held against; `refuse` raises Refused where the files forbid the plan as a whole."""
    if desired is None:
        return NOTHING_DECLARED

    def broken_limits(rest: Plan, observed: Cluster) -> Sequence[Problem]:
        from reconciler.diff.quotas import with_quotas  # loads numpy

        return with_quotas(replace(rest, warnings=(), violations=()), desired, observed).violations

    return ApplyRules(desired.cluster, broken_limits if desired.owners else None, refuse)


def plan_again(inputs: Inputs, applied: Plan) -> Plan | None:
    """Return what a new plan would do, None where the desired state is no longer, or not here, what the plan came from.

    Nothing of it is kept; it tells whether the run reached what was asked for. None, too, if mirrors copy from a
    cluster that is not simulated: a plan would log in there, maybe with a password that is this cluster's alone.
    """
    try:
        desired = declared(inputs, applied.cluster_name)
        if desired is None or desired.digest != applied.source.desired_digest:
            return None
        if not all(is_simulated(inputs.root, name) for name in source_names(desired)):
            return None
        return make_plan(
            replace(inputs, cluster=applied.cluster_name, state=None), open_judge=lambda _policies: _as_it_is
        ).plan
    except ReconcilerError:
        return None


def _as_it_is(plan: Plan, _desired: Desired, _observed: Cluster, _loads: str | None) -> Plan:
    """Ask no policy: they change no move, and only moves are told of what is left."""
    return plan


class NotRunning(ReconcilerError):
    """No run of the plan is on, so there is no rate to change."""

    code = "KR458"


def throttle(
    inputs: Inputs, plan_path: str, rate: int, *, notify: Callable[[str], None] = lambda _told: None
) -> AskedThrottle:
    """Ask the run of that plan for another rate, in bytes per second, and wait until it has taken it up.

    Raises NotRunning where no run of the plan is on, Refused for a rate that its run would not take up.
    """
    plan = plan_named(inputs, plan_path)
    low, high = rate_bounds(plan)
    if not low <= rate <= high:
        raise Refused(
            f"a run of plan {plan.id} takes up {rate_in_words(low)} to {rate_in_words(high)}, as whoever may read "
            f"the lock's group can ask for a rate: {rate_in_words(rate)} is not asked for.",
            code="KR464",
        )
    desired = None if inputs.is_client_given else declared_cluster(inputs, plan.cluster_name)
    with cluster_admin(replace(inputs, cluster=plan.cluster_name), desired) as admin:
        check_plan_is_for(plan, admin.cluster_id())
        _running(plan, admin.lock_holder())
        with waiting_for("the run to take the rate up"):
            record = read_record(admin)
            holder = _running(plan, admin.ask_rate(purpose_of_run(plan.id), rate, waiting=notify))
            is_taken_up = _is_taken_up(admin, rate, record.rate if record is not None else None)
        if not is_taken_up and admin.lock_holder() is None:
            raise NotRunning(f"the run of plan {plan.id} has ended, before it told whether it took the rate up")
        return AskedThrottle(plan.id, str(holder), rate, is_taken_up)


def _running(plan: Plan, holder: Holder | None) -> Holder:
    if holder is not None and holder.purpose == purpose_of_run(plan.id):
        return holder
    by = f"the lock of cluster {plan.cluster_name} is held by {holder}"
    nobody = f"nobody holds the lock of cluster {plan.cluster_name}"
    raise NotRunning(f"no run of plan {plan.id} is on: {nobody if holder is None else by}. Nothing was changed")


def _is_taken_up(admin: Admin, rate: int, before: int | None) -> bool:
    """Wait until the run has written a rate into its record; return whether it is this one, and not another's."""
    end = admin.clock.now() + TAKEN_UP
    while admin.clock.now() < end:
        record = read_record(admin)
        if record is not None and record.rate == rate:
            return True
        # A run without a record never confirms a rate, and somebody may have asked for another rate since.
        if record is None or record.rate != before:
            return False
        admin.clock.sleep(PAUSE_SECONDS)
    return False
