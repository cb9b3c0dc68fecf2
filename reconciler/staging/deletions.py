"""What a plan deletes, against `limits.deletedTopics` and `limits.deletedBytes`."""

from collections.abc import Iterator, Sequence

from reconciler.model.change import DeleteTopic, TopicChange, class_of, destruction
from reconciler.model.desired import DesiredCluster, Limits
from reconciler.model.effect import EffectClass
from reconciler.model.problem import DELETED_BYTES, DELETED_TOPICS, Problem, Severity
from reconciler.model.words import size
from reconciler.staging.problems import some


def deletion_violations(changes: Sequence[TopicChange], cluster: DesiredCluster) -> Iterator[Problem]:
    """Yield each limit of deletion that the changes go over; a document with `state: absent` counts too."""
    deleted = sorted(change.topic for change in changes if isinstance(change, DeleteTopic))
    limits = cluster.limits
    if len(deleted) > limits.deleted_topics:
        written = "" if "deletedTopics" in limits.at else ", the default"
        message = (
            f"the plan deletes {len(deleted)} topics ({some(deleted)}) and limits.deletedTopics is"
            f" {limits.deleted_topics}{written}: bring back what declares them, or raise it if all of them are to go"
        )
        yield Problem(DELETED_TOPICS, message, limits.at.get("deletedTopics", cluster.at), Severity.VIOLATION)
    yield from _deleted_bytes(changes, limits)


def _deleted_bytes(changes: Sequence[TopicChange], limits: Limits) -> Iterator[Problem]:
    """Yield the violation of that limit; what cannot be counted is over it, or nothing would hold it back."""
    lost, most = destruction(changes), limits.deleted_bytes
    if lost is None or most is None or (lost.is_size_known and lost.bytes <= most):
        return
    names = sorted({change.topic for change in changes if class_of(change) is EffectClass.DESTROYS})
    of_topics = f"of {len(names)} topics ({some(names)})" if len(names) > 1 else f"of topic {names[0]}"
    limit = f"limits.deletedBytes is {size(most)}"
    if lost.bytes > most:
        more = "" if lost.is_size_known else " at least"
        message = f"the plan deletes{more} {size(lost.bytes)} ({lost.bytes} bytes) {of_topics} and {limit}"
        message += ": keep what is not to go, or raise it"
    else:
        message = (
            f"the plan deletes records {of_topics}, how many bytes is not known, and {limit}: keep what is not to go,"
            " plan where all sizes are told, or take the limit out"
        )
    yield Problem(DELETED_BYTES, message, limits.at.get("deletedBytes"), Severity.VIOLATION)
