"""Cancels a run: what is in flight goes back in its own order, leaders and throttles as they were."""

from collections.abc import Callable

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.course import Itinerary, Place, itinerary
from reconciler.apply.crash import crash_point
from reconciler.apply.journal import Journal
from reconciler.apply.observed import Observed, look
from reconciler.apply.session import Session, with_result
from reconciler.apply.throttling import adopt_leftovers, owe_all, take_all_off
from reconciler.apply.withdraw import Withdrawal, moves_under_way, withdraw
from reconciler.model.lock import LockLost
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunFailed, RunResult, RunState


def cancel_run(plan: Plan, admin: Admin, journal: Journal, *, notify: Callable[[str], None] | None = None) -> RunResult:
    """Cancel what is in flight of a plan and return what was done; moves that have ended stay as they are.

    Raises LockHeld where a run is on: stopped, it takes its moves back itself. Raises RunFailed, with the result, for
    partitions whose original replicas are not all alive and in sync: these are left in flight. What somebody else
    reassigns is left alone and named.
    """
    session = Session(admin, journal, itinerary(plan))
    check_plan_is_for(plan, admin.cluster_id())
    with admin.lock(f"cancel of plan {plan.id}", waiting=notify):
        crash_point("lock.taken")
        return _cancelled(session)


def _cancelled(session: Session) -> RunResult:
    plan = session.itinerary.plan
    observed = look(session.admin, session.itinerary.topics)
    adopt_leftovers(session)
    session.messages.extend(_foreign(session.itinerary, observed))
    session.tell("cancel", Outcome.STARTED, plan=plan.id)
    try:
        outcome = withdraw(session, moves_under_way(session.itinerary, observed))
    except LockLost as error:
        owe_all(session, "the cluster's lock was lost")
        raise with_result(error, session.result(RunState.FAILED)) from error
    except ReconcilerError as error:
        take_all_off(session)
        raise with_result(error, session.result(RunState.FAILED)) from error
    take_all_off(session)
    crash_point("end.before")
    session.tell("cancel", Outcome.FAILED if outcome.left else Outcome.DONE, debts=[str(d) for d in session.debts])
    crash_point("end.recorded")
    if outcome.left:
        result = session.result(RunState.FAILED, list(outcome.left))
        raise with_result(RunFailed(_left_text(outcome), code="KR714"), result)
    session.messages.extend(_told(outcome))
    return session.result(RunState.CANCELLED)


def _left_text(outcome: Withdrawal) -> str:
    told = "\n".join(f"{key}: {why}" for key, why in sorted(outcome.left.items()))
    return (
        f"{len(outcome.left)} moves could not be cancelled, and go on without a throttle:\n{told}\nRun apply to go on."
    )


def _told(outcome: Withdrawal) -> tuple[str, ...]:
    back = f"{len(outcome.back)} moves taken back"
    return (back, f"{len(outcome.finished)} had ended by then") if outcome.finished else (back,)


def _foreign(course: Itinerary, observed: Observed) -> list[str]:
    found = []
    for key in course.courses:
        position = course.position(key, observed)
        if position.place is Place.FOREIGN:
            found.append(f"{key} is being reassigned to {list(position.found)} by somebody else: left alone")
    return found
