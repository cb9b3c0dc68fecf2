"""Takes copies between log dirs back: the dir that a replica lies in is chosen again, which removes the copy (KIP-113).

A copy may end in between, and then that same choice begins one back. So it looks after each request, and chooses again
until every replica is at rest, in the dir before or in the one after.
"""

from collections.abc import Mapping, Sequence

from reconciler.admin.port import Answer
from reconciler.admin.waits import waiting_for
from reconciler.apply.answers import CORDONED, TRANSIENT, Trouble, told_answer, tried
from reconciler.apply.crash import crash_point
from reconciler.apply.dir_moves import DirPlace, dir_place, found_in
from reconciler.apply.observed import Observed
from reconciler.apply.session import Session
from reconciler.apply.withdraw import POLL_SECONDS, SHOWN, Withdrawal
from reconciler.model.move import DirMove
from reconciler.model.run import Outcome
from reconciler.model.words import named_some


def withdraw_dirs(session: Session, moves: Sequence[DirMove], outcome: Withdrawal) -> None:
    """Take these moves between log dirs back, and add to `outcome` what became of each; only a lost lock is raised."""
    if not moves:
        return
    left: dict[DirMove, str] = {}
    back: list[DirMove] = []
    end = session.now() + SHOWN
    pending = list(moves)
    crash_point("withdraw.before")
    with waiting_for(f"copies between log dirs to be taken back: {named_some(map(str, moves))}"):
        while pending:
            observed = tried(lambda some=tuple(pending): _seen(session, some))  # type: ignore[misc]
            if isinstance(observed, Trouble):
                left |= dict.fromkeys(pending, f"it cannot be looked at: {observed.why}")
                outcome.unanswered = outcome.unanswered or (observed.why if observed.is_passing else "")
                break
            at_rest = [move for move in pending if dir_place(move, observed) in {DirPlace.AT_START, DirPlace.AT_END}]
            back += [move for move in at_rest if dir_place(move, observed) is DirPlace.AT_START]
            outcome.finished += [move.topic_partition for move in at_rest if move not in back]
            pending = [move for move in pending if move not in at_rest]
            refused = _chosen(session, pending, observed)
            if pending and session.now() >= end:
                refused = {**dict.fromkeys(pending, "its broker does not show that it was taken back"), **refused}
            left |= refused
            pending = [move for move in pending if move not in refused]
            if pending:
                session.admin.clock.sleep(POLL_SECONDS)
    for move, why in left.items():
        known = outcome.left.get(move.topic_partition)
        told = f"on broker {move.broker} to {move.to_dir}: {why}"
        outcome.left[move.topic_partition] = f"{known}; {told}" if known else told
    outcome.back += [move.topic_partition for move in back]
    session.withdrawn.update(move.topic_partition for move in back)
    detail = {"back": [str(move) for move in back], "left": {str(move): why for move, why in left.items()}}
    how = Outcome.FAILED if left else Outcome.DONE
    unwritten = tried(lambda: session.write_event("withdraw", how, **detail))
    if isinstance(unwritten, Trouble):
        session.messages.append(f"the journal was not written: {unwritten.why}")


def _seen(session: Session, moves: Sequence[DirMove]) -> Observed:
    topics = sorted({move.topic_partition.topic for move in moves})
    return session.patiently(lambda: session.look(topics))


def _chosen(session: Session, moves: Sequence[DirMove], observed: Observed) -> Mapping[DirMove, str]:
    """Choose the dir in which each of these replicas lies; return those that this cannot take back, and why."""
    refused: dict[DirMove, str] = {}
    by_broker: dict[int, list[DirMove]] = {}
    for move in moves:
        match dir_place(move, observed):
            case DirPlace.MOVING | DirPlace.TURNED:
                by_broker.setdefault(move.broker, []).append(move)
            case DirPlace.UNSEEN if observed.is_alive(move.broker):
                pass  # it may answer the next time
            case DirPlace.UNSEEN:
                refused[move] = f"broker {move.broker} is not alive: it goes on with the copy once it is back"
            case _:
                refused[move] = f"found in {found_in(move, observed)}"
    for broker, some in sorted(by_broker.items()):
        choices = {
            move.topic_partition: move.from_dir if dir_place(move, observed) is DirPlace.MOVING else move.to_dir
            for move in some
        }
        answers = tried(lambda b=broker, c=choices: session.write(lambda: session.admin.choose_log_dirs(b, c)))  # type: ignore[misc]
        crash_point("withdraw.sent")
        if isinstance(answers, Trouble):
            # Without an answer, the next look decides.
            refused |= {} if answers.is_passing else dict.fromkeys(some, answers.why)
            continue
        for move in some:
            answer = answers.get(move.topic_partition, Answer())
            if not answer.is_ok and answer.error not in TRANSIENT:
                refused[move] = _told(answer, choices[move.topic_partition])
    return refused


def _told(answer: Answer, path: str) -> str:
    if answer.error == CORDONED:  # even if the replica lies in it (seen on 4.3.0)
        return f"log dir {path} is cordoned, and Kafka takes nothing back into it (cordoned.log.dirs)"
    return f"Kafka did not take it back: {told_answer(answer)}"
