import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from helpers.plans.sample_plan import EMPTIED, sample_plan
from markdown_it import MarkdownIt

from reconciler.model.change import AlterConfigs, BrokenRule, Changes, DeleteTopic, Difference
from reconciler.model.desired import BrokerState
from reconciler.model.evenness import evenness
from reconciler.model.grounds import BrokerGround, Grounds
from reconciler.model.move import Move, Reason
from reconciler.model.plan import BrokerShare, Plan
from reconciler.model.problem import Location, Problem, Severity
from reconciler.model.stage import ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import WhatIf
from reconciler.render import as_markdown, escape

GOLDEN = Path(__file__).parent / "golden"


def test_the_comment_reads_as_reviewed() -> None:
    assert as_markdown.plan(sample_plan()) == (GOLDEN / "plan.md").read_text("utf-8")


def _parsed(text: str) -> list[tuple[str, str]]:
    """Return what a Markdown parser makes of it: each token's kind and, where it is HTML, its text."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    blocks = parser.parse(text)
    tokens = [inner for token in blocks for inner in (token.children or [token])]
    return [(token.type, token.content if token.type.startswith("html") else "") for token in tokens]


def test_a_supposition_and_the_findings_are_two_lists() -> None:
    supposed = WhatIf(("drain=5",), ("sizes stay",))
    kinds = [kind for kind, _ in _parsed(as_markdown.plan(replace(sample_plan(), what_if=supposed)))]
    first = kinds[: kinds.index("table_open")]
    assert (first.count("bullet_list_open"), first.count("list_item_open")) == (2, 4)


@pytest.mark.long
@pytest.mark.parametrize(("stages", "limit"), [*product((1, 40, 400), (3000, 20_000, as_markdown.LIMIT))])
def test_a_comment_is_never_longer_than_its_limit_and_cut_at_a_stage(stages: int, limit: int) -> None:
    moves = tuple(
        Move(TopicPartition(f"topic-{number}", 0), (1, 2, 3), (2, 3, 4), 1000, Reason.RACKS) for number in range(25)
    )
    plan = replace(
        sample_plan(), topic_changes=(), stages=tuple(ReassignStage(number + 1, moves) for number in range(stages))
    )
    text = unbroken(as_markdown.plan(plan, limit=limit))
    assert utf16(text) <= limit
    left = 25 * stages - len(
        re.findall(r"(?m)^\| `topic-\d+-0` \| \[1, 2, 3\] \| \[2, 3, 4\] \| 1000 B \| racks \|$", text)
    )
    whole = len(re.findall(r"(?m)^\*\*Stage \d+\*\* ·", text))
    assert (left > 0) == (" left out here (" in text)
    assert left == 25 * (stages - whole) or whole == 1
    if left:
        assert f"left out here ({left:,} actions):** `reconciler show` prints plan `4f3c9a1e` in full" in text
    assert text.rstrip().endswith("stay as they are.")
    assert text.count("<details>") == text.count("</details>")


def unbroken(text: str) -> str:
    """Return a comment with plain spaces in its figures."""
    return text.replace("\u00a0", " ")


def utf16(text: str) -> int:
    """Return a length as JavaScript, and the strictest reading of GitHub's limit, counts it."""
    return sum(1 + (ord(character) > 0xFFFF) for character in text)


@pytest.mark.long
@pytest.mark.parametrize("name", ["n" * 249, "\U0001f408" * 200, "`|<" * 80])
def test_a_plan_of_20_000_moves_with_the_longest_names_fits_and_says_what_is_left_out(name: str) -> None:
    keys = [TopicPartition(f"{name}-{number % 700}", number) for number in range(20_000)]
    moves = [
        Move(key, (1, 2, 3), (2, 3, 4 + key.partition % 90), 1000, Reason.RACKS, Location(f"{name}.yaml", line))
        for key in keys
        for line in [3 + key.partition % 700]
    ]
    stages = tuple(ReassignStage(at + 1, tuple(moves[100 * at : 100 * (at + 1)])) for at in range(200))
    found = tuple(Problem("KR430", name, Location(f"{name}.yaml", line), Severity.VIOLATION) for line in range(1, 500))
    shares = {number: BrokerShare(10, 5, 1000) for number in range(100)}
    plan = replace(
        sample_plan(), stages=stages, violations=found, topic_changes=(), balance_before=shares, balance_after=shares
    )
    text = as_markdown.plan(plan)
    assert utf16(text) <= as_markdown.LIMIT < 65_536
    assert all(row.endswith(" |") for row in text.split("\n") if row.startswith("| "))
    assert text.count("<details>") == text.count("</details>") > 2
    for what in (
        r"and [\d,]+ more findings",
        r"and [\d,]+ more changes",
        r"and [\d,]+ more topics",
        r"left out here \(",
    ):
        assert re.search(what, text), what
    shown = len(re.findall(r"(?m)^\| `.*` \| \[1, 2, 3\] \| ", text))
    assert f"({20_000 - shown:,} actions)" in text


def test_what_matters_most_stands_first() -> None:
    codes = ("KR802", "KR831", "KR817", "KR801", "KR814", "KR816")
    warnings = tuple(Problem(code, "told", None, Severity.WARNING) for code in codes)
    text = as_markdown.plan(replace(sample_plan(), warnings=warnings))
    assert re.findall(r"KR\d+", text) == ["KR402", "KR817", "KR816", "KR831", "KR801", "KR814", "KR802"]


def test_names_that_differ_have_markers_that_differ_and_end_no_comment() -> None:
    names = ("prod-eu", "prod_eu", "prod.eu", "prod--eu", "prod-eu-", "a-->b", "a--b", "a-b", "é", "%C3%A9")
    marks = [as_markdown.plan(replace(sample_plan(), cluster_name=name)).split("\n")[0] for name in names]
    assert len(set(marks)) == len(names)
    assert all(re.fullmatch(r"<!-- reconciler plan (?:(?!--)[\w.~%-])+ -->", mark, re.ASCII) for mark in marks)


def test_racks_disks_and_balance_are_told_before_and_after() -> None:
    text = unbroken(as_markdown.plan(_on_racks()))
    assert "| `a` | 2 | 118 → 123 | 61 → 63 | 40.0 GiB → 41.0 GiB | 0 | 43%, broker 1 |" in text
    assert "| `b` | 2 | 126 → 131 | 66 | 42.0 GiB → 66.0 GiB | 24.0 GiB | 82% of `/d2`, broker 6 |" in text
    assert "partitions on fewer racks than they could be: 1 before, 2 at the worst moment, 0 after" in text
    assert "| replicas per broker | 118 to 126 | 123 to 131 | 1.033 → 1.031 |" in text
    assert "| **Most at once** | 12 replicas, 24.0 GiB, to broker 6 in stage 3 |" in text


def test_the_most_is_over_the_mean_by_capacity_without_brokers_that_are_to_be_empty() -> None:
    brokers = {
        1: BrokerGround(),
        2: BrokerGround(capacity=2),
        3: BrokerGround(state=BrokerState.DRAINING),
        4: BrokerGround(state=BrokerState.ABSENT),
    }
    before = {1: BrokerShare(9, 1), 2: BrokerShare(6, 4), 3: BrokerShare(15, 5), 4: BrokerShare(0, 0)}
    after = {1: BrokerShare(10, 3), 2: BrokerShare(20, 7), 3: BrokerShare(0, 0), 4: BrokerShare(0, 0)}
    plan = replace(
        sample_plan(), grounds=Grounds(brokers=brokers), balance_before=before, balance_after=after, violations=()
    )
    text = unbroken(as_markdown.plan(plan))
    assert "| Balance | Before | After | Most / mean, by capacity |" in text
    assert "| replicas per broker | 0 to 15 | 0 to 20 | 1.800 → 1.000 |" in text
    weights = {broker_id: ground.capacity for broker_id, ground in brokers.items() if broker_id <= 2}
    expected = [evenness((side[key].leaders, weights[key]) for key in weights) for side in (before, after)]
    told = " → ".join(f"{each.max_over_mean:.3f}" for each in expected if each)
    assert f"| preferred leaders per broker | 0 to 5 | 0 to 7 | {told} |" in text


def test_each_measure_goes_by_its_own_capacity_and_full_disks_count_what_is_not_kafkas() -> None:
    brokers = {1: BrokerGround(), 2: BrokerGround(weights={"leaders": 3, "disk": 2}, foreign_bytes=50)}
    shares = {1: BrokerShare(10, 2, 50, 5, 5, 5), 2: BrokerShare(10, 6, 50, 15, 5, 15)}
    plan = replace(
        sample_plan(), grounds=Grounds(brokers=brokers), balance_before=shares, balance_after=shares, violations=()
    )
    text = unbroken(as_markdown.plan(plan))
    assert "| Balance | Before | After | Most / mean, by capacity |" in text
    assert "| replicas per broker | 10 | 10 | 1.000 |" in text
    assert "| preferred leaders per broker | 2 to 6 | 2 to 6 | 1.000 |" in text
    assert "| data per broker | 50 B | 50 B | 1.000 |" in text
    assert "| in from producers per broker | 5 B/s to 15 B/s | 5 B/s to 15 B/s | 1.500 |" in text


def _on_racks() -> Plan:
    """Return the sample on two racks: a partition leaves one, another spreads out, both over two stages."""
    brokers = {
        1: BrokerGround("a"),
        2: BrokerGround("a"),
        4: BrokerGround("b"),
        5: BrokerGround("a"),
        6: BrokerGround("b"),
    }
    plan = sample_plan()
    first, last = TopicPartition("a", 0), TopicPartition("b", 0)
    there = ReassignStage(5, (Move(first, (1, 4), (1, 2), 0, Reason.RACKS),))
    back = ReassignStage(6, (Move(first, (1, 2), (1, 4), 0, Reason.RACKS), Move(last, (1, 2), (1, 4), 0, Reason.RACKS)))
    stages = (*(stage for stage in plan.stages if stage.number != 2), there, back)
    return replace(plan, stages=stages, grounds=Grounds(brokers=brokers))


def test_an_empty_plan_says_no_changes() -> None:
    text = as_markdown.plan(replace(sample_plan(), stages=(), topic_changes=(), violations=(), warnings=()))
    assert "### reconciler · `demo` · no changes\n" in text
    assert "<!-- reconciler labels: no changes -->\n" in text
    assert "<details>" not in text


def test_changes_are_one_table() -> None:
    found = Changes(topic_changes=sample_plan().topic_changes[1:2])
    text = as_markdown.changes(found, (Difference("orders", "partitions", "12", "18", None),), "demo")
    assert text.startswith("### reconciler diff · `demo` · 1 difference\n")
    assert "|  | Change | Kind |\n" in text, "what a difference will copy is not known before a plan"
    assert "| ~ | `orders` partitions 12 → 18 | **irreversible** |" in text


def test_a_difference_destroys_only_as_far_as_the_plan_says_so() -> None:
    change = AlterConfigs("t", {"retention.ms": "1", "segment.ms": "5"}, (), {"retention.ms": "2", "segment.ms": "4"})
    change = replace(change, effects=(EMPTIED,))
    fields = [Difference("t", f"config.{key}", change.before[key], change.set[key], None) for key in sorted(change.set)]
    text = as_markdown.changes(Changes(topic_changes=(change,)), fields, "demo")
    assert "| ~ | `t` config.retention.ms 2 → 1 | **destroys** |" in text
    assert "**Destroys** 1 topic, up to 48.0 GiB on all replicas, read by 2 groups" in text
    assert "| ~ | `t` config.segment.ms 4 → 5 | topic |" in text


def test_what_a_partition_breaks_has_the_arrow_of_every_other_line() -> None:
    broken = BrokenRule(TopicPartition("t", 0), Reason.REPLICATION_FACTOR, "replicationFactor 2 -> 3", None)
    text = as_markdown.changes(Changes(broken_rules=(broken,)), (), "demo")
    assert "| ~ | `t-0` replicationFactor 2 → 3 | placement |" in text


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("51 GiB (54760833024 bytes) are too many", "51 GiB (`54760833024` bytes) are too many"),
        ("topics (a_b, c_d): told.", "topics (`a_b`, `c_d`): told."),
        ("no 'a_b' and f_x(1) at a_b/c:7.", "no '`a_b`' and `f_x(1)` at `a_b/c:7.`"),
        (":tada: x_y:", "`:tada:` `x_y`:"),
        ("(( <b>) @a) #1,", "(( `<b>`) `@a`) `#1`,"),
    ],
)
def test_a_code_span_takes_none_of_the_sentence_around_it(words: str, shown: str) -> None:
    assert escape.sentence(words) == shown


def test_data_is_what_is_known_to_be_copied_or_deleted() -> None:
    moves = (
        Move(TopicPartition("a", 0), (1,), (2,), 5, Reason.RACKS),
        Move(TopicPartition("a", 1), (1,), (2,), 0, Reason.RACKS, is_size_known=False),
        Move(TopicPartition("b", 0), (1,), (2,), 0, Reason.RACKS, is_size_known=False),
        Move(TopicPartition("c", 0), (1,), (2,), 7, Reason.RACKS),
    )
    plan = replace(
        sample_plan(),
        topic_changes=(DeleteTopic("old"),),
        stages=(TopicsStage(1, (0,)), ReassignStage(2, moves)),
        violations=(),
    )
    text = unbroken(as_markdown.plan(plan))
    assert "| - | `old` delete with all its data | destroys an unknown number of bytes | **destroys** |" in text
    assert "| ~ | `a` racks: 2 partitions spread against the rule | at least 5 B | moves data |" in text
    assert "| ~ | `b` racks: 1 partition spread against the rule | unknown | moves data |" in text
    assert "| ~ | `c` racks: 1 partition spread against the rule | 7 B | moves data |" in text
