"""Which broker coordinates which group: Java's own figures, and what a plan changes."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.cluster import Cluster, Group
from reconciler.model.coordinator import (
    Coordination,
    CoordinatorChange,
    coordination,
    coordinator_changes,
    coordinator_warnings,
    offsets_partition,
)
from reconciler.model.move import Election, Move, Reason
from reconciler.model.problem import Severity
from reconciler.model.stage import ElectStage, ReassignStage, Stage
from reconciler.model.topic_partition import TopicPartition


@pytest.mark.parametrize(
    ("group_id", "places"),
    [
        # Utils.abs(String.hashCode()) % 50, 10, 1, 7, as Java prints them.
        ("billing", (9, 9, 0, 6)),
        ("", (0, 0, 0, 0)),
        ("a", (47, 7, 0, 6)),
        ("console-consumer-12345", (6, 6, 0, 6)),
        ("polygenelubricants", (0, 0, 0, 0)),
        ("gr\u00fc\u00dfe-\u7fa4", (12, 2, 0, 6)),
        ("x\U0001f600y", (10, 0, 0, 0)),
        ("orders.events.v2", (48, 8, 0, 4)),
        ("DESIGNING WORKHOUSES", (0, 0, 0, 0)),
        ("reconciler-lock", (42, 2, 0, 0)),
    ],
)
def test_a_group_id_hashes_as_in_java(group_id: str, places: tuple[int, ...]) -> None:
    assert tuple(offsets_partition(group_id, count) for count in (50, 10, 1, 7)) == places


def offsets_cluster(*lines: str) -> Cluster:
    """Ten partitions of the offsets topic, led by 1, 2, 3 in turn, but for those that are given."""
    given = {line.partition(": ")[0]: line for line in lines}
    rows = (f"__consumer_offsets-{number}: {1 + number % 3},{1 + (number + 1) % 3}" for number in range(10))
    return small_cluster(*(given.get(row.partition(": ")[0], row) for row in rows))


def test_the_leader_of_its_partition_coordinates_a_group() -> None:
    assert coordination("billing", offsets_cluster()) == Coordination("billing", 9, 1)


def test_a_partition_without_leader_leaves_a_group_without_coordinator() -> None:
    cluster = offsets_cluster("__consumer_offsets-9: 1,2 isr ,")
    assert coordination("billing", cluster) == Coordination("billing", 9, None)


def test_without_the_offsets_topic_no_group_has_a_place() -> None:
    assert coordination("billing", small_cluster("orders-0: 1,2")) is None


def move(partition: int, old: tuple[int, ...], new: tuple[int, ...], topic: str = "__consumer_offsets") -> Move:
    return Move(TopicPartition(topic, partition), old, new, 0, Reason.BALANCE)


GROUPS = (Group("a"), Group("billing"), Group("orders.events.v2"))  # partitions 7, 9 and 8: led by 2, 1 and 3


@pytest.mark.parametrize(
    ("stages", "changes"),
    [
        ((), ()),
        # The leader stays among the replicas: only an election moves it.
        ((ReassignStage(1, (move(9, (1, 2), (2, 1)),)),), ()),
        (
            (
                ReassignStage(1, (move(9, (1, 2), (2, 1)),)),
                ElectStage(2, (Election(TopicPartition("__consumer_offsets", 9), 2),)),
            ),
            (CoordinatorChange("billing", 9, 1, 2),),
        ),
        ((ReassignStage(1, (move(9, (1, 2), (3, 2)),)),), (CoordinatorChange("billing", 9, 1, 3),)),
        # There and back again.
        ((ReassignStage(1, (move(7, (2, 3), (3, 4)),)), ReassignStage(2, (move(7, (3, 4), (2, 4)),))), ()),
        # Another topic of the same partition number.
        ((ReassignStage(1, (move(9, (1, 2), (3, 2), "orders"),)),), ()),
        (
            (ReassignStage(1, (move(7, (2, 3), (4, 5)), move(8, (3, 1), (5, 6)))),),
            (CoordinatorChange("a", 7, 2, 4), CoordinatorChange("orders.events.v2", 8, 3, 5)),
        ),
    ],
)
def test_a_plan_moves_coordinators_with_the_leaders_of_the_offsets_topic(
    stages: tuple[Stage, ...], changes: tuple[CoordinatorChange, ...]
) -> None:
    cluster = replace(offsets_cluster(), groups=GROUPS)
    assert coordinator_changes(stages, cluster) == changes


MOVED = (ReassignStage(1, (move(7, (2, 3), (4, 5)), move(8, (3, 1), (5, 6)))),)


def test_a_plan_names_the_groups_that_get_another_coordinator() -> None:
    (warning,) = coordinator_warnings(MOVED, replace(offsets_cluster(), groups=GROUPS))
    assert (warning.code, warning.severity) == ("KR920", Severity.WARNING)
    assert warning.message == (
        "2 groups get another coordinator: a (2 -> 4), orders.events.v2 (3 -> 5); each commits again once that has "
        "loaded it"
    )


def test_a_plan_made_without_groups_says_how_to_find_them() -> None:
    (warning,) = coordinator_warnings(MOVED, offsets_cluster())
    assert warning.message == (
        "2 partitions of __consumer_offsets get another leader, and the groups there another coordinator: "
        "`groups describe --plan PLAN` names them"
    )


def test_a_plan_that_moves_nobodys_coordinator_says_nothing() -> None:
    assert coordinator_warnings(MOVED, replace(offsets_cluster(), groups=(Group("billing"),))) == ()
    assert coordinator_warnings((ReassignStage(1, (move(9, (1, 2), (2, 1)),)),), offsets_cluster()) == ()
    assert coordinator_warnings((), offsets_cluster()) == ()
