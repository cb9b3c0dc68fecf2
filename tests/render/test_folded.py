"""Text at a terminal's width: no line is wider, a change takes at most two, and with -v nothing is cut."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.plans.drawn_plans import drawn_plan
from helpers.plans.sample_plan import sample_plan
from helpers.program.call import ROOT, Program

from reconciler.command import options
from reconciler.model.plan import Plan
from reconciler.model.problem import Location
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_text
from reconciler.render.folded import folded

SIGNS = re.compile(r"  [-+~] ")
WIDTHS = (80, 120, 200)


def _renamed(plan: Plan, topic: str, file: str) -> Plan:
    """Return the plan with that name for each topic it moves, asked for in that file."""
    stages = [
        replace(
            stage,
            moves=tuple(
                replace(each, topic_partition=TopicPartition(topic, number), at=Location(file, 12, 1))
                for number, each in enumerate(stage.moves)
            ),
        )
        for stage in plan.stages
        if isinstance(stage, ReassignStage)
    ]
    return replace(plan, stages=tuple(stages))


PLANS = (
    sample_plan(),
    *(drawn_plan(brokers, 3, 20, seed=brokers) for brokers in (5, 12, 60, 300)),
    *(drawn_plan(12, stages, 8, seed=stages, has_rates=False) for stages in (1, 5, 11)),
    *(
        _renamed(drawn_plan(500, 2, 9), "t" * letters, f"{'folder/' * depth}topics.yaml")
        for letters, depth in ((60, 1), (100, 30), (249, 1), (249, 30))
    ),
)


@pytest.mark.quick
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("number", range(len(PLANS)))
def test_no_line_is_wider_than_the_terminal_and_a_change_has_two_at_most(number: int, columns: int) -> None:
    plain = as_text.plan(PLANS[number], root="desired-state", has_stages=True)
    shown = folded(plain, columns).splitlines()
    assert max(map(len, shown)) <= columns
    changes = [line for line in plain.splitlines() if SIGNS.match(line)]
    firsts = [at for at, line in enumerate(shown) if SIGNS.match(line)]
    assert len(firsts) == len(changes)
    for change, at in zip(changes, firsts, strict=True):
        below = [line for line in shown[at + 1 : at + 3] if line.startswith("      ")]
        assert len(below) <= 1
        effect = change.rsplit("  ", 1)[-1]
        assert effect in f"{shown[at]}{''.join(below)}"


@pytest.mark.quick
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("number", range(len(PLANS)))
def test_what_is_shown_whole_loses_nothing(number: int, columns: int) -> None:
    plain = as_text.plan(PLANS[number], has_stages=True)
    shown = folded(plain, columns, is_whole=True)
    assert max(map(len, shown.splitlines())) <= columns
    assert "".join(shown.split()) == "".join(plain.split())


@pytest.mark.quick
def test_what_fits_stays_as_it_is() -> None:
    plain = as_text.plan(sample_plan(), has_stages=True)
    assert folded(plain, 1000) == plain


def test_plan_v_lists_the_moves_and_a_pipe_has_each_change_in_one_line(
    reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo = ROOT / "desired-state"
    where = ("-C", str(demo), "--cluster", "demo", "--state", str(demo / "demo" / "snapshot.json"))
    monkeypatch.setattr(options, "columns_shown", lambda _stream: 80)
    narrow = reconciler("plan", "-v", *where, "--out", str(tmp_path / "plan.json")).out
    saved = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    moves = [each for stage in saved["stages"] for each in stage.get("moves", ())]
    told = [f"~ {each['topic']}-{each['partition']} " for each in moves]
    assert moves
    assert [narrow.index(each) for each in told] == sorted(narrow.index(each) for each in told)
    assert max(map(len, narrow.splitlines())) <= 80
    monkeypatch.undo()
    monkeypatch.setenv("COLUMNS", "80")
    whole = reconciler("show", str(tmp_path / "plan.json")).out
    assert any(len(line) > 80 for line in whole.splitlines())
