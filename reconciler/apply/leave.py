"""The end of a run that is not the plan's: moves in flight go back, throttles come off, what is left is named."""

from collections.abc import Sequence
from contextlib import suppress

from reconciler.apply.attempts import Trouble, tried
from reconciler.apply.moves import MoveState
from reconciler.apply.observed import Observed
from reconciler.apply.owed import owed_by
from reconciler.apply.record import RunRecord
from reconciler.apply.session import Session, with_result
from reconciler.apply.tally import moves_under_way
from reconciler.apply.unthrottling import take_all_off
from reconciler.apply.withdraw import seen_as_far_as_visible, told_left, unseen_moves, withdraw
from reconciler.model.lock import LockLost
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunResult, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.wording import named_some


def leave(session: Session, record: RunRecord | None, error: BaseException) -> RunResult:
    """Take moves in flight back and throttles off, and return what the run came to; a cluster's error is only told."""
    if isinstance(error, LockLost):
        return _as_it_is(session, record, error)
    has_moves = record is not None and _take_back(session, record)
    try:
        take_all_off(session, has_moves=has_moves)
    except ReconcilerError as trouble:
        session.messages.append(f"throttles of this run are still on: {trouble}")
        session.debts = owed_by(session.throttles)
    if session.is_journal_broken:
        session.messages.append(f"then {session.itinerary.again}: it goes on where the cluster stands")
    is_stopped = isinstance(error, StoppedEarly)
    outcome = Outcome.SKIPPED if is_stopped else Outcome.FAILED
    with suppress(OSError, ReconcilerError):
        # Whatever else was raised may quote what a library was given: the journal is kept, and read by others.
        why = str(error) if isinstance(error, ReconcilerError) else type(error).__name__
        session.tell("run", outcome, why=why, **session.ending())
    return session.result(RunState.STOPPED if is_stopped else RunState.FAILED)


def refuse(session: Session, observed: Observed, refusal: ReconcilerError) -> ReconcilerError:
    """Return why a run does not begin, once throttles that an earlier run of the plan left are off.

    While moves of that run are in flight their throttles stay on: taken off, they would go on unthrottled.
    """
    under_way = moves_under_way(session.itinerary, observed)
    if session.throttles.is_empty:
        pass
    elif under_way:
        named = named_some([str(move.topic_partition) for move in under_way])
        text = f"an earlier run of this plan left moves in flight under its throttles: {named}"
        session.messages.append(f"{text}; run cancel with this plan to take both back")
    else:
        take_all_off(session)
        if not session.debts:
            session.messages.append("throttles that an earlier run of this plan had left were put back")
    return foretold(session, refusal)


def foretold(session: Session, refusal: ReconcilerError) -> ReconcilerError:
    """Return why a run does not begin, with what is left to do; nothing is changed."""
    state = RunState.STOPPED if isinstance(refusal, StoppedEarly) else RunState.FAILED
    return with_result(refusal, session.result(state))


def abandon(session: Session, record: RunRecord | None) -> StoppedEarly:
    """Return the end of a run that may not even put things back: it names what it leaves, and asks nobody anything."""
    in_flight = _perhaps_in_flight(session, record)
    if in_flight:
        moves = f"moves of stage {session.stage} may still be in flight: {named_some(in_flight)}"
        session.messages.append(f"{moves}; {session.itinerary.again} to go on with them, or cancel to take them back")
    return abandoned(session)


def abandoned(session: Session, left: Sequence[TopicPartition] | None = None) -> StoppedEarly:
    """Return the end of whatever may not even put things back: its messages, and throttles that may still be on."""
    session.debts = owed_by(session.throttles)
    session.is_journal_broken = True
    lines = ["ended without waiting: what this run left may still be there", *session.messages]
    text = "\n".join([*lines, *(str(debt) for debt in session.debts)])
    session.notify(text)  # at once: connections, and the lock, may take their time to end
    return StoppedEarly(text, code="KR715", result=session.result(RunState.STOPPED, left))


def _as_it_is(session: Session, record: RunRecord | None, error: LockLost) -> RunResult:
    """Put nothing back without the lock, and name what is left for whoever holds it next."""
    session.debts = owed_by(session.throttles)
    in_flight = _perhaps_in_flight(session, record)
    if in_flight:
        session.messages.append(f"moves of stage {session.stage} may still be in flight: {named_some(in_flight)}")
    session.messages.append(f"{session.itinerary.again}, which goes on where the cluster stands, or cancel")
    with suppress(OSError, ReconcilerError):
        session.tell("run", Outcome.FAILED, why=str(error), **session.ending())
    return session.result(RunState.FAILED)


def _perhaps_in_flight(session: Session, record: RunRecord | None) -> list[str]:
    stage = session.itinerary.plan.stages[record.stage_index] if record else None
    if record is None or not isinstance(stage, ReassignStage):
        return []
    histories = {move.topic_partition: record.history(move.topic_partition) for move in stage.moves}
    return [str(key) for key, one in histories.items() if one.attempts and one.state is not MoveState.DONE]


def _take_back(session: Session, record: RunRecord) -> bool:
    """Take back every move of the plan in flight: of this stage, and of a later one that an earlier run had begun.

    Returns whether some may go on.
    """
    found = tried(lambda: seen_as_far_as_visible(session, session.itinerary.topics))
    perhaps = _perhaps_in_flight(session, record)
    if isinstance(found, Trouble):
        named = f" ({named_some(perhaps)})" if perhaps else ""
        session.messages.append(f"moves of stage {session.stage} may still be in flight{named}: {found.why}")
        return True
    observed, hidden = found
    try:
        outcome = withdraw(session, moves_under_way(session.itinerary, observed))
    except LockLost as trouble:
        session.messages.append(f"moves of stage {session.stage} may still be in flight: {trouble}")
        return True
    outcome.left |= unseen_moves(session.itinerary, observed, hidden)
    for key, why in sorted(outcome.left.items()):
        way_on = f"{session.itinerary.again}, or cancel, to see to it"
        session.messages.append(f"{key}: {told_left(why)}; {way_on}")
    return bool(outcome.left)
