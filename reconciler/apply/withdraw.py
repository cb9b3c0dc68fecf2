"""Takes moves in flight back to where they came from: cancel first, then the ordered list, then the leader.

Kafka's own cancel keeps the new order, and after an overwrite even the replication factor of the union. The original
list, submitted over a move in flight, would not complete: [2,3,5] -> [2,3,6], then [2,3,5], left `adding=[6],
removing=[6]` listed for minutes with all in sync (seen on 4.3.0). Submitted after the cancel, it completes at once.
"""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

from reconciler.admin.port import Answer
from reconciler.admin.waits import waiting_for
from reconciler.apply.answers import CORDONED, Trouble, as_far_as_visible, told_answer, tried
from reconciler.apply.crash import crash_point
from reconciler.apply.observed import LAG, Observed
from reconciler.apply.partition_path import MovePlace, Place, PlanPaths, cancelled, union
from reconciler.apply.session import TRIES, Session
from reconciler.apply.standings import overwritten_moves
from reconciler.apply.throttling import take_cordons_off
from reconciler.apply.topic_changes import PARTITIONS_A_REQUEST
from reconciler.model.move import Move
from reconciler.model.problem import ClusterUnavailable, ReconcilerError
from reconciler.model.run import Outcome
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import named_some

SHOWN = timedelta(seconds=120)
"""How long metadata may lag behind the controller before a list that does not show is told of."""

LED_AGAIN = timedelta(seconds=30)
"""How long the leaders from before are waited for; a leader elsewhere is no harm."""

POLL_SECONDS = 0.5  # somebody waits for the way back

CANCELLED = "it was cancelled"

NOT_IN_PROGRESS = "NO_REASSIGNMENT_IN_PROGRESS"
"""The answer to a cancel of what has ended, or was cancelled before: a success."""

T = TypeVar("T")

Answers = Mapping[TopicPartition, Answer]


@dataclass(slots=True)
class Withdrawal:
    """What became of moves taken back."""

    back: list[TopicPartition] = field(default_factory=list)
    finished: list[TopicPartition] = field(default_factory=list)
    """Those that had ended by then."""
    left: dict[TopicPartition, str] = field(default_factory=dict)
    """Those that could not be taken back, with the reason."""
    unanswered: str = ""
    """Why the cluster did not answer, where that left some."""
    unwritten: Exception | None = None
    """The journal's fault."""

    def note_left(self, moves: Iterable[Move], trouble: Trouble, what: str) -> None:
        """Leave these moves as they are, for that trouble."""
        for move in moves:
            self.left[move.topic_partition] = f"{what}: {trouble.why}"
            self.unanswered = self.unanswered or (trouble.why if trouble.is_passing else "")


def told_left(why: str) -> str:
    """Return what became of a move that was left, for that reason, when the throttles come off."""
    return why if why.startswith(CANCELLED) else f"it goes on, and without a throttle: {why}"


def withdraw(session: Session, moves: Sequence[Move]) -> Withdrawal:
    """Take these moves back to their ordered `from`, elect the leaders that were, and return what became of each.

    What is denied, refused or not answered leaves its own moves alone, and is told of them; only a lost lock is raised.
    """
    outcome = Withdrawal()
    if not moves:
        return outcome
    observed, moves = _looked_at(session, moves, outcome)
    # What was in flight a moment ago may have reached its target, or gone on from there.
    ended = [move for move in moves if _has_ended(session.paths, move, observed)]
    outcome.finished.extend(move.topic_partition for move in ended)
    able = [move for move in moves if move not in ended and _is_returnable(move, observed, outcome)]
    # Old metadata shows a move that has just ended as one that never began. So that one is cancelled, too: the answer
    # tells whether it was in flight.
    perhaps = {Place.MOVING, Place.AT, Place.BETWEEN}
    in_flight = [move for move in able if session.paths.position(move.topic_partition, observed).place in perhaps]
    crash_point("withdraw.before")
    _tell(session, outcome, Outcome.STARTED, partitions=[str(move.topic_partition) for move in able])
    stopped = _cancel(session, in_flight, outcome)
    loose = [move for move in able if move not in in_flight]
    overwritten = {move.topic_partition for move in overwritten_moves(session.paths, observed)}
    with waiting_for(f"moves to be back where they came from: {_named(able)}"):
        _restore_order(session, [*loose, *stopped], overwritten, outcome)
    session.withdrawn.update(outcome.back)
    returned = [move for move in able if move.topic_partition in outcome.back]
    with waiting_for(f"the leaders from before to lead again: {_named(returned)}"):
        _restore_leaders(session, returned)
    _tell(
        session,
        outcome,
        Outcome.FAILED if outcome.left else Outcome.DONE,
        back=[str(key) for key in outcome.back],
        finished=[str(key) for key in outcome.finished],
        left={str(key): why for key, why in sorted(outcome.left.items())},
    )
    return outcome


def _named(moves: Iterable[Move]) -> str:
    return named_some(str(move.topic_partition) for move in moves)


def seen_as_far_as_visible(session: Session, topics: Collection[str]) -> tuple[Observed, dict[str, Trouble]]:
    """Observe those of the topics that this user may see; return it, and why the others are not seen."""
    return as_far_as_visible(lambda names: session.patiently(lambda: session.look(names)), sorted(topics))


def unseen_moves(paths: PlanPaths, observed: Observed, hidden: Mapping[str, Trouble]) -> dict[TopicPartition, str]:
    """Return the partitions of topics that may not be seen with a move of the plan in flight, and why they are left."""
    found = {}
    for key, path in paths.by_partition.items():
        moving = observed.reassignments.get(key)
        if key.topic in hidden and moving is not None and tuple(moving.target_replicas) in path.lists:
            found[key] = f"it cannot be looked at: {hidden[key.topic].why}"
    return found


def _looked_at(session: Session, moves: Sequence[Move], outcome: Withdrawal) -> tuple[Observed, list[Move]]:
    """Look at the topics of these moves; return what is seen, and the moves that are: the others are left."""
    found = tried(lambda: seen_as_far_as_visible(session, _topics(moves)))
    if isinstance(found, Trouble):
        outcome.note_left(moves, found, "it cannot be looked at")
        return Observed(), []
    observed, hidden = found
    for move in moves:
        if move.topic_partition.topic in hidden:
            outcome.note_left([move], hidden[move.topic_partition.topic], "it cannot be looked at")
    return observed, [move for move in moves if move.topic_partition.topic not in hidden]


def _tell(session: Session, outcome: Withdrawal, how: Outcome, **detail: object) -> None:
    """Write to the journal; one that cannot be written keeps no move from being taken back."""
    try:
        session.write_event("withdraw", how, **detail)
    except (OSError, ReconcilerError) as error:
        outcome.unwritten = error


def _topics(moves: Iterable[Move]) -> frozenset[str]:
    return frozenset(move.topic_partition.topic for move in moves)


def _has_ended(paths: PlanPaths, move: Move, observed: Observed) -> bool:
    path = paths.by_partition[move.topic_partition]
    place = paths.position(move.topic_partition, observed).move_place(path.moves.index(move))
    return place in {MovePlace.AT_END, MovePlace.PAST}


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

    def send(due: Sequence[Move]) -> Answers:
        # A target of None cancels (KIP-455).
        return session.admin.reassign(dict.fromkeys(move.topic_partition for move in due))

    def is_due(move: Move, observed: Observed) -> bool:
        return session.paths.position(move.topic_partition, observed).place is Place.MOVING

    stopped: list[Move] = []
    for batch in _batches(moves):
        answers = _answered(session, batch, outcome, send, is_due)
        crash_point("withdraw.sent")
        if isinstance(answers, Trouble):
            outcome.note_left(batch, answers, "it was not cancelled")
        else:
            stopped += _after_cancel(session, batch, answers, outcome)
    return stopped


def _after_cancel(session: Session, batch: Sequence[Move], answers: Answers, outcome: Withdrawal) -> list[Move]:
    unseen = Withdrawal()
    observed = _seen_after_cancel(session, batch, answers, unseen)
    stopped = []
    for move in batch:
        key, answer = move.topic_partition, answers.get(move.topic_partition, Answer(NOT_IN_PROGRESS))
        partition = observed.partition(key)
        # Nothing in progress: the move has ended meanwhile, or an earlier try, whose answer was lost, has cancelled it.
        if answer.error == NOT_IN_PROGRESS and partition is not None and partition.replicas == move.to_replicas:
            outcome.finished.append(key)
        elif answer.error == NOT_IN_PROGRESS and key in unseen.left:
            outcome.left[key] = unseen.left[key]
        elif answer.is_ok or answer.error == NOT_IN_PROGRESS:
            stopped.append(move)
        else:
            outcome.left[key] = f"Kafka did not cancel it: {told_answer(answer)}"
    return stopped


def _seen_after_cancel(session: Session, batch: Sequence[Move], answers: Answers, unseen: Withdrawal) -> Observed:
    """Look at moves that were cancelled, again while metadata is older than the end of one that was not in progress.

    Taken for one that was stopped, its list from before would be submitted: a copy back, over a move that has ended.
    """
    end = session.now() + SHOWN
    while True:
        observed, _ = _looked_at(session, batch, unseen)
        if session.now() >= end or not any(_is_of_the_past(move, answers, observed) for move in batch):
            return observed
        session.admin.clock.sleep(POLL_SECONDS)


def _is_of_the_past(move: Move, answers: Answers, observed: Observed) -> bool:
    """Whether metadata shows the move as it was before its end: it is not in progress, and shows an older list."""
    key, partition = move.topic_partition, observed.partition(move.topic_partition)
    is_ended = key not in answers or answers[key].error == NOT_IN_PROGRESS
    if partition is None or not is_ended or key in observed.reassignments:
        return False
    # Where Kafka did not answer for it, an earlier try may have cancelled it: then what a cancel leaves is no old list.
    left = None if key in answers else cancelled(move.from_replicas, move.to_replicas)
    older = {union(move.from_replicas, move.to_replicas), move.from_replicas} - {left}
    return partition.replicas in older


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
    in_flight = tried(lambda: session.patiently(session.admin.reassignments)) if disordered else {}
    if isinstance(in_flight, Trouble):
        # Over somebody else's reassignment nothing is submitted, so not where it could not be seen.
        outcome.note_left(disordered, in_flight, f"{CANCELLED}, but its order was not restored")
        disordered, in_flight = [], {}
    for move in [move for move in disordered if move.topic_partition in in_flight]:
        target = list(in_flight[move.topic_partition].target_replicas)
        outcome.left[move.topic_partition] = f"it is being reassigned to {target}, which this plan did not ask for"
    loose = [move for move in disordered if move.topic_partition not in in_flight]
    # Kafka takes no list that names a cordoned broker, and hears of an open one by that broker's next heartbeat.
    is_opened = take_cordons_off(session, {broker for move in loose for broker in move.from_replicas})
    end = session.now() + (LAG if is_opened else timedelta())
    # Only what an overwrite left with more replicas may change the factor: of all others Kafka forbids it (KIP-860).
    for is_factor_change in (False, True):
        fitting = [move for move in loose if (move.topic_partition in overwritten) is is_factor_change]
        submit = partial(_submit_lists, session, outcome=outcome, is_factor_change=is_factor_change)
        for batch in _batches(fitting):
            due = batch
            while (due := submit(due)) and session.now() < end:
                session.admin.clock.sleep(POLL_SECONDS)
    _await_shown(session, [move for move in moves if move.topic_partition in outcome.back], outcome)


def _submit_lists(
    session: Session, batch: Sequence[Move], outcome: Withdrawal, *, is_factor_change: bool
) -> list[Move]:
    """Submit the lists that these moves go back to; return those that Kafka refuses as long as a broker is cordoned."""

    def send(due: Sequence[Move]) -> Answers:
        targets = {move.topic_partition: move.from_replicas for move in due}
        return session.admin.reassign(targets, is_replication_factor_change_allowed=is_factor_change)

    answers = _answered(session, batch, outcome, send, _is_loose)
    crash_point("withdraw.sent")
    if isinstance(answers, Trouble):
        outcome.note_left(batch, answers, f"{CANCELLED}, but its order was not restored")
        return []
    for move in batch:
        outcome.left.pop(move.topic_partition, None)  # the reason of an earlier try
        key, answer = move.topic_partition, answers.get(move.topic_partition)
        # Without an answer, what is seen decides: the list may have been taken all the same.
        is_back = answer is not None or tried(partial(_is_shown_back, session, move))
        if isinstance(is_back, Trouble):
            outcome.note_left([move], is_back, f"{CANCELLED}, but its order may not be restored")
        elif not is_back:
            outcome.left[key] = "somebody else has begun to move it meanwhile"
        elif answer is None or answer.is_ok:
            outcome.back.append(key)
        else:
            outcome.left[key] = f"Kafka did not restore its order: {told_answer(answer)}"
    return [move for move in batch if answers.get(move.topic_partition, Answer()).error == CORDONED]


def _is_shown_back(session: Session, move: Move) -> bool:
    return session.patiently(lambda: _is_back(move, session.look([move.topic_partition.topic])))


def _answered(
    session: Session,
    batch: Sequence[Move],
    outcome: Withdrawal,
    send: Callable[[Sequence[Move]], Answers],
    is_due: Callable[[Move, Observed], bool],
) -> Answers | Trouble:
    """Return the answers to one request, or why there are none; before a repeat it looks at what was done."""

    def request() -> Answers:
        due = list(batch)
        for attempt in range(TRIES):
            try:
                return session.write(partial(send, due))
            except ClusterUnavailable as error:
                if attempt == TRIES - 1 or not error.is_passing:
                    raise
            session.pause(attempt)
            observed = session.patiently(lambda: session.look(_topics(batch)))
            due = [move for move in due if is_due(move, observed)]
            if not due:
                break
        return {}

    # A cluster that has not answered often enough is not asked again.
    return Trouble(outcome.unanswered, is_passing=True) if outcome.unanswered else tried(request)


def _is_loose(move: Move, observed: Observed) -> bool:
    """Whether a list is still to be restored: nobody else moves the partition, or has moved it, since."""
    partition = observed.partition(move.topic_partition)
    is_there = partition is not None and set(move.from_replicas) <= set(partition.replicas)
    return is_there and not _is_back(move, observed) and move.topic_partition not in observed.reassignments


def _await_shown(session: Session, moves: Sequence[Move], outcome: Withdrawal) -> None:
    """Wait until metadata shows the lists gone back to; the controller has accepted them already."""
    end = session.now() + SHOWN
    waiting = list(moves)
    while waiting:
        # What may not be seen is believed: the controller has said so.
        observed, waiting = _looked_at(session, waiting, Withdrawal())
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
    preferred = [move for move in moves if session.paths.leader_before(move) == move.from_replicas[0]]
    trouble = tried(lambda: _lead(session, preferred))
    if trouble is not None:
        session.messages.append(f"perhaps not led by their preferred leader: {_named(preferred)}: {trouble.why}")


def _lead(session: Session, preferred: Sequence[Move]) -> None:
    end = session.now() + LED_AGAIN
    while preferred:
        observed = session.patiently(lambda p=tuple(preferred): session.look(_topics(p)))  # type: ignore[misc]
        seen = [(move, observed.partition(move.topic_partition)) for move in preferred]
        preferred = [move for move, one in seen if one is not None and one.leader != move.from_replicas[0]]
        if preferred and session.now() >= end:
            names = ", ".join(str(move.topic_partition) for move in preferred)
            session.messages.append(f"not led by their preferred leader: {names}")
            return
        size = max(1, session.paths.plan.election_batch)
        for start in range(0, len(preferred), size):
            keys = [move.topic_partition for move in preferred[start : start + size]]
            crash_point("election.before")
            session.patiently(lambda k=keys: session.write(lambda: session.admin.elect_preferred_leaders(k)))  # type: ignore[misc]
            crash_point("election.sent")
        if preferred:
            session.admin.clock.sleep(POLL_SECONDS)


def _batches(moves: Sequence[Move]) -> Iterable[Sequence[Move]]:
    return [moves[start : start + PARTITIONS_A_REQUEST] for start in range(0, len(moves), PARTITIONS_A_REQUEST)]
