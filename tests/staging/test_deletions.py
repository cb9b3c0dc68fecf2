"""The limits of deletion, on what a plan's changes delete."""

from dataclasses import replace

import pytest

from reconciler.model.change import AlterConfigs, DeleteTopic
from reconciler.model.desired import DesiredCluster, Limits
from reconciler.model.problem import Location, Severity
from reconciler.staging.deletions import deletion_violations

CLUSTER = DesiredCluster("prod", at=Location("prod/cluster.yaml", 1))
LINE = Location("prod/cluster.yaml", 9)


def limited(count: int, *, written: bool = True) -> DesiredCluster:
    return replace(CLUSTER, limits=Limits(deleted_topics=count, at={"deletedTopics": LINE} if written else {}))


def deletions(*names: str) -> list[DeleteTopic]:
    return [DeleteTopic(name) for name in names]


def test_one_topic_may_be_deleted_where_no_limit_is_written() -> None:
    assert list(deletion_violations([AlterConfigs("a"), *deletions("a")], CLUSTER)) == []


def test_two_are_over_the_default_and_the_clusters_document_is_named() -> None:
    (found,) = deletion_violations(deletions("b", "a"), CLUSTER)
    assert (found.code, found.severity, found.at) == ("KR415", Severity.VIOLATION, CLUSTER.at)
    assert found.message.startswith("the plan deletes 2 topics (a, b) and limits.deletedTopics is 1, the default: ")


@pytest.mark.parametrize(("most", "is_over"), [(0, True), (2, True), (3, False)])
def test_what_is_written_counts_and_its_line_is_named(most: int, is_over: bool) -> None:  # noqa: FBT001 - a column
    found = list(deletion_violations(deletions("a", "b", "c"), limited(most)))
    assert [(one.code, one.at) for one in found] == ([("KR415", LINE)] if is_over else [])
    assert all(f"limits.deletedTopics is {most}: " in one.message for one in found)
