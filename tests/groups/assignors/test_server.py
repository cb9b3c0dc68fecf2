"""`server-range` and `server-uniform`: Kafka's visible cases, and laws on groups of any form."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.groups.assignors.registry import ASSIGNORS
from reconciler.groups.assignors.server_order import fullest_first, id_bits, partitions_in_set_order
from reconciler.groups.assignors.server_uniform import ServerUniformAssignor
from reconciler.groups.model.simulation import Member, Scenario, Step
from reconciler.groups.simulate.simulation import simulate
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber

CASES = Path(__file__).parents[1] / "assignors.json"
IDS = ("uI30ui6ypNgL7mA6Yc9guQ", "P3NI8LJb7z053IdGJ78aag", "57itX0cvJiYBRLgrb75kqA", "7NOSlcMAF9PMCZoUpZ-R-w")
UNIFORM = ServerUniformAssignor()
SERVER_SIDE = (ASSIGNORS["server-range"], ASSIGNORS["server-uniform"])


def _members(*subscriptions: str, owned: Mapping[str, Mapping[str, tuple[int, ...]]] | None = None) -> list[Subscriber]:
    """Return members m0, m1 ...; each subscribes to the topics named by the letters of its text."""
    return [
        Subscriber(f"m{number}", tuple(letters), owned=(owned or {}).get(f"m{number}", {}))
        for number, letters in enumerate(subscriptions)
    ]


def _topics(**partitions: int) -> dict[str, SubscribedTopic]:
    return {
        name: SubscribedTopic(name, count, topic_id)
        for (name, count), topic_id in zip(partitions.items(), IDS, strict=False)
    }


def _sizes(assignment: Assignment) -> list[int]:
    return sorted(sum(map(len, owned.values())) for owned in assignment.values())


def test_a_joining_member_takes_only_what_the_others_have_too_much_of() -> None:
    topics = _topics(a=12)
    before = UNIFORM.assign(_members("a", "a", "a"), topics)
    after = UNIFORM.assign(_members("a", "a", "a", "a", owned=before), topics)
    assert _sizes(after) == [3, 3, 3, 3]
    for member, owned in before.items():
        assert set(after[member]["a"]) < set(owned["a"])


def test_members_that_have_more_already_keep_the_larger_quota() -> None:
    owned: Assignment = {"m2": {"a": (0, 1, 2)}, "m0": {"a": (3, 4)}}
    assert UNIFORM.assign(_members("a", "a", "a", owned=owned), _topics(a=7)) == {
        "m0": {"a": (3, 4)},
        "m1": {"a": (5, 6)},
        "m2": {"a": (0, 1, 2)},
    }


def test_one_who_alone_reads_a_topic_is_given_less_of_the_others() -> None:
    given = UNIFORM.assign(_members("ab", "b"), _topics(a=4, b=6))
    assert _sizes(given) == [5, 5]
    assert given["m0"]["a"] == (0, 1, 2, 3)


def test_chains_of_subscriptions_stay_as_uneven_as_kafka_leaves_them() -> None:
    """9, 10 and 11 could be 10 each; Kafka looks at one topic at a time (UniformHeterogeneousAssignmentBuilder)."""
    owned: Assignment = {
        "m0": {"a": tuple(range(9))},
        "m1": {"a": (9, 10), "b": tuple(range(8))},
        "m2": {"b": tuple(range(8, 19))},
    }
    given = UNIFORM.assign(_members("a", "ab", "b", owned=owned), _topics(a=11, b=19))
    assert given == owned


def test_what_is_not_there_or_claimed_twice_is_given_once() -> None:
    owned: Assignment = {"m0": {"a": (0, 1, 7), "gone": (0,)}, "m1": {"a": (1, 2)}, "m2": {"b": (0,)}}
    for subscriptions in (("a", "a", "a"), ("a", "a", "ab")):
        given = UNIFORM.assign(_members(*subscriptions, owned=owned), _topics(a=4, b=2))
        handed = sorted(partition for own in given.values() for partition in own.get("a", ()))
        assert handed == [0, 1, 2, 3]


@pytest.mark.parametrize("is_claim", [True, False])
def test_the_coordinator_goes_by_what_members_own_not_by_what_they_claim(*, is_claim: bool) -> None:
    owned: Assignment = {"m0": {"a": (2, 3)}, "m1": {"a": (0, 1)}}
    members = tuple(Member(name, ("a",), owned=own, generation=1, is_claim=is_claim) for name, own in owned.items())
    (outcome,) = simulate(Scenario(_topics(a=4), (Step(members),)), UNIFORM)
    assert (outcome.assignment == owned) is not is_claim


def test_a_topic_that_was_made_again_is_handed_out_anew() -> None:
    """As Kafka 4.1.1's builder does, whose target goes by topic ids: t-0, t-1 and t-2 all change hands."""
    members = (Member("m0", ("t", "u")), Member("m1", ("t",)), Member("m2", ("u", "t")))
    old, new, other = "p_yhR7ovSR-mRoyATvXveg", "82ZlauLtKFqDEcSOkbIfbA", "LwDiLreYAXbPljNMBF40lg"
    first, again = (
        {"t": SubscribedTopic("t", 3, topic_id), "u": SubscribedTopic("u", 1, other)} for topic_id in (old, new)
    )
    scenario = Scenario(first, (Step(members), Step(members), Step(members, again)))
    _, same, outcome = simulate(scenario, UNIFORM)
    assert same.stats.moved_from_survivors == 0
    assert outcome.assignment == {"m0": {"u": (0,)}, "m1": {"t": (0, 2)}, "m2": {"t": (1,)}}
    assert outcome.stats.moved_from_survivors == 3


def test_topics_without_a_known_id_are_taken_by_name() -> None:
    topics = {name: SubscribedTopic(name, 2, topic_id) for name, topic_id in (("a", None), ("b", IDS[0]), ("c", "x"))}
    assert UNIFORM.assign(_members("cab", "abc"), topics) == {
        "m0": {"a": (0, 1), "b": (0,)},
        "m1": {"b": (1,), "c": (0, 1)},
    }


def test_ids_are_read_as_kafka_writes_them() -> None:
    assert id_bits("AAAAAAAAAAAAAAAAAAAAAQ") == (0, 1)
    assert id_bits("_____________________w") == (-1, -1)
    for broken in (None, "", "short", "uI30ui6ypNgL7mA6Yc9gu*", IDS[0] + "AA"):
        assert id_bits(broken) is None


def test_of_equally_full_topics_that_with_fewer_subscribers_comes_first() -> None:
    topics = _topics(a=4, b=2, c=9)
    assert fullest_first({"a": (0, 1), "b": (0,), "c": (0, 1)}, topics) == ("c", "b", "a")


def test_what_a_member_gives_up_comes_in_the_order_of_its_set() -> None:
    """Of 0, 15, 16 and 32 the bins are 0, 15, 0 and 0: it keeps 0 and 16."""
    owned: Assignment = {"m0": {"a": (0, 15, 16, 32)}}
    given = UNIFORM.assign(_members(*["a"] * 17, owned=owned), _topics(a=33))
    assert given["m0"] == {"a": (0, 16)}


def test_a_set_of_few_large_numbers_is_walked_by_its_bins() -> None:
    # Sixteen bins: 16 and 33 fall into bins 0 and 1, before 5.
    assert list(partitions_in_set_order((5, 16, 33))) == [16, 33, 5]
    assert list(partitions_in_set_order((0, 1, 15))) == [0, 1, 15]


@st.composite
def _groups(draw: st.DrawFn) -> tuple[list[Subscriber], dict[str, SubscribedTopic]]:
    topics = _topics(**{name: draw(st.integers(0, 24)) for name in "abcd"[: draw(st.integers(1, 4))]})
    common = draw(st.lists(st.sampled_from([*topics, "gone"]), unique=True))
    is_equal = draw(st.booleans())
    members = []
    for number in range(draw(st.integers(1, 8))):
        topics_of = common if is_equal else draw(st.lists(st.sampled_from([*topics, "gone"]), unique=True))
        owned = {
            name: tuple(sorted(draw(st.sets(st.integers(0, 30), max_size=12))))
            for name in topics
            if draw(st.booleans())
        }
        instance = f"i{number}" if draw(st.booleans()) else None
        members.append(Subscriber(f"m{number}", tuple(topics_of), instance, owned=owned))
    return members, topics


@pytest.mark.long
@given(_groups())
def test_everything_that_has_a_subscriber_is_given_once_and_to_a_subscriber(
    group: tuple[list[Subscriber], dict[str, SubscribedTopic]],
) -> None:
    members, topics = group
    for assignor in SERVER_SIDE:
        given_out = assignor.assign(members, topics)
        assert list(given_out) == [member.member_id for member in members]
        handed = [
            (name, partition)
            for member in members
            for name, owned in given_out[member.member_id].items()
            for partition in owned
            if name in member.subscription
        ]
        wanted = {name for member in members for name in member.subscription if name in topics}
        assert sorted(handed) == [
            (name, number) for name in sorted(wanted) for number in range(topics[name].partitions)
        ]
        assert all(list(owned) == sorted(owned) for own in given_out.values() for owned in own.values())


@pytest.mark.long
@given(_groups())
def test_a_second_rebalance_moves_nothing(group: tuple[list[Subscriber], dict[str, SubscribedTopic]]) -> None:
    members, topics = group
    first = UNIFORM.assign(members, topics)
    again = [Subscriber(m.member_id, m.subscription, m.instance_id, owned=first[m.member_id]) for m in members]
    assert UNIFORM.assign(again, topics) == first
    if len({frozenset(member.subscription) for member in members}) == 1:
        sizes = _sizes(first)
        assert sizes[-1] - sizes[0] <= 1
