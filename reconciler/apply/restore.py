"""Pays the debts of earlier runs: throttles that a crash, or a dead broker, left on the cluster."""

from collections.abc import Callable

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.course import itinerary
from reconciler.apply.journal import Journal
from reconciler.apply.session import Session
from reconciler.apply.tally import moves_under_way
from reconciler.apply.throttling import adopt_leftovers
from reconciler.apply.unthrottling import take_all_off
from reconciler.apply.withdraw import seen_as_far_as_visible, unseen_moves
from reconciler.model.plan import Plan
from reconciler.model.run import RunResult, RunState
from reconciler.model.topic_partition import TopicPartition


def restore_throttles(
    plan: Plan, admin: Admin, journal: Journal, *, notify: Callable[[str], None] | None = None
) -> RunResult:
    """Bring back every throttle that a run of this plan left; nothing while its moves are in flight.

    Raises LockHeld, where there is one to bring back and another run is on: it may be that run's.
    """
    session = Session(admin, journal, itinerary(plan))
    check_plan_is_for(plan, admin.cluster_id())
    under_way = _left(session)
    if not under_way and (session.kept is not None or not session.throttles.is_empty):
        with admin.lock(f"restoring the throttles of plan {plan.id}", waiting=notify) as session.lock:
            under_way = _left(session)
            if not under_way:
                take_all_off(session)
    if under_way:
        session.messages.append(f"{len(under_way)} moves of the plan are in flight: their throttles stay on")
        return session.result(RunState.STOPPED, under_way)
    return session.result(RunState.DONE)


def _left(session: Session) -> tuple[TopicPartition, ...]:
    """Take the throttles that are left into the session, and return the partitions that are on their way."""
    observed, hidden = seen_as_far_as_visible(session, session.itinerary.topics)
    adopt_leftovers(session, observed, is_reading_needed=False)
    seen = (move.topic_partition for move in moves_under_way(session.itinerary, observed))
    return (*seen, *unseen_moves(session.itinerary, observed, hidden))
