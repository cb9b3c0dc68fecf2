"""The limits of deletion, on what a plan's changes delete."""

from dataclasses import replace

import pytest

from reconciler.model.change import AlterConfigs, DeleteTopic, TopicChange
from reconciler.model.desired import DesiredCluster, Limits
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.problem import Location, Severity
from reconciler.staging.problems import deletion_violations

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


BYTES = Location("prod/cluster.yaml", 10)


def of_bytes(most: int | None) -> DesiredCluster:
    at = {} if most is None else {"deletedBytes": BYTES}
    return replace(CLUSTER, limits=Limits(deleted_topics=9, deleted_bytes=most, at={"deletedTopics": LINE, **at}))


def losing(change: TopicChange, size: int | None) -> TopicChange:
    return replace(change, effects=(Effect(EffectClass.DESTROYS, "deletes", "retention.ms", size),))


@pytest.mark.parametrize(
    ("sizes", "most", "told"),
    [
        ((5, 7), 12, None),
        ((5, 7), 11, "the plan deletes 12 B (12 bytes) of 2 topics (c0, t0) and limits.deletedBytes is 11 B: "),
        ((5, 7), None, None),
        ((0, 0), 0, None),
        ((1, 0), 0, "the plan deletes 1 B (1 bytes) of 2 topics (c0, t0) and limits.deletedBytes is 0 B: "),
        ((None, 0), 9, "the plan deletes records of 2 topics (c0, t0), how many bytes is not known, and limits."),
        (
            (None, 10),
            9,
            "the plan deletes at least 10 B (10 bytes) of 2 topics (c0, t0) and limits.deletedBytes is 9 B",
        ),
        ((None, 10), None, None),
    ],
)
def test_bytes_of_topics_and_of_configs_count_and_unknown_ones_are_over(
    sizes: tuple[int | None, int | None], most: int | None, told: str | None
) -> None:
    changes = [losing(DeleteTopic("t0"), sizes[0]), losing(AlterConfigs("c0"), sizes[1]), AlterConfigs("harmless")]
    found = list(deletion_violations(changes, of_bytes(most)))
    assert [(one.code, one.at) for one in found] == ([] if told is None else [("KR416", BYTES)])
    assert all(one.message.startswith(told or "") for one in found)
