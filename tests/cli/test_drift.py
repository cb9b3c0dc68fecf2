"""What differs and cannot be mended by a plan is a difference all the same: exit code 2, and never "No changes"."""

import json

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program
from helpers.program.documents import document, write_simulated

DECLARED = document("Topic", "orders", "{partitions: 1}")


def write(*topics: str, brokers: str = "", policy: str = "managed: listed", limits: str = "{}") -> None:
    observed = small_cluster("clicks-0: 1 size 5", "clicks-1: 1 size 5", "orders-0: 1 size 5", brokers=(1, 2))
    spec = f"brokers: [{brokers}], topics: {{{policy}}}, limits: {limits}"
    write_simulated(observed, *topics, name="prod", spec=spec)


def test_where_all_is_as_declared_there_is_no_difference(reconciler: Program) -> None:
    write(DECLARED)
    for verb in ("plan", "diff"):
        ended = reconciler(verb, "--detailed-exitcode")
        assert (ended.code, ended.out.startswith("No changes.")) == (0, True), ended


@pytest.mark.parametrize(
    ("brokers", "managed", "topic", "code"),
    [
        ("", "all", DECLARED, "KR245"),
        ("", "listed", document("Topic", "orders", "{state: absent}"), "KR247"),
        ("{id: 9}", "listed", DECLARED, "KR241"),
        pytest.param("{id: 2, state: absent}", "listed", DECLARED, "KR242", marks=pytest.mark.long),
    ],
)
def test_drift_is_a_difference_in_every_form(
    brokers: str, managed: str, topic: str, code: str, reconciler: Program
) -> None:
    write(topic, brokers=brokers, policy=f"managed: {managed}")
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
    write(document("Topic", "clicks", "{partitions: 1}"))
    for verb in ("plan", "diff"):
        ended = reconciler(verb, "--detailed-exitcode")
        assert (ended.code, "(KR248" in ended.err) == (1, True), ended


def test_a_limit_wins_over_drift(reconciler: Program) -> None:
    write(brokers="{id: 9}", policy="managed: all, delete: allow", limits="{deletedTopics: 0}")
    ended = reconciler("plan", "--detailed-exitcode")
    assert (ended.code, "KR415" in ended.out, "KR241" in ended.out) == (3, True, True), ended
