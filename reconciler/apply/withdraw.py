"""Takes moves in flight back to where they came from: cancel first, then the ordered list, then the leader.

Kafka's own cancel loses the order of the list; a list submitted over the move in flight would not complete.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from reconciler.admin.port import Answer
from reconciler.admin.waits import waiting_for
from reconciler.apply.course import Itinerary, Place, cancelled
from reconciler.apply.crash import crash_point
from reconciler.apply.observed import Observed
from reconciler.apply.session import TRIES, Session, told_answer
from reconciler.apply.tally import overwritten_moves
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST
from reconciler.model.move import Move
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.run import Outcome
from reconciler.model.stage import ElectStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.wording import named_some

SHOWN = timedelta(seconds=120)
LED = timedelta(seconds=30)
POLL_SECONDS = 0.5
NOT_IN_PROGRESS = "NO_REASSIGNMENT_IN_PROGRESS"
GONE = "UNKNOWN_TOPIC_OR_PARTITION"


Reassign = Callable[[Mapping[TopicPartition, Sequence[int] | None]], Mapping[TopicPartition, Answer]]
Targets = Callable[[Sequence[Move]], Mapping[TopicPartition, Sequence[int] | None]]
IsDue = Callable[[Itinerary, Move, Observed], bool]


@dataclass(slots=True)
class Withdrawal:
    """What became of moves taken back: `back`, `finished` (they had ended by then), and `left`, with the reason."""

    back: list[TopicPartition] = field(default_factory=list)
    finished: list[TopicPartition] = field(default_factory=list)
    left: dict[TopicPartition, str] = field(default_factory=dict)


def withdraw(session: Session, moves: Sequence[Move]) -> Withdrawal:
    """Take these moves back to their ordered `from`, elect the leaders that were, and return what became of each."""
    outcome = Withdrawal()
    if not moves:
        return outcome
    observed = session.patiently(lambda: session.look(_topics(moves)))
    ended = [move for move in moves if _has_ended(session.itinerary, move, observed)]
    outcome.finished.extend(move.topic_partition for move in ended)
    able = [move for move in moves if move not in ended and _is_returnable(move, observed, outcome)]
    in_flight = [m for m in able if session.itinerary.position(m.topic_partition, observed).place is Place.MOVING]
    crash_point("withdraw.before")
    session.tell("withdraw", Outcome.STARTED, partitions=[str(move.topic_partition) for move in able])
    stopped = _cancel(session, in_flight, outcome)
    loose = [move for move in able if move not in in_flight]
    overwritten = {move.topic_partition for move in overwritten_moves(session.itinerary, observed)}
    with waiting_for(f"moves to be back where they came from: {_named(able)}"):
        _restore_order(session, [*loose, *stopped], overwritten, outcome)
    session.withdrawn.update(outcome.back)
    returned = [move for move in able if move.topic_partition in outcome.back]
    with waiting_for(f"the leaders from before to lead again: {_named(returned)}"):
        _restore_leaders(session, returned)
    session.tell(
        "withdraw",
        Outcome.FAILED if outcome.left else Outcome.DONE,
        back=[str(key) for key in outcome.back],
        finished=[str(key) for key in outcome.finished],
        left={str(key): why for key, why in sorted(outcome.left.items())},
    )
    return outcome


def _named(moves: Iterable[Move]) -> str:
    return named_some(str(move.topic_partition) for move in moves)


def _topics(moves: Iterable[Move]) -> frozenset[str]:
    return frozenset(move.topic_partition.topic for move in moves)


def _has_ended(itinerary: Itinerary, move: Move, observed: Observed) -> bool:
    """Whether a move that was in flight a moment ago has reached its target, or gone on from there."""
    course = itinerary.courses[move.topic_partition]
    position = itinerary.position(move.topic_partition, observed)
    return position.place is Place.AT and position.index > course.moves.index(move)


def _is_returnable(move: Move, observed: Observed, outcome: Withdrawal) -> bool:
    """Whether every original replica is alive and in sync; if not, say why the move is left as it is (KAFKA-14424)."""
    key = move.topic_partition
    partition = observed.partition(key)
    dead = observed.dead_of(move.from_replicas)
    behind = sorted(set(move.from_replicas) - set(partition.isr)) if partition else []
    if partition is None:
        outcome.left[key] = f"it does not exist any more: found {observed.absence(key.topic)}"
    elif dead:
        outcome.left[key] = f"it cannot go back to {list(move.from_replicas)}: broker {dead[0]} is not alive"
    elif behind:
        outcome.left[key] = f"it cannot go back to {list(move.from_replicas)}: broker {behind[0]} is not in sync"
    return key not in outcome.left


def _cancel(session: Session, moves: Sequence[Move], outcome: Withdrawal) -> list[Move]:
    """Cancel these reassignments; return the moves that were stopped by it."""
    stopped: list[Move] = []
    for batch in _batches(moves):
        answers = _answered(session, batch, session.admin.reassign, _targets_of_a_cancel, _is_in_flight)
        crash_point("withdraw.sent")
        stopped += _after_cancel(session, batch, answers, outcome)
    return stopped


def _after_cancel(
    session: Session, batch: Sequence[Move], answers: Mapping[TopicPartition, Answer], outcome: Withdrawal
) -> list[Move]:
    observed = session.patiently(lambda: session.look(_topics(batch)))
    stopped = []
    for move in batch:
        key, answer = move.topic_partition, answers.get(move.topic_partition, Answer(NOT_IN_PROGRESS))
        partition = observed.partition(key)
        if answer.error == NOT_IN_PROGRESS and partition is not None and partition.replicas == move.to_replicas:
            outcome.finished.append(key)
        elif answer.is_ok or answer.error == NOT_IN_PROGRESS:
            stopped.append(move)
        else:
            outcome.left[key] = f"Kafka did not cancel it: {told_answer(answer)}"
    return stopped


def _restore_order(
    session: Session, moves: Sequence[Move], overwritten: Container[TopicPartition], outcome: Withdrawal
) -> None:
    """Submit the ordered lists that a cancel loses, whatever metadata shows: it may still be of the past.

    `overwritten`: partitions that it has left with more replicas than they had.
    """
    disordered = []
    for move in moves:
        is_kept = cancelled(move.from_replicas, move.to_replicas) == move.from_replicas
        is_kept = is_kept and move.topic_partition not in overwritten
        outcome.back.append(move.topic_partition) if is_kept else disordered.append(move)
    in_flight = session.patiently(session.admin.reassignments) if disordered else {}
    for move in [move for move in disordered if move.topic_partition in in_flight]:
        target = list(in_flight[move.topic_partition].target_replicas)
        outcome.left[move.topic_partition] = f"it is being reassigned to {target}, which this plan did not ask for"
    loose = [move for move in disordered if move.topic_partition not in in_flight]
    for is_factor_change in (False, True):
        fitting = [move for move in loose if (move.topic_partition in overwritten) is is_factor_change]
        for batch in _batches(fitting):
            _submit_lists(session, batch, outcome, is_factor_change=is_factor_change)
    _await_shown(session, [move for move in moves if move.topic_partition in outcome.back], outcome)


def _submit_lists(session: Session, batch: Sequence[Move], outcome: Withdrawal, *, is_factor_change: bool) -> None:
    submit = partial(session.admin.reassign, is_replication_factor_change_allowed=is_factor_change)
    answers = _answered(session, batch, submit, _targets_of_a_return, _is_loose)
    crash_point("withdraw.sent")
    for move in batch:
        key, answer = move.topic_partition, answers.get(move.topic_partition)
        if answer is None and not session.patiently(partial(_is_shown_back, session, move)):
            outcome.left[key] = "somebody else has begun to move it meanwhile"
        elif answer is None or answer.is_ok:
            outcome.back.append(key)
        else:
            outcome.left[key] = f"Kafka did not restore its order: {told_answer(answer)}"


def _is_shown_back(session: Session, move: Move) -> bool:
    return _is_back(move, session.look([move.topic_partition.topic]))


def _answered(
    session: Session, batch: Sequence[Move], reassign: Reassign, targets: Targets, is_due: IsDue
) -> Mapping[TopicPartition, Answer]:
    """Return the answers to one request; where none came, what it has done is looked at before it is sent again."""
    due = list(batch)
    for attempt in range(TRIES):
        wanted = targets(due)
        try:
            return session.write(partial(reassign, wanted))
        except ClusterUnavailable:
            if attempt == TRIES - 1:
                raise
        session.pause(attempt)
        observed = session.patiently(lambda: session.look(_topics(batch)))
        due = [move for move in due if is_due(session.itinerary, move, observed)]
        if not due:
            break
    return {}


def _targets_of_a_cancel(moves: Sequence[Move]) -> Mapping[TopicPartition, None]:
    return dict.fromkeys(move.topic_partition for move in moves)


def _targets_of_a_return(moves: Sequence[Move]) -> Mapping[TopicPartition, Sequence[int]]:
    return {move.topic_partition: move.from_replicas for move in moves}


def _is_in_flight(itinerary: Itinerary, move: Move, observed: Observed) -> bool:
    return itinerary.position(move.topic_partition, observed).place is Place.MOVING


def _is_loose(_itinerary: Itinerary, move: Move, observed: Observed) -> bool:
    """Whether a list is still to be restored: nobody else moves the partition, or has moved it, since."""
    partition = observed.partition(move.topic_partition)
    is_there = partition is not None and set(move.from_replicas) <= set(partition.replicas)
    return is_there and not _is_back(move, observed) and move.topic_partition not in observed.reassignments


def _await_shown(session: Session, moves: Sequence[Move], outcome: Withdrawal) -> None:
    """Wait until metadata shows the lists gone back to; the controller has accepted them already."""
    end = session.now() + SHOWN
    waiting = list(moves)
    while waiting:
        observed = session.patiently(lambda w=tuple(waiting): session.look(_topics(w)))  # type: ignore[misc]
        waiting = [move for move in waiting if not _is_back(move, observed)]
        if waiting and session.now() >= end:
            for move in waiting:
                outcome.back.remove(move.topic_partition)
                outcome.left[move.topic_partition] = f"it does not show {list(move.from_replicas)} yet"
            return
        if waiting:
            session.admin.clock.sleep(POLL_SECONDS)


def _is_back(move: Move, observed: Observed) -> bool:
    partition = observed.partition(move.topic_partition)
    if partition is None:
        return True
    return partition.replicas == move.from_replicas and move.topic_partition not in observed.reassignments


def _restore_leaders(session: Session, moves: Sequence[Move]) -> None:
    """Elect the first replicas that led before; a leader elsewhere is no harm, so a failure is only told."""
    preferred = [move for move in moves if leader_before(session.itinerary, move) == move.from_replicas[0]]
    end = session.now() + LED
    while preferred:
        observed = session.patiently(lambda p=tuple(preferred): session.look(_topics(p)))  # type: ignore[misc]
        preferred = [move for move in preferred if _is_led_elsewhere(move, observed)]
        if preferred and session.now() >= end:
            names = ", ".join(str(move.topic_partition) for move in preferred)
            session.messages.append(f"not led by their preferred leader: {names}")
            return
        size = max(1, session.itinerary.plan.election_batch)
        for start in range(0, len(preferred), size):
            keys = [move.topic_partition for move in preferred[start : start + size]]
            crash_point("election.before")
            session.patiently(lambda k=keys: session.write(lambda: session.admin.elect_preferred_leaders(k)))  # type: ignore[misc]
            crash_point("election.sent")
        if preferred:
            session.admin.clock.sleep(POLL_SECONDS)


def _is_led_elsewhere(move: Move, observed: Observed) -> bool:
    partition = observed.partition(move.topic_partition)
    return partition is not None and partition.leader != move.from_replicas[0]


def leader_before(itinerary: Itinerary, move: Move) -> int | None:
    """Return who led a partition before a move: the last one elected in an earlier stage, else who led at the start."""
    key = move.topic_partition
    course = itinerary.courses[key]
    number = course.stages[course.moves.index(move)]
    leader = itinerary.first_leaders.get(key)
    for stage in itinerary.plan.stages:
        if isinstance(stage, ElectStage) and stage.number < number:
            elected = [election.leader for election in stage.elections if election.topic_partition == key]
            leader = elected[-1] if elected else leader
    return leader


def _batches(moves: Sequence[Move]) -> Iterable[Sequence[Move]]:
    return [moves[start : start + PARTITIONS_A_REQUEST] for start in range(0, len(moves), PARTITIONS_A_REQUEST)]
