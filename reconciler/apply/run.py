"""Runs a plan on a cluster: takes the lock, checks all that may forbid it, and hands over to the turns."""

from collections.abc import Callable
from datetime import datetime

from reconciler.admin.port import Admin
from reconciler.apply.checks import (
    Gate,
    Stop,
    check_plan,
    check_plan_is_for,
    check_readers,
    check_requirements,
    check_still_valid,
)
from reconciler.apply.crash import crash_point
from reconciler.apply.journal import Journal, MemoryJournal
from reconciler.apply.leftovers import adopt_leftovers, find_record, moves_of, say_other_record
from reconciler.apply.limits import NOTHING_DECLARED, ApplyRules
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import APPLY_AGAIN, paths_of
from reconciler.apply.refusals import check_not_refused, check_offered, check_rights
from reconciler.apply.session import Session, with_result
from reconciler.apply.standings import stages_done, steps_to_do, under_way
from reconciler.apply.throttling import take_all_off
from reconciler.apply.turns import Progress, Run
from reconciler.model.lock import LockHeld, purpose_of_run
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError, Refused, StalePlan, WouldBeRefused
from reconciler.model.run import RunResult, RunState, StoppedEarly
from reconciler.model.words import named_some


def run_plan(
    plan: Plan,
    admin: Admin,
    journal: Journal,
    *,
    progress: Progress | None = None,
    deadline: datetime | None = None,
    should_stop: Stop = lambda: None,
    declared: ApplyRules = NOTHING_DECLARED,
    is_dry_run: bool = False,
    notify: Callable[[str], None] = lambda _text: None,
    has_log_dirs: bool = False,
    again: str = APPLY_AGAIN,
) -> RunResult:
    """Run a plan, or go on with it, and return what was done; only a finished plan returns.

    A dry run checks all that a run does before its first change, returns the steps that are left, and writes nothing.

    `should_stop` ends the run at once, in order, and so does a cancel of the plan, wherever it was started: moves in
    flight go back to where they came from and throttles to what they were; a KeyboardInterrupt meanwhile ends that too,
    and StoppedEarly names what is left; all texts say `again` for how to go on. After `deadline`, and outside
    the windows of `declared`, no further stage begins; nor does one that does not fit its limits. With `has_log_dirs`
    new replicas are made in the log dirs that the plan predicts; else Kafka chooses. `notify` is told at once what a
    waiting operator should know. Raises StalePlan, Refused (LockHeld, where another run is on) or WouldBeRefused before
    anything is changed, one of the first two before a later stage, RunFailed or StoppedEarly with the result after;
    throttles are back in either case. A run that loses the cluster's lock ends at once, with LockLost, and puts nothing
    back: somebody else may be at work.
    """
    session = Session(admin, journal, paths_of(plan, again), notify, has_log_dirs)
    gate = Gate(session, deadline, should_stop, declared)
    check_plan(plan, admin.cluster_id())
    if is_dry_run:
        return _checked(session, gate)
    with admin.lock(purpose_of_run(plan.id), digest=plan.digest, waiting=notify) as session.lock:
        crash_point("lock.taken")
        return _locked(session, gate, progress)


def _checked(session: Session, gate: Gate) -> RunResult:
    """Return what a run would do now; raises what would forbid it, another run included, and writes nothing."""
    holder = session.admin.lock_holder()
    if holder is not None:
        raise LockHeld(holder)
    observed = _look_at_all(session)
    find_record(session)
    say_other_record(session)
    try:
        _first(session, gate, observed)
    except (StalePlan, Refused, StoppedEarly, WouldBeRefused) as error:
        raise _not_begun(session, error) from error
    session.messages.extend(steps_to_do(session.paths, observed))
    return session.result(RunState.CHECKED)


def still_fits(plan: Plan, admin: Admin) -> bool:
    """Return whether all that a plan touches is as it saw it, or as it wants it: then it is not stale."""
    session = Session(admin, MemoryJournal(), paths_of(plan))
    try:
        check_plan_is_for(plan, admin.cluster_id())
        check_still_valid(session.paths, plan.stages, _look_at_all(session))
    except StalePlan:
        return False
    return True


def _locked(session: Session, gate: Gate, progress: Progress | None) -> RunResult:
    """Run the plan; the cluster's lock is held."""
    # Leftovers are taken over before any check: a refused run, too, puts back what an earlier one left.
    observed = _look_at_all(session)
    adopt_leftovers(session, observed)
    try:
        first = _first(session, gate, observed)
    except (StalePlan, Refused, StoppedEarly, WouldBeRefused) as error:
        raise _refused(session, observed, error) from error
    is_clear = not under_way(session.paths, observed)
    return Run(session, gate, progress, first).go(is_clear=is_clear)


def _look_at_all(session: Session) -> Observed:
    """Return how all topics of the plan stand."""
    changed = {change.topic for change in session.paths.plan.topic_changes}
    return session.look(session.paths.topics, with_configs_of=changed)


def _first(session: Session, gate: Gate, observed: Observed) -> int:
    """Return the index of the first stage to run; everything that may forbid it is checked."""
    stages = session.paths.plan.stages
    _check_no_other_run(session)
    check_still_valid(session.paths, stages, observed)
    first = session.stages_done = stages_done(session.paths, observed)
    if first < len(stages):
        gate.declared.refuse()
        check_offered(session.paths.plan, session.admin)
        check_rights(session.paths.plan, session.admin)
        check_requirements(session.paths, observed)
        check_readers(session, stages, observed)
        gate.enter(first, is_first=True)
        check_not_refused(session, observed)
    return first


def _check_no_other_run(session: Session) -> None:
    """Raise Refused where a run of another plan has died and Kafka lists its moves in flight, as its record says."""
    record = session.other_record.run
    in_flight = moves_of(record, session.admin) if record is not None else ()
    moves = [move for move in in_flight if move.topic_partition not in session.paths.by_partition]
    if record is not None and moves:
        named = named_some(str(move.topic_partition) for move in moves)
        name = record.cluster_name
        raise Refused(
            f"{record} has died with moves in flight, as its record says: {named}. Nothing was changed. "
            f"`reconciler cancel --cluster {name}` shows what it takes back, and asks; apply of that plan goes on with "
            f"it. If no run of ours began them: `reconciler doctor --cluster {name} --drop-record "
            f"{session.other_record.digest}`.",
            code="KR457",
        )


def _refused(session: Session, observed: Observed, refusal: ReconcilerError) -> ReconcilerError:
    """Return why a run does not begin, once throttles that an earlier run of the plan left are off.

    While moves of that run are in flight their throttles stay on: taken off, they would go on unthrottled.
    """
    moving = under_way(session.paths, observed)
    if session.throttles.on.is_empty:
        pass
    elif moving:
        named = named_some([str(move.topic_partition) for move in moving])
        text = f"an earlier run of this plan left moves in flight under its throttles: {named}"
        session.messages.append(f"{text}; run cancel with this plan to take both back")
    else:
        take_all_off(session)
        if not session.leftover_throttles:
            session.messages.append("throttles that an earlier run of this plan had left were put back")
    return _not_begun(session, refusal)


def _not_begun(session: Session, refusal: ReconcilerError) -> ReconcilerError:
    """Return why a run does not begin, with what is left to do; nothing is changed."""
    state = RunState.STOPPED if isinstance(refusal, StoppedEarly) else RunState.FAILED
    return with_result(refusal, session.result(state))
