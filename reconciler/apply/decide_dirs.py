"""Decides the next step of a stage that moves replicas between the log dirs of their brokers (KIP-113).

Pure, as `decide` is. The first of these that applies is the step: give up what cannot be, put the rate on, choose the
log dirs of replicas that have a slot, look again.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.apply.dir_moves import (
    DirPlace,
    DirState,
    copied_inside,
    dir_place,
    found_in,
    left_inside,
    log_dirs_of,
    next_dir_history,
    offline_dirs,
)
from reconciler.apply.observed import Observed
from reconciler.apply.partition_path import PlanPaths
from reconciler.apply.slowness import crawl, stalled
from reconciler.apply.stage_memory import CHANCE, DEAD, StageMemory, bad_disks_of
from reconciler.apply.steps import (
    ATTEMPTS,
    ChooseLogDirs,
    FailRun,
    FinishStage,
    LeaveDirAlone,
    PutThrottles,
    Step,
    TakeThrottlesOff,
    poll,
)
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST
from reconciler.model.admission import Copy, Slots
from reconciler.model.move import DirMove
from reconciler.model.problem import Problem, lines_of
from reconciler.model.stage import LogDirsStage

OFFLINE = timedelta(seconds=10)
"""How long a log dir may be offline before the moves that it keeps from their end are given up."""


def note_dirs(stage: LogDirsStage, observed: Observed, memory: StageMemory, now: datetime) -> StageMemory:
    """Return the memory after a look: where each move stands, dead brokers, bad disks, and whether anything went on."""
    watched = memory.dirs_watched(stage)
    dirs = {move.replica: next_dir_history(memory.dir_history(move), _place(move, observed), now) for move in watched}
    nearer = {}
    for move in watched:
        # A replica grows while it is copied: only what is left tells whether the copy comes closer to its end.
        left, least = left_inside(move, observed), memory.least_lag.get(move.replica)
        is_told = dirs[move.replica].state is not DirState.BLOCKED
        if is_told and (least is None or left < least - least // CHANCE):
            nearer[move.replica] = left
    has_new_state = any(
        history.state is not memory.dir_history(m).state for m in watched for history in [dirs[m.replica]]
    )
    has_progressed = bool(nearer) or has_new_state
    copied = sum(copied_inside(move, observed) for move in watched)
    dead = observed.dead_of({move.broker for move in stage.moves})
    told = {broker: log_dirs_of(observed, broker) for broker in {move.broker for move in stage.moves} - {*dead}}
    return replace(
        memory,
        dirs={**memory.dirs, **dirs},
        fenced_since={broker: memory.fenced_since.get(broker, now) for broker in dead},
        unreached_since={broker: at for broker, at in memory.unreached_since.items() if observed.is_alive(broker)},
        hidden=frozenset(broker for broker in memory.hidden if observed.is_alive(broker)),
        bad_disks=bad_disks_of(memory.bad_disks, {broker: found for broker, found in told.items() if found}, now),
        least_lag={**memory.least_lag, **nearer},
        progressed_at=now if has_progressed else memory.progressed_at,
        copied_bytes=copied,
        copied_when_progressed=max(copied, memory.copied_bytes) if has_progressed else memory.copied_when_progressed,
        polls=0 if has_progressed else memory.polls + 1,
    )


def _place(move: DirMove, observed: Observed) -> DirPlace:
    """Return where a replica is; a broker begins, and keeps up, no copy where a log dir of it is offline."""
    place = dir_place(move, observed)
    return DirPlace.OFFLINE if place is DirPlace.AT_START and offline_dirs(observed, move.broker) else place


def next_dir_step(
    paths: PlanPaths, stage: LogDirsStage, observed: Observed, memory: StageMemory, now: datetime
) -> Step:
    """Return the one thing to do next."""
    watched = memory.dirs_watched(stage)
    for move in watched:
        problem = _trouble(paths, move, observed, memory, now)
        if problem is not None:
            return LeaveDirAlone(move, problem)
    unfinished = [move for move in watched if memory.dir_history(move).state is not DirState.DONE]
    if not unfinished:
        return _end(stage, memory)
    copying = [move for move in unfinished if memory.dir_history(move).state is DirState.IN_FLIGHT]
    stuck = stalled(paths, stage, unfinished, memory, now) or crawl(stage, copying, memory, now)
    if stuck is not None:
        return stuck
    # The rate goes on before the choice, so that nothing is copied unthrottled.
    bare = [move for move in unfinished if _is_unthrottled(stage, move, observed, memory)]
    if bare and not memory.is_quiet("throttle", now):
        return PutThrottles(replace(stage, moves=tuple(unfinished)))
    ready = [move for move in unfinished if move not in bare and not memory.is_resting]
    return _choice(paths, ready, unfinished, memory) or poll(memory.polls)


def _end(stage: LogDirsStage, memory: StageMemory) -> Step:
    if memory.has_throttles_on:
        return TakeThrottlesOff()
    problems = [known.problem for move in stage.moves if (known := memory.dir_history(move)).problem is not None]
    if not problems:
        return FinishStage()
    listed = "\n".join(lines_of(problems))
    text = f"stage {stage.number} ended with {len(problems)} of its moves between log dirs not done: {listed}"
    return FailRun(Problem(problems[0].code, text))


def _choice(
    paths: PlanPaths, ready: Sequence[DirMove], unfinished: Sequence[DirMove], memory: StageMemory
) -> ChooseLogDirs | None:
    """Return the next request, to one broker: moves in the plan's order, at most so many at once at each broker."""
    slots = Slots(paths.plan.per_broker)
    for move in unfinished:
        if memory.dir_history(move).state is not DirState.TO_DO:
            slots.take(_copy(move))
    due = [move for move in ready if memory.dir_history(move).state is DirState.TO_DO]
    admitted = set(slots.admitted((move.replica, _copy(move)) for move in due))
    due = [move for move in due if move.replica in admitted]
    here = [move for move in due if move.broker == due[0].broker]
    return ChooseLogDirs(tuple(here[:PARTITIONS_A_REQUEST])) if here else None


def _copy(move: DirMove) -> Copy:
    return Copy((move.broker,), None)


def _is_unthrottled(stage: LogDirsStage, move: DirMove, observed: Observed, memory: StageMemory) -> bool:
    is_wanted = stage.throttle_bytes_per_second is not None and observed.is_alive(move.broker)
    return is_wanted and move.broker not in memory.throttled_brokers


def _trouble(paths: PlanPaths, move: DirMove, observed: Observed, memory: StageMemory, now: datetime) -> Problem | None:
    """Return why a move is given up, None where it is not."""
    history = memory.dir_history(move)
    if history.state is DirState.DONE:
        return None
    if history.state is DirState.CONFLICT:
        return _conflict(paths, move, observed)
    if memory.is_dead_for(move.broker, DEAD, now):
        text = f"broker {move.broker} is not alive, and only it can move {move.topic_partition} to {move.to_dir}"
        return Problem("KR703", f"{text}; start it and {paths.again}")
    bad, offline = memory.bad_disks.get(move.broker), offline_dirs(observed, move.broker)
    if bad is not None and offline and now - bad.since >= OFFLINE and history.state is not DirState.IN_FLIGHT:
        text = f"log dir {offline[0]} of broker {move.broker} is offline, so {move.topic_partition} does not get to"
        hint = f"replace that disk or make room on it, restart the broker, and {paths.again}, or plan again"
        return Problem("KR716", f"{text} {move.to_dir}; {hint}")
    return _unasked(paths, move, memory) if history.state is DirState.TO_DO else None


def _unasked(paths: PlanPaths, move: DirMove, memory: StageMemory) -> Problem | None:
    """Return why a broker is not asked, or not once more, to begin a copy."""
    attempts = memory.dir_history(move).attempts
    if move.broker in memory.hidden:
        text = f"broker {move.broker} is alive and cannot be reached from here, so its throttle cannot be set"
        return Problem("KR736", f"{text}, nor {move.topic_partition} moved; see to the network, then {paths.again}")
    if attempts >= ATTEMPTS:
        text = f"broker {move.broker} was asked {attempts} times to copy {move.topic_partition} to {move.to_dir}"
        return Problem("KR704", f"{text}, and does not; look at its log, then {paths.again}")
    return None


def _conflict(paths: PlanPaths, move: DirMove, observed: Observed) -> Problem:
    if dir_place(move, observed) is DirPlace.AT_START:
        text = f"{move} is in {move.from_dir} again: somebody else took its copy to {move.to_dir} back"
        return Problem("KR701", f"{text}; {paths.again} to go on")
    text = f"{move}: expected in {move.from_dir} or {move.to_dir}, found in {found_in(move, observed)}"
    return Problem("KR701", f"{text}; somebody else changes it, so it was left alone: agree with them, and plan again")
