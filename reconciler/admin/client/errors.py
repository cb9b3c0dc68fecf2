"""Names Kafka's error codes in Kafka's words, and says in ours which right is missing."""

from collections.abc import Collection

import kafka.errors

from reconciler.admin.client.redact import without_values
from reconciler.admin.port import Answer
from reconciler.model.problem import MissingRight
from reconciler.model.words import few, size

ANSWER_BYTES = 64 << 20
"""The largest answer that is read: metadata of a million partitions take less, and no request asks for more."""
NONE = 0
UNKNOWN_TOPIC_OR_PARTITION = 3
REQUEST_TIMED_OUT = 7
REPLICA_NOT_AVAILABLE = 9
NOT_CONTROLLER = 41
ELECTION_NOT_NEEDED = 84
THROTTLING_QUOTA_EXCEEDED = 89
AUTHORIZATION_FAILED = frozenset({29, 30, 31})
# LEADER_NOT_AVAILABLE, BROKER_NOT_AVAILABLE, NETWORK_EXCEPTION, COORDINATOR_*, NOT_COORDINATOR, KAFKA_STORAGE_ERROR
# are left out on purpose where they concern one item: only a whole answer is asked for again.
RETRIABLE = frozenset({5, REQUEST_TIMED_OUT, 8, 13, 14, 15, 16, NOT_CONTROLLER})
# Where the library's name is not the protocol's.
PROTOCOL_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR",
    6: "NOT_LEADER_OR_FOLLOWER",
    10: "MESSAGE_TOO_LARGE",
    17: "INVALID_TOPIC_EXCEPTION",
    39: "INVALID_REPLICA_ASSIGNMENT",
    128: "INVALID_REGULAR_EXPRESSION",
    129: "REBOOTSTRAP_REQUIRED",
}


def name_of(code: int) -> str:
    """Return the protocol's name of an error code (`NOT_CONTROLLER`)."""
    if code in PROTOCOL_NAMES:
        return PROTOCOL_NAMES[code]
    known = kafka.errors.kafka_errors.get(code)
    return str(known.message) if known is not None else f"ERROR_{code}"


def said(error: Exception) -> str:
    """Return what the library says of its trouble: it may quote what it was given."""
    if isinstance(error, kafka.errors.InvalidReceiveError):
        return f"it sends an answer larger than {size(ANSWER_BYTES)}, which no Kafka broker does"
    texts = [str(text) for text in error.args if str(text)]
    if not texts or texts[0].isdigit():
        return type(error).__name__.removesuffix("Error")
    return without_values(texts[0])


def answer(code: int, message: str | None) -> Answer:
    """Return an item's answer."""
    return Answer() if code == NONE else Answer(name_of(code), message or "")


def check_cluster_right(code: int, operation: str, need: str) -> None:
    """Raise MissingRight where the code says that this user lacks that right on the cluster."""
    if code in AUTHORIZATION_FAILED:
        raise missing_right(operation, "cluster", (), need)


def missing_right(operation: str, resource: str, names: Collection[str], need: str) -> MissingRight:
    """Return the error for a missing right: `need` says what cannot be done without it."""
    shown = sorted(names)
    where = "the cluster" if resource == "cluster" else f"{resource} {few(shown)}"
    option = "--cluster" if resource == "cluster" else f"--{resource} {shown[0] if shown else '*'}"
    return MissingRight(
        f"{need} needs the right {operation} on {where}, which this user lacks. "
        f"Grant it, for example with `kafka-acls --add --allow-principal User:NAME --operation {operation} {option}`.",
        names=() if resource == "cluster" else shown,
    )
