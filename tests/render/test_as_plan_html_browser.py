"""The page of a plan in a real browser: its figures are those of the plan's file, and its filter finds moves."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.plans.drawn_plans import drawn_plan
from helpers.plans.sample_plan import sample_plan
from render.chromium import Chromium, Page
from render.test_as_html_browser import opened

from reconciler.files.plan_file import plan_text
from reconciler.model.plan import Plan
from reconciler.render import as_plan_html

pytestmark = pytest.mark.long

# Every row of every table under a heading: its name, then each cell's exact figures, or its text where it has none.
ROWS = """
[...document.querySelectorAll('main section')].map(section => [
  section.querySelector('h2').textContent,
  [...section.querySelectorAll('tbody tr')].map(row => [
    row.querySelector('th').textContent,
    [...row.querySelectorAll('td')].map(cell => {
      const data = [...cell.querySelectorAll('data')].map(datum => Number(datum.value));
      return data.length ? data : cell.textContent;
    }),
  ]),
])
"""


def test_the_moves_are_found_by_topic_broker_and_reason(browser: Chromium, tmp_path: Path) -> None:
    plan = drawn_plan(12, 20, 25)
    page = opened(browser, tmp_path, as_plan_html.plan(plan))
    moves = [move for stage in json.loads(plan_text(plan))["stages"] for move in stage.get("moves", [])]
    assert page.evaluate("document.querySelector('#moves details').open") is False
    topic = next(move["topic"] for move in moves if move["reason"] == "racks")
    wanted = [move for move in moves if move["reason"] == "racks" and move["topic"] == topic]
    assert 0 < len(wanted) < len([move for move in moves if move["topic"] == topic])
    assert _found(page, f"RACKS {topic}-") == ([_key(move) for move in wanted], f"{len(wanted)} of {len(moves)}")
    assert _found(page, "no such thing") == ([], f"0 of {len(moves)}")
    assert _found(page, "  ") == ([_key(move) for move in moves], "")


def _key(move: dict[str, Any]) -> str:
    return f"{move['topic']}-{move['partition']}"


def _found(page: Page, text: str) -> tuple[list[str], str]:
    """Return the names of the rows that the filter leaves, and what it says."""
    told = page.evaluate(
        f"(() => {{ const box = document.querySelector('#find'); box.value = {json.dumps(text)};"
        "box.dispatchEvent(new Event('input'));"
        "return [[...document.querySelectorAll('#moves tbody tr:not([hidden]) th')].map(cell => cell.textContent),"
        "document.querySelector('#found').textContent]; })()"
    )
    return told[0], told[1]


@pytest.mark.parametrize(
    "plan",
    [sample_plan(), drawn_plan(30, 20, 8), drawn_plan(9, 3, 4, has_rates=False)],
    ids=["sample", "30 brokers", "no rates"],
)
def test_every_figure_on_it_is_that_of_the_plans_file(browser: Chromium, tmp_path: Path, plan: Plan) -> None:
    told = json.loads(plan_text(plan))
    page = opened(browser, tmp_path, as_plan_html.plan(plan))
    found = {title: dict(rows) for title, rows in page.evaluate(ROWS)}
    tiles = page.evaluate("[...document.querySelectorAll('.tiles data')].map(datum => Number(datum.value))")
    summary = told["summary"]
    names = ("bytes", "replicaMoves", "estimatedSeconds", "stages", "leaderChanges", "elections", "topicChanges")
    assert tiles[:7] == [summary[name] for name in names]
    _stages_agree(found["Stages over time"], told["stages"])
    _brokers_agree(found["Brokers, before and after"], told)
    levels = told["proof"].get("levels") or [told["proof"]]
    proof = found["Proof: the plan, the bound, the gap"]
    assert proof == {level["objective"]: [[level["value"]], [level["lowerBound"]], [_gap(level)]] for level in levels}
    _topics_agree(found["What moves, by topic"], told["stages"])
    moves = [move | {"stage": stage["number"]} for stage in told["stages"] for move in stage.get("moves", [])]
    rows = {
        name: (cells[0], json.loads(cells[1]), json.loads(cells[2]), cells[3]) for name, cells in found["Moves"].items()
    }
    assert rows == {_key(move): (str(move["stage"]), move["from"], move["to"], [move["bytes"]]) for move in moves}


def _stages_agree(rows: dict[str, Any], stages: list[dict[str, Any]]) -> None:
    start = 0
    assert list(rows) == [str(stage["number"]) for stage in stages]
    for stage in stages:
        moves = stage.get("moves", [])
        seconds = stage.get("estimatedSeconds", 0)
        copies = sum(len(set(move["to"]) - set(move["from"])) for move in moves)
        data = sum(move["bytes"] for move in moves)
        assert rows[str(stage["number"])][1:5] == [[start], [seconds], [data], [copies]]
        start += seconds


def _brokers_agree(rows: dict[str, Any], told: dict[str, Any]) -> None:
    before, after = told["balance"]["before"], told["balance"]["after"]
    assert list(rows) == sorted(rows, key=int)
    assert set(before) <= set(rows)
    names = [name for name in ("replicas", "leaders", "bytes", "bytesIn", "bytesOut") if _rate(after, name) is not None]
    for id_, cells in rows.items():
        for cell, name in zip(cells[1:], names, strict=False):
            pair = [_of(side.get(id_, {}), name) or 0 for side in (before, after)]
            # Both are shown unless they read the same, with one decimal in their unit.
            is_close = abs(pair[0] - pair[1]) <= 0.1 * max(pair)
            assert cell == pair or (is_close and cell == pair[:1]), (id_, name)
        arrives = [move for stage in told["stages"] for move in stage.get("moves", []) if int(id_) in _added(move)]
        assert cells[-4:-2] == [[len(arrives)], [sum(move["bytes"] // len(_added(move)) for move in arrives)]]
        left = [move for stage in told["stages"] for move in stage.get("moves", []) if int(id_) in _left(move)]
        assert cells[-2] == [len(left)]
        assert cells[-1] == [told["diskPeak"].get(id_, 0)]


def _added(move: dict[str, Any]) -> set[int]:
    return set(move["to"]) - set(move["from"])


def _left(move: dict[str, Any]) -> set[int]:
    return set(move["from"]) - set(move["to"])


def _gap(level: dict[str, Any]) -> Any:  # noqa: ANN401 - what pytest compares with
    value, bound = level["value"], level["lowerBound"]
    return pytest.approx((value - bound) / value) if value else 0


def _topics_agree(rows: dict[str, Any], stages: list[dict[str, Any]]) -> None:
    moves = [move for stage in stages for move in stage.get("moves", [])]
    assert set(rows) == {move["topic"] for move in moves}
    for topic, cells in rows.items():
        of_it = [move for move in moves if move["topic"] == topic]
        copies = sum(len(_added(move)) for move in of_it)
        assert cells[:3] == [[len({move["partition"] for move in of_it})], [copies], [sum(m["bytes"] for m in of_it)]]
        assert cells[3] == ", ".join(sorted({move["reason"] for move in of_it}))


def _rate(shares: dict[str, Any], name: str) -> int | None:
    return _of(next(iter(shares.values())), name)


def _of(share: dict[str, Any], name: str) -> int | None:
    value: int | None = share.get(name, share.get(f"{name}PerSecond"))
    return value
