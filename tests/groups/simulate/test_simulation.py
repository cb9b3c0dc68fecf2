"""State from step to step, by a trivial assignor whose every result is worked out by hand, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.groups.model.simulation import Member, Scenario, Step, pair_score, spread
from reconciler.groups.simulate.simulation import AssignorFailed, sensitive_from_step, simulate
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


@dataclass
class Fixed:
    """Gives what it was told to, call by call, and remembers who came."""

    answers: Sequence[Assignment]
    name: str = "fixed"
    is_cooperative: bool = False
    calls: list[Sequence[Subscriber]] = field(default_factory=list)

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        assert topics is not None
        self.calls.append(members)
        return self.answers[min(len(self.calls), len(self.answers)) - 1]


class FirstTakesAll:
    """Gives everything to the member that came first."""

    name = "first"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        first = members[0]
        return {first.member_id: {name: tuple(range(topics[name].partitions)) for name in first.subscription}}


def topics(**partitions: int) -> dict[str, SubscribedTopic]:
    return {name: SubscribedTopic(name, count) for name, count in partitions.items()}


def members(*names: str, reads: tuple[str, ...] = ("t",)) -> tuple[Member, ...]:
    return tuple(Member(name, reads) for name in names)


def brought(calls: Sequence[Sequence[Subscriber]]) -> list[dict[str, tuple[Mapping[str, tuple[int, ...]], int]]]:
    return [{one.member_id: (one.owned, one.generation) for one in call} for call in calls]


def test_each_step_starts_from_what_the_one_before_left() -> None:
    assignor = Fixed([{"a": {"t": (0, 1)}, "b": {"t": (2,)}}, {"a": {"t": (1,)}, "c": {"t": (0, 2)}}])
    scenario = Scenario(topics(t=3), (Step(members("a", "b")), Step(members("a", "c"))))
    first, second = simulate(scenario, assignor)
    assert brought(assignor.calls) == [{"a": ({}, -1), "b": ({}, -1)}, {"a": ({"t": (0, 1)}, 1), "c": ({}, -1)}]
    assert (first.stats.most, first.stats.fewest, first.stats.pair_score, first.stats.moved_from_survivors) == (
        2,
        1,
        1,
        None,
    )
    # t-0 goes from a, which stays, to c; t-2 was b's, which is gone.
    assert second.stats.moved_from_survivors == 1


def test_a_static_member_is_the_same_one_under_another_member_id() -> None:
    assignor = Fixed([{"a": {"t": (0, 1)}, "b": {"t": (2,)}}, {"a2": {"t": (0, 1)}, "b": {"t": (2,)}}])
    before, after = Member("a", ("t",), instance_id="i"), Member("a2", ("t",), instance_id="i")
    other = Member("b", ("t",))
    _, second = simulate(Scenario(topics(t=3), (Step((before, other)), Step((after, other)))), assignor)
    assert brought(assignor.calls)[1]["a2"] == ({"t": (0, 1)}, 1)
    assert second.stats.moved_from_survivors == 0


def test_a_member_that_was_away_for_a_step_brings_nothing() -> None:
    assignor = Fixed([{"a": {"t": (0,)}, "b": {"t": (1,)}}])
    steps = (Step(members("a", "b")), Step(members("b")), Step(members("a", "b")))
    with pytest.raises(AssignorFailed, match="to a, which is no member"):
        simulate(Scenario(topics(t=2), steps), assignor)
    assignor = Fixed([{"a": {"t": (0,)}}, {"b": {"t": (0,)}}, {}])
    simulate(Scenario(topics(t=2), steps), assignor)
    assert brought(assignor.calls)[2]["a"] == ({}, -1)


def test_what_a_member_claims_stands_for_what_it_was_left() -> None:
    assignor = Fixed([{"a": {"t": (0, 1)}}])
    claim = Member("a", ("t",), owned={"t": (1,)}, generation=7)
    simulate(Scenario(topics(t=2), (Step(members("a")), Step((claim,)), Step(members("a")))), assignor)
    assert [call["a"] for call in brought(assignor.calls)] == [({}, -1), ({"t": (1,)}, 7), ({"t": (0, 1)}, 8)]


def test_a_cooperative_group_rebalances_until_nothing_changes() -> None:
    withheld: Assignment = {"a": {"t": (0,)}, "b": {}}
    handed: Assignment = {"a": {"t": (0,)}, "b": {"t": (1,)}}
    assignor = Fixed([withheld, handed, handed], is_cooperative=True)
    (outcome,) = simulate(Scenario(topics(t=2), (Step(members("a", "b")),)), assignor)
    assert outcome.rounds == (withheld, handed)
    assert outcome.assignment == handed
    assert [call["a"] for call in brought(assignor.calls)] == [({}, -1), ({"t": (0,)}, 1), ({"t": (0,)}, 2)]


def test_every_rebalance_of_a_step_is_a_generation() -> None:
    withheld: Assignment = {"a": {"t": (0,)}, "b": {}}
    handed: Assignment = {"a": {"t": (0,)}, "b": {"t": (1,)}}
    assignor = Fixed([withheld, handed, handed], is_cooperative=True)
    simulate(Scenario(topics(t=2), (Step(members("a", "b")), Step(members("a", "b")))), assignor)
    assert [call["b"][1] for call in brought(assignor.calls)] == [-1, 1, 2, 2, 3]


def test_a_cooperative_member_lets_go_what_it_no_longer_reads() -> None:
    answers: list[Assignment] = [{"a": {"t": (0,), "u": (0,)}}, {"a": {"t": (0,), "u": (0,)}}, {"a": {"u": (0,)}}]
    assignor = Fixed(answers, is_cooperative=True)
    steps = (Step(members("a", reads=("t", "u"))), Step(members("a", reads=("u",))))
    simulate(Scenario(topics(t=1, u=1), steps), assignor)
    assert assignor.calls[2][0].owned == {"u": (0,)}


class Restless(Fixed):
    """Hands the one partition to the other member each time it is asked."""

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        super().assign(members, topics)
        return {"ab"[len(self.calls) % 2]: {"t": (0,)}}


def test_kafka_does_not_ask_again_once_nobody_has_to_let_anything_go() -> None:
    restless = Restless([{}], name="restless", is_cooperative=True)
    (outcome,) = simulate(Scenario(topics(t=1), (Step(members("a", "b")),)), restless)
    assert [dict(given) for given in outcome.rounds] == [{"a": {}, "b": {"t": (0,)}}]


def test_a_group_whose_members_let_go_for_ever_is_refused() -> None:
    restless = Restless([{}], name="restless", is_cooperative=True)
    steps = (Step(members("a", "b")), Step(members("a", "b")))
    with pytest.raises(AssignorFailed, match="does not come to rest: partitions still change hands after 50"):
        simulate(Scenario(topics(t=1), steps), restless)


def test_a_group_without_members_owns_nothing() -> None:
    (outcome,) = simulate(Scenario(topics(t=3), (Step(()),)), FirstTakesAll())
    assert outcome.assignment == {}
    assert (outcome.stats.most, outcome.stats.fewest, outcome.stats.pair_score) == (0, 0, 0)


def test_topics_of_a_step_hold_from_then_on() -> None:
    steps = (Step(members("a")), Step(members("a"), topics(t=5)), Step(members("a")))
    outcomes = simulate(Scenario(topics(t=2), steps), FirstTakesAll())
    assert [outcome.stats.most for outcome in outcomes] == [2, 5, 5]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"x": {"t": (0,)}}, "gives partitions to x, which is no member"),
        ({"a": {"u": (0,)}}, "gives partitions of u to a, which does not subscribe to it"),
        ({"a": {"t": (2,)}}, "gives t-2 to a: there is no such partition"),
        ({"a": {"t": (-1,)}}, "gives t--1 to a: there is no such partition"),
        ({"a": {"t": (0,)}, "b": {"t": (0,)}}, "gives t-0 to a and to b"),
        ({"a": {"t": (0, 0)}}, "gives a a partition of t twice"),
        (None, "failed: TypeError"),
        ({"a": [0]}, "failed: TypeError"),
        ({"a": {"t": (True,)}}, "gives a True, a bool, as a partition of t: it must be an int"),
        ({"a": {"t": (1.0,)}}, "gives a 1.0, a float, as a partition of t: it must be an int"),
        ({"a": {"t": ("0",)}}, "gives a '0', a str, as a partition of t: it must be an int"),
    ],
)
def test_a_users_assignor_is_checked(answer: Assignment, fault: str) -> None:
    with pytest.raises(AssignorFailed, match=f"assignor fixed {fault}"):
        simulate(Scenario(topics(t=2, u=1), (Step(members("a", "b")),)), Fixed([answer]))


class Vandal:
    """Empties and overwrites all that it is handed."""

    name = "vandal"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        for member in members:
            assert isinstance(member.owned, dict)
            member.owned["t"] = (0,)
        assert isinstance(members, list)
        assert isinstance(topics, dict)
        members.clear()
        topics.clear()
        return {}


def test_a_users_assignor_cannot_change_what_others_see() -> None:
    owned = {"t": (1,)}
    scenario = Scenario(topics(t=2), (Step((Member("a", ("t",), owned=owned), *members("b"))), Step(members("a", "b"))))
    for outcome in simulate(scenario, Vandal()):
        assert outcome.assignment == {"a": {}, "b": {}}
    assert (owned, scenario.topics) == ({"t": (1,)}, topics(t=2))
    assert simulate(scenario, FirstTakesAll())[1].assignment == {"a": {"t": (0, 1)}, "b": {}}


def test_a_users_assignor_cannot_end_the_program() -> None:
    class Leaves(FirstTakesAll):
        def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
            raise SystemExit(len(members) + len(topics))

    with pytest.raises(AssignorFailed, match="assignor first failed: SystemExit: 2"):
        simulate(Scenario(topics(t=1), (Step(members("a")),)), Leaves())


def test_what_an_assignor_returns_is_put_in_order() -> None:
    (outcome,) = simulate(
        Scenario(topics(t=3, u=1), (Step(members("a", "b", reads=("t", "u"))),)), Fixed([{"b": {"u": (), "t": (2, 0)}}])
    )
    assert outcome.assignment == {"a": {}, "b": {"t": (0, 2)}}
    assert list(outcome.assignment) == ["a", "b"]


def test_the_first_step_that_hangs_on_the_order_of_members_is_found() -> None:
    lone, pair = Step(members("a")), Step(members("a", "b"))
    scenario = Scenario(topics(t=2), (lone, lone, pair, lone))
    assert sensitive_from_step(scenario, FirstTakesAll(), simulate(scenario, FirstTakesAll())) == 2
    alone = Scenario(topics(t=2), (lone, lone))
    assert sensitive_from_step(alone, FirstTakesAll(), simulate(alone, FirstTakesAll())) is None


@given(st.lists(st.integers(0, 50), max_size=30))
def test_the_pair_score_is_the_sum_over_all_pairs(counts: list[int]) -> None:
    assert pair_score(counts) == sum(abs(one - other) for one, other in combinations(counts, 2))


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([], "no members"),
        ([4], "4"),
        ([3, 5, 4], "5-4-3"),
        ([4] * 9 + [5] * 3, "5 x3, 4 x9"),
        (range(100), "0 to 99, 100 members"),
        ([1] * 2000, "1 x2,000"),
    ],
)
def test_counts_are_told_shortly(counts: Sequence[int], text: str) -> None:
    assert spread(counts) == text
