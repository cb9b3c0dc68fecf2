"""The page of `balance` as text: what it holds, that it asks for nothing, and that names on it are only names."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from render.balance_reports import drawn_report

from reconciler.balance.model.balance_report import BalanceReport, ClusterBalance, Level, Load, LoadRow
from reconciler.balance.render import as_html
from reconciler.model.problem import Problem, Severity
from reconciler.render.html_charts import Member, axis_top, chart

VOID = {"meta", "link"}
ELEMENTS = {
    "html", "head", "meta", "title", "link", "style", "body", "header", "main", "section", "footer", "h1", "h2", "h3",
    "p", "span", "ul", "li", "dl", "div", "dt", "dd", "data", "figure", "figcaption", "b", "svg", "g", "rect", "line",
    "text", "image", "path", "table", "caption", "thead", "tbody", "tr", "th", "td", "details", "summary", "a",
}  # fmt: skip


class Parsed(HTMLParser):
    """The page as a browser would take it: every element with its attributes, texts, and what was left open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts.append(data)


def named(payload: str) -> BalanceReport:
    """Return a report in which everything that has a name has this one."""

    def of(row: LoadRow) -> LoadRow:
        return replace(
            row,
            rack=payload if row.level in {Level.RACK, Level.BROKER} else None,
            topic=payload if row.level is Level.TOPIC else None,
            log_dir=payload if row.level is Level.LOG_DIR else None,
        )

    report = drawn_report(1, 1)
    clusters = tuple(
        replace(
            one,
            name=payload,
            cluster_id=payload,
            observed_at=payload,
            plan_id=payload,
            brokers=tuple(map(of, one.brokers)),
            racks=tuple(map(of, one.racks)),
            log_dirs=tuple(map(of, one.log_dirs)),
            topics=tuple(map(of, one.topics[:2])),
            warnings=(Problem("KR001", payload, severity=Severity.WARNING),),
        )
        for one in report.clusters
    )
    warnings = (Problem("KR001", payload, severity=Severity.WARNING),)
    return BalanceReport(payload, True, clusters, {payload or "rule": 1}, warnings)  # noqa: FBT003 - the model's order


def test_its_policy_allows_its_own_style_and_nothing_else() -> None:
    text = as_html.balance(drawn_report(2))
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    policy = next(given["content"] for tag, given in Parsed(text).elements if tag == "meta" and "http-equiv" in given)
    assert style is not None
    assert policy is not None
    assert style[1].strip()
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy.split("; ") == [
        "default-src 'none'", f"style-src 'sha256-{digest}'", "img-src data:", "base-uri 'none'", "form-action 'none'",
    ]  # fmt: skip


def test_the_clusters_of_a_fleet_are_linked_from_its_table() -> None:
    page = Parsed(as_html.balance(drawn_report(3, 2, names=("one", "two"))))
    targets = [given["href"] for tag, given in page.elements if tag == "a"]
    assert targets == ["#cluster-1", "#cluster-2"]
    ids = [given["id"] for _, given in page.elements if "id" in given]
    assert {"cluster-1", "cluster-2"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_nothing_known_is_a_page_that_says_so() -> None:
    unknown = LoadRow(Level.BROKER, 1, before=Load(replicas=3, leaders=1))
    report = BalanceReport("", True, (ClusterBalance("bare", LoadRow(Level.CLUSTER, before=Load()), (unknown,)),))  # noqa: FBT003
    text = as_html.balance(report)
    assert "unknown" in text
    assert "In by broker" not in text
    assert Parsed(text).open == []
    assert "Balance of no cluster" in as_html.balance(BalanceReport("", True))  # noqa: FBT003


def test_a_broker_that_is_dead_or_over_the_line_is_told_in_words() -> None:
    sick = LoadRow(Level.BROKER, 7, is_alive=False, before=Load(leader_imbalance=0.25, days_until_full=2.0))
    text = as_html.balance(BalanceReport("", True, (ClusterBalance("sick", LoadRow(Level.CLUSTER), (sick,)),)))  # noqa: FBT003
    for words in ("7 (not alive)", "1 broker above the 10% line", "25% !", "2.0 days !"):
        assert words in text


@pytest.mark.long
def test_bars_stand_on_the_line_of_zero_and_never_leave_the_chart() -> None:
    for brokers in (1, 10, 200):
        page = Parsed(as_html.balance(drawn_report(brokers)))
        for _, given in page.elements:
            if given.get("class") in {"before", "after", "only", "before over", "after over"} and "y" in given:
                x, y, width, height = (float(given[name] or 0) for name in ("x", "y", "width", "height"))
                assert y >= 12 - 0.02
                assert y + height == pytest.approx(212, abs=0.02)
                assert x >= 112
                assert x + width <= (1920.02 if brokers > 40 else 960.02)


@pytest.mark.parametrize(
    ("greatest", "step_of", "top"),
    [
        *[(0, 10, 4), (3, 10, 3), (4, 10, 4), (4.1, 10, 6), (1632, 10, 2000), (0.24, 10, 0.3), (0.1, 10, 0.1)],
        *[(1024, 1024, 1024), (1.4 * 1024**4, 1024, 2 * 1024**4), (1500, 1024, 2048), (3 * 1024**3, 1024, 4 * 1024**3)],
    ],
)
def test_an_axis_ends_at_a_round_number(greatest: float, step_of: float, top: float) -> None:
    found = axis_top(greatest, step_of)
    assert found >= greatest
    assert found <= max(greatest * 2, 4)
    assert found == pytest.approx(top)


def test_a_bar_is_as_high_as_its_value_and_stands_out_above_a_limit_alone() -> None:
    members = [Member("1", "one", 0.05, 0.10), Member("2", "two", 0.20, None), Member("3", "three", None, 0.15)]
    drawn = chart("", "", members, str, line=("10%", 0.10), is_limit=True)
    assert drawn is not None
    bars = [(bar.kind, bar.height, bar.is_over) for column in drawn.columns for bar in column.bars]
    assert bars == [
        ("before", 50, False), ("after", 100, False), ("before", 200, True), ("after", 150, True),
    ]  # fmt: skip
    plain = chart("", "", members, str, line=("mean", 0.10))
    assert plain is not None
    assert not any(bar.is_over for column in plain.columns for bar in column.bars)


def figures_of(report: BalanceReport) -> Iterator[float]:
    """Yield every exact figure that a reader of the page should find on it."""
    for cluster in report.clusters:
        for rows in (cluster.brokers, cluster.racks, cluster.log_dirs, cluster.topics, (cluster.total,)):
            yield from _figures(rows)
        for skew in cluster.skews:
            for even in (skew.before, skew.after):
                if even is not None:
                    yield from (even.max_over_mean, even.coefficient_of_variation, even.gini)


def _figures(rows: Sequence[LoadRow]) -> Iterator[float]:
    for row in rows:
        if row.before is not None and row.before.size_bytes is not None:
            yield row.before.size_bytes
            yield row.before.replicas


def test_exact_figures_stand_beside_the_rounded_ones() -> None:
    report = drawn_report(4)
    found = {
        json.loads(given["value"])
        for tag, given in Parsed(as_html.balance(report)).elements
        if tag == "data" and given["value"]
    }
    rounded_away = {1.0, 0.0}
    assert set(figures_of(report)) - found <= rounded_away
