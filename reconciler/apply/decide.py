"""Decides the next step of a run: a pure function of the plan, what is observed, what is remembered, and the time.

In a stage of moves the first of these that applies is the step: mend what is wrong, put throttles on, submit the moves
that have a slot, look again; at the end take the throttle lists off, hold the elections, then finish. Elections are
requests of their own, because a reassignment that ends leaves the leader where it was (KAFKA-10149).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from reconciler.apply.decide_dirs import next_dir_step
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import Place, PlanPaths
from reconciler.apply.slowness import crawl, stalled
from reconciler.apply.stage_memory import DEAD, SETTLE, BadDisk, MoveState, StageMemory
from reconciler.apply.standings import elections_due
from reconciler.apply.steps import (
    ATTEMPTS,
    ElectLeaders,
    FailRun,
    FinishStage,
    LeaveAlone,
    PutThrottles,
    Step,
    SubmitMoves,
    TakeThrottlesOff,
    Warn,
    WithdrawMoves,
    poll,
)
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST, next_topic_step
from reconciler.model.admission import Copy, Slots
from reconciler.model.move import Election, Move
from reconciler.model.problem import Problem, Severity, lines_of
from reconciler.model.stage import ElectStage, LogDirsStage, ReassignStage, TopicsStage
from reconciler.model.words import named_some

FAILED = timedelta(seconds=10)
"""How long a log dir may be offline before moves into it are taken back: a new replica takes a moment to show."""

ELECTION_ATTEMPTS = 12
"""About two minutes: a replica that was restarted has to catch up before it can lead."""


def decide(paths: PlanPaths, observed: Observed, memory: StageMemory, now: datetime) -> Step:
    """Return the one thing to do next in the current stage."""
    stage = paths.plan.stages[memory.stage_index]
    match stage:
        case TopicsStage():
            return next_topic_step(paths, stage, observed, memory, now)
        case ReassignStage():
            return _moves(paths, stage, observed, memory, now)
        case LogDirsStage():
            return next_dir_step(paths, stage, observed, memory, now)
        case ElectStage():
            return _next_election(paths, stage, observed, memory, now)
        case _:
            assert_never(stage)


def _moves(paths: PlanPaths, stage: ReassignStage, observed: Observed, memory: StageMemory, now: datetime) -> Step:
    wrong = _trouble(paths, stage, observed, memory, now)
    if wrong is not None:
        return wrong
    unfinished = [move for move in memory.watched(stage) if memory.state(move.topic_partition) is not MoveState.DONE]
    if not unfinished:
        return _end_of_moves(stage, memory) or _next_election(paths, stage, observed, memory, now)
    stuck = stalled(paths, stage, [move.topic_partition for move in unfinished], memory, now)
    if stuck is not None:
        return stuck
    # Throttles go on before the reassignment, so that no replica begins to copy unthrottled.
    bare = [move for move in unfinished if _is_unthrottled(stage, move, observed, memory)]
    if bare and not memory.is_quiet("throttle", now):
        present = tuple(move for move in unfinished if observed.partition(move.topic_partition) is not None)
        return PutThrottles(replace(stage, moves=present))
    ready = [move for move in unfinished if move not in bare and not memory.is_resting]
    return _submission(ready, _slots(paths, unfinished, observed, memory), observed, memory) or poll(memory.polls)


def _is_unthrottled(stage: ReassignStage, move: Move, observed: Observed, memory: StageMemory) -> bool:
    """Whether a move copies, or would copy, over a living broker that has not got the stage's throttle yet."""
    # A change of order, or a shrink, copies nothing: there is nothing to throttle.
    if stage.throttle_bytes_per_second is None or not move.added:
        return False
    brokers = [broker for broker in (*move.from_replicas, *move.added) if observed.is_alive(broker)]
    return not memory.throttled_brokers.issuperset(brokers)


def _end_of_moves(stage: ReassignStage, memory: StageMemory) -> Step | None:
    """Return what follows the moves of a stage; None where only its elections do."""
    if memory.has_throttles_on:
        # A listed replica that falls out of the ISR would be throttled, so no list outlasts the moves that need it. Nor
        # does a rate: one that is on without the plan's entries beside it could be anybody's (see `evidence`).
        return TakeThrottlesOff()
    if not memory.left_alone:
        return None
    problems = [problem for _, problem in sorted(memory.left_alone.items())]
    listed = "\n".join(lines_of(problems))
    text = f"stage {stage.number} ended with {len(problems)} of its moves not done: {listed}"
    return FailRun(Problem(problems[0].code, text))


def _slots(paths: PlanPaths, unfinished: Sequence[Move], observed: Observed, memory: StageMemory) -> Slots:
    """Return the slots of all brokers, taken by what is on its way, or may be."""
    slots = Slots(paths.plan.per_broker)
    for move in unfinished:
        if memory.state(move.topic_partition) is not MoveState.TO_DO:
            slots.take(_copy_of(move, observed))
    return slots


def _copy_of(move: Move, observed: Observed) -> Copy:
    partition = observed.partition(move.topic_partition)
    return Copy(move.added, partition.leader if partition is not None else None)


def _submission(unfinished: Sequence[Move], slots: Slots, observed: Observed, memory: StageMemory) -> Step | None:
    """Return the next request, if any: moves in the plan's order, each as its brokers have a slot for it.

    Moves that change the replication factor go by themselves: for all others Kafka is asked to forbid it (KIP-860).
    """
    due = [
        move
        for move in unfinished
        # A move to a dead broker would be in flight until the broker is back, or the move is cancelled: it waits.
        # So does one without a source: Kafka could elect its new, empty replica, and the records would be lost.
        if memory.state(move.topic_partition) is MoveState.TO_DO
        and observed.has_source(move.topic_partition)
        and not observed.dead_of(observed.awaited(move))
    ]
    admitted = set(slots.admitted((move.topic_partition, _copy_of(move, observed)) for move in due))
    due = [move for move in due if move.topic_partition in admitted]
    for is_factor_change in (False, True):
        fitting = [move for move in due if (len(move.from_replicas) != len(move.to_replicas)) is is_factor_change]
        if fitting:
            return SubmitMoves(tuple(fitting[:PARTITIONS_A_REQUEST]), is_factor_change)
    return None


def _trouble(
    paths: PlanPaths, stage: ReassignStage, observed: Observed, memory: StageMemory, now: datetime
) -> Step | None:
    """Return what to do about the first thing that is wrong with a stage's moves, None where nothing is."""
    moves = memory.watched(stage)
    return (
        _conflict(paths, moves, observed, memory)
        or _dead_destination(paths, moves, memory, now)
        or _leaderless(paths, moves, memory, now)
        or _hidden_broker(paths, moves, memory)
        or _bad_disk(paths, moves, memory, now)
        or _dead_companion(moves, memory, now)
        or crawl(stage, [m.topic_partition for m in moves if _is_in(memory, m, MoveState.IN_FLIGHT)], memory, now)
    )


def _conflict(paths: PlanPaths, moves: Sequence[Move], observed: Observed, memory: StageMemory) -> LeaveAlone | None:
    for move in moves:
        key = move.topic_partition
        history = memory.history(key)
        # Two that reassign one partition would undo each other for ever: the run yields, and says so.
        if history.state is MoveState.CONFLICT:
            return LeaveAlone(key, Problem("KR701", _conflict_text(paths, move, observed)))
        if history.state is MoveState.TO_DO and history.attempts >= ATTEMPTS:
            text = f"{key} was submitted {history.attempts} times and is still on {list(move.from_replicas)}"
            return LeaveAlone(key, Problem("KR704", f"{text}; look at the controller's log, then {paths.again}"))
    return None


def _conflict_text(paths: PlanPaths, move: Move, observed: Observed) -> str:
    key = move.topic_partition
    position = paths.position(key, observed)
    expected = f"{list(move.from_replicas)} or {list(move.to_replicas)}"
    tail = "somebody else changes it, so it was left alone; agree with them, then make a new plan"
    if position.place is Place.MISSING:
        return f"{key} is gone: expected on {expected}, found {observed.absence(key.topic)}; make a new plan"
    if position.place is Place.FOREIGN:
        return f"{key} is being reassigned to {list(position.found)}, expected {expected}; {tail}"
    if position.place is Place.UNKNOWN:
        return f"{key} is on {list(position.found)}, expected {expected}; {tail}"
    found, again = list(position.found), paths.again
    return f"{key} is back on {found}: somebody else cancelled its move to {list(move.to_replicas)}; {again} to go on"


def _dead_destination(paths: PlanPaths, moves: Sequence[Move], memory: StageMemory, now: datetime) -> Step | None:
    """Return what to do about moves to a broker that is dead for good: withdraw those in flight, skip the others."""
    for broker in sorted(memory.fenced_since):
        if not memory.is_dead_for(broker, DEAD, now):
            continue
        # A change of order does not wait for a dead replica; every other move needs all of its target in sync.
        blocked = [move for move in moves if broker in move.to_replicas and not move.is_reorder]
        problem = partial(_dead_problem, paths, broker)
        step = _give_up(blocked, broker, memory, problem, MoveState.TO_DO, MoveState.UNSYNCED)
        if step is not None:
            return step
    return None


def _leaderless(paths: PlanPaths, moves: Sequence[Move], memory: StageMemory, now: datetime) -> Step | None:
    """Return what to do about a move whose partition has lost its leader for good: withdraw it, or skip it."""
    for move in moves:
        key = move.topic_partition
        if not memory.is_leaderless_for(key, DEAD, now):
            continue
        text = f"{key} has no leader, so nothing can be copied to {list(move.to_replicas)}"
        hint = f"bring back the brokers that have its records (doctor names them) and {paths.again}, or plan again"
        problem = Problem("KR703", f"{text}; {hint}")
        if _is_in(memory, move, MoveState.IN_FLIGHT) and move.added:
            return WithdrawMoves((move,), (problem,))
        if _is_in(memory, move, MoveState.TO_DO):
            return LeaveAlone(key, problem)
    return None


def _give_up(
    blocked: Sequence[Move], broker: int, memory: StageMemory, problem: Callable[[Move], Problem], *states: MoveState
) -> Step | None:
    """Return how to give up moves that a broker blocks: those that copy to it, then, in `states`, one a turn."""
    # Only a move that adds the broker can be taken back: if it was a replica before, going back does not remove it.
    in_flight = tuple(move for move in blocked if broker in move.added and _is_in(memory, move, MoveState.IN_FLIGHT))
    if in_flight:
        return WithdrawMoves(in_flight, tuple(problem(move) for move in in_flight))
    skipped = (move for move in blocked if _is_in(memory, move, *states))
    return next((LeaveAlone(move.topic_partition, problem(move)) for move in skipped), None)


def _hidden_broker(paths: PlanPaths, moves: Sequence[Move], memory: StageMemory) -> LeaveAlone | None:
    """Return a move to skip because a broker it needs lives, and cannot be reached from here to be throttled."""
    for move in moves:
        needed = sorted(memory.hidden.intersection((*move.from_replicas, *move.added))) if move.added else []
        if needed and _is_in(memory, move, MoveState.TO_DO):
            key, broker = move.topic_partition, needed[0]
            text = f"broker {broker}, which {key} needs in {list(move.to_replicas)}, is alive and cannot be reached"
            hint = "from here, so its throttle cannot be set; see that this machine reaches what it advertises"
            return LeaveAlone(key, Problem("KR736", f"{text} {hint}, then {paths.again}"))
    return None


def _is_in(memory: StageMemory, move: Move, *states: MoveState) -> bool:
    return memory.state(move.topic_partition) in states


def _dead_problem(paths: PlanPaths, broker: int, move: Move) -> Problem:
    text = f"broker {broker}, which {move.topic_partition} needs in {list(move.to_replicas)}, is not alive"
    hint = f"start it and {paths.again}, or declare it draining or absent and plan again"
    return Problem("KR703", f"{text}; {hint}")


def _bad_disk(paths: PlanPaths, moves: Sequence[Move], memory: StageMemory, now: datetime) -> Step | None:
    """Return what to do about moves into a log dir that takes nothing in: withdraw those in flight, skip the others."""
    for broker, bad in sorted(memory.bad_disks.items()):
        if now - bad.since < FAILED:
            continue
        blocked = [move for move in moves if broker in move.added and _is_stuck(move, broker, bad, moves, memory)]
        problem = partial(_disk_problem, paths, broker, bad)
        # Kafka puts a new replica into a log dir that works, where there is one: only those that landed here are stuck.
        step = _give_up(blocked, broker, memory, problem, *([] if bad.is_offline else [MoveState.TO_DO]))
        if step is not None:
            return step
    return None


def _is_stuck(move: Move, broker: int, bad: BadDisk, moves: Sequence[Move], memory: StageMemory) -> bool:
    """Whether that disk keeps a move from ending: its replica is in no log dir that works, or will not fit."""
    if bad.is_offline and (move.topic_partition, broker) not in memory.sized:
        return True
    unfinished = [one for one in moves if broker in one.added and not _is_in(memory, one, MoveState.DONE)]
    arriving = [(one.topic_partition, broker) for one in unfinished]
    lag = sum(memory.least_lag.get(replica, 0) for replica in arriving)
    return bad.usable_bytes is not None and lag > bad.usable_bytes


def _disk_problem(paths: PlanPaths, broker: int, bad: BadDisk, move: Move) -> Problem:
    text = f"{bad.told(broker)}, so {move.topic_partition} cannot be copied to it"
    hint = f"make room on that disk or replace it, restart the broker if the dir is offline, and {paths.again}"
    return Problem("KR716", f"{text}; {hint}; or declare broker {broker} cordoned or draining and plan again")


def _dead_companion(moves: Sequence[Move], memory: StageMemory, now: datetime) -> Warn | None:
    """Return a warning where a replica that stays is dead: until Kafka 4.2 no move ends before it is in sync."""
    for broker in sorted(memory.fenced_since):
        in_flight = [move for move in moves if _is_in(memory, move, MoveState.IN_FLIGHT)]
        waiting = [move for move in in_flight if broker in set(move.to_replicas) - set(move.added)]
        if waiting and memory.is_dead_for(broker, DEAD, now) and f"dead {broker}" not in memory.warned:
            names = named_some([str(move.topic_partition) for move in waiting])
            text = f"broker {broker} is not alive, and {names} cannot end before it is back; start it"
            return Warn(f"dead {broker}", Problem("KR722", text, severity=Severity.WARNING))
    return None


def _next_election(
    paths: PlanPaths, stage: ReassignStage | ElectStage, observed: Observed, memory: StageMemory, now: datetime
) -> Step:
    """Return what to do next about a stage's elections, which its moves have made possible."""
    due = elections_due(paths, stage, observed)
    if not due:
        return FinishStage()
    ready = []
    for election in due:
        key = str(election.topic_partition)
        if memory.is_quiet(key, now):
            continue
        # A preferred election elects whoever is first: metadata may lag, or somebody may have changed the list.
        partition = observed.partition(election.topic_partition)
        if partition is None or partition.preferred_leader != election.leader:
            if now - memory.started_at >= SETTLE:
                return FailRun(_election_problem(paths, election, observed))
            continue
        if memory.count(key) >= ELECTION_ATTEMPTS:
            return FailRun(_election_problem(paths, election, observed))
        ready.append(election)
    if not ready:
        return poll(memory.polls)
    # In small batches: just after mass elections producers wait 3 to 10 times as long (KAFKA-20708).
    return ElectLeaders(tuple(ready[: max(1, paths.plan.election_batch)]))


def _election_problem(paths: PlanPaths, election: Election, observed: Observed) -> Problem:
    key, leader = election.topic_partition, election.leader
    partition = observed.partition(key)
    if partition is None:
        text = f"{key} is gone (found {observed.absence(key.topic)}), so broker {leader} cannot be elected its leader"
        return Problem("KR701", f"{text}; make a new plan")
    if partition.preferred_leader != leader:
        text = f"{key} is on {list(partition.target_replicas)}, so broker {leader} is not its preferred leader"
        return Problem("KR701", f"{text}; somebody else changed it: make a new plan")
    why = "it leads nothing until it is in sync" if leader not in partition.isr else "the controller did not elect it"
    text = f"broker {leader} does not lead {key} after {ELECTION_ATTEMPTS} elections (leader {partition.leader})"
    return Problem("KR706", f"{text}: {why}; see to that broker, then {paths.again}")
