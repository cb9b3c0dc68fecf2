"""What a plan deletes, against `limits.deletedTopics` and `limits.deletedBytes`."""

from collections.abc import Iterator, Sequence

from reconciler.model.change import DeleteTopic, TopicChange
from reconciler.model.desired import DesiredCluster
from reconciler.model.problem import DELETED_TOPICS, Problem, Severity
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
