"""Cancels a run: takes what is in flight back, in its own order, with the leaders and throttles from before.

A cancel is itself the way back, so nothing but the cluster keeps it from its end: it goes on without a journal, past
topics that it may not see, and past each throttle that does not come off.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass

from reconciler.admin.port import Admin
from reconciler.apply.answers import Trouble
from reconciler.apply.checks import Stop, check_plan_is_for
from reconciler.apply.crash import crash_point
from reconciler.apply.dir_moves import dir_moves_under_way, dir_moves_unseen
from reconciler.apply.journal import DispensableJournal, Journal, MemoryJournal, recorded
from reconciler.apply.leftovers import adopt_leftovers
from reconciler.apply.observed import Observed, look
from reconciler.apply.partition_path import Place, PlanPaths, paths_of
from reconciler.apply.session import Belief, Session, ended_at_once, with_result
from reconciler.apply.standings import moves_to_take_back, stages_done
from reconciler.apply.throttles import leftover_problems
from reconciler.apply.throttling import take_all_off
from reconciler.apply.withdraw import Withdrawal, seen_as_far_as_visible, unseen_moves, withdraw
from reconciler.apply.withdraw_dirs import withdraw_dirs
from reconciler.model.lock import LockLost, purpose_of_run
from reconciler.model.move import DirMove, Move
from reconciler.model.plan import Plan
from reconciler.model.problem import MissingRight
from reconciler.model.run import Outcome, RunFailed, RunResult, RunState, StoppedEarly
from reconciler.model.tally import ARRIVED, Standing
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

CANCEL_AGAIN = "run cancel again"


def cancel_run(
    plan: Plan,
    admin: Admin,
    journal: Journal,
    *,
    notify: Callable[[str], None] = lambda _text: None,
    should_stop: Stop = lambda: None,
    stopped: Collection[TopicPartition] | None = None,
    again: str = CANCEL_AGAIN,
    belief: Belief = Belief.NOTHING,
) -> RunResult:
    """Cancel what is in flight of a plan and return what was done; moves that have ended stay as they are.

    A run of the plan that is on, wherever it was started, is asked to stop and waited for: it takes its moves back
    itself, and what it had in flight before is told as taken back where it is back. `stopped`: that, where the caller
    has stopped it. A run that has ended, or was never begun, is told of as such, and nothing is changed.

    Raises LockHeld where something else is on, NotStopped where the run does not end. Raises RunFailed, with the
    result, for partitions whose original replicas are not all alive and in sync: these are left in flight. What
    somebody else reassigns is left alone and named. Cancelling again changes nothing.

    It is itself the way back, so nothing but the cluster keeps it from its end: not a journal that cannot be written,
    which is told, and not `should_stop`. A KeyboardInterrupt once that gives a reason ends it at once; StoppedEarly
    names what is left.
    """
    session = Session(admin, journal, paths_of(plan, again), notify, belief=belief)
    session.journal = DispensableJournal(journal, session.say)
    check_plan_is_for(plan, admin.cluster_id())
    in_flight = _in_flight_of_a_run(session) if stopped is None else stopped
    # The lock comes free when the run has taken its own moves back: what is left then is for this cancel.
    with admin.lock(f"cancel of plan {plan.id}", waiting=notify, stopping=purpose_of_run(plan.id)) as session.lock:
        crash_point("lock.taken")
        journal.read_again()  # the run that was waited for may have written to it
        session.withdrawn.update(in_flight or ())
        cancel = _Cancel(session, has_stopped=in_flight is not None)
        try:
            return cancel.ended()
        except LockLost as error:
            session.leftover_throttles = leftover_problems(session.throttles.on)
            session.messages.append(again)
            raise with_result(error, session.result(RunState.FAILED)) from error
        except KeyboardInterrupt as error:
            if should_stop() is None:
                raise
            raise cancel.ended_at_once() from error


def _in_flight_of_a_run(session: Session) -> frozenset[TopicPartition] | None:
    """Return what a run of the plan that is on has in flight, None where none is on."""
    try:
        holder = session.admin.lock_holder()
    except MissingRight:
        return None
    if holder is None or holder.purpose != purpose_of_run(session.paths.plan.id):
        return None
    session.look(session.paths.topics)
    return frozenset(session.tally.of(Standing.IN_FLIGHT))


@dataclass(slots=True)
class _Cancel:
    """One cancel under way; `moves` are those that it is just taking back; a run `has_stopped` because of it."""

    session: Session
    moves: tuple[Move | DirMove, ...] = ()
    has_stopped: bool = False

    def ended(self) -> RunResult:
        """Take back what is in flight, and every throttle."""
        session, plan = self.session, self.session.paths.plan
        observed, hidden = self._observed()
        session.stages_done = stages_done(session.paths, observed)
        # What the plan's runs left is looked for even where nothing is in flight: a killed run leaves throttles too.
        adopt_leftovers(session, observed, is_cleaning=True)
        session.messages += [f"{text} by somebody else: left alone" for text in _foreign(session.paths, observed)]
        moves, inside = moves_to_take_back(session.paths, observed), dir_moves_under_way(session.paths, observed)
        self.moves = (*moves, *inside)
        idle = self._idle()
        is_open = recorded(session.journal.events).is_open or session.record is not None
        if idle and session.throttles.on.is_empty and not is_open:
            return self._without_a_change(idle)
        session.write_event("cancel", Outcome.STARTED, plan=plan.id, digest=plan.digest)
        outcome = withdraw(session, moves)
        withdraw_dirs(session, inside, outcome)
        outcome.left |= unseen_moves(session.paths, observed, hidden)
        self.moves = ()
        unseen = dir_moves_unseen(session.paths, observed)
        if unseen:
            text = f"whether log dirs are still copied between cannot be seen of {named_some(map(str, unseen))}"
            session.messages.append(f"{text}: start these brokers, then {session.paths.again}")
        # Throttles come off after the moves are back: until then replicas are still copied.
        take_all_off(session, has_moves=bool(outcome.left or unseen))
        crash_point("end.before")
        session.write_event("cancel", Outcome.FAILED if outcome.left else Outcome.DONE, **session.ending())
        crash_point("end.recorded")
        if outcome.left:
            result = session.result(RunState.FAILED, list(outcome.left))
            raise with_result(RunFailed(_left_text(session.paths, outcome), code="KR714"), result)
        if idle and not session.writes:
            return self._without_a_change(idle)
        if idle:
            session.messages.append("throttles that it had left are put back")
        return session.result(RunState.DONE if self._has_ended else RunState.CANCELLED)

    @property
    def _has_ended(self) -> bool:
        """Whether the run reached its end; leaders, or configs, may have changed since."""
        session = self.session
        is_told = recorded(session.journal.events).has_ended_well and session.tally.has_arrived
        return is_told or session.stages_done == len(session.paths.plan.stages)

    def _idle(self) -> str:
        """Return why there is nothing to cancel, in words; nothing where there is."""
        session, plan = self.session, self.session.paths.plan
        known = session.tally
        if self._has_ended:
            moves = f", {known}" if known.moves else ""
            return f"Nothing to cancel: the run of plan {plan.id} has ended{moves}."
        if self.has_stopped or self.moves:
            return ""
        if session.stages_done or known.of(*ARRIVED):
            return f"Nothing to cancel: nothing of plan {plan.id} is in flight; {known}."
        return f"Nothing to cancel: nothing of plan {plan.id} is on the cluster."

    def _without_a_change(self, why: str) -> RunResult:
        """Return the end of a cancel that found nothing to do."""
        self.session.messages.insert(0, why)
        return self.session.result(RunState.DONE if self._has_ended else RunState.CANCELLED, is_idle=True)

    def _observed(self) -> tuple[Observed, Mapping[str, Trouble]]:
        """Return what may be seen of the plan's topics, and why the others may not; MissingRight names what is left."""
        session = self.session
        names = {change.topic for change in session.paths.plan.topic_changes}
        with suppress(MissingRight):
            return session.look(session.paths.topics, with_configs_of=names), {}
        try:
            return seen_as_far_as_visible(session, session.paths.topics)
        except MissingRight as error:
            # Whether moves need the throttles cannot be seen, so they stay.
            adopt_leftovers(session, Observed(), is_cleaning=True)
            session.leftover_throttles = leftover_problems(session.throttles.on)
            raise with_result(error, session.result(RunState.FAILED)) from error

    def ended_at_once(self) -> StoppedEarly:
        """Return the end of a cancel that was not let to its own."""
        keys = [move.topic_partition for move in self.moves]
        if keys:
            moves = f"moves may still be in flight, or out of their order: {named_some(map(str, keys))}"
            self.session.messages.append(f"{moves}; {self.session.paths.again} to take them back")
        return ended_at_once(self.session, keys)


def stop_run(
    plan: Plan, admin: Admin, *, notify: Callable[[str], None] | None = None
) -> frozenset[TopicPartition] | None:
    """Have a run of that plan end in order, where one is on; raises as `cancel_run` does.

    Returns what it had in flight, None where none was on: `cancel_run` is told with it what that run took back.
    """
    check_plan_is_for(plan, admin.cluster_id())
    in_flight = _in_flight_of_a_run(Session(admin, MemoryJournal(), paths_of(plan)))
    if in_flight is not None:
        admin.lock(f"cancel of plan {plan.id}", waiting=notify, stopping=purpose_of_run(plan.id)).release()
    return in_flight


def foreign_moves(plan: Plan, admin: Admin) -> list[str]:
    """Return, in words, which partitions of a plan are being reassigned, and not by it."""
    paths = paths_of(plan)
    check_plan_is_for(plan, admin.cluster_id())
    return _foreign(paths, look(admin, paths.topics, ids=plan.topic_ids))


def moves_in_flight(plan: Plan, admin: Admin) -> tuple[Move | DirMove, ...]:
    """Return the moves of a plan, those between log dirs too, that a cancel would take back now."""
    paths = paths_of(plan)
    check_plan_is_for(plan, admin.cluster_id())
    observed = look(admin, paths.topics, ids=plan.topic_ids, dir_moves=paths.dir_moves)
    return (*moves_to_take_back(paths, observed), *dir_moves_under_way(paths, observed))


def _left_text(paths: PlanPaths, outcome: Withdrawal) -> str:
    told = "\n".join(f"{key}: {why}" for key, why in sorted(outcome.left.items()))
    way_on = "run cancel --rollback" if paths.plan.source.rolls_back is not None else "run apply"
    return (
        f"{len(outcome.left)} moves could not be taken back; what is in flight goes on without a throttle: {told}\n"
        f"See to that and {paths.again}; to let them go on, with the throttle, {way_on}."
    )


def _foreign(paths: PlanPaths, observed: Observed) -> list[str]:
    found = []
    for key in paths.by_partition:
        position = paths.position(key, observed)
        if position.place is Place.FOREIGN:
            found.append(f"{key} is being reassigned to {list(position.found)}")
    return found
