"""The assignment tables of five Kafka texts, one test a table, by its name.

`seeds.json` holds each with what is right (`expected`: Kafka 4.1.1) and, where a text errs, what it says (`text_says`):
its mistakes are noted here and never reproduced.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from groups.java_assignors import AssignmentForm

from reconciler.groups.assignors.registry import assignor_named
from reconciler.groups.model.simulation import Member, Outcome, Scenario, Stats, Step
from reconciler.groups.simulate.simulation import simulate
from reconciler.model.assignment import SubscribedTopic

SEEDS = json.loads((Path(__file__).parents[1] / "seeds.json").read_text("utf-8"))
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in SEEDS["cases"] if case["kind"] == "assignor"}
WHAT_TEXTS_ARE = {"right", "wrong", "imprecise", "outdated"}


@pytest.fixture
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the case that the test is named for."""
    return CASES[_case_of(request.node.name)]


def _case_of(test: str) -> str:
    wanted = test.removeprefix("test_")
    return next((name for name in CASES if name.removeprefix("assignor-").replace("-", "_").lower() == wanted), "")


def _outcome(case: Mapping[str, Any], assignor: str | None = None) -> Outcome:
    """Return what comes out of one rebalance, to which members bring what they had before."""
    asked = case["input"]
    topics = {name: SubscribedTopic(name, count) for name, count in asked["topics"].items()}
    previous = asked.get("previous", {})
    members = tuple(
        Member(
            each["id"],
            tuple(each["topics"]),
            owned={topic: tuple(owned) for topic, owned in previous.get(each["id"], {}).items()},
            generation=1 if previous else None,
        )
        for each in asked["members"]
    )
    return simulate(Scenario(topics, (Step(members),)), assignor_named(assignor or asked["assignor"]))[0]


def _told(outcome: Outcome) -> AssignmentForm:
    return {member: {topic: list(owned) for topic, owned in own.items()} for member, own in outcome.assignment.items()}


def _check(case: Mapping[str, Any]) -> Stats:
    """Assert that the table comes out right, whatever the text has, and return how even it is."""
    outcome = _outcome(case)
    assert _told(outcome) == case["expected"]
    assert case["text_is"] in WHAT_TEXTS_ARE
    if case["text_is"] in {"wrong", "outdated"}:
        assert case["text_says"] != case["expected"]
    return outcome.stats


def _kept(case: Mapping[str, Any]) -> int:
    """Return how many partitions stay with who had them."""
    return sum(
        len(set(owned) & set(case["expected"].get(member, {}).get(topic, ())))
        for member, own in case["input"]["previous"].items()
        for topic, owned in own.items()
    )


def test_every_table_has_its_test() -> None:
    assert {_case_of(name) for name in globals() if name.startswith("test_")} - {""} == set(CASES)


def test_range_2x4(case: dict[str, Any]) -> None:
    """Wrong in the text: it shows every second partition, which is what roundrobin gives."""
    _check(case)
    round_robin = _outcome(case, "roundrobin")
    assert _told(round_robin) == case["text_says"]


def test_range_2x3(case: dict[str, Any]) -> None:
    """Wrong in the text: 4 and 2 are right as counts, but range gives runs."""
    stats = _check(case)
    assert (stats.most, stats.fewest) == (4, 2)


def test_roundrobin_2x3(case: dict[str, Any]) -> None:
    _check(case)


def test_roundrobin_unequal(case: dict[str, Any]) -> None:
    stats = _check(case)
    assert (stats.most, stats.fewest) == (4, 1)


def test_roundrobin_unequal_c0_leaves(case: dict[str, Any]) -> None:
    """Wrong in the text: it still lists the member that left; t1-0 and t1-1 change hands."""
    _check(case)
    assert "C0" in case["text_says"]
    before = CASES["assignor-roundrobin-unequal"]["expected"]
    assert (before["C1"]["t1"], before["C2"]["t1"]) == (case["expected"]["C2"]["t1"], case["expected"]["C1"]["t1"])


def test_sticky_unequal(case: dict[str, Any]) -> None:
    stats = _check(case)
    assert (stats.most, stats.fewest) == (3, 1)


def test_sticky_unequal_c0_leaves(case: dict[str, Any]) -> None:
    _check(case)
    assert _kept(case) == 5


def test_sticky_equal(case: dict[str, Any]) -> None:
    """The first assignment is that of roundrobin."""
    _check(case)
    round_robin = _outcome(case, "roundrobin")
    assert _told(round_robin) == case["expected"]


def test_roundrobin_c1_leaves(case: dict[str, Any]) -> None:
    """Wrong in the text: t1-0 stands in both rows, t0-1 in none."""
    _check(case)
    assert 0 in case["text_says"]["C0"]["t1"]
    assert 0 in case["text_says"]["C2"]["t1"]
    assert all(1 not in own.get("t0", ()) for own in case["text_says"].values())


def test_sticky_c1_leaves(case: dict[str, Any]) -> None:
    """Wrong in the text: t1-1 stands in both rows, t0-1 in none. What the survivors had, five in all, stays."""
    _check(case)
    assert _kept(case) == 5
    assert all(1 in own["t1"] for own in case["text_says"].values())
    assert all(1 not in own.get("t0", ()) for own in case["text_says"].values())


def test_roundrobin_t1_t2(case: dict[str, Any]) -> None:
    """Imprecise in the text: C1 does get T2-0. What it wishes for is what sticky gives."""
    _check(case)
    sticky = _outcome(case, "sticky")
    assert _told(sticky) == {"C0": {"T1": [0, 1, 2]}, "C1": {"T2": [0, 1]}}


def test_range_4_over_3(case: dict[str, Any]) -> None:
    """Each topic alone is even; two of them leave the first member with two more than the others."""
    stats = _check(case)
    assert stats.most - stats.fewest == 2


def test_range_streams_10(case: dict[str, Any]) -> None:
    """Streams were threads of the old consumer; today each thread has a consumer, and so is a member, of its own."""
    _check(case)


def test_range_streams_11(case: dict[str, Any]) -> None:
    _check(case)


def test_range_streams_2x10(case: dict[str, Any]) -> None:
    stats = _check(case)
    assert stats.most - stats.fewest == 2


def test_roundrobin_streams(case: dict[str, Any]) -> None:
    """Outdated in the text: the consumer of 2013 sorted partitions by a hash; since 0.9 it is by topic and number."""
    _check(case)


def test_more_members(case: dict[str, Any]) -> None:
    """Who comes after the last partition reads nothing."""
    outcome = _outcome(case)
    _check(case)
    assert [member for member, own in outcome.assignment.items() if not own] == ["c3", "c4"]


def test_what_texts_say_of_assignors_and_is_outdated_is_not_so_here() -> None:
    """Three assignors, or two, they say, and range as the default: there are six, and a class of one's own."""
    about = [each for each in SEEDS["outdated_statements"] if "assignor" in each["text_says"].lower()]
    assert len(about) == 4
    for name in ("range", "roundrobin", "sticky", "cooperative-sticky", "server-range", "server-uniform"):
        assert assignor_named(name).name == name
