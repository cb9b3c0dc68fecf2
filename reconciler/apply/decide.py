"""The next step of a run: a pure function of the plan, what is observed, what is remembered, and the time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar, assert_never

from reconciler.apply.course import Itinerary, Place
from reconciler.apply.moves import SETTLE, MoveState, awaited
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.apply.steps import (
    ChangeConfigs,
    CreateTopics,
    DeleteTopics,
    ElectLeaders,
    FailRun,
    FinishStage,
    GrowTopics,
    LeaveAlone,
    PutThrottles,
    Step,
    SubmitMoves,
    TakeThrottleListsOff,
    Wait,
    WithdrawMoves,
)
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST, ChangeState, remaining, standing
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.move import Election, Move
from reconciler.model.problem import Problem
from reconciler.model.stage import ElectStage, ReassignStage, TopicsStage

DEAD = timedelta(seconds=30)
"""How long a destination may be dead before its moves are taken back; a restart takes 10 to 20 s."""
ATTEMPTS = 5
ELECTION_ATTEMPTS = 12
CONFIGS_A_REQUEST = 500
SLOWEST_POLL = 5.0

T = TypeVar("T")


def decide(itinerary: Itinerary, observed: Observed, record: RunRecord, now: datetime) -> Step:
    """Return the one thing to do next in the current stage."""
    stage = itinerary.plan.stages[record.stage_index]
    match stage:
        case TopicsStage():
            return _topics(itinerary, stage, observed, record, now)
        case ReassignStage():
            return _moves(itinerary, stage, observed, record, now)
        case ElectStage():
            return _elections(itinerary, stage, observed, record, now)
        case _:
            assert_never(stage)


def poll(record: RunRecord) -> Wait:
    """Return the wait before the next look: short at first, then longer."""
    return Wait(min(SLOWEST_POLL, 0.25 * 1.5 ** min(record.polls, 20)))


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
        return PutThrottles(replace(stage, moves=tuple(unfinished)))
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
        return f"{key} is gone, expected on {expected}; make a new plan"
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
    names = _named([str(move.topic_partition) for move in unfinished])
    text = f"stage {stage.number} made no progress for {seconds} s: {names}"
    hint = "see that their brokers, disks and throttle (moves.throttle) let data through, then run apply again"
    return FailRun(Problem("KR702", f"{text}; {hint}"))


# Elections


def _elections(itinerary: Itinerary, stage: ElectStage, observed: Observed, record: RunRecord, now: datetime) -> Step:
    due = elections_due(itinerary, stage, observed)
    if not due:
        return FinishStage()
    ready = []
    for election in due:
        key = str(election.topic_partition)
        if record.is_quiet(key, now):
            continue
        if not _is_electable(election, observed):
            if now - record.started_at >= SETTLE:
                return FailRun(_election_problem(election, observed))
            continue
        if record.count(key) >= ELECTION_ATTEMPTS:
            return FailRun(_election_problem(election, observed))
        ready.append(election)
    if not ready:
        return poll(record)
    return ElectLeaders(tuple(ready[: max(1, itinerary.plan.election_batch)]))


def _is_electable(election: Election, observed: Observed) -> bool:
    """Whether a preferred election gives this leader: metadata may lag, or somebody else may have changed the list."""
    partition = observed.partition(election.topic_partition)
    return partition is not None and partition.preferred_leader == election.leader


def elections_due(itinerary: Itinerary, stage: ElectStage, observed: Observed) -> tuple[Election, ...]:
    """Return the elections of a stage whose leader does not lead; a partition that has moved on since needs none."""
    return tuple(election for election in stage.elections if _is_election_due(itinerary, stage, election, observed))


def _is_election_due(itinerary: Itinerary, stage: ElectStage, election: Election, observed: Observed) -> bool:
    key = election.topic_partition
    partition = observed.partition(key)
    if partition is None or partition.leader == election.leader:
        return partition is None
    if key not in itinerary.courses:
        return True
    return itinerary.position(key, observed).index <= itinerary.passed_before(stage.number, key)


def _election_problem(election: Election, observed: Observed) -> Problem:
    key, leader = election.topic_partition, election.leader
    partition = observed.partition(key)
    if partition is None:
        return Problem("KR701", f"{key} is gone, so broker {leader} cannot be elected its leader; make a new plan")
    if partition.preferred_leader != leader:
        text = f"{key} is on {list(partition.target_replicas)}, so broker {leader} is not its preferred leader"
        return Problem("KR701", f"{text}; somebody else changed it: make a new plan")
    why = "it leads nothing until it is in sync" if leader not in partition.isr else "the controller did not elect it"
    text = f"broker {leader} does not lead {key} after {ELECTION_ATTEMPTS} elections (leader {partition.leader})"
    return Problem("KR706", f"{text}: {why}; see to that broker, then run apply again")


# Topics


def _topics(itinerary: Itinerary, stage: TopicsStage, observed: Observed, record: RunRecord, now: datetime) -> Step:
    changes = [itinerary.plan.topic_changes[position] for position in stage.changes]
    due = [change for change in changes if standing(change, observed, itinerary).state is not ChangeState.DONE]
    if not due:
        return FinishStage()
    ready = [change for change in due if not record.is_quiet(_request_key(change, observed), now)]
    for change in ready:
        problem = _topic_trouble(change, observed, itinerary, record)
        if problem is not None:
            return FailRun(problem)
    return _topic_request(ready, observed) or poll(record)


def _topic_trouble(change: TopicChange, observed: Observed, itinerary: Itinerary, record: RunRecord) -> Problem | None:
    where = standing(change, observed, itinerary)
    if where.state is ChangeState.STALE:
        text = f"topic {change.topic}: expected {where.expected}, found {where.found}"
        return Problem("KR701", f"{text}; somebody else changed it: make a new plan")
    if record.count(_request_key(change, observed)) >= ATTEMPTS:
        text = f"topic {change.topic}: {what(change)} was asked for {ATTEMPTS} times and does not show"
        return Problem("KR707", f"{text}; look at the controller's log, then run apply again")
    return None


def _request_key(change: TopicChange, observed: Observed) -> str:
    """Return the key of the next request for a change; a growth may take several."""
    return change_key(remaining(change, observed) if isinstance(change, CreatePartitions) else change)


def change_key(change: TopicChange) -> str:
    """Return what tells one request for a topic from another."""
    match change:
        case CreatePartitions():
            return f"grow {change.topic} to {change.to_count}"
        case _:
            return f"{what(change)} {change.topic}"


def what(change: TopicChange) -> str:
    """Return a change in words."""
    match change:
        case CreateTopic():
            return "its creation"
        case CreatePartitions():
            return f"its growth to {change.to_count} partitions"
        case AlterConfigs():
            return "its change of configs"
        case DeleteTopic():
            return "its deletion"
        case _:
            assert_never(change)


def _topic_request(ready: Sequence[TopicChange], observed: Observed) -> Step | None:
    creations = [change for change in ready if isinstance(change, CreateTopic)]
    if creations:
        return CreateTopics(_fitting(creations, lambda change: change.partitions))
    growths = [remaining(change, observed) for change in ready if isinstance(change, CreatePartitions)]
    if growths:
        return GrowTopics(_fitting(growths, lambda change: change.to_count - change.from_count))
    configs = tuple(change for change in ready if isinstance(change, AlterConfigs))
    if configs:
        return ChangeConfigs(configs[:CONFIGS_A_REQUEST])
    deletions = tuple(change for change in ready if isinstance(change, DeleteTopic))
    return DeleteTopics(deletions[:CONFIGS_A_REQUEST]) if deletions else None


def _fitting(changes: Sequence[T], weight: Callable[[T], int]) -> tuple[T, ...]:
    """Return the first changes that one request can take, at least one."""
    taken: list[T] = []
    total = 0
    for change in changes:
        total += weight(change)
        if taken and total > PARTITIONS_A_REQUEST:
            break
        taken.append(change)
    return tuple(taken)


def _named(names: Iterable[str], most: int = 5) -> str:
    """Return the first few names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
