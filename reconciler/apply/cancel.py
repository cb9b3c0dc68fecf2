"""Cancels a run: what is in flight goes back in its own order, leaders and throttles as they were."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for, is_stage_done
from reconciler.apply.course import Itinerary, Place, itinerary
from reconciler.apply.crash import crash_point
from reconciler.apply.gate import Stop
from reconciler.apply.journal import DispensableJournal, Journal
from reconciler.apply.leave import abandoned
from reconciler.apply.observed import Observed, look
from reconciler.apply.session import Session, with_result
from reconciler.apply.throttling import adopt_leftovers, owed_by, take_all_off
from reconciler.apply.withdraw import Withdrawal, moves_under_way, overwritten_moves, withdraw
from reconciler.apply.wording import named_some
from reconciler.model.lock import LockLost, purpose_of_run
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunFailed, RunResult, RunState, StoppedEarly


def _never() -> str | None:
    return None


def _to_nobody(_text: str) -> None:
    """Tell nobody."""


def cancel_run(
    plan: Plan,
    admin: Admin,
    journal: Journal,
    *,
    notify: Callable[[str], None] = _to_nobody,
    should_stop: Stop = _never,
) -> RunResult:
    """Cancel what is in flight of a plan and return what was done; moves that have ended stay as they are.

    A run of the plan that is on, wherever it was started, is asked to stop and waited for: it takes its moves back
    itself. Raises LockHeld where something else is on, NotStopped where the run does not end. Raises RunFailed, with
    the result, for partitions whose original replicas are not all alive and in sync: these are left in flight. What
    somebody else reassigns is left alone and named. Cancelling again changes nothing.

    It is itself the way back, so nothing but the cluster keeps it from its end: not a journal that cannot be written,
    which is told, and not `should_stop`. A KeyboardInterrupt once that gives a reason ends it at once; StoppedEarly
    names what is left.
    """
    session = Session(admin, journal, itinerary(plan), notify)
    session.journal = DispensableJournal(journal, session.say)
    check_plan_is_for(plan, admin.cluster_id())
    with admin.lock(f"cancel of plan {plan.id}", waiting=notify, stopping=purpose_of_run(plan.id)) as session.lock:
        crash_point("lock.taken")
        journal.read_again()  # the run that was waited for may have written to it
        cancel = _Cancel(session)
        try:
            return cancel.ended()
        except LockLost as error:
            session.debts = owed_by(session.throttles)
            raise with_result(error, session.result(RunState.FAILED)) from error
        except KeyboardInterrupt as error:
            if should_stop() is None:
                raise
            raise cancel.abandoned() from error


@dataclass(slots=True)
class _Cancel:
    """One cancel under way; `moves` are those that it is just taking back."""

    session: Session
    moves: tuple[Move, ...] = ()

    def ended(self) -> RunResult:
        """Take back what is in flight, and every throttle."""
        session, plan = self.session, self.session.itinerary.plan
        names = {change.topic for change in plan.topic_changes}
        observed = session.look(session.itinerary.topics, with_configs_of=names)
        done = takewhile(lambda stage: is_stage_done(session.itinerary, stage, observed), plan.stages)
        session.stages_done = sum(1 for _ in done)
        adopt_leftovers(session, observed)
        session.messages.extend(_foreign(session.itinerary, observed))
        session.tell("cancel", Outcome.STARTED, plan=plan.id, digest=plan.digest)
        self.moves = _to_take_back(session.itinerary, observed)
        try:
            outcome = withdraw(session, self.moves)
        except LockLost:
            raise
        except ReconcilerError as error:
            take_all_off(session, has_moves=True)
            raise with_result(error, session.result(RunState.FAILED)) from error
        self.moves = ()
        take_all_off(session, has_moves=bool(outcome.left))
        crash_point("end.before")
        session.tell("cancel", Outcome.FAILED if outcome.left else Outcome.DONE, debts=[str(d) for d in session.debts])
        crash_point("end.recorded")
        if outcome.left:
            result = session.result(RunState.FAILED, list(outcome.left))
            raise with_result(RunFailed(_left_text(outcome), code="KR714"), result)
        session.messages.extend(_told(outcome))
        return session.result(RunState.CANCELLED)

    def abandoned(self) -> StoppedEarly:
        """Return the end of a cancel that was not let to its own."""
        keys = [move.topic_partition for move in self.moves]
        if keys:
            moves = f"moves may still be in flight, or out of their order: {named_some(map(str, keys))}"
            self.session.messages.append(f"{moves}; run cancel again to take them back")
        return abandoned(self.session, keys)


def stop_run(plan: Plan, admin: Admin, *, notify: Callable[[str], None] | None = None) -> None:
    """Have a run of that plan end in order, where one is on; raises as `cancel_run` does."""
    check_plan_is_for(plan, admin.cluster_id())
    running, holder = purpose_of_run(plan.id), admin.lock_holder()
    if holder is not None and holder.purpose == running:
        admin.lock(f"cancel of plan {plan.id}", waiting=notify, stopping=running).release()


def foreign_moves(plan: Plan, admin: Admin) -> list[str]:
    """Return, in words, which partitions of a plan are being reassigned, and not by it."""
    course = itinerary(plan)
    check_plan_is_for(plan, admin.cluster_id())
    return _foreign(course, look(admin, course.topics, ids=plan.topic_ids))


def moves_in_flight(plan: Plan, admin: Admin) -> tuple[Move, ...]:
    """Return the moves of a plan that a cancel would take back now."""
    course = itinerary(plan)
    check_plan_is_for(plan, admin.cluster_id())
    return _to_take_back(course, look(admin, course.topics, ids=plan.topic_ids))


def _to_take_back(course: Itinerary, observed: Observed) -> tuple[Move, ...]:
    return (*moves_under_way(course, observed), *overwritten_moves(course, observed))


def _left_text(outcome: Withdrawal) -> str:
    told = "\n".join(f"{key}: {why}" for key, why in sorted(outcome.left.items()))
    return (
        f"{len(outcome.left)} moves could not be cancelled, and go on without a throttle:\n{told}\n"
        "Run apply to go on with the plan, or see to these brokers and cancel again."
    )


def _told(outcome: Withdrawal) -> Iterator[str]:
    moves = len(outcome.back)
    yield (
        "nothing of it was in flight"
        if not moves
        else "1 move taken back"
        if moves == 1
        else f"{moves} moves taken back"
    )
    if outcome.finished:
        yield f"{len(outcome.finished)} had ended by then"


def _foreign(course: Itinerary, observed: Observed) -> list[str]:
    found = []
    for key in course.courses:
        position = course.position(key, observed)
        if position.place is Place.FOREIGN:
            found.append(f"{key} is being reassigned to {list(position.found)} by somebody else: left alone")
    return found
