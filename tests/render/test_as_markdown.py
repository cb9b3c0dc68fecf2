import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from helpers.sample_plan import sample_plan

from reconciler.model.change import AlterConfigs, Changes, Difference
from reconciler.model.move import Move, Reason
from reconciler.model.plan import Plan, Proof
from reconciler.model.problem import Location, Problem, Severity
from reconciler.model.stage import ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.render import as_markdown

GOLDEN = Path(__file__).parent / "golden"

PAYLOADS = (
    "a|b",
    "a\\|b",
    "`code`",
    "``",
    "` | `",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details>",
    "<!-- hidden -->",
    "-->",
    "@everyone",
    "@org/team",
    "#1",
    "GH-1",
    "org/repo#12",
    "deadbeef1",
    "0123456789abcdef0123456789abcdef01234567",
    "[click](javascript:alert(1))",
    "![x](//host/p.png)",
    "https://host.example/x",
    "www.host.example",
    "someone@host.example",
    "a\nb",
    "a\r\n\r\n# Title",
    "\n| x | y |\n",
    "**bold** _it_ ~~no~~",
    "a\u202eb\u2066c",
    "a\u200bb\u200dc\ufeff",
    "\x1b[31mred\x1b[0m\x07",
    "a\u2028b\u2029c",
    "$x^2$",
    ":tada:",
    "&lt;b&gt;",
    "\\`",
    "- [ ] task",
    "",
    " ",
)


def _with(payload: str) -> Plan:
    """Return a plan that carries the payload wherever others' text can stand."""
    at = Location(f"demo/{payload}.yaml", 3)
    change = AlterConfigs("clicks", {payload or "k": payload}, (), {payload or "k": payload}, at)
    move = Move(TopicPartition("t", 0), (1,), (2,), 5, Reason.RACKS, at)
    found = Problem("KR801", f"rack {payload} is full", at, Severity.WARNING)
    return replace(
        sample_plan(),
        cluster_name=payload or "c",
        topic_changes=(change,),
        stages=(TopicsStage(1, (0,)), ReassignStage(2, (move,))),
        proof=Proof("bytes", 5, 5),
        source=replace(sample_plan().source, commit=payload, observed_at=payload),
        warnings=(found,),
        violations=(replace(found, severity=Severity.VIOLATION),),
    )


def _outside_code(text: str) -> str:
    """Return what Markdown would interpret: all but code spans, which here never hold a backtick."""
    return re.sub(r"`[^`\n]*`", "CODE", text)


def _skeleton(text: str) -> list[str]:
    """Return the structure alone: each line's marks, without words."""
    return [re.sub(r"[\w.,;%/+='()\"→· -]", "", line) for line in _outside_code(text).split("\n")]


def test_the_comment_reads_as_reviewed() -> None:
    assert as_markdown.plan(sample_plan()) == (GOLDEN / "plan.md").read_text("utf-8")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_changes_the_structure_of_the_comment(payload: str) -> None:
    text = as_markdown.plan(_with(payload))
    assert _skeleton(text) == _skeleton(as_markdown.plan(_with("harmless")))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_no_payload_reaches_markdown_outside_code(payload: str) -> None:
    outside = _outside_code(as_markdown.plan(_with(payload)))
    outside = re.sub(r"(?m)^<!-- reconciler plan [A-Za-z0-9._]+ -->$", "", outside)
    outside = re.sub(r"(?m)^<details><summary>[^<]*</summary>$|^</details>$", "", outside)
    outside = re.sub(r"\[\d+\]", "LIST", outside).replace("\n| ~ |", "\n| sign |")
    assert not re.findall(r"[<>@\\`\[\]~$&]|#\d|://|www\.|GH-\d|\*\*bold|_it_", outside)
    assert not re.findall("[\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\x00-\x08\x0b-\x1f]", outside)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_table_keeps_its_cells(payload: str) -> None:
    lines = as_markdown.plan(_with(payload)).split("\n")
    heads = [number for number, line in enumerate(lines) if line.startswith("|---")]
    assert heads
    for head in heads:
        cells = lines[head].count("|")
        rows = [line for line in lines[head + 1 :] if line.startswith("|")][:1]
        assert [row.count("|") for row in rows] == [cells] * len(rows)


@pytest.mark.parametrize(("stages", "limit"), [*product((1, 40, 400), (3000, 20_000, as_markdown.LIMIT))])
def test_a_comment_is_never_longer_than_its_limit_and_cut_at_a_stage(stages: int, limit: int) -> None:
    moves = tuple(
        Move(TopicPartition(f"topic-{number}", 0), (1, 2, 3), (2, 3, 4), 1000, Reason.RACKS) for number in range(25)
    )
    plan = replace(
        sample_plan(),
        topic_changes=(),
        stages=tuple(ReassignStage(number + 1, moves) for number in range(stages)),
    )
    text = as_markdown.plan(plan, limit=limit)
    assert len(text) <= limit
    assert len(re.findall(r"\n\*\*Stage \d+\*\* ·", text)) * 25 == text.count("\n| `topic-")
    shown = len(re.findall(r"\n\*\*Stage \d+\*\* ·", text))
    if shown < stages:
        assert "left out here (" in text
        assert f"{(stages - shown) * 25:,} actions)" in text
    assert text.rstrip().endswith("stay as they are.")
    assert text.count("<details>") == text.count("</details>") == 1


def test_an_empty_plan_says_no_changes() -> None:
    text = as_markdown.plan(replace(sample_plan(), stages=(), topic_changes=(), violations=(), warnings=()))
    assert "### reconciler · `demo` · no changes\n" in text
    assert "<details>" not in text


def test_changes_are_one_table() -> None:
    found = Changes(topic_changes=sample_plan().topic_changes[1:2])
    text = as_markdown.changes(found, (Difference("orders", "partitions", "12", "18", None),), "demo")
    assert text.startswith("### reconciler diff · `demo` · 1 difference\n")
    assert "| ~ | `orders` partitions 12 → 18 | 0 | topic |" in text


def test_secrets_are_hidden() -> None:
    assert "s3" not in as_markdown.plan(sample_plan())
