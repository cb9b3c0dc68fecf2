"""A plan that grows a topic carries what that does to its readers, in every form; no right on groups is needed."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from helpers.program.call import Program

from reconciler.model.problem import MissingRight
from reconciler.workflow import diff as topic_readers
from reconciler.workflow.diff import with_readers
from reconciler.workflow.inputs import Inputs
from reconciler.workflow.sources import desired_state, observed_state

pytestmark = pytest.mark.long


def test_a_plan_of_a_snapshot_carries_it_in_every_form(reconciler: Program) -> None:
    reconciler("init", "--demo")
    as_json = reconciler("plan", "--cluster", "demo", "-o", "json")
    codes = [warning["code"] for warning in json.loads(as_json.out)["warnings"]]
    assert codes == ["KR831", "KR833"]
    sentence = "group web-analytics (range) 4-4-4 -> 6-6-6, 6 partitions change owner"
    assert sentence in reconciler("plan", "--cluster", "demo", "--out", "p.json").out
    assert "web-analytics (range) 4-4-4 → 6-6-6" in reconciler("show", "p.json", "-o", "markdown").out


class _Refusing:
    """A cluster that shows no groups to this user."""

    def groups(self) -> None:
        raise MissingRight("reading groups needs Describe on the groups")

    def close(self) -> None:
        """Nothing to release."""


def test_a_missing_right_on_groups_stops_no_plan(
    monkeypatch: pytest.MonkeyPatch, reconciler: Program, tmp_path: Path
) -> None:
    reconciler("init", "--demo")
    inputs = Inputs(str(tmp_path / "desired-state"), "demo")
    desired = desired_state(inputs)
    observed = observed_state(inputs, desired)
    assert observed.groups == ()
    found, unread = with_readers(inputs, desired, observed)
    assert ([one.group_id for one in found.groups if one.members], unread) == (["billing", "web-analytics"], ())
    monkeypatch.setattr(topic_readers, "cluster_admin", lambda *_: nullcontext(_Refusing()))
    found, (problem,) = with_readers(inputs, desired, observed)
    assert found is observed
    assert problem.code == "KR834"
    assert problem.message.startswith(
        "which groups read pageviews, to be grown or to lose records, is not known: reading groups needs"
    )
