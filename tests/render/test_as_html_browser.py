"""Pages in a real browser: quiet, alone, no wider than their window; that of `balance` shows every figure."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.plans.drawn_plans import drawn_plan
from helpers.plans.sample_plan import sample_plan
from render.balance_reports import drawn_report
from render.chromium import Chromium, Page

from reconciler.balance.render import as_html
from reconciler.render import as_plan_html
from reconciler.render.as_json import document

pytestmark = pytest.mark.long

NAME = "<script>document.title='owned'</script><img src=x onerror=console.log(1)>"
# Every figure of every table, by the row's name, with both its exact value and its text as shown.
ROWS = """
[...document.querySelectorAll('section section')].map(section => [
  section.querySelector('h3').textContent,
  [...section.querySelectorAll('tbody tr')].map(row => [
    row.querySelector('th').textContent,
    [...row.querySelectorAll('td')].map(cell => [...cell.querySelectorAll('data')].map(data => data.value)),
  ]),
])
"""


def opened(browser: Chromium, folder: Path, text: str, *, width: int = 1280, is_dark: bool = False) -> Page:
    path = folder / "page.html"
    path.write_text(text, "utf-8")
    return browser.open(path, width=width, is_dark=is_dark)


@pytest.mark.parametrize(
    ("make", "is_dark"),
    [
        pytest.param(lambda: as_html.balance(drawn_report(10)), False, id="balance of 10 brokers"),
        pytest.param(lambda: as_html.balance(drawn_report(200)), True, id="balance of 200 brokers"),
        pytest.param(lambda: as_plan_html.plan(drawn_plan(6, 4, 20)), True, id="plan of 6 brokers"),
        pytest.param(lambda: as_plan_html.plan(drawn_plan(100, 60, 20)), False, id="plan of 100 brokers"),
    ],
)
def test_it_is_quiet_alone_and_no_wider_than_its_window(
    browser: Chromium, tmp_path: Path, make: Callable[[], str], *, is_dark: bool
) -> None:
    page = opened(browser, tmp_path, make(), is_dark=is_dark)
    assert page.console == []
    assert page.failures == []
    assert page.requests == [(tmp_path / "page.html").as_uri()]
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 1280
    assert page.evaluate("document.fonts.size") == 0
    luminance = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (max(luminance) < 60) if is_dark else (min(luminance) > 200)
    # The style counts (its hash is right), and no text lies on another or outside its chart.
    assert page.evaluate("getComputedStyle(document.querySelector('.tiles')).display") == "grid"
    assert page.evaluate("document.querySelector('svg.chart text').getBoundingClientRect().width") > 5
    assert page.evaluate(_TEXTS_OUTSIDE) == []
    assert page.evaluate(_LABELS_THAT_MEET) == 0
    picture = tmp_path / "page.png"
    page.screenshot(picture)
    assert picture.stat().st_size > 100_000


_TEXTS_OUTSIDE = """
[...document.querySelectorAll('svg.chart text')].filter(text => {
  const box = text.getBoundingClientRect(), chart = text.closest('svg').getBoundingClientRect();
  return box.left < chart.left - 1 || box.right > chart.right + 1 || box.bottom > chart.bottom + 1;
}).map(text => text.textContent)
"""
_LABELS_THAT_MEET = """
[...document.querySelectorAll('svg.chart')].flatMap(chart => {
  const boxes = [...chart.querySelectorAll('text[text-anchor=middle]')].map(text => text.getBoundingClientRect());
  return boxes.slice(1).filter((box, index) => box.left < boxes[index].right);
}).length
"""


@pytest.mark.parametrize(
    "make",
    [
        lambda: as_html.balance(drawn_report(12)),
        lambda: as_plan_html.plan(sample_plan()),
        lambda: as_plan_html.plan(drawn_plan(100, 12, 9)),
    ],
    ids=["balance", "plan", "plan of 100 brokers"],
)
def test_on_a_phone_it_is_no_wider_than_the_phone(browser: Chromium, tmp_path: Path, make: Callable[[], str]) -> None:
    page = opened(browser, tmp_path, make(), width=400)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


@pytest.mark.parametrize(
    ("text", "title", "scripts"),
    [
        (as_html.balance(drawn_report(3, names=(NAME,))), f"Balance of {NAME}", 0),
        (as_plan_html.plan(replace(sample_plan(), cluster_name=NAME, id=NAME)), f"Plan of {NAME}", 1),
    ],
    ids=["balance", "plan"],
)
def test_a_name_that_is_a_script_does_nothing(
    browser: Chromium, tmp_path: Path, text: str, title: str, scripts: int
) -> None:
    page = opened(browser, tmp_path, text)
    assert page.console == []
    assert page.requests == [(tmp_path / "page.html").as_uri()]
    assert page.evaluate("document.title") == title
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert page.evaluate("document.querySelectorAll('script').length") == scripts


@pytest.mark.parametrize("has_plan", [True, False])
def test_every_figure_on_it_is_that_of_the_json(browser: Chromium, tmp_path: Path, *, has_plan: bool) -> None:
    report = drawn_report(40, has_plan=has_plan)
    (cluster,) = json.loads(document(report))["clusters"]
    found = {title: dict(rows) for title, rows in opened(browser, tmp_path, as_html.balance(report)).evaluate(ROWS)}
    assert list(found) == ["Brokers", "Racks", "Log dirs", "Topics", "Evenness"]
    assert {title: len(rows) for title, rows in found.items()} == {
        "Brokers": 40, "Racks": 3, "Log dirs": 40, "Topics": 60, "Evenness": 4,
    }  # fmt: skip
    more = [("leaderImbalance",)] + [("moved", "arrivingBytes"), ("moved", "leavingBytes")] * has_plan
    for row in cluster["brokers"]:
        assert _agree(found["Brokers"][str(row["broker"])][1:], row, [*LOADS, ("daysUntilFull",), *more])
    for row in cluster["racks"]:
        assert _agree(found["Racks"][row["rack"]], row, [*LOADS, ("daysUntilFull",)])
    for row in cluster["topics"]:
        assert _agree(found["Topics"][row["topic"]], row, LOADS)
    disks = [("replicas",), ("sizeBytes",), ("freeBytes",), ("totalBytes",), ("growthBytesPerDay",), ("daysUntilFull",)]
    for row in cluster["logDirs"]:
        assert _agree(found["Log dirs"][str(row["broker"])][1:], row, disks)
    words = {"replicas": "Replicas", "sizeBytes": "Size", "bytesIn": "In", "bytesOut": "Out"}
    for row in cluster["evenness"]:
        figures = [("maxOverMean",), ("coefficientOfVariation",), ("gini",)]
        assert _agree(found["Evenness"][words[row["measure"]]][1:], row, figures)


LOADS = [
    ("replicas",),
    ("leaders",),
    ("sizeBytes",),
    ("bytesInPerSecond", "p95"),
    ("bytesOutPerSecond", "p95"),
    ("growthBytesPerDay",),
]


def _agree(shown: list[list[str]], row: dict[str, Any], paths: Sequence[tuple[str, ...]]) -> bool:
    """Whether each cell holds exactly what the JSON has there before and after or, where both read the same, before."""
    return len(shown) == len(paths) and all(
        bool(cell) and all(_is_same(text, figure) for text, figure in zip(cell, _figures(row, path), strict=False))
        for cell, path in zip(shown, paths, strict=True)
    )


def _figures(row: dict[str, Any], path: tuple[str, ...]) -> list[float | None]:
    if path[0] == "moved":
        return [row["moved"][path[1]]]
    sides = [row["before"], row["after"]]
    for name in path:
        sides = [None if side is None else side[name] for side in sides]
    return sides


def _is_same(text: str, figure: float | None) -> bool:
    return text == "" if figure is None else bool(text) and float(text) == figure
