"""Judges what Kafka answers: what may succeed later, what is final, and what must not end a clean-up."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TypeVar

from reconciler.admin.port import Answer
from reconciler.model.lock import UNCERTAIN, LockLost
from reconciler.model.problem import CheckFailed, ClusterUnavailable, MissingRight, ReconcilerError
from reconciler.model.run import RunFailed
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.words import MANY, named_some

T = TypeVar("T")

TRANSIENT = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "ELECTION_NOT_NEEDED",  # the preferred leader leads already: a success, which the next look shows
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "LEADER_NOT_AVAILABLE",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "PREFERRED_LEADER_NOT_AVAILABLE",  # it is not in sync yet
        "REQUEST_TIMED_OUT",  # the controller may have done all of it (KAFKA-16015)
        "THROTTLING_QUOTA_EXCEEDED",  # the quota of controller mutations (KIP-599)
        "UNKNOWN_SERVER_ERROR",
    }
)
"""Answers after which the same request may succeed later; every other one is final, POLICY_VIOLATION above all."""

_REMOVED_KEY = re.compile(r"Unknown topic config name: (\S+)")

NO_RIGHT = frozenset({"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"})
"""Answers that name a missing right."""

ALREADY = frozenset({"TOPIC_ALREADY_EXISTS", "INVALID_PARTITIONS", "UNKNOWN_TOPIC_OR_PARTITION"})
"""Answers that an earlier request, whose answer was lost, may be the cause of: look what is there."""


def refused(answers: Mapping[T, Answer], *, ignoring: frozenset[str] = TRANSIENT) -> Mapping[T, Answer]:
    """Return the answers that are errors, and final."""
    return {key: answer for key, answer in answers.items() if answer.error is not None and answer.error not in ignoring}


def refusal(what: str, answers: Mapping[T, Answer], next_step: str) -> ReconcilerError:
    """Return the error for requests that Kafka refused for good: MissingRight, where each was for want of a right."""
    if all(answer.error in NO_RIGHT for answer in answers.values()):
        return MissingRight("\n".join(dict.fromkeys(one.message or str(one.error) for one in answers.values())))
    told = named_some((f"{key}: {told_answer(answer)}" for key, answer in answers.items()), MANY, "\n")
    return RunFailed(f"Kafka refused {what}: {told}\nPut that right, then {next_step}.", code="KR704")


def told_answer(answer: Answer) -> str:
    """Return an answer in words."""
    return f"{answer.error} ({answer.message})" if answer.message else str(answer.error)


def removed_key(answer: Answer) -> str | None:
    """Return the key for which Kafka refuses each change of a topic's configs: an override that its release removed."""
    match = _REMOVED_KEY.fullmatch(answer.message) if answer.error == "INVALID_CONFIG" else None
    return match[1] if match is not None and match[1] in TOPIC_CONFIGS else None


CORDONED = "INVALID_REPLICA_ASSIGNMENT"
"""The answer to a choice of a cordoned log dir (KIP-1066), and since 4.4 to a list with a cordoned broker."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why something was not done."""

    why: str
    is_passing: bool = False
    """Another try may succeed."""
    is_of_all: bool = False
    """Nothing else can be done either."""
    is_shut_out: bool = False
    """No broker lets this client in: a login, a token or a certificate was refused."""
    is_of_one: bool = False
    """Kafka refused something in the request, which need not be all of it."""


def tried(request: Callable[[], T]) -> T | Trouble:
    """Return what a request brings, or why it brings nothing; only a lost lock ends everything."""
    try:
        return request()
    except LockLost:
        raise
    except ClusterUnavailable as error:
        is_shut_out = isinstance(error, CheckFailed)
        is_of_all = is_shut_out or error.code == UNCERTAIN
        return Trouble(str(error), is_passing=error.is_passing, is_of_all=is_of_all, is_shut_out=is_shut_out)
    except ReconcilerError as error:
        return Trouble(str(error))
    except Exception as error:  # noqa: BLE001 - a fault of a library or of ours: the others must be tried all the same
        return Trouble(type(error).__name__, is_passing=True)  # its text may quote what a library was given


def trouble_of(answer: Answer) -> Trouble | None:
    """Return what Kafka's answer to one item means; None where it is done."""
    if answer.is_ok:
        return None
    if answer.error in NO_RIGHT:
        return Trouble(answer.message or told_answer(answer))
    if answer.error in TRANSIENT:
        return Trouble(told_answer(answer), is_passing=True)
    return Trouble(told_answer(answer), is_of_one=True)


def as_far_as_visible(ask: Callable[[Collection[str]], T], names: Collection[str]) -> tuple[T, dict[str, Trouble]]:
    """Return what is told of those topics that may be seen, and why the others may not."""
    hidden: dict[str, Trouble] = {}
    while True:
        try:
            return ask([name for name in names if name not in hidden]), hidden
        except MissingRight as error:
            more = error.names.intersection(names) - hidden.keys()
            if not more:
                raise
            hidden |= dict.fromkeys(sorted(more), Trouble(str(error)))
