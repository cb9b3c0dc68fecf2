"""The next step of a run: a pure function of the plan, what is observed, what is remembered, and the time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import assert_never

from reconciler.apply.course import Itinerary, Place
from reconciler.apply.elections import next_election
from reconciler.apply.moves import MoveState, awaited
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.apply.steps import (
    FailRun,
    FinishStage,
    LeaveAlone,
    PutThrottles,
    Step,
    SubmitMoves,
    TakeThrottleListsOff,
    WithdrawMoves,
)
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST
from reconciler.apply.topic_steps import next_topic_step
from reconciler.apply.waiting import ATTEMPTS, poll
from reconciler.apply.wording import named_some
from reconciler.model.move import Move
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage

DEAD = timedelta(seconds=30)
"""How long a destination may be dead before its moves are taken back; a restart takes 10 to 20 s."""


def decide(itinerary: Itinerary, observed: Observed, record: RunRecord, now: datetime) -> Step:
    """Return the one thing to do next in the current stage."""
    stage = itinerary.plan.stages[record.stage_index]
    match stage:
        case TopicsStage():
            return next_topic_step(itinerary, stage, observed, record, now)
        case ReassignStage():
            return _moves(itinerary, stage, observed, record, now)
        case ElectStage():
            return next_election(itinerary, stage, observed, record, now)
        case _:
            assert_never(stage)


# Moves


def _moves(itinerary: Itinerary, stage: ReassignStage, observed: Observed, record: RunRecord, now: datetime) -> Step:
    moves = [move for move in stage.moves if move.topic_partition not in record.left_alone]
    trouble = _conflict(itinerary, moves, observed, record) or _dead_destination(moves, record, now)
    if trouble is not None:
        return trouble
    unfinished = [move for move in moves if record.state(move.topic_partition) is not MoveState.DONE]
    if not unfinished:
        return _end_of_moves(stage, record)
    stalled = _stalled(itinerary, stage, unfinished, record, now)
    if stalled is not None:
        return stalled
    if stage.throttle_bytes_per_second is not None and not record.is_throttled:
        return PutThrottles(
            replace(stage, moves=tuple(move for move in unfinished if observed.has(move.topic_partition)))
        )
    return _submission(unfinished, observed, record) or poll(record)


def _end_of_moves(stage: ReassignStage, record: RunRecord) -> Step:
    if record.has_lists_on:
        return TakeThrottleListsOff()
    if not record.left_alone:
        return FinishStage()
    told = "\n".join(str(problem) for _, problem in sorted(record.left_alone.items()))
    text = f"stage {stage.number} ended with {len(record.left_alone)} of its moves not done:\n{told}"
    return FailRun(Problem(_first_code(record), text))


def _first_code(record: RunRecord) -> str:
    return min(record.left_alone.items())[1].code


def _submission(unfinished: Sequence[Move], observed: Observed, record: RunRecord) -> Step | None:
    """Return the next request, if any: those that change the replication factor go by themselves."""
    due = [
        move
        for move in unfinished
        if record.state(move.topic_partition) is MoveState.TO_DO and not observed.dead_of(awaited(move, observed))
    ]
    for is_factor_change in (False, True):
        fitting = [move for move in due if (len(move.from_replicas) != len(move.to_replicas)) is is_factor_change]
        if fitting:
            return SubmitMoves(tuple(fitting[:PARTITIONS_A_REQUEST]), is_factor_change)
    return None


def _conflict(itinerary: Itinerary, moves: Sequence[Move], observed: Observed, record: RunRecord) -> LeaveAlone | None:
    for move in moves:
        key = move.topic_partition
        history = record.history(key)
        if history.state is MoveState.CONFLICT:
            return LeaveAlone(key, Problem("KR701", _conflict_text(itinerary, move, observed)))
        if history.state is MoveState.TO_DO and history.attempts >= ATTEMPTS:
            text = f"{key} was submitted {history.attempts} times and is still on {list(move.from_replicas)}"
            return LeaveAlone(key, Problem("KR704", f"{text}; look at the controller's log, then run apply again"))
    return None


def _conflict_text(itinerary: Itinerary, move: Move, observed: Observed) -> str:
    key = move.topic_partition
    position = itinerary.position(key, observed)
    expected = f"{list(move.from_replicas)} or {list(move.to_replicas)}"
    tail = "somebody else changes it, so it was left alone; agree with them, then make a new plan"
    if position.place is Place.MISSING:
        return f"{key} is gone: expected on {expected}, found {observed.absence(key.topic)}; make a new plan"
    if position.place is Place.FOREIGN:
        return f"{key} is being reassigned to {list(position.found)}, expected {expected}; {tail}"
    if position.place is Place.UNKNOWN:
        return f"{key} is on {list(position.found)}, expected {expected}; {tail}"
    found = list(position.found)
    return f"{key} is back on {found}: somebody else cancelled its move to {list(move.to_replicas)}; run apply to go on"


def _dead_destination(moves: Sequence[Move], record: RunRecord, now: datetime) -> Step | None:
    """Return what to do about moves to a broker that is dead for good: withdraw those in flight, skip the others."""
    for broker in sorted(record.fenced_since):
        if not record.is_dead_for(broker, DEAD, now):
            continue
        blocked = [move for move in moves if broker in move.to_replicas and not move.is_reorder]
        in_flight = tuple(move for move in blocked if broker in move.added and _is(record, move, MoveState.IN_FLIGHT))
        if in_flight:
            return WithdrawMoves(in_flight, _dead_problem(broker, in_flight[0]))
        for move in blocked:
            if _is(record, move, MoveState.TO_DO, MoveState.UNSYNCED):
                return LeaveAlone(move.topic_partition, _dead_problem(broker, move))
    return None


def _is(record: RunRecord, move: Move, *states: MoveState) -> bool:
    return record.state(move.topic_partition) in states


def _dead_problem(broker: int, move: Move) -> Problem:
    text = f"broker {broker}, which {move.topic_partition} needs in {list(move.to_replicas)}, is not alive"
    return Problem("KR703", f"{text}; start it and run apply again, or declare it draining or absent and plan again")


def _stalled(
    itinerary: Itinerary, stage: ReassignStage, unfinished: Sequence[Move], record: RunRecord, now: datetime
) -> FailRun | None:
    seconds = itinerary.plan.timeout_seconds
    if now - record.progressed_at < timedelta(seconds=seconds):
        return None
    names = named_some([str(move.topic_partition) for move in unfinished])
    text = f"stage {stage.number} made no progress for {seconds} s: {names}"
    hint = "see that their brokers, disks and throttle (moves.throttle) let data through, then run apply again"
    return FailRun(Problem("KR702", f"{text}; {hint}"))
