"""The next step of a run: a pure function of the plan, what is observed, what is remembered, and the time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from reconciler.apply.course import Itinerary
from reconciler.apply.elections import next_election
from reconciler.apply.moves import MoveState, awaited
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.apply.steps import (
    FailRun,
    FinishStage,
    PutThrottles,
    Step,
    SubmitMoves,
    TakeThrottleListsOff,
)
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST
from reconciler.apply.topic_steps import next_topic_step
from reconciler.apply.troubles import stalled, trouble
from reconciler.apply.waiting import poll
from reconciler.model.move import Move
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage


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
    wrong = trouble(itinerary, stage, observed, record, now)
    if wrong is not None:
        return wrong
    unfinished = [move for move in record.watched(stage) if record.state(move.topic_partition) is not MoveState.DONE]
    if not unfinished:
        return _end_of_moves(stage, record)
    stuck = stalled(itinerary, stage, unfinished, record, now)
    if stuck is not None:
        return stuck
    bare = [move for move in unfinished if _is_unthrottled(stage, move, observed, record)]
    if bare and not record.is_quiet("throttle", now):
        present = tuple(move for move in unfinished if observed.has(move.topic_partition))
        return PutThrottles(replace(stage, moves=present))
    return _submission([move for move in unfinished if move not in bare], observed, record) or poll(record)


def _is_unthrottled(stage: ReassignStage, move: Move, observed: Observed, record: RunRecord) -> bool:
    """Whether a move copies, or would copy, over a living broker that has not got the stage's throttle yet."""
    if stage.throttle_bytes_per_second is None or not move.added:
        return False
    brokers = [broker for broker in (*move.from_replicas, *move.added) if observed.is_alive(broker)]
    return not record.throttled_brokers.issuperset(brokers)


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
