"""Pays the debts of earlier runs: throttles that a crash, or a dead broker, left on the cluster."""

from reconciler.admin.port import Admin
from reconciler.apply.checks import check_plan_is_for
from reconciler.apply.course import itinerary
from reconciler.apply.journal import Journal
from reconciler.apply.observed import look
from reconciler.apply.session import Session
from reconciler.apply.throttling import adopt_leftovers, take_all_off
from reconciler.apply.withdraw import moves_under_way
from reconciler.model.plan import Plan
from reconciler.model.run import RunResult, RunState


def restore_throttles(plan: Plan, admin: Admin, journal: Journal) -> RunResult:
    """Bring back every throttle that a run of this plan left; nothing while its moves are in flight."""
    session = Session(admin, journal, itinerary(plan))
    check_plan_is_for(plan, admin.cluster_id())
    under_way = moves_under_way(session.itinerary, look(admin, session.itinerary.topics))
    if under_way:
        session.messages.append(f"{len(under_way)} moves of the plan are in flight: their throttles stay on")
        return session.result(RunState.STOPPED, [move.topic_partition for move in under_way])
    adopt_leftovers(session)
    take_all_off(session)
    return session.result(RunState.DONE)
