"""Small groups whose assignment can be worked out on paper, from Kafka's documentation and its KIPs."""

import pytest

from reconciler.groups.assignors.registry import ASSIGNORS, UnknownAssignor, assignor_named
from reconciler.model.assignment import SubscribedTopic, Subscriber


def topics(**partitions: int) -> dict[str, SubscribedTopic]:
    return {name: SubscribedTopic(name, count) for name, count in partitions.items()}


def given(assignor: str, members: list[Subscriber], of: dict[str, SubscribedTopic]) -> dict[str, str]:
    """Return each member's partitions as `t0: 0,1  t1: 2`."""
    return {
        member_id: "  ".join(f"{topic}: {','.join(map(str, partitions))}" for topic, partitions in held.items())
        for member_id, held in assignor_named(assignor).assign(members, of).items()
    }


def test_of_two_claims_the_newer_generation_holds() -> None:
    members = [
        Subscriber("a", ("t0",), owned={"t0": (0, 1, 2)}, generation=4),
        Subscriber("b", ("t0",), owned={"t0": (0, 1)}, generation=5),
    ]
    assert given("sticky", members, topics(t0=4)) == {"a": "t0: 2,3", "b": "t0: 0,1"}
    assert given("sticky", members[::-1], topics(t0=4)) == {"a": "t0: 2,3", "b": "t0: 0,1"}


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
