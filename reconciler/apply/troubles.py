"""What goes wrong with moves under way: conflicts, dead destinations, failed disks, throttles that are too low."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from reconciler.apply.bad_disks import BadDisk
from reconciler.apply.course import Itinerary, Place
from reconciler.apply.moves import MoveState
from reconciler.apply.observed import Observed
from reconciler.apply.record import RunRecord
from reconciler.apply.steps import FailRun, LeaveAlone, Step, Warn, WithdrawMoves
from reconciler.apply.waiting import ATTEMPTS
from reconciler.model.move import Move
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import ReassignStage
from reconciler.model.wording import named_some

DEAD = timedelta(seconds=30)
"""How long a destination may be dead before its moves are taken back; a restart takes 10 to 20 s."""
FAILED = timedelta(seconds=10)
"""How long a log dir may be offline before moves into it are taken back: a new replica takes a moment to show."""
CRAWL = timedelta(seconds=300)
"""How long bytes may arrive without any replica coming closer to its leader before that is told."""


def trouble(
    itinerary: Itinerary, stage: ReassignStage, observed: Observed, record: RunRecord, now: datetime
) -> Step | None:
    """Return what to do about the first thing that is wrong with a stage's moves, None where nothing is."""
    moves = record.watched(stage)
    return (
        _conflict(itinerary, moves, observed, record)
        or _dead_destination(itinerary, moves, record, now)
        or _hidden_broker(itinerary, moves, record, now)
        or _bad_disk(itinerary, moves, record, now)
        or _dead_companion(moves, record, now)
        or _crawl(stage, moves, record, now)
    )


def _conflict(itinerary: Itinerary, moves: Sequence[Move], observed: Observed, record: RunRecord) -> LeaveAlone | None:
    for move in moves:
        key = move.topic_partition
        history = record.history(key)
        if history.state is MoveState.CONFLICT:
            return LeaveAlone(key, Problem("KR701", _conflict_text(itinerary, move, observed)))
        if history.state is MoveState.TO_DO and history.attempts >= ATTEMPTS:
            text = f"{key} was submitted {history.attempts} times and is still on {list(move.from_replicas)}"
            return LeaveAlone(key, Problem("KR704", f"{text}; look at the controller's log, then {itinerary.again}"))
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
    found, again = list(position.found), itinerary.again
    return f"{key} is back on {found}: somebody else cancelled its move to {list(move.to_replicas)}; {again} to go on"


def _dead_destination(itinerary: Itinerary, moves: Sequence[Move], record: RunRecord, now: datetime) -> Step | None:
    """Return what to do about moves to a broker that is dead for good: withdraw those in flight, skip the others."""
    for broker in sorted(record.fenced_since):
        if not record.is_dead_for(broker, DEAD, now):
            continue
        blocked = [move for move in moves if broker in move.to_replicas and not move.is_reorder]
        in_flight = tuple(move for move in blocked if broker in move.added and _is(record, move, MoveState.IN_FLIGHT))
        if in_flight:
            return WithdrawMoves(in_flight, tuple(_dead_problem(itinerary, broker, move) for move in in_flight))
        for move in blocked:
            if _is(record, move, MoveState.TO_DO, MoveState.UNSYNCED):
                return LeaveAlone(move.topic_partition, _dead_problem(itinerary, broker, move))
    return None


def _hidden_broker(itinerary: Itinerary, moves: Sequence[Move], record: RunRecord, now: datetime) -> LeaveAlone | None:
    """Return a move to skip because a broker it needs lives, and cannot be reached from here to be throttled."""
    hidden = {broker for broker, since in record.unreached_since.items() if now - since >= DEAD}
    for move in moves:
        needed = sorted(hidden.intersection((*move.from_replicas, *move.added))) if move.added else []
        if needed and _is(record, move, MoveState.TO_DO):
            key, broker = move.topic_partition, needed[0]
            text = f"broker {broker}, which {key} needs in {list(move.to_replicas)}, is alive and cannot be reached"
            hint = "from here, so its throttle cannot be set; see that this machine reaches what it advertises"
            return LeaveAlone(key, Problem("KR736", f"{text} {hint}, then {itinerary.again}"))
    return None


def _is(record: RunRecord, move: Move, *states: MoveState) -> bool:
    return record.state(move.topic_partition) in states


def _dead_problem(itinerary: Itinerary, broker: int, move: Move) -> Problem:
    text = f"broker {broker}, which {move.topic_partition} needs in {list(move.to_replicas)}, is not alive"
    hint = f"start it and {itinerary.again}, or declare it draining or absent and plan again"
    return Problem("KR703", f"{text}; {hint}")


def _bad_disk(itinerary: Itinerary, moves: Sequence[Move], record: RunRecord, now: datetime) -> Step | None:
    """Return what to do about moves into a log dir that takes nothing in: withdraw those in flight, skip the others."""
    for broker, bad in sorted(record.bad_disks.items()):
        if now - bad.since < FAILED:
            continue
        blocked = [move for move in moves if broker in move.added and _is_stuck(move, broker, bad, moves, record)]
        in_flight = tuple(move for move in blocked if _is(record, move, MoveState.IN_FLIGHT))
        if in_flight:
            return WithdrawMoves(in_flight, tuple(_disk_problem(itinerary, broker, bad, move) for move in in_flight))
        for move in blocked:
            if _is(record, move, MoveState.TO_DO) and not bad.is_offline:
                return LeaveAlone(move.topic_partition, _disk_problem(itinerary, broker, bad, move))
    return None


def _is_stuck(move: Move, broker: int, bad: BadDisk, moves: Sequence[Move], record: RunRecord) -> bool:
    """Whether that disk keeps a move from ending: its replica is in no log dir that works, or will not fit."""
    if bad.is_offline and (move.topic_partition, broker) not in record.sized:
        return True
    unfinished = [one for one in moves if broker in one.added and not _is(record, one, MoveState.DONE)]
    arriving = [(one.topic_partition, broker) for one in unfinished]
    lag = sum(record.least_lag.get(replica, 0) for replica in arriving)
    return bad.usable_bytes is not None and lag > bad.usable_bytes


def _disk_problem(itinerary: Itinerary, broker: int, bad: BadDisk, move: Move) -> Problem:
    text = f"{bad.told(broker)}, so {move.topic_partition} cannot be copied to it"
    hint = f"make room on that disk or replace it, restart the broker if the dir is offline, and {itinerary.again}"
    return Problem("KR716", f"{text}; {hint}; or declare broker {broker} cordoned or draining and plan again")


def _dead_companion(moves: Sequence[Move], record: RunRecord, now: datetime) -> Warn | None:
    """Return a warning where a replica that stays is dead: until Kafka 4.2 no move ends before it is in sync."""
    for broker in sorted(record.fenced_since):
        in_flight = [move for move in moves if _is(record, move, MoveState.IN_FLIGHT)]
        waiting = [move for move in in_flight if broker in set(move.to_replicas) - set(move.added)]
        if waiting and record.is_dead_for(broker, DEAD, now) and f"dead {broker}" not in record.warned:
            names = named_some([str(move.topic_partition) for move in waiting])
            text = f"broker {broker} is not alive, and {names} cannot end before it is back; start it"
            return Warn(f"dead {broker}", Problem("KR722", text, severity=Severity.WARNING))
    return None


def _crawl(stage: ReassignStage, moves: Sequence[Move], record: RunRecord, now: datetime) -> Warn | None:
    """Return a warning where bytes arrive and no replica comes closer: as much is written as the throttle lets in."""
    is_copying = record.copied_bytes > record.copied_when_progressed
    if now - record.progressed_at < CRAWL or not is_copying or "crawl" in record.warned:
        return None
    names = named_some([str(m.topic_partition) for m in moves if _is(record, m, MoveState.IN_FLIGHT)])
    rate = stage.throttle_bytes_per_second
    cause = "the network or the disks are" if rate is None else f"the throttle of {rate} bytes a second is"
    text = f"{names} came no closer to the end in {CRAWL.seconds} s although data arrives: {cause} too slow for what is"
    hint = "written meanwhile; raise the rates on the brokers by hand (the run leaves them so)"
    told = f"{text} {hint}, or cancel and plan with a higher moves.throttle"
    return Warn("crawl", Problem("KR723", told, severity=Severity.WARNING))


def stalled(
    itinerary: Itinerary, stage: ReassignStage, unfinished: Sequence[Move], record: RunRecord, now: datetime
) -> FailRun | None:
    """Return the end of a run whose stage has made no progress for the plan's time-out."""
    seconds = itinerary.plan.timeout_seconds
    if now - record.progressed_at < timedelta(seconds=seconds):
        return None
    names = named_some([str(move.topic_partition) for move in unfinished])
    text = f"stage {stage.number} made no progress for {seconds} s: {names}"
    hint = f"see that their brokers, disks and throttle (moves.throttle) let data through, then {itinerary.again}"
    return FailRun(Problem("KR702", f"{text}; {hint}"))
