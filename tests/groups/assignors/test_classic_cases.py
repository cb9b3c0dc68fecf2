"""What Kafka's own classes gave, kept as files: the visible cases, and random groups that reach each branch of ours.

`classic_random.json` holds scenarios of `groups.scenarios`, chosen so that a fault planted anywhere in the
client-side assignors shows; test_golden.py asks Kafka's classes for the same again.
"""

import json
from pathlib import Path

import pytest
from groups.classic_groups import COOPERATIVE, after, rebalances
from groups.java_assignors import ResultForm
from groups.scenarios import ScenarioForm

from reconciler.groups.assignors.registry import ASSIGNORS, assignor_named


class CaseForm(ScenarioForm):
    expected: dict[str, list[ResultForm]]


def cases(name: str) -> list[CaseForm]:
    """Return the cases of a file; nothing in them depends on the order of joining."""
    found: list[CaseForm] = json.loads((Path(__file__).parents[1] / name).read_text("utf-8"))["scenarios"]
    return found


CASES = [*cases("assignors.json"), *cases("classic_random.json")]
BOTH = [
    pytest.param(case, assignor.name, id=f"{case['id']} {assignor.name}")
    for case in CASES
    for assignor in ASSIGNORS.values()
    if assignor.name in case["expected"] and not assignor.name.startswith("server-")
]


@pytest.mark.parametrize(("case", "assignor"), BOTH)
def test_each_rebalance_gives_what_kafkas_class_gave(case: CaseForm, assignor: str) -> None:
    for rebalance in rebalances(case, assignor, case["expected"][assignor]):
        given = assignor_named(assignor).assign(rebalance.members, rebalance.topics)
        assert given == rebalance.expected, rebalance.where


@pytest.mark.parametrize("case", cases("assignors.json"), ids=lambda case: case["id"])
def test_nothing_changes_after_the_last_round(case: CaseForm) -> None:
    last = list(rebalances(case, COOPERATIVE, case["expected"][COOPERATIVE]))[-1]
    assert assignor_named(COOPERATIVE).assign(after(last), last.topics) == last.expected
