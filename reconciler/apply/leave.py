"""The end of a run that is not the plan's: moves in flight go back, throttles come off, what is left is named."""

from collections.abc import Sequence
from contextlib import suppress

from reconciler.apply.moves import MoveState
from reconciler.apply.record import RunRecord
from reconciler.apply.session import Session
from reconciler.apply.throttling import owe_all, take_all_off
from reconciler.apply.withdraw import moves_under_way, withdraw
from reconciler.model.lock import LockLost
from reconciler.model.problem import ReconcilerError
from reconciler.model.run import Outcome, RunResult, RunState, StoppedEarly
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition


def leave(session: Session, record: RunRecord | None, error: BaseException) -> RunResult:
    """Take moves in flight back and throttles off, and return what the run came to; a cluster's error is only told."""
    left = _unfinished(session, record)
    if isinstance(error, LockLost):
        return _as_it_is(session, error, left)
    if record is not None:
        _take_back(session, record)
    try:
        take_all_off(session)
    except ReconcilerError as trouble:
        session.messages.append(f"throttles of this run are still on: {trouble}")
    is_stopped = isinstance(error, StoppedEarly)
    outcome = Outcome.SKIPPED if is_stopped else Outcome.FAILED
    with suppress(OSError, ReconcilerError):
        session.tell("run", outcome, why=str(error), debts=[str(debt) for debt in session.debts])
    return session.result(RunState.STOPPED if is_stopped else RunState.FAILED, left)


def _as_it_is(session: Session, error: LockLost, left: Sequence[TopicPartition]) -> RunResult:
    """Put nothing back without the lock, and say what is left for whoever holds it next."""
    owe_all(session, "the cluster's lock was lost")
    session.messages.append("moves in flight go on under their throttles")
    with suppress(OSError, ReconcilerError):
        session.tell("run", Outcome.FAILED, why=str(error), debts=[str(debt) for debt in session.debts])
    return session.result(RunState.FAILED, left)


def _take_back(session: Session, record: RunRecord) -> None:
    stage = session.itinerary.plan.stages[record.stage_index]
    if not isinstance(stage, ReassignStage):
        return
    try:
        observed = session.patiently(lambda: session.look(session.itinerary.topics_of(stage)))
        moves = [move for move in moves_under_way(session.itinerary, observed) if move in stage.moves]
        outcome = withdraw(session, moves)
    except (ReconcilerError, OSError) as trouble:
        session.messages.append(f"moves of stage {stage.number} may still be in flight: {trouble}")
        return
    for key, why in sorted(outcome.left.items()):
        session.messages.append(f"{key} goes on, and without a throttle: {why}; run apply or cancel to see to it")


def _unfinished(session: Session, record: RunRecord | None) -> Sequence[TopicPartition]:
    """Return the partitions with moves left to do."""
    index = record.stage_index if record else session.stages_done
    left: set[TopicPartition] = set()
    for position, stage in enumerate(session.itinerary.plan.stages[index:], start=index):
        for move in stage.moves if isinstance(stage, ReassignStage) else ():
            is_here = record is not None and position == record.stage_index
            if not (is_here and record and record.state(move.topic_partition) is MoveState.DONE):
                left.add(move.topic_partition)
    return sorted(left)
