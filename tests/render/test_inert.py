"""What others wrote does nothing where it is shown: Markdown, HTML, CSV, terminals, logs of workflows, file names.

The oracle reads each output with a parser that is not ours, and compares its structure with that of the same output
for a harmless name.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest
from helpers.figures import Tell
from helpers.plans.sample_plan import sample_plan
from helpers.program.call import Program
from helpers.program.fuzz_folder import SNAPSHOT
from markdown_it import MarkdownIt
from render.payloads import PAYLOADS, W
from render.test_as_annotations import ONE, runner_reads
from render.test_as_doctor import FOUND
from render.test_as_html import named
from render.test_as_plan_html import named as plan_of_names

from reconciler.balance.render import as_html, as_tables
from reconciler.files.codes import code_pages
from reconciler.files.plan_file import plan_from_json
from reconciler.groups.files.offsets_csv import offsets_text, read_offsets
from reconciler.model.codec import Malformed, to_json
from reconciler.model.plan import Plan
from reconciler.model.problem import Location, Problem
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_doctor, as_json, as_kafka_json, as_markdown, as_plan_html, as_sarif, as_text
from reconciler.render.as_annotations import annotations
from reconciler.render.escape import visible

pytestmark = pytest.mark.long

T = TypeVar("T")
HARMLESS = "CANARY-name"
PAGES = code_pages()
# What GitHub makes of plain text, beside what Markdown says: mentions, issues, links, commits.
LIVELY = re.compile(r"@\w|#\d|GH-\d|www\.|://|mailto:|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|\$\$|\[\^|:[a-z]+:(?!\d)")
COMMAND = re.compile(r"^\s*::[A-Za-z]|##\[", re.MULTILINE)


def spread(value: T, words: Mapping[str, str]) -> T:
    """Return the value with these words replaced in all texts that it holds."""
    if isinstance(value, str) and type(value) is str:
        for word, other in words.items():
            value = value.replace(word, other)  # type: ignore[assignment] # a text stays a text
        return value
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: spread(getattr(value, each.name), words) for each in fields(value) if each.init}
        return replace(value, **changed)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(spread(each, words) for each in value))
    if isinstance(value, tuple):
        return tuple(spread(each, words) for each in value)  # type: ignore[return-value]
    if isinstance(value, Mapping):
        return {spread(key, words): spread(each, words) for key, each in value.items()}  # type: ignore[return-value]
    return value


def plan_with(name: str) -> Any:  # noqa: ANN401 - a Plan, which `spread` cannot say
    """Return a plan whose topics, cluster, files, log dirs, values and messages hold that name."""
    plan = sample_plan()
    told = Problem("KR801", "the rack clicks of clicks: clicks", Location("clicks.yaml", 3, 1))
    words = {"clicks": name, "604800000": name, "demo": name, "/d2": f"/{name}"}
    return spread(replace(plan, warnings=(*plan.warnings, told)), words)


def markdown_shape(text: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Return the kinds of token, with the HTML that stands in them; and the texts of which GitHub makes more."""
    inline, tokens = {"text", "code_inline"}, list(_tokens(text))
    return (
        [(token.type, token.tag, _without_names(token)) for token in tokens if token.type not in inline],
        [token.content for token in tokens if token.type == "text" and LIVELY.search(token.content)],
    )


def _tokens(text: str) -> Iterator[Any]:
    for token in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(text):
        yield token
        yield from token.children or ()


def _without_names(token: Any) -> str:  # noqa: ANN401 - the library's token
    if token.type not in {"html_inline", "html_block"}:
        return ""
    return re.sub(r"<code>.*?</code>|<!--.*?-->", "", re.sub(r">[^<]*<", "><", token.content), flags=re.DOTALL)


class Shape(HTMLParser):
    """The tags of a page with their attributes' names."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, ...]] = []
        self.comments: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, *sorted(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(("/", tag))

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def is_plain(text: str) -> bool:
    """Whether a terminal, and a workflow's log, show the text and do nothing."""
    return all(each.isprintable() or each == "\n" for each in text) and COMMAND.search(text) is None


class Looks(NamedTuple):
    """A plan as it is shown."""

    markdown: str
    page: str
    text: str

    def shape(self) -> dict[str, object]:
        """Return what no name may change."""
        page = Shape(self.page)
        return {
            "Markdown": markdown_shape(self.markdown),
            "HTML": page.found,
            "HTML's comments": len(page.comments),
            "HTML without the name": self.page.count(W),
            "lines": self.text.count("\n"),
        }


def looks(plan: Plan) -> Looks:
    return Looks(as_markdown.plan(plan), as_plan_html.plan(plan), as_text.plan(plan, has_stages=True))


@cache
def tame_looks(make: Callable[[str], Plan]) -> dict[str, object]:
    return looks(make(HARMLESS)).shape()


def wrong_outputs(name: str) -> list[str]:
    """Return the outputs of two plans in which that name does something."""
    return [what for make in (plan_with, plan_of_names) for what in _wrong_of(name, make(name), tame_looks(make))]


def _wrong_of(name: str, plan: Plan, tame: Mapping[str, object]) -> list[str]:
    shown = looks(plan)
    markdown, _, text = shown
    checks = {
        **{what: shape == tame[what] for what, shape in shown.shape().items()},
        "Markdown's length": len(markdown) <= 65_536,
        "Markdown's characters": all(each.isprintable() or each in "\n\u00a0" for each in markdown),
        "text": is_plain(text),
        "JSON": json.loads(as_json.document(to_json(plan))) is not None,
        "file names": all(re.fullmatch(r"[a-z0-9.-]+", each) for each in as_kafka_json.plan_files(plan)),
        "a log's line": is_plain(visible(name)),
    }
    return [what for what, is_right in checks.items() if not is_right]


def test_no_name_does_anything_where_a_plan_is_shown(figures: Tell) -> None:
    wrong = {what: found for what, name in PAYLOADS.items() if (found := wrong_outputs(name))}
    assert wrong == {}
    figures("injection", f"{len(PAYLOADS)} payloads inert in Markdown, HTML, CSV, terminals, workflow logs, file names")


@cache
def tame_shapes() -> tuple[int, object, list[tuple[str, ...]], int, int]:
    """Return lines, Markdown and HTML of a balance with a harmless name, the names in it, and lines of a doctor."""
    report = named(HARMLESS)
    page, markdown = as_html.balance(report), markdown_shape(as_tables.balance(report).markdown())
    lines = as_tables.balance(report).text().count("\n"), as_doctor.doctor(FOUND, HARMLESS).text().count("\n")
    return lines[0], markdown, Shape(page).found, page.count(W), lines[1]


def wrong_reports(name: str) -> list[str]:
    """Return the outputs of a balance, a doctor and a validation in which that name does something."""
    report = named(name)
    page = as_html.balance(report)
    tame_lines, tame_markdown, tame_page, tame_count, tame_sick_lines = tame_shapes()
    words = {"broker 3 is not alive": name, "start it": name, "c-id": name, "51d0c2aa": name, "log dirs": name}
    sick, text = as_doctor.doctor(spread(FOUND, words), name).text(), as_tables.balance(report).text()
    markdown = as_tables.balance(report).markdown()
    wrong = replace(ONE, problem=Problem("KR103", name), path=name)
    told, found = annotations([wrong], PAGES), json.loads(as_sarif.problems([wrong], PAGES, "1.0"))
    checks = {
        "balance": is_plain(text) and text.count("\n") == tame_lines,
        "Markdown": markdown_shape(markdown) == tame_markdown,
        "HTML": Shape(page).found == tame_page and page.count(W) == tame_count,
        "doctor": is_plain(sick) and sick.count("\n") == tame_sick_lines,
        "annotation": told.count("\n") == 1 and runner_reads(told).name == "error" and told.rstrip("\n").isprintable(),
        "SARIF": len(found["runs"][0]["results"]) == 1,
    }
    return [what for what, is_right in checks.items() if not is_right]


def test_no_name_does_anything_where_a_balance_a_doctor_or_a_validation_is_shown() -> None:
    assert {what: found for what, name in PAYLOADS.items() if (found := wrong_reports(name))} == {}


def test_no_name_of_a_group_or_its_members_does_anything_on_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program, wrong = Program(capsys), []
    for what, name in PAYLOADS.items():
        (tmp_path / "s.json").write_text(json.dumps(with_group(name)), "utf-8")
        for verb in ("groups list", "groups describe", "groups lag", "topics list", "topics describe"):
            ended = program(*verb.split(), "--state", "s.json")
            out = re.sub(r"\t(?=[A-Z])|^\t", "", ended.out, flags=re.MULTILINE)  # Kafka's own tabs
            if ended.code != 0 or W not in out or not is_plain(out) or not is_plain(ended.err):
                wrong.append((what, verb, ended))
    assert wrong == []


def test_no_name_of_a_topic_or_its_owner_is_a_formula_in_a_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program = Program(capsys)
    for what, name in PAYLOADS.items():
        (tmp_path / "s.json").write_text(json.dumps(with_group(name)), "utf-8")
        for verb in ("list", "describe"):
            rows = [*csv.reader(io.StringIO(program("topics", verb, "--state", "s.json", "-o", "csv").out, newline=""))]
            cells = [cell for row in rows for cell in row]
            assert {len(row) for row in rows} == {len(rows[0])}, what
            assert not any(cell[:1] in {"=", "+", "-", "@", "\t", "\r"} for cell in cells), what
            assert all(map(is_plain, cells)), what


def with_group(name: str) -> dict[str, Any]:
    """Return a snapshot whose topic, group, client id, host and rack are that name."""
    member = {"memberId": name, "clientId": name, "host": name, "instanceId": name, "rack": name}
    group = SNAPSHOT["groups"][0] | {
        "groupId": name,
        "state": "Stable",
        "members": [member | {"subscription": [name], "assignment": {name: [0]}}],
        "offsets": {name: {"0": 40}},
    }
    topic = SNAPSHOT["topics"][0] | {"name": name, "configs": {"x": name}}
    brokers = [broker | {"rack": name, "host": name} for broker in SNAPSHOT["brokers"]]
    return SNAPSHOT | {"groups": [group], "topics": [topic], "brokers": brokers}


def test_no_name_is_a_formula_in_a_csv_and_all_are_read_back(tmp_path: Path) -> None:
    for what, name in PAYLOADS.items():
        groups = {name: {TopicPartition(name, 0): 5}, "other": {TopicPartition("t", 1): 7}}
        text = offsets_text(groups, has_groups=True)
        cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
        assert len(cells) == 8, what
        assert not any(cell[:1] in {"=", "+", "-", "@", "\t", "\r"} for cell in cells), what
        if name == name.strip() and "\0" not in name:
            (tmp_path / "o.csv").write_text(text, "utf-8", newline="")
            assert read_offsets(tmp_path / "o.csv", None) == groups, what


def test_no_cluster_of_a_plan_is_a_way_out_of_its_folder() -> None:
    for name in ("../x", "/etc/x", "..", ".", "", "a/b", "a\\b", "c:x", "x\0", "x\n", "\x1b[2J"):
        document = to_json(replace(sample_plan(), cluster_name=name))
        with pytest.raises(Malformed):
            plan_from_json(document)


def test_the_table_holds_forty_payloads_and_more() -> None:
    assert len(set(PAYLOADS.values())) == len(PAYLOADS) >= 40
    assert all(W in payload for payload in PAYLOADS.values())
