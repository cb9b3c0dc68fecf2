"""Cancels a run: takes back what is in flight. With --rollback also undoes finished stages, by a plan of its own.

A run that goes on is asked to end first. A rollback that was stopped is gone on with, before anything new is planned.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from reconciler.admin.port import Admin, ProgressHook
from reconciler.apply.cancel import cancel_run, foreign_moves, moves_in_flight, stop_run
from reconciler.apply.checks import check_windows
from reconciler.apply.journal import MemoryJournal, recorded
from reconciler.apply.leftovers import moves_of, restore_throttles
from reconciler.apply.limits import ApplyRules
from reconciler.apply.run import run_plan, still_fits
from reconciler.apply.run_record import KeptRecord, RunRecord, kept_record, read_record
from reconciler.apply.session import Belief
from reconciler.diff.doctor.runs import found_throttles
from reconciler.diff.mirrors import with_classes
from reconciler.files.plan_file import with_id
from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Whose
from reconciler.model.lock import LockHeld, purpose_of_run
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import (
    ClusterUnavailable,
    MissingRight,
    Problem,
    ReconcilerError,
    Refused,
    Severity,
    StalePlan,
    WouldBeRefused,
)
from reconciler.model.run import (
    UNDECIDED,
    Outcome,
    RollbackRun,
    RolledBack,
    RunFailed,
    RunProgress,
    RunResult,
    StoppedEarly,
)
from reconciler.model.vitals import Vitals
from reconciler.model.words import named_some
from reconciler.workflow.inputs import Inputs, cluster_name, require_cluster
from reconciler.workflow.own_proof import refuse_unsafe_return
from reconciler.workflow.runs import (
    RunTraces,
    as_known,
    keep_plan,
    kept_plan,
    kept_plans,
    latest_plan,
    perhaps_of_a_run,
    run_journal,
)
from reconciler.workflow.saved_plan import plan_named, refuse_supposed
from reconciler.workflow.sources import cluster_admin, declared_as_far, declared_cluster, simulated

if TYPE_CHECKING:
    from reconciler.staging.rollback import GoingBack

logger = logging.getLogger(__name__)
AGAIN = "run cancel --rollback again"
_NO_RUN = "no run of {} is known here, and none has left its record in the cluster"


class NoRun(ReconcilerError):
    """No run is known on this machine, and no plan was named."""

    code = "KR709"


def plan_to_cancel(inputs: Inputs, plan_path: str | None = None) -> Plan:
    """Return the plan that is named, else that of the run last heard of on the cluster; raises NoRun."""
    plan = plan_named(inputs, plan_path) if plan_path else latest_plan(inputs, cluster_name(inputs))
    if plan is None:
        raise NoRun(f"{_NO_RUN.format(cluster_name(inputs))}: name the plan that it runs: reconciler cancel PLAN")
    return plan


def cancel(
    inputs: Inputs,
    plan_path: str | None = None,
    *,
    notify: Callable[[str], None] = lambda _told: None,
    should_stop: Callable[[], str | None] = lambda: None,
    is_confirmed: Callable[[Sequence[str]], bool] = lambda _lines: False,
) -> RunResult | None:
    """Cancel the run of that plan, or the last one known here, or else the one that the cluster's record names.

    `notify` is told what keeps it waiting. What only the record names, which others can write, is shown to
    `is_confirmed` line by line; None where that says no. A KeyboardInterrupt once `should_stop` gives a reason raises
    StoppedEarly, which names what is left.
    """
    named = plan_named(inputs, plan_path) if plan_path else None
    is_nameless = named is None and inputs.is_client_given and not inputs.cluster
    name = named.cluster_name if named else None if is_nameless else cluster_name(inputs)
    desired = None if inputs.is_client_given or name is None else declared_cluster(inputs, name)
    with cluster_admin(replace(inputs, cluster=name), desired) as admin:
        run = partial(cancel_run, notify=notify, should_stop=should_stop)
        stored = kept_record(admin)
        plan = named or _known_plan(inputs, name, stored.run)
        if plan is not None:
            if named is not None:
                keep_plan(inputs, plan)  # doctor and status on this machine need it beside the journal
            return run(plan, admin, run_journal(inputs, plan))
        if stored.run is None:
            raise _nothing_known(inputs, name, admin, stored)
        run = partial(run, stopped=stop_run(stored.run.plan(admin.cluster_id()), admin, notify=notify))
        record = read_record(admin)  # a run that went on has taken it out by now
        if record is None or record.plan_id != stored.run.plan_id:
            return run(stored.run.plan(admin.cluster_id()), admin, MemoryJournal())
        lines = _named_by(record, admin)
        latest = latest_plan(inputs, name) if name and not lines else None
        if latest is not None:
            return cancel_run(latest, admin, run_journal(inputs, latest), notify=notify, should_stop=should_stop)
        notify(f"{record}, stage {record.stage} of {record.stages}: its plan is not here, its record in the cluster is")
        if record.moves and not record.is_whole:
            moves = named_some(str(move.topic_partition) for move in record.moves)
            unknown = f"the order of replicas before the run is not in that record: {moves}"
            notify(f"{unknown}; Kafka's own cancel leaves another")
        if lines and not is_confirmed(lines):
            return None
        belief = Belief.TO_TAKE_OFF if lines else Belief.NOTHING
        ended = run(record.plan(admin.cluster_id()), admin, MemoryJournal(), belief=belief)
        # A bare record says who ran which plan, and not what was set: the cluster shows what may be left of it.
        perhaps = perhaps_of_a_run(admin) if record.is_bare else ()
        return replace(ended, leftover_throttles=(*ended.leftover_throttles, *perhaps))


def _known_plan(inputs: Inputs, name: str | None, record: RunRecord | None) -> Plan | None:
    """Return the plan kept here whose run a cancel means: the one recorded in the cluster, else the latest.

    A record of a plan that is not here must not hide a run that this machine knows not to have ended.
    """
    if record is None:
        return latest_plan(inputs, name) if name else None
    known = kept_plan(inputs, name or record.cluster_name, record.plan_id)
    latest = latest_plan(inputs, name) if name and known is None else None
    if latest is not None:
        journal = recorded(run_journal(inputs, latest).events)
        known = latest if journal.is_open or not journal.throttles.is_empty else None
    return known


def _nothing_known(inputs: Inputs, name: str | None, admin: Admin, stored: KeptRecord) -> ReconcilerError:
    """Return why there is nothing to cancel, with what may be left of a run."""
    here = inputs if name else replace(inputs, cluster=admin.cluster_id())
    unread = f"\n{stored.untouched}" if stored.text else ""
    perhaps = perhaps_of_a_run(admin)
    if perhaps:
        listed = "\n".join(map(str, perhaps))
        text = f"{_NO_RUN.format(cluster_name(here))}. Nothing was changed.{unread}\n{listed}"
        return StoppedEarly(text, code=UNDECIDED)
    return NoRun(f"{_NO_RUN.format(cluster_name(here))}: name the plan that it runs: reconciler cancel PLAN{unread}")


def _named_by(record: RunRecord, admin: Admin) -> list[str]:
    """Return what a cancel would take back and take off because that record names it, a line each."""
    cluster = admin.observe()
    (seen,) = as_known([RunTraces(record.plan(admin.cluster_id()), MemoryJournal(), record)], cluster, admin)
    moves = (f"{_told(move)}: taken back" for move in moves_of(record, admin))
    recorded_keys = (one for one in found_throttles(Vitals(cluster), [seen]) if one.whose is Whose.RECORDED)
    throttles = (f"{one}: taken off" for one in recorded_keys if one.value is not None)
    dead = (f"broker {broker}, which is not alive: its rates come off once it is back" for broker in seen.unrestored)
    return [*moves, *throttles, *dead]


def _told(move: Move | DirMove) -> str:
    if isinstance(move, DirMove):
        return str(move)
    return f"{move.topic_partition} from {list(move.from_replicas)} to {list(move.to_replicas)}"


@dataclass(frozen=True, slots=True)
class Hooks:
    """What whoever asks for a rollback is told and asked: each plan is shown to `is_confirmed` before it runs."""

    is_confirmed: Callable[[Plan], bool] = lambda _plan: True
    should_stop: Callable[[], str | None] = lambda: None
    progress: Callable[[RunProgress], None] | None = None
    notify: Callable[[str], None] = lambda _text: None


def plan_to_undo(inputs: Inputs, plan_path: str | None) -> Plan:
    """Return the plan to undo: where none is named and the latest run is a rollback, the one that that undoes."""
    plan = plan_named(inputs, plan_path) if plan_path else latest_plan(inputs, cluster_name(inputs))
    if plan is None:
        require_cluster(inputs.root, cluster_name(inputs))
        raise NoRun(
            f"no run of {cluster_name(inputs)} is known on this machine: name the plan to undo: "
            "reconciler cancel --rollback PLAN"
        )
    undone = plan.source.rolls_back
    if plan_path is None and undone is not None:
        found = kept_plan(inputs, plan.cluster_name, undone)
        if found is None:
            raise NoRun(
                f"the latest run of {plan.cluster_name} is the rollback of plan {undone}, which is not known here:"
                " name its file: reconciler cancel --rollback PLAN"
            )
        plan = found
    refuse_supposed(plan, "has nothing to undo")
    return plan


@dataclass(frozen=True, slots=True)
class Shown:
    """A rollback's plan; `is_begun`: it ran before, and goes on where it stopped.

    `refusal`: what forbids to run it now. `left`: what it leaves as it is although it could be undone.
    """

    plan: Plan
    is_begun: bool = False
    refusal: ReconcilerError | None = None
    left: tuple[Problem, ...] = ()


def rollback_plan(
    inputs: Inputs, undone: Plan, reading: ProgressHook | None = None, *, is_predicted: bool = False
) -> Shown:
    """Return the plan that undoes another, or a rollback of it that was stopped; nothing is changed.

    Moves in flight count as taken back, as a cancel does first; the plan warns of them. `is_predicted`: what a run
    of it checks first is checked, as far as moves in flight, which are not back, let it.
    """
    desired = _desired(inputs, undone)
    with cluster_admin(replace(inputs, cluster=undone.cluster_name), desired) as admin:
        begun = _begun(inputs, undone, admin)
        if begun is not None:
            shown = Shown(begun, is_begun=any(one.step == "run" for one in run_journal(inputs, begun).events))
        else:
            back = _return_plan(undone, admin, desired, reading)
            shown = Shown(back.plan, left=back.left)
        return replace(shown, refusal=_refusal(shown.plan, undone, admin, desired)) if is_predicted else shown


def _refusal(plan: Plan, undone: Plan, admin: Admin, desired: Desired | None) -> ReconcilerError | None:
    """Return what forbids to run a rollback's plan now; its violations, which it tells itself, are left out."""
    if plan.is_empty or plan.violations:
        return None
    holder = admin.lock_holder()
    is_running = holder is not None and holder.purpose == purpose_of_run(undone.id)
    try:
        if is_running or moves_in_flight(undone, admin):
            check_windows(_declared(desired).windows, admin.clock.time_of_day())
        else:
            run_plan(plan, admin, MemoryJournal(), declared=_declared(desired), is_dry_run=True, again=AGAIN)
    except (Refused, StalePlan, MissingRight, WouldBeRefused) as error:
        return error
    return None


def roll_back(inputs: Inputs, undone: Plan, hooks: Hooks = Hooks()) -> RolledBack:
    """Cancel what is in flight of that plan, undo its finished stages, and return what was done.

    A rollback that was stopped is gone on with first. Raises what a run raises; RunFailed, with the result, where some
    of it could not go back.
    """
    desired = _desired(inputs, undone)
    is_simulated = simulated(inputs, desired) is not None
    runs: list[RollbackRun] = []
    with cluster_admin(replace(inputs, cluster=undone.cluster_name), desired) as admin:
        run = partial(_run, inputs=inputs, undone=undone, desired=desired, admin=admin, hooks=hooks)
        stopped = stop_run(undone, admin, notify=hooks.notify)
        begun = _begun(inputs, undone, admin)
        if begun is None:
            _restore_after_lost_rollback(inputs, undone, desired, admin, hooks)
        elif hooks.is_confirmed(begun):
            runs.append(RollbackRun(begun, run(begun)))
        else:
            return RolledBack(undone, is_declined=True, is_simulated=is_simulated)
        cancelled = cancel_run(
            undone,
            admin,
            run_journal(inputs, undone),
            notify=hooks.notify,
            should_stop=hooks.should_stop,
            stopped=stopped,
            again=AGAIN,
        )
        reason = hooks.should_stop()
        if reason is not None:
            text = f"stopped before the rollback of plan {undone.id} began: {reason}; what was in flight is back"
            raise StoppedEarly(f"{text}. To go on, {AGAIN}", code="KR718")
        back = _return_plan(undone, admin, desired)
        is_declined = not (back.plan.is_empty or hooks.is_confirmed(back.plan))
        if not (back.plan.is_empty or is_declined):
            runs.append(RollbackRun(back.plan, run(back.plan, cancelled.told)))
        if back.left and not is_declined:
            left = "\n".join(problem.message for problem in back.left)
            text = f"the rollback of plan {undone.id} leaves this as it is; all else is back: {left}"
            raise RunFailed(text, code="KR717", result=runs[-1].result if runs else cancelled)
        return RolledBack(undone, cancelled, tuple(runs), is_declined, is_simulated)


def _run(
    plan: Plan,
    told: tuple[str, ...] = (),
    *,
    inputs: Inputs,
    undone: Plan,
    desired: Desired | None,
    admin: Admin,
    hooks: Hooks,
) -> RunResult:
    """Run a plan of the rollback; `told`: what the cancel before it did, which an error repeats."""
    keep_plan(inputs, plan)
    try:
        return run_plan(
            plan,
            admin,
            run_journal(inputs, plan),
            progress=hooks.progress,
            should_stop=hooks.should_stop,
            declared=_declared(desired),
            notify=hooks.notify,
            again=AGAIN,
        )
    except ReconcilerError as error:
        before = [f"before it, cancel: {text}" for text in told]
        way_on = (
            f"This was plan {plan.id}, the rollback of plan {undone.id}: cancel --rollback goes on with it; "
            f"an apply of plan {undone.id} would undo it."
        )
        error.args = ("\n".join([str(error), *before, way_on]),)
        raise


def _restore_after_lost_rollback(
    inputs: Inputs, undone: Plan, desired: Desired | None, admin: Admin, hooks: Hooks
) -> None:
    """Restore throttles after a rollback that may have been started elsewhere.

    All that is known of that rollback is which plan it undoes. The throttles go once nothing of it is in flight. If
    this machine knew the run of the plan, it would know the rollback too.
    """
    from reconciler.staging.rollback import every_throttle_back, policy_of

    if any(event.step == "run" for event in run_journal(inputs, undone).events):
        return
    foreign = foreign_moves(undone, admin)
    if foreign:
        holder, record, moving = admin.lock_holder(), read_record(admin), "; ".join(foreign)
        if holder is not None:
            raise LockHeld(holder)
        if record is not None and moves_of(record, admin):
            text = f"{record} has died with moves in flight: {moving}\n"
            way_on = f"`reconciler cancel --cluster {undone.cluster_name}` shows what it takes back, and asks"
        else:
            text = f"plan {undone.id} did not ask for this: {moving}\n"
            way_on = "If that is a rollback which was started elsewhere, apply its plan there, or wait for it"
        raise RunFailed(f"{text}{way_on}; then {AGAIN}. Nothing has been changed.", code="KR719")
    traces = every_throttle_back(undone, desired or policy_of(undone))
    restore_throttles(traces, admin, MemoryJournal(), notify=hooks.notify)


def _desired(inputs: Inputs, undone: Plan) -> Desired | None:
    """Return the limits that are declared; without their topics' rules, and with a warning, where these are broken."""
    desired, unread = declared_as_far(inputs, undone.cluster_name)
    if unread:
        logger.warning("the way back is planned without %s", unread)
    return desired


def _declared(desired: Desired | None) -> ApplyRules:
    return ApplyRules(desired.cluster if desired else None)


def _begun(inputs: Inputs, undone: Plan, admin: Admin) -> Plan | None:
    """Return the latest rollback of that plan which this machine knows to have begun, not ended, and still fits."""
    for plan in kept_plans(inputs, undone.cluster_name, holding=undone.id):
        if plan.source.rolls_back != undone.id or plan.violations:
            continue
        outcomes = [event.outcome for event in run_journal(inputs, plan).events if event.step == "run"]
        if outcomes[-1:] == [Outcome.DONE]:
            return None
        return plan if still_fits(plan, admin) else None
    return None


def _return_plan(
    undone: Plan, admin: Admin, desired: Desired | None, reading: ProgressHook | None = None
) -> "GoingBack":
    """Return the plan that undoes another once moves in flight are taken back, and what it leaves as it is."""
    from reconciler.staging.rollback import as_if_cancelled, policy_of, rollback_of

    limits = desired or policy_of(undone)
    in_flight = moves_in_flight(undone, admin)
    observed = as_if_cancelled(admin.observe(progress=reading), undone, in_flight)
    limits = with_classes(limits, observed)
    back = rollback_of(undone, observed, limits)
    if back.plan.summary.destroys is not None:
        # Who reads what would be destroyed belongs into the plan; where groups may not be seen, it says so.
        with suppress(MissingRight, ClusterUnavailable):
            observed = replace(observed, groups=tuple(admin.groups().values()), has_groups=True)
            back = rollback_of(undone, observed, limits)
    refuse_unsafe_return(back.plan, observed, limits)
    plan = back.plan
    if in_flight:
        text = f"{len(in_flight)} moves of plan {undone.id} are in flight, and not taken back by this plan"
        told = Problem("KR859", f"{text}: run cancel before it, or cancel --rollback", severity=Severity.WARNING)
        plan = replace(plan, warnings=(told, *plan.warnings))
    return replace(back, plan=with_id(plan))
