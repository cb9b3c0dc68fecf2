"""A live group as its assignor sees it, and what is said beside the result."""

from dataclasses import replace

import pytest
from helpers.clusters.small_cluster import small_cluster

from reconciler.groups.assignors.registry import ASSIGNORS
from reconciler.groups.model.simulation import Member, Sharing
from reconciler.groups.simulate.change import GroupChange
from reconciler.groups.simulate.compare import compare
from reconciler.groups.simulate.live import labels, own_assignor, present_members, subscribed_topic
from reconciler.model.cluster import CLASSIC, CONSUMER, Cluster, Group, GroupMember
from reconciler.model.problem import InvalidInput
from reconciler.model.topic_partition import TopicPartition

LINES = ("orders-0: 1,2", "orders-1: 2,3", "orders-2: 3,1", "orders-3: 1,2", "prices-0: 1", "prices-1: 2")


def member(name: str, client: str = "", rack: str | None = None, **assignment: tuple[int, ...]) -> GroupMember:
    return GroupMember(name, client or name, rack=rack, subscription=tuple(sorted(assignment)), assignment=assignment)


def observed(*members: GroupMember, state: str = "Stable", protocol: str = "range", kind: str = CLASSIC) -> Cluster:
    group = Group("g", state, protocol, members=members, kind=kind)
    return replace(small_cluster(*LINES), groups=(group,))


def after(cluster: Cluster, change: GroupChange, assignor: str, **loads: int) -> Sharing:
    known = {TopicPartition(*_key(name)): load for name, load in loads.items()} or None
    return compare(cluster, cluster.groups[0], change, [ASSIGNORS[assignor]], known).after[0]


def _key(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("_")
    return topic, int(number)


def notes(cluster: Cluster, change: GroupChange | None = None, **loads: int) -> tuple[str, ...]:
    known = {TopicPartition(*_key(name)): load for name, load in loads.items()} or None
    return compare(cluster, cluster.groups[0], change or GroupChange(), [ASSIGNORS["range"]], known).notes


@pytest.mark.parametrize(
    ("protocol", "kind", "name"),
    [
        ("range", CLASSIC, "range"),
        ("cooperative-sticky", CLASSIC, "cooperative-sticky"),
        ("range", CONSUMER, "server-range"),
        ("uniform", CONSUMER, "server-uniform"),
        ("mine", CLASSIC, "mine"),
        ("", CLASSIC, None),
    ],
)
def test_a_groups_own_assignor_goes_by_its_kind(protocol: str, kind: str, name: str | None) -> None:
    assert own_assignor(Group("g", protocol=protocol, kind=kind)) == name


def test_the_racks_of_a_topic_are_those_of_its_replicas() -> None:
    cluster = observed()
    orders = subscribed_topic(cluster, cluster.topics["orders"], 6)
    assert orders.partitions == 6
    assert orders.racks[:2] == (frozenset("ab"), frozenset("bc"))
    assert orders.racks[4:] == (frozenset(), frozenset())
    rackless = replace(cluster, brokers={key: replace(one, rack=None) for key, one in cluster.brokers.items()})
    assert subscribed_topic(rackless, cluster.topics["orders"]).racks == ()


def test_what_a_member_reads_is_found_where_its_metadata_does_not_tell() -> None:
    silent = GroupMember("a", assignment={"orders": (0, 1)})
    by_pattern = GroupMember("b", subscription=("prices",), subscription_pattern="o.*", assignment={"orders": (2,)})
    same_pattern = GroupMember("c", subscription_pattern="o.*")
    found = {
        one.member_id: one.subscription for one in present_members(observed(silent, by_pattern, same_pattern).groups[0])
    }
    assert found == {"a": ("orders",), "b": ("orders", "prices"), "c": ("orders",)}


def test_members_go_by_short_names_where_those_tell_them_apart() -> None:
    group = Group(
        "g",
        members=(
            GroupMember("app-1f0e9d8c-aaaa", "app"),
            GroupMember("app-2b3c4d5e-bbbb", "app"),
            GroupMember("other-99", "other"),
            GroupMember("x-1", "x", instance_id="till-7"),
        ),
    )
    members = [Member(one.member_id, (), one.instance_id) for one in group.members]
    assert labels(group, [*members, Member("new", ())]) == {
        "app-1f0e9d8c-aaaa": "app-1f0e9d8c",
        "app-2b3c4d5e-bbbb": "app-2b3c4d5e",
        "other-99": "other",
        "x-1": "till-7",
        "new": "new",
    }


def test_loads_go_with_the_partitions() -> None:
    cluster = observed(member("a", orders=(0, 1)), member("b", orders=(2, 3)))
    sharing = after(cluster, GroupChange(), "range", orders_0=100, orders_1=20, orders_2=30, orders_3=10)
    assert sharing.bytes_per_second == {"a": 120, "b": 40}
    assert (sharing.count_imbalance, sharing.load_imbalance) == (1.0, 1.5)


def test_a_partition_without_a_measured_load_is_counted_aloud() -> None:
    cluster = observed(member("a", orders=(0, 1, 2, 3)))
    assert notes(cluster, orders_0=5) == ("3 of 4 partitions have no measured load and count as 0",)


def test_a_member_is_named_by_its_id_its_instance_or_its_client() -> None:
    static = GroupMember("s-1", "s", instance_id="till", subscription=("orders",), assignment={"orders": (0, 1)})
    cluster = observed(static, member("b-1", "b", orders=(2, 3)))
    for name in ("s-1", "till", "s"):
        assert after(cluster, GroupChange(removed=(name,)), "range").assignment == {"b-1": {"orders": (0, 1, 2, 3)}}


def test_every_wrong_name_is_told_at_once() -> None:
    cluster = observed(member("a", orders=(0,)))
    change = GroupChange(removed=("x", "y"), subscriptions={"z": ("orders",)}, added={"a": ()})
    with pytest.raises(InvalidInput) as refused:
        after(cluster, change, "range")
    assert [problem.message.partition(":")[0] for problem in refused.value.problems] == [
        "--remove-member x",
        "--remove-member y",
        "--subscribe z",
        "--add-member a",
    ]


def test_a_group_that_rebalances_or_reads_what_is_not_there_is_said_so() -> None:
    rebalancing = observed(member("a", orders=(0,), gone=()), state="PreparingRebalance")
    assert notes(rebalancing) == (
        "the group is rebalancing (PreparingRebalance): what its members own now is not complete",
        "subscribed, but there is no such topic: gone",
    )


def test_racks_of_partitions_to_come_are_not_known() -> None:
    cluster = observed(member("a", rack="a", orders=(0, 1, 2, 3)))
    growing = GroupChange(partitions={"orders": 8})
    assert "members have racks" in notes(cluster, growing)[0]


def test_what_hangs_on_the_ids_that_kafka_makes_is_said_so() -> None:
    cluster = observed(member("m", orders=(0, 1, 2, 3)))
    joining = GroupChange(added={"n": ()})
    assert any("Kafka makes the ids" in doubt for doubt in after(cluster, joining, "range").doubts)
    assert after(cluster, joining, "sticky").doubts == ()


def test_topics_without_known_ids_leave_server_uniform_in_doubt() -> None:
    cluster = observed(member("m", orders=(0, 1, 2, 3), prices=(0, 1)), protocol="uniform", kind=CONSUMER)
    nameless = replace(cluster, topics={name: replace(topic, topic_id=None) for name, topic in cluster.topics.items()})
    assert any("hash of their ids" in doubt for doubt in after(nameless, GroupChange(), "server-uniform").doubts)
    assert after(nameless, GroupChange(), "server-range").doubts == ()


def test_a_move_to_cooperative_sticky_takes_two_rebalances_where_partitions_change_hands() -> None:
    cluster = observed(member("a", orders=(0, 1, 2, 3)), member("b", orders=()), protocol="cooperative-sticky")
    sharing = after(cluster, GroupChange(), "cooperative-sticky")
    assert (sharing.rebalances, sharing.counts, len(sharing.moved)) == (2, {"a": 2, "b": 2}, 2)
