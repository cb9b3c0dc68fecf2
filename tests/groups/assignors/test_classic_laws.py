"""What holds for every group under the client-side assignors, whatever Kafka's classes say."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from groups.classic_groups import CLASSIC, COOPERATIVE, counts, owners, rejoining
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.groups.assignors.registry import assignor_named
from reconciler.model.assignment import SubscribedTopic, Subscriber

Group = tuple[list[Subscriber], dict[str, SubscribedTopic]]

EAGER = ("range", "roundrobin", "sticky")
RACKS = ("rack-a", "rack-b", "rack-c")
NAMES = ("t0", "t1", "pay.ments", "Z", "é")

pytestmark = pytest.mark.long

laws = settings(max_examples=12)


@st.composite
def groups(draw: st.DrawFn, *, is_equal: bool | None = None, has_claims: bool = False, has_racks: bool = True) -> Group:
    """Return members and topics; each member may come with claims of its own, right or wrong."""
    counted = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 9), min_size=1))
    knows_racks = has_racks and draw(st.booleans())
    topics = {
        name: SubscribedTopic(
            name,
            count,
            racks=tuple(draw(st.frozensets(st.sampled_from(RACKS), max_size=2)) for _ in range(count * knows_racks)),
        )
        for name, count in counted.items()
    }
    some = st.lists(st.sampled_from([*counted, "no-such-topic"]), unique=True, max_size=4).map(tuple)
    common = draw(some) if draw(st.booleans()) or is_equal else None
    if is_equal and not set(common or ()) & set(counted):
        common = tuple(counted)
    members = [
        Subscriber(
            f"consumer-{number}",
            draw(some) if common is None else common,
            instance_id=draw(st.sampled_from([None, f"host-{99 - number}"])),
            rack=draw(st.sampled_from([None, *RACKS])) if knows_racks else None,
            owned=draw(_claims(counted)) if has_claims else {},
            generation=draw(st.integers(-1, 3)) if has_claims else -1,
        )
        for number in range(draw(st.integers(1, 9)))
    ]
    return members, topics


def _claims(counted: dict[str, int]) -> st.SearchStrategy[dict[str, tuple[int, ...]]]:
    one = st.tuples(st.sampled_from([*counted, "gone"]), st.lists(st.integers(0, 9), max_size=6).map(tuple))
    return st.lists(one, max_size=3).map(dict)


def subscribed(members: Sequence[Subscriber], topics: dict[str, SubscribedTopic]) -> set[tuple[str, int]]:
    wanted = {name for member in members for name in member.subscription if name in topics}
    return {(name, partition) for name in wanted for partition in range(topics[name].partitions)}


@pytest.mark.parametrize("assignor", EAGER)
@laws
@given(group=groups(has_claims=True))
def test_every_partition_has_one_owner_who_subscribes_to_it(assignor: str, group: Group) -> None:
    members, topics = group
    assignment = assignor_named(assignor).assign(members, topics)
    owned = owners(assignment)
    subscription = {member.member_id: set(member.subscription) for member in members}
    assert set(owned) == subscribed(members, topics)
    assert all(topic in subscription[member_id] for (topic, _), member_id in owned.items())
    assert list(assignment) == [member.member_id for member in members]
    assert all(held and list(held) == sorted(held) for topics in assignment.values() for held in topics.values())


@laws
@given(group=groups(has_claims=True))
def test_what_cooperative_hands_over_was_let_go_by_everybody_else(group: Group) -> None:
    members, topics = group
    claims = Counter(
        (topic, partition)
        for member in members
        for topic, partitions in member.owned.items()
        if topic in member.subscription
        for partition in set(partitions)
    )
    own = {member.member_id: member.owned for member in members}
    for (topic, partition), owner in owners(assignor_named(COOPERATIVE).assign(members, topics)).items():
        assert partition in own[owner].get(topic, ()) or claims[topic, partition] == 0


@laws
@given(group=groups(is_equal=True, has_racks=False))
def test_cooperative_reaches_in_two_rounds_what_sticky_reaches_in_one(group: Group) -> None:
    members, topics = group
    sticky, cooperative = assignor_named("sticky"), assignor_named(COOPERATIVE)
    before = rejoining(members, sticky.assign(members, topics))
    joined = [*before, Subscriber("consumer-new", members[0].subscription)]
    first = cooperative.assign(joined, topics)
    second = cooperative.assign(rejoining(joined, first, 2), topics)
    assert second == sticky.assign(joined, topics)
    assert cooperative.assign(rejoining(joined, second, 3), topics) == second


@laws
@given(group=groups(is_equal=True, has_racks=False), more=st.integers(0, 5))
def test_when_an_equal_subscriber_joins_partitions_move_to_it_alone(group: Group, more: int) -> None:
    members, topics = group
    before = assignor_named("sticky").assign(members, topics)
    grown = {name: replace(topic, partitions=topic.partitions + more) for name, topic in topics.items()}
    joined = [*rejoining(members, before), Subscriber("consumer-new", members[0].subscription)]
    now = owners(assignor_named("sticky").assign(joined, grown))
    strays = [key for key, owner in owners(before).items() if now[key] not in {owner, "consumer-new"}]
    assert strays == []


@laws
@given(group=groups(is_equal=False, has_racks=False))
def test_no_single_move_would_balance_a_new_sticky_group_better(group: Group) -> None:
    members, topics = group
    assignment = assignor_named("sticky").assign(members, topics)
    held = counts(assignment)
    readers = {name: [member.member_id for member in members if name in member.subscription] for name in topics}
    for (topic, _), owner in owners(assignment).items():
        assert held[owner] <= 1 + min(held[reader] for reader in readers[topic])


@pytest.mark.parametrize("assignor", CLASSIC)
@laws
@given(group=groups(has_claims=True), order=st.randoms(use_true_random=False))
def test_the_order_of_joining_changes_nothing_while_ids_have_bins_of_their_own(
    assignor: str, group: Group, order: Random
) -> None:
    members, topics = group
    shuffled = list(members)
    order.shuffle(shuffled)
    assert assignor_named(assignor).assign(shuffled, topics) == assignor_named(assignor).assign(members, topics)


def test_the_order_of_joining_decides_between_ids_of_one_bin() -> None:
    # "Aa" and "BB" have one hash; who comes first keeps the larger quota.
    topics = {"t0": SubscribedTopic("t0", 5)}
    members = [
        Subscriber("Aa", ("t0",), owned={"t0": (0, 1, 2)}, generation=1),
        Subscriber("BB", ("t0",), owned={"t0": (3, 4)}, generation=1),
        Subscriber("C", ("t0",)),
    ]
    grown = {"t0": SubscribedTopic("t0", 7)}
    members[1] = replace(members[1], owned={"t0": (3, 4, 5)})
    sticky = assignor_named("sticky")
    assert counts(sticky.assign(members, grown)) == {"Aa": 3, "BB": 2, "C": 2}
    assert counts(sticky.assign(members[::-1], grown)) == {"C": 2, "BB": 3, "Aa": 2}
    assert counts(sticky.assign(members, topics)) == {"Aa": 2, "BB": 2, "C": 1}
