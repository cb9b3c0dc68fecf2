"""Small groups whose assignment can be worked out on paper, from Kafka's documentation and its KIPs."""

import pytest

from reconciler.groups.assignors.registry import ASSIGNORS, UnknownAssignor, assignor_named
from reconciler.model.assignment import SubscribedTopic, Subscriber

GROUP = ("t0", "t1", "t2")


def topics(**partitions: int) -> dict[str, SubscribedTopic]:
    return {name: SubscribedTopic(name, count) for name, count in partitions.items()}


def given(assignor: str, members: list[Subscriber], of: dict[str, SubscribedTopic]) -> dict[str, str]:
    """Return each member's partitions as `t0: 0,1  t1: 2`."""
    return {
        member_id: "  ".join(f"{topic}: {','.join(map(str, partitions))}" for topic, partitions in held.items())
        for member_id, held in assignor_named(assignor).assign(members, of).items()
    }


def test_range_gives_the_first_members_one_more_of_each_topic() -> None:
    members = [Subscriber("C1", ("t0", "t1")), Subscriber("C0", ("t0", "t1"))]
    assert given("range", members, topics(t0=3, t1=3)) == {"C0": "t0: 0,1  t1: 0,1", "C1": "t0: 2  t1: 2"}


def test_range_serves_static_members_first_and_by_their_instance() -> None:
    members = [
        Subscriber("a", ("t0",)),
        Subscriber("z", ("t0",), instance_id="host-1"),
        Subscriber("b", ("t0",), instance_id="host-2"),
    ]
    assert given("range", members, topics(t0=4)) == {"z": "t0: 0,1", "b": "t0: 2", "a": "t0: 3"}


def test_range_gives_partitions_to_members_in_their_racks() -> None:
    racks = tuple(frozenset(rack) for rack in ("c", "b", "a", "a", "b", "c"))
    members = [Subscriber(rack.upper(), ("t0",), rack=rack) for rack in "abc"]
    of = {"t0": SubscribedTopic("t0", 6, racks=racks)}
    assert given("range", members, of) == {"A": "t0: 2,3", "B": "t0: 1,4", "C": "t0: 0,5"}


def test_range_keeps_topics_of_one_size_together_where_racks_allow() -> None:
    of = {
        "t0": SubscribedTopic("t0", 2, racks=(frozenset("b"), frozenset("a"))),
        "t1": SubscribedTopic("t1", 2, racks=(frozenset("bc"), frozenset("ac"))),
    }
    members = [Subscriber("A", ("t0", "t1"), rack="a"), Subscriber("B", ("t0", "t1"), rack="b")]
    assert given("range", members, of) == {"A": "t0: 1  t1: 1", "B": "t0: 0  t1: 0"}


def test_range_fills_up_with_what_is_in_no_members_rack() -> None:
    of = {"t0": SubscribedTopic("t0", 4, racks=(frozenset("a"), frozenset("a"), frozenset("a")))}
    members = [Subscriber("A", ("t0",), rack="a"), Subscriber("B", ("t0",), rack="b")]
    assert given("range", members, of) == {"A": "t0: 0,1", "B": "t0: 2,3"}


def test_racks_that_no_replica_shares_with_a_member_have_no_influence_on_range() -> None:
    racks = (frozenset("x"), frozenset("y"), frozenset("x"))
    of = {name: SubscribedTopic(name, 3, racks=racks) for name in ("t0", "t1")}
    members = [Subscriber("A", ("t0", "t1"), rack="a"), Subscriber("B", ("t0", "t1"))]
    assert given("range", members, of) == {"A": "t0: 0,1  t1: 0,1", "B": "t0: 2  t1: 2"}


def test_roundrobin_deals_all_topics_in_one_turn_and_skips_who_does_not_subscribe() -> None:
    members = [Subscriber("C0", ("t0",)), Subscriber("C1", ("t0", "t1")), Subscriber("C2", GROUP)]
    of = topics(t0=1, t1=2, t2=3)
    assert given("roundrobin", members, of) == {"C0": "t0: 0", "C1": "t1: 0", "C2": "t1: 1  t2: 0,1,2"}


def test_sticky_evens_out_where_roundrobin_cannot() -> None:
    members = [Subscriber("C0", ("t0",)), Subscriber("C1", ("t0", "t1")), Subscriber("C2", GROUP)]
    of = topics(t0=1, t1=2, t2=3)
    assert given("sticky", members, of) == {"C0": "t0: 0", "C1": "t1: 0,1", "C2": "t2: 0,1,2"}


def test_sticky_moves_nothing_but_what_a_leaver_had() -> None:
    members = [
        Subscriber("C0", ("t0", "t1"), owned={"t0": (0,), "t1": (1,)}, generation=1),
        Subscriber("C2", ("t0", "t1"), owned={"t0": (2,), "t1": (0, 2)}, generation=1),
    ]
    assert given("sticky", members, topics(t0=3, t1=3)) == {"C0": "t0: 0,1  t1: 1", "C2": "t0: 2  t1: 0,2"}


def test_of_two_claims_the_newer_generation_holds() -> None:
    members = [
        Subscriber("a", ("t0",), owned={"t0": (0, 1, 2)}, generation=4),
        Subscriber("b", ("t0",), owned={"t0": (0, 1)}, generation=5),
    ]
    assert given("sticky", members, topics(t0=4)) == {"a": "t0: 2,3", "b": "t0: 0,1"}
    assert given("sticky", members[::-1], topics(t0=4)) == {"a": "t0: 2,3", "b": "t0: 0,1"}


def test_cooperative_sticky_withholds_what_must_first_be_let_go() -> None:
    of = topics(t0=4)
    first = [Subscriber("a", ("t0",), owned={"t0": (0, 1, 2, 3)}, generation=1), Subscriber("b", ("t0",))]
    assert given("cooperative-sticky", first, of) == {"a": "t0: 0,1", "b": ""}
    second = [
        Subscriber("a", ("t0",), owned={"t0": (0, 1)}, generation=2),
        Subscriber("b", ("t0",), generation=2),
    ]
    assert given("cooperative-sticky", second, of) == {"a": "t0: 0,1", "b": "t0: 2,3"}


def test_cooperative_sticky_withholds_what_two_claim_in_one_generation() -> None:
    members = [
        Subscriber("a", ("t0",), owned={"t0": (0, 1)}, generation=5),
        Subscriber("b", ("t0",), owned={"t0": (1, 2)}, generation=5),
    ]
    assert given("cooperative-sticky", members, topics(t0=3)) == {"a": "t0: 0", "b": "t0: 2"}


def test_what_a_member_unsubscribed_from_is_free_at_once() -> None:
    members = [
        Subscriber("a", ("t1",), owned={"t0": (0, 1), "t1": (0,)}, generation=1),
        Subscriber("b", ("t0", "t1"), owned={"t1": (1,)}, generation=1),
    ]
    expected = {"a": "t1: 0,1", "b": "t0: 0,1"}
    assert given("sticky", members, topics(t0=2, t1=2)) == expected
    assert given("cooperative-sticky", members, topics(t0=2, t1=2)) == {"a": "t1: 0", "b": "t0: 0,1"}


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_member_that_subscribes_to_nothing_gets_nothing(assignor: str) -> None:
    # `a` is first in hash order, where Kafka's sticky classes would take the group for equally subscribed.
    members = [Subscriber("a", ()), Subscriber("m1", ("t0",)), Subscriber("m2", ("t0",))]
    of = {"t0": SubscribedTopic("t0", 4, "YsbjT-jO1uxHMnOf4lZPcQ")}
    held = given(assignor, members, of)
    assert held["a"] == ""
    assert len(held["m1"]) == len(held["m2"]) == len("t0: 0,2")


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_claims_on_what_does_not_exist_count_for_nothing(assignor: str) -> None:
    members = [
        Subscriber("a", ("t0", "gone"), owned={"t0": (0, 7), "gone": (0,)}, generation=1),
        Subscriber("b", ("t0", "gone"), owned={"t0": (1, 1, -1)}, generation=1),
    ]
    of = {"t0": SubscribedTopic("t0", 2, "YsbjT-jO1uxHMnOf4lZPcQ")}
    assert sorted(given(assignor, members, of).values()) == ["t0: 0", "t0: 1"]


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_an_empty_group_and_a_group_without_topics_get_nothing(assignor: str) -> None:
    assert given(assignor, [], topics(t0=2)) == {}
    assert given(assignor, [Subscriber("a", ("t0",))], {}) == {"a": ""}


def test_an_unknown_assignor_is_told_with_those_there_are() -> None:
    with pytest.raises(UnknownAssignor, match="no assignor stiky; take one of range, roundrobin, sticky"):
        assignor_named("stiky")
