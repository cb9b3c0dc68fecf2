"""Has new replicas made in the log dirs that the plan foretells, where that was asked for."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from reconciler.apply.session import TRANSIENT, Session, refusal, refused
from reconciler.model.move import Move
from reconciler.model.plan import Plan
from reconciler.model.topic_partition import TopicPartition

CORDONED = "INVALID_REPLICA_ASSIGNMENT"
"""The answer where the log dir was cordoned since (KIP-1066): the broker picks another one then."""


def choose_log_dirs(session: Session, moves: Iterable[Move]) -> None:
    """Tell each destination of these moves, none of which has begun, where its new replicas go.

    A broker forgets that when it restarts, so it is told again before each submission. Raises RunFailed where a broker
    has no such dir, ClusterUnavailable where one does not answer; nothing moves then.
    """
    for broker, choices in log_dirs_of(session.itinerary.plan, moves).items():
        answers = session.write(lambda b=broker, c=choices: session.admin.choose_log_dirs(b, c))  # type: ignore[misc]
        final = refused(answers, ignoring=TRANSIENT | {CORDONED})
        if final:
            raise refusal(f"the log dirs that the plan names on broker {broker}", final, session.itinerary.again)


def log_dirs_of(plan: Plan, moves: Iterable[Move]) -> Mapping[int, Mapping[TopicPartition, str]]:
    """Return the log dir of each replica that these moves add, by broker, as far as the plan foretells them."""
    found: defaultdict[int, dict[TopicPartition, str]] = defaultdict(dict)
    for move in moves:
        foretold = plan.foretold_log_dirs.get(move.topic_partition, {})
        for broker in set(move.added) & set(foretold):
            found[broker][move.topic_partition] = foretold[broker]
    return {broker: found[broker] for broker in sorted(found)}
