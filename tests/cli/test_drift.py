"""What differs and cannot be mended by a plan is a difference all the same: exit code 2, and never "No changes"."""

import json
from pathlib import Path

import pytest
from helpers.program.call import Program

CLUSTER = """\
apiVersion: reconciler/v1
kind: Cluster
metadata: {name: prod}
spec:
  simulation: state.json
  BROKERS
  topics: {managed: MANAGED, delete: never}
"""
TOPIC = "---\napiVersion: reconciler/v1\nkind: Topic\nmetadata: {name: orders}\nspec: {SPEC}\n"
STATE = {
    "formatVersion": "1.0",
    "clusterId": "drift",
    "brokers": [{"id": 1}, {"id": 2}],
    "topics": [
        {"name": name, "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "sizes": [5]}]}
        for name in ("clicks", "orders")
    ],
}
DECLARED = TOPIC.replace("SPEC", "partitions: 1")


def write(brokers: str = "", managed: str = "listed", topics: str = DECLARED) -> None:
    folder = Path("desired-state/prod")
    folder.mkdir(parents=True)
    text = CLUSTER.replace("BROKERS", f"brokers: [{brokers}]").replace("MANAGED", managed)
    (folder / "cluster.yaml").write_text(text + topics, "utf-8")
    (folder / "state.json").write_text(json.dumps(STATE), "utf-8")


def test_where_all_is_as_declared_there_is_no_difference(reconciler: Program) -> None:
    write()
    for verb in ("plan", "diff"):
        ended = reconciler(verb, "--detailed-exitcode")
        assert (ended.code, ended.out.startswith("No changes.")) == (0, True), ended


@pytest.mark.parametrize(
    ("brokers", "managed", "topics", "code"),
    [
        ("", "all", DECLARED, "KR245"),
        ("", "listed", TOPIC.replace("SPEC", "state: absent"), "KR247"),
        ("{id: 9}", "listed", DECLARED, "KR241"),
        pytest.param("{id: 2, state: absent}", "listed", DECLARED, "KR242", marks=pytest.mark.long),
    ],
)
def test_drift_is_a_difference_in_every_form(
    brokers: str, managed: str, topics: str, code: str, reconciler: Program
) -> None:
    write(brokers, managed, topics)
    planned = reconciler("plan", "--out", "plan.json", "--detailed-exitcode")
    assert planned.code == 2, planned
    assert planned.out.startswith("No changes can be planned; 1 difference stays:\nwarning: "), planned
    assert f"({code}, " in planned.out
    assert reconciler("plan").code == 0
    shown = reconciler("show", "plan.json")
    assert shown.out.startswith("No changes can be planned; 1 difference stays:\nwarning: ")
    plan = json.loads(reconciler("plan", "-o", "json").out)
    assert (plan["stages"], [one["code"] for one in plan["warnings"]], plan["summary"]["drift"]) == ([], [code], 1)
    differing = reconciler("diff", "--detailed-exitcode")
    assert (differing.code, "No changes" in differing.out, code in differing.out) == (2, False, True), differing
    assert [one["code"] for one in json.loads(reconciler("diff", "-o", "json").out)["drift"]] == [code]
    markdown = reconciler("plan", "-o", "markdown").out
    assert (
        "<!-- reconciler labels: drift -->\n### reconciler · `prod` · no changes can be planned, 1 difference stays\n"
        in markdown
    )
    assert "reconciler diff · `prod` · 1 difference\n" in reconciler("diff", "-o", "markdown").out
    assert ">drift<" in reconciler("show", "plan.json", "-o", "html").out
    applied = reconciler("apply", "plan.json", "--yes")
    assert (applied.code, "Planning again: no changes can be planned; 1 difference stays." in applied.err) == (0, True)


def test_fewer_partitions_than_there_are_is_an_error(reconciler: Program) -> None:
    write(topics=TOPIC.replace("SPEC", "partitions: 1").replace("orders", "clicks"))
    state = Path("desired-state/prod/state.json")
    observed = json.loads(state.read_text("utf-8"))
    (first,) = observed["topics"][0]["partitions"]
    observed["topics"][0]["partitions"] = [first, {**first, "partition": 1}]
    state.write_text(json.dumps(observed), "utf-8")
    for verb in ("plan", "diff"):
        ended = reconciler(verb, "--detailed-exitcode")
        assert (ended.code, "(KR248" in ended.err) == (1, True), ended


def test_a_limit_wins_over_drift(reconciler: Program) -> None:
    write("{id: 9}", "all", "")
    path = Path("desired-state/prod/cluster.yaml")
    text = path.read_text("utf-8").replace("delete: never", "delete: allow")
    path.write_text(f"{text}  limits: {{deletedTopics: 0}}\n", "utf-8")
    ended = reconciler("plan", "--detailed-exitcode")
    assert (ended.code, "KR415" in ended.out, "KR241" in ended.out) == (3, True, True), ended
