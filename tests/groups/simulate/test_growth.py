"""What a plan says of growing a topic that groups read, or whose records have keys."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.groups.assignors.registry import ASSIGNORS
from reconciler.groups.simulate.growth import growth_warnings
from reconciler.model.change import CreatePartitions
from reconciler.model.cluster import CLASSIC, CONSUMER, Cluster, Group, GroupMember
from reconciler.model.problem import Severity

GROWTH = CreatePartitions("orders", 12, 18)


def member(name: str, *partitions: int, topic: str = "orders", rack: str | None = None) -> GroupMember:
    return GroupMember(name, name, rack=rack, subscription=(topic,), assignment={topic: partitions})


def group(name: str, *members: GroupMember, protocol: str = "range", kind: str = CLASSIC) -> Group:
    return Group(name, "Stable", protocol, members=members, kind=kind)


def thirds(size: int = 4) -> list[GroupMember]:
    return [member(f"m{number}", *range(size * number, size * (number + 1))) for number in range(3)]


def cluster(*groups: Group, policy: str = "delete") -> Cluster:
    lines = [f"orders-{number}: {1 + number % 3},{1 + (number + 1) % 3}" for number in range(12)]
    observed = small_cluster(*lines, "other-0: 1,2", configs={"orders": {"cleanup.policy": policy}})
    return replace(observed, groups=groups)


def told(observed: Cluster, *growths: CreatePartitions) -> list[tuple[str, str]]:
    found = growth_warnings(observed, growths or (GROWTH,))
    assert all(problem.severity is Severity.WARNING for problem in found)
    return [(problem.code, problem.message) for problem in found]


def test_a_topic_that_nobody_reads_and_nothing_compacts_needs_no_warning() -> None:
    assert told(cluster()) == []
    assert told(cluster(group("elsewhere", member("m", 0, topic="other")))) == []


def test_what_becomes_of_each_group_is_told() -> None:
    (read, latest) = told(cluster(group("billing", *thirds())))
    keys = "topic orders: partitions 12 -> 18; if it is keyed, keys map elsewhere"
    assert read == ("KR831", f"{keys}; group billing (range) 4-4-4 -> 6-6-6, 6 partitions change owner")
    assert latest[0] == "KR833"
    assert latest[1].startswith("billing: members with auto.offset.reset=latest miss what is written")
    assert latest[1].endswith("(KAFKA-20030)")


def test_a_sticky_group_keeps_what_it_has() -> None:
    (read, _) = told(cluster(group("billing", *thirds(), protocol="sticky")))
    assert read[1].endswith("group billing (sticky) 4-4-4 -> 6-6-6, 0 partitions change owner")


def test_the_brokers_own_assignor_answers_for_a_kip_848_group() -> None:
    (read, _) = told(cluster(group("billing", *thirds(), protocol="uniform", kind=CONSUMER)))
    assert "group billing (server-uniform) 4-4-4 -> 6-6-6, 0 partitions change owner" in read[1]


def test_groups_without_members_and_with_an_assignor_of_their_own_are_named() -> None:
    empty = Group("empty", "Empty", offsets={"orders": {0: 5}})
    (read, latest) = told(cluster(empty, group("strange", *thirds(), protocol="mine")))
    assert "group empty has offsets, but no members now" in read[1]
    assert "group strange (assignor mine): its result is not known here" in read[1]
    assert latest[1].startswith("empty, strange: members with")


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_has_keys(policy: str) -> None:
    (compacted,) = told(cluster(policy=policy))
    assert compacted[0] == "KR832"
    assert "keys map elsewhere: the old partition keeps a key's last value for ever" in compacted[1]
    read = told(cluster(group("billing", *thirds()), policy=policy))[1]
    assert "; keys map elsewhere; group billing" in read[1]


def test_several_growths_count_together() -> None:
    both = group("both", GroupMember("m", subscription=("orders", "other"), assignment={"orders": tuple(range(12))}))
    found = told(cluster(both), GROWTH, CreatePartitions("other", 1, 4))
    assert [code for code, _ in found] == ["KR831", "KR831", "KR833"]
    assert all("group both (range) 12 -> 22, 0 partitions change owner" in message for _, message in found[:2])


@pytest.mark.parametrize(("broker", "moved"), [(1, 1), (2, 0)])
def test_the_racks_of_new_partitions_are_those_of_the_plan(broker: int, moved: int) -> None:
    # orders-0 stands in rack c, where no member is; orders-1 draws the member of its own rack.
    members = [member("ma", 0, rack="a"), member("mb", rack="b")]
    observed = replace(small_cluster("orders-0: 3"), groups=(group("racked", *members),))
    placed = CreatePartitions("orders", 1, 2, {1: (broker,)})
    message = growth_warnings(observed, [placed])[0].message
    assert f"(range) 1-0 -> 1-1, {moved} partition" in message


def test_many_groups_are_counted_not_listed() -> None:
    (read, latest) = told(cluster(*(group(f"g{number:02}", *thirds()) for number in range(12))))
    assert read[1].endswith("; and 2 more groups")
    assert "g09 and 2 more: members with" in latest[1]


def test_every_shipped_assignor_can_answer() -> None:
    observed = cluster(*(group(name, *thirds(), protocol=name) for name in ASSIGNORS if not name.startswith("server")))
    assert "not known here" not in told(observed)[0][1]
