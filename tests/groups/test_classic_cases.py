"""The visible cases, which Kafka's own classes computed, under the client-side assignors."""

import json
from pathlib import Path

import pytest
from helpers.classic_groups import CLASSIC, COOPERATIVE, after, rebalances
from helpers.group_scenarios import ScenarioForm
from helpers.java_assignors import ResultForm

from reconciler.groups.registry import assignor_named


class CaseForm(ScenarioForm):
    expected: dict[str, list[ResultForm]]
    insertion_order_sensitive_from_step: dict[str, int]


CASES: list[CaseForm] = json.loads((Path(__file__).parent / "assignors.json").read_text("utf-8"))["scenarios"]


def results(case: CaseForm, assignor: str) -> list[ResultForm]:
    """Return what Kafka's class gave, once it is sure that the order of joining had no part in it."""
    assert assignor not in case["insertion_order_sensitive_from_step"]
    return case["expected"][assignor]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
@pytest.mark.parametrize("assignor", CLASSIC)
def test_each_rebalance_gives_what_kafkas_class_gave(case: CaseForm, assignor: str) -> None:
    for rebalance in rebalances(case, assignor, results(case, assignor)):
        given = assignor_named(assignor).assign(rebalance.members, rebalance.topics)
        assert given == rebalance.expected, rebalance.where


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_nothing_changes_after_the_last_round(case: CaseForm) -> None:
    last = list(rebalances(case, COOPERATIVE, results(case, COOPERATIVE)))[-1]
    assert assignor_named(COOPERATIVE).assign(after(last), last.topics) == last.expected
