"""The page of a plan as text: what it holds, that it asks for nothing, and that names on it are only names."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest
from helpers.plans.sample_plan import sample_plan
from render.balance_reports import drawn_report
from render.test_as_html import ELEMENTS, Parsed

from reconciler.balance.render import as_html
from reconciler.model.change import AlterConfigs, DeleteTopic
from reconciler.model.grounds import BrokerGround, Grounds
from reconciler.model.move import Move, Reason
from reconciler.model.plan import LogDirUse, Plan, Source
from reconciler.model.problem import Edit, Location, Problem, Remedy, Severity
from reconciler.model.stage import ReassignStage, TopicsStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.what_if import WhatIf
from reconciler.render import as_plan_html
from reconciler.render.html_timeline import timeline
from reconciler.render.plan_figures import stages

MORE = {"label", "input", "script", "pre"}
EMPTY = replace(sample_plan(), stages=(), topic_changes=())


def named(payload: str) -> Plan:
    """Return a plan in which everything that has a name has this one."""
    name = payload or " "
    at = Location(f"{name}.yaml", 3)
    key = TopicPartition(name, 0)
    found = Problem("KR801", f"rack {payload} is full", at, Severity.WARNING)
    return replace(
        sample_plan(),
        cluster_name=name,
        cluster_id=name,
        source=Source("sha256:00", name, name, (name,)),
        topic_changes=(AlterConfigs(name, {name: name}, (), {name: name}, at), DeleteTopic(name, None, at)),
        stages=(TopicsStage(1, (0, 1)), ReassignStage(2, (Move(key, (1,), (6,), 5, Reason.RACKS, at),), None, 4)),
        warnings=(found,),
        violations=(replace(found, severity=Severity.VIOLATION),),
        remedies=(Remedy((Edit(f"raise {name}", at),)),),
        log_dirs={6: (LogDirUse(name, 1, 2),)},
        predicted_log_dirs={key: {6: name}},
        what_if=WhatIf((name,), (name,)),
        grounds=Grounds(brokers={1: BrokerGround(name), 6: BrokerGround(name)}),
    )


@pytest.mark.parametrize(
    ("page", "more"),
    [
        *((as_html.balance(report), set()) for report in (drawn_report(10), drawn_report(3, 4, has_plan=False))),
        *((as_html.balance(report), set()) for report in (drawn_report(2, from_samples=False), drawn_report(2, 2, 2))),
        *((as_plan_html.plan(plan), MORE) for plan in (sample_plan(), named("plain"), EMPTY)),
    ],
    ids=["balance", "without a plan", "without samples", "a fleet", "a plan", "names", "an empty plan"],
)
def test_a_page_asks_for_nothing(page: str, more: set[str]) -> None:
    parsed = Parsed(page)
    assert parsed.open == []
    assert {tag for tag, _ in parsed.elements} <= ELEMENTS | more
    for tag, attributes in parsed.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src", "srcset"}], tag
        target = attributes.get("href")
        assert target is None or target == "data:," or target.startswith("#"), target


@pytest.mark.long
def test_its_policy_allows_its_own_style_and_filter_and_nothing_else() -> None:
    text = as_plan_html.plan(sample_plan())
    policy = next(given["content"] for tag, given in Parsed(text).elements if tag == "meta" and "http-equiv" in given)
    own = {}
    for tag in ("style", "script"):
        (body,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert body.strip()
        own[tag] = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{own['style']}'",
        f"script-src 'sha256-{own['script']}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]


def test_an_empty_plan_is_a_page_that_says_so() -> None:
    empty = replace(sample_plan(), stages=(), topic_changes=(), violations=(), warnings=())
    texts = Parsed(as_plan_html.plan(empty)).texts
    assert "no changes" in texts
    assert "No violation, no warning." in texts
    assert "<script" not in as_plan_html.plan(empty)


def test_what_stops_apply_stands_before_what_does_not() -> None:
    texts = [" ".join(text.split()) for text in Parsed(as_plan_html.plan(sample_plan())).texts]
    assert texts.index("refused by apply:") < texts.index("warning:")
    assert "apply refuses it: 1 violation." in texts


def test_a_stage_is_drawn_when_it_runs_and_its_area_is_its_bytes() -> None:
    staged = stages(sample_plan())
    drawn = timeline(staged)
    assert drawn is not None
    assert [round(block.x) for block in drawn.blocks] == [128, round(128 + 1776 * 31 / 113)]
    areas = [(block.width + 1.5) * block.height for block in drawn.blocks]
    assert areas[1] / areas[0] == pytest.approx(8, rel=0.02)
    highest, top = drawn.ticks[-1], float(drawn.ticks[-1].text.removesuffix("MiB/s"))
    assert drawn.floor - highest.y == 204
    assert drawn.blocks[1].height == pytest.approx(204 * (24 * 1024 / 82) / top, rel=0.001)
    assert [block.kind for block in drawn.blocks] == ["repair", "factor"]
    assert [(moment.kind, moment.x) for moment in drawn.moments] == [("topics", 128.0), ("order", 1904.0)]
    assert len({label.text for label in drawn.labels}) == len(drawn.labels)


def test_a_stage_that_copies_for_several_reasons_shows_each_with_its_bytes() -> None:
    reasons = (Reason.DRAINING, Reason.RACKS, Reason.DRAINING, Reason.REPLICATION_FACTOR, Reason.LEADERS)
    moves = tuple(
        Move(TopicPartition("t", number), (1,), (2,), size << 20, reason)
        for number, (reason, size) in enumerate(zip(reasons, (300, 100, 100, 400, 0), strict=True))
    )
    plan = replace(sample_plan(), stages=(ReassignStage(1, moves, None, 9),), topic_changes=())
    drawn = timeline(stages(plan))
    assert drawn is not None
    assert [(block.kind, block.words.partition("; ")[2]) for block in drawn.blocks] == [
        ("repair", "repairs 100.0 MiB"),
        ("drain", "draining 400.0 MiB"),
        ("factor", "replication factor 400.0 MiB"),
    ]
    assert [kind for kind, _ in drawn.kinds] == ["repair", "drain", "factor"]
    low, middle, high = drawn.blocks
    assert middle.height == pytest.approx(high.height, abs=0.02) == pytest.approx(4 * low.height, abs=0.1)
    assert low.y + low.height == pytest.approx(drawn.floor)
    assert (middle.y + middle.height, high.y + high.height) == pytest.approx((low.y, middle.y))


def test_without_any_time_there_is_no_timeline() -> None:
    assert timeline(stages(replace(sample_plan(), stages=sample_plan().stages[:1]))) is None
    assert timeline(()) is None


@pytest.mark.parametrize("seconds", [1, 59, 61, 3599, 86_400, 2_000_000_000])
def test_the_labels_of_any_length_of_time_are_few_and_differ(seconds: int) -> None:
    (stage,) = (each for each in sample_plan().stages if each.number == 3)
    assert isinstance(stage, ReassignStage)
    drawn = timeline(stages(replace(sample_plan(), stages=(replace(stage, estimated_seconds=seconds),))))
    assert drawn is not None
    texts = [label.text for label in drawn.labels]
    assert len(set(texts)) == len(texts)
    assert 1 <= len(texts) <= 14 or seconds > 10**9
