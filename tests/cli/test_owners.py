"""`kind: Owner`: whose a topic is, and what `validate` and `plan` say of what its owner may not have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from cli.mirrored import ROOT, topic, write
from helpers.program.call import Ended, Program
from helpers.program.documents import document

pytestmark = pytest.mark.long

OWNER = "apiVersion: reconciler/v1\nkind: Owner\nmetadata: {{name: {}}}\nspec: {}\n"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def declared(name: str, spec: str = "{partitions: 2, replicationFactor: 2}", **labels: str) -> str:
    return document("Topic", name, spec).replace(f"name: {name}", f"name: {name}, labels: {json.dumps(labels)}")


def codes(ended: Ended) -> list[str]:
    return re.findall(r"KR47\d", ended.out + ended.err)


def test_validate_ends_with_3_where_an_owner_does_not_allow_what_is_declared(reconciler: Program) -> None:
    for limit, found, code in ((1, [], 0), (0, ["KR472"], 3)):
        write(
            "prod", [], OWNER.format("team-a", f"{{topics: [o*], limits: {{topics: {limit}}}}}"), declared("orders.a")
        )
        for more in ((), ("--cluster", "*")):
            ended = reconciler("validate", *more)
            assert (codes(ended), ended.code) == (found, code), ended


def test_what_is_found_names_the_line_the_rule_and_whom_to_ask(reconciler: Program) -> None:
    owner = OWNER.format("team-a", '{contact: "#a", topics: [o*], config: {retention.ms: {max: 1h}}}')
    write("prod", [], owner, declared("orders.a", "\n  config: {retention.ms: 1d}"))
    (line,) = reconciler("validate").out.splitlines()
    assert line.startswith("desired-state/prod/topics.yaml:10:12: topic orders.a sets retention.ms")
    assert "config.retention.ms of team-a (desired-state/prod/topics.yaml:4) wants 3600000 or less" in line
    assert line.endswith("or ask team-a (#a) (KR476)")
    told = json.loads(reconciler("validate", "-o", "json").out)["problems"]
    assert [(one["code"], one["severity"], one["line"]) for one in told] == [("KR476", "violation", 10)]
    (run,) = json.loads(reconciler("validate", "-o", "sarif").out)["runs"]
    assert ([one["ruleId"] for one in run["results"]], run["invocations"][0]["exitCode"]) == (["KR476"], 3)


def test_other_problems_win_over_an_owners_and_a_bound_must_be_one(reconciler: Program) -> None:
    owner = OWNER.format("team-a", "{topics: [o*], config: {retention.ms: {max: soon}}, limits: {topics: 0}}")
    write("prod", [], owner, declared("orders.a"))
    ended = reconciler("validate")
    assert (ended.code, codes(ended), "KR104" in ended.out) == (1, [], True)


def test_a_topic_that_patterns_of_several_owners_claim_is_told_and_listed_as_nobodys(reconciler: Program) -> None:
    documents = [
        OWNER.format(name, f"{{topics: [{pattern}]}}") for name, pattern in (("a", "orders.*"), ("b", "orders.?"))
    ]
    write("prod", [topic("orders.z", 1), topic("orders.long", 1)], *documents, declared("orders.z"))
    ended = reconciler("validate")
    assert (codes(ended), "topic orders.z may be of a (desired-state/prod/topics.yaml:" in ended.out) == (
        ["KR471"],
        True,
    )
    told = json.loads(reconciler("topics", "list", "-o", "json").out)["clusters"][0]["topics"]
    assert {one["topic"]: one["owner"] for one in told} == {"orders.z": None, "orders.long": "a"}


MADE = "{partitions: 2, replicationFactor: 2}"


def plan_json(reconciler: Program) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(reconciler("plan", "-o", "json").out)
    return found


@pytest.mark.parametrize(
    ("limits", "spec", "violations", "warnings"),
    [
        ("{topics: 2}", MADE, 1, 0),
        ("{topics: 3}", MADE, 0, 0),
        ("{partitions: 6}", MADE, 1, 0),
        ("{partitions: 7}", MADE, 0, 0),
        ("{bytes: 49B}", MADE, 0, 1),
        ("{bytes: 50B}", MADE, 0, 0),
        ("{topics: 1}", "{state: absent}", 0, 1),
    ],
)
def test_a_plan_is_refused_for_what_it_makes_worse_alone(
    limits: str, spec: str, violations: int, warnings: int, reconciler: Program
) -> None:
    """There are 2 topics, 5 partitions and 50 B; a third topic of 2 partitions is wished for, or none."""
    owner = OWNER.format("team-a", f"{{contact: ask-a, topics: [orders.*], limits: {limits}}}")
    there = [topic("orders.a", 3), topic("orders.by-hand", 2), topic("other", 9)]
    write("prod", there, owner, declared("orders.a", "{partitions: 3}"), declared("orders.new", spec))
    told = plan_json(reconciler)
    found = {kind: [one for one in told[kind] if one["code"] == "KR472"] for kind in ("violations", "warnings")}
    assert {kind: len(each) for kind, each in found.items()} == {"violations": violations, "warnings": warnings}
    assert all("ask team-a (ask-a)" in one["message"] for each in found.values() for one in each)
    ended = reconciler("plan", "--out", "plan.json", "-o", "markdown")
    assert ended.code == (3 if violations else 0), ended
    assert ("ask team-a" in ended.out) == bool(violations or warnings)
    if violations:
        assert reconciler("apply", "plan.json", "--yes").code == 3


def test_bytes_that_nobody_knows_are_told(reconciler: Program) -> None:
    there = topic("orders.a", 3)
    there["partitions"][1].pop("sizes")
    limits = [OWNER.format("team-a", f"{{topics: [orders.*], limits: {{bytes: {most}}}}}") for most in ("20B", "19B")]
    for owner, said in zip(
        limits, ("some sizes of what team-a owns are unknown", "team-a has at least 20 B"), strict=True
    ):
        write("prod", [there], owner, declared("orders.a", "{partitions: 3}"))
        told = [one["message"] for one in plan_json(reconciler)["warnings"] if one["code"] == "KR472"]
        assert [one.startswith(said) for one in told] == [True], told


def test_more_replicas_are_more_bytes(reconciler: Program) -> None:
    owner = OWNER.format("team-a", "{topics: [orders.*], limits: {bytes: 35B}}")
    write("prod", [topic("orders.a", 3)], owner, declared("orders.a", "{replicationFactor: 3}"))
    (one,) = plan_json(reconciler)["violations"]
    assert one["message"].startswith("team-a would have 45 B of all replicas, and its limits.bytes is 35 B")
    (ROOT / "prod" / "topics.yaml").write_text(owner + "---\n" + declared("orders.a", "{replicationFactor: 1}"))
    assert plan_json(reconciler)["violations"] == []


def test_rules_bind_the_topics_that_a_plan_changes_and_no_others(reconciler: Program) -> None:
    owner = OWNER.format("team-a", "{topics: [orders.*], labels: {tier: ['*']}}")
    there = [topic("orders.a", 3), topic("orders.b", 3)]
    write("prod", there, owner, declared("orders.a", "{partitions: 3}"), declared("orders.b", "{partitions: 4}"))
    assert codes(reconciler("validate")) == ["KR475", "KR475"]
    assert [one["message"].split()[1] for one in plan_json(reconciler)["violations"]] == ["orders.b"]


def test_diff_and_drift_go_on_whatever_owners_do_not_allow(reconciler: Program) -> None:
    write("prod", [topic("orders.a", 2)], OWNER.format("team-a", "{topics: [o*], limits: {topics: 0}}"),
          declared("orders.a", "{partitions: 2}"))  # fmt: skip
    assert reconciler("diff", "--detailed-exitcode").code == 0
