"""Eight clusters in one root, each looked at by itself: one cannot be read, one is over a limit, two have drifted."""

import json
import re
from pathlib import Path

import pytest
from cli.mirrored import ROOT, topic, write
from helpers.program.call import Ended, Program
from helpers.program.documents import document, edit

from reconciler.command.options import Asked
from reconciler.command.several import of_each, tell_failed
from reconciler.model.problem import Refused
from reconciler.workflow.inputs import Inputs

pytestmark = pytest.mark.long

WISHED = document("Topic", "orders", '{replicationFactor: 2, config: {retention.ms: "8000"}}')
AS_WISHED, DRIFTED = ({"retention.ms": one} for one in ("8000", "1000"))
CALM = ("c1", "c2", "c3", "c4")
NAMES = (*CALM, "drifted", "limited", "sick", "unreadable")


@pytest.fixture(autouse=True)
def _fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        write(name, [topic("orders", 3, DRIFTED if name == "drifted" else AS_WISHED)], WISHED)
        stage = {"sick": "test", "unreadable": "test"}.get(name, "prod")
        replace(name, f"name: {name}", f"name: {name}, labels: {{stage: {stage}, at: {name}}}")
    replace("limited", "state.json", "state.json, limits: {changedPartitions: 1%}, brokers: [{id: 3, state: cordoned}]")
    write_replicas("limited", [1, 1, 1])
    (ROOT / "unreadable" / "state.json").write_text("[")
    sick = json.loads((ROOT / "sick" / "state.json").read_text())
    sick["topics"][0]["partitions"][0] |= {"leader": None, "isr": []}
    (ROOT / "sick" / "state.json").write_text(json.dumps(sick))


def replace(name: str, old: str, new: str) -> None:
    edit(ROOT / name / "cluster.yaml", old, new)


def write_replicas(name: str, leaders: list[int]) -> None:
    """Give each partition of a topic that one replica alone."""
    file = ROOT / name / "state.json"
    state = json.loads(file.read_text())
    for one, leader in zip(state["topics"][0]["partitions"], leaders, strict=True):
        one |= {"leader": leader, "replicas": [leader], "isr": [leader], "sizes": [5]}
    file.write_text(json.dumps(state))


def rows(ended: Ended) -> dict[str, tuple[str, int]]:
    """Return the table at the end: what came of each cluster, and its exit code."""
    table = ended.out[ended.out.rindex("  cluster  ") :].splitlines()[1:]
    found = [re.fullmatch(r"  (\S+) +(\S.*?) +(\d+)", line) for line in table]
    assert all(found), ended
    return {one[1]: (one[2], int(one[3])) for one in found if one}


def codes(ended: Ended) -> dict[str, int]:
    return {name: code for name, (_, code) in rows(ended).items()}


CALM_CODES = dict.fromkeys(CALM, 0)


@pytest.mark.parametrize(
    ("verb", "others", "worst"),
    [
        (("diff",), {"drifted": 0, "limited": 0, "sick": 0, "unreadable": 1}, 1),
        (("diff", "--detailed-exitcode"), {"drifted": 2, "limited": 2, "sick": 2, "unreadable": 1}, 1),
        (("status",), {"drifted": 0, "limited": 0, "sick": 0, "unreadable": 1}, 1),
        (("doctor",), {"drifted": 0, "limited": 0, "sick": 1, "unreadable": 1}, 1),
        (("validate",), {"drifted": 0, "limited": 0, "sick": 0, "unreadable": 0}, 0),
    ],
)
def test_each_cluster_has_its_result_and_the_worst_exit_code_counts(
    verb: tuple[str, ...], others: dict[str, int], worst: int, reconciler: Program
) -> None:
    ended = reconciler(*verb, "--cluster", "*")
    assert (codes(ended), ended.code) == (CALM_CODES | others, worst), ended
    assert list(rows(ended)) == list(NAMES)
    assert "8 clusters:\n" in ended.out
    told = [line for line in ended.err.splitlines() if line.startswith("error:")]
    assert len(told) == sum(verb[0] != "validate" and name == "unreadable" for name in NAMES), ended
    assert all(line.startswith("error: unreadable: desired-state/unreadable/state.json") for line in told), ended
    assert reconciler(*verb, "--cluster", "*") == ended


def test_plans_have_the_same_table_and_a_limit_wins_over_changes(reconciler: Program) -> None:
    ended = reconciler("plan", "--detailed-exitcode", "--cluster", "stage=prod")
    assert (codes(ended), ended.code) == (CALM_CODES | {"drifted": 2, "limited": 3}, 3), ended
    assert rows(ended)["c1"] == ("no changes", 0)
    assert rows(ended)["drifted"] == ("1 change", 2)
    assert re.fullmatch(r"1 change · 15 B · about \d+ s · refused: KR4\d\d", rows(ended)["limited"][0])
    assert reconciler("plan", "--cluster", "*").code == 1
    told = json.loads(reconciler("plan", "--cluster", "c1,limited,unreadable", "-o", "json").out)
    assert [(one["cluster"], one["exitCode"]) for one in told["summary"]] == [
        ("c1", 0),
        ("limited", 3),
        ("unreadable", 1),
    ]
    assert (told["order"], list(told["failed"])) == (["c1", "limited"], ["unreadable"])


def test_differences_stand_below_the_name_of_their_cluster(reconciler: Program) -> None:
    ended = reconciler("diff", "--cluster", "c1,drifted", "--detailed-exitcode")
    above, below = ended.out.split("\ndrifted\n")
    assert (above, "config.retention.ms 1000 -> 8000" in below) == ("c1\nNo changes.\n", True), ended
    assert rows(ended) == {"c1": ("no differences", 0), "drifted": ("1 difference", 2)}


def test_one_comment_begins_with_the_table_and_says_why_a_cluster_failed(reconciler: Program) -> None:
    told = reconciler("diff", "--cluster", "*", "-o", "markdown").out
    assert told.index("| drifted | 1 difference | 0 |") < told.index("### reconciler diff · `c1` · no differences")
    title = "### reconciler diff · `unreadable` · failed\n\n"
    assert told.count("| cluster |") == 1
    assert "unreadable/state.json" in told.partition(title)[2]


@pytest.mark.parametrize("verb", ["diff", "status", "doctor"])
def test_json_has_each_cluster_what_failed_and_the_table(verb: str, reconciler: Program) -> None:
    ended = reconciler(verb, "--cluster", "c2,unreadable,sick", "-o", "json")
    told = json.loads(ended.out)
    assert [one["cluster"] for one in told["clusters"]] == ["c2", "sick"]
    assert list(told["failed"]) == ["unreadable"]
    assert [(one["cluster"], one["exitCode"]) for one in told["summary"]][:2] == [("c2", 0), ("unreadable", 1)]
    assert json.loads(ended.err)["error"]["cluster"] == "unreadable"


def test_problems_of_files_are_counted_for_each_cluster(reconciler: Program) -> None:
    (ROOT / "c2" / "topics.yaml").write_text("kind: Topic\nspec: 1\n")
    ended = reconciler("validate", "--cluster", "c1,c2")
    assert (ended.code, codes(ended)) == (1, {"c1": 0, "c2": 1})
    count = ended.out.count("desired-state/c2/topics.yaml:")
    assert rows(ended)["c2"] == (f"{count} problems" if count > 1 else "1 problem", 1)
    told = json.loads(reconciler("validate", "--cluster", "c1,c2", "-o", "json").out)
    assert [one["exitCode"] for one in told["summary"]] == [0, 1]
    assert "summary" not in json.loads(reconciler("validate", "--cluster", "c1", "-o", "json").out)


@pytest.mark.parametrize("verb", ["plan", "validate"])
def test_an_unknown_name_lists_the_clusters_there_are_and_stops_no_other(verb: str, reconciler: Program) -> None:
    for names in ("c9", "c9,c1"):
        ended = reconciler(verb, "--cluster", names)
        assert ended.code in {1, 64}, ended
        (listed,) = re.findall("desired-state has no cluster 'c9'; it has (.*): check", ended.err + ended.out)
        assert listed.startswith("c1, c2, c3, c4, ")
        assert sorted(listed.split(", ")) == sorted(NAMES)
    assert rows(ended)["c1"][1] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "--watch"),
        ("status", "plan.json"),
        ("doctor", "plan.json"),
        ("doctor", "--fix", "throttles"),
        ("diff", "--state", "x.json"),
        ("doctor", "--state", "x.json"),
        ("status", "--bootstrap-server", "x:1"),
    ],
)
def test_what_is_of_one_cluster_alone_is_wrong_usage(arguments: tuple[str, ...], reconciler: Program) -> None:
    ended = reconciler(*arguments, "--cluster", "*")
    assert (ended.code, ended.out, "With several clusters, " in ended.err) == (64, "", True), ended


def test_what_chooses_no_cluster_is_wrong_usage(reconciler: Program) -> None:
    ended = reconciler("diff", "--cluster", "stage=no")
    assert (ended.code, "no cluster of desired-state has the labels stage=no" in ended.err) == (64, True), ended


def test_a_cluster_whose_document_is_broken_may_have_any_label_and_is_not_passed_over(reconciler: Program) -> None:
    (ROOT / "c3" / "cluster.yaml").write_text("kind: [")
    ended = reconciler("status", "--cluster", "at=c1")
    assert (ended.code, codes(ended)) == (1, {"c1": 0, "c3": 1}), ended
    assert "error: desired-state/c3/cluster.yaml:" in ended.err


def test_what_is_logged_of_a_cluster_names_it(reconciler: Program) -> None:
    """Both clients log the same caution before they find nobody at port 1."""
    for name in ("c1", "c2"):
        replace(name, "simulation: state.json", "client: {bootstrap.servers: '127.0.0.1:1', sasl.mechanism: PLAIN}")
    ended = reconciler("status", "--cluster", "c1,c2,c3")
    for name in ("c1", "c2"):
        assert f"warning: {name}: sasl.mechanism has no effect" in ended.err, ended
        assert f"error: {name}: None of bootstrap.servers can be reached" in ended.err, ended
    assert codes(ended) == {"c1": 1, "c2": 1, "c3": 0}


def test_a_fault_of_our_own_is_one_clusters_too(capsys: pytest.CaptureFixture[str]) -> None:
    def look(inputs: Inputs) -> str:
        if inputs.cluster == "c1":
            raise ZeroDivisionError("planted")
        if inputs.cluster == "c2":
            raise Refused("somebody else runs")
        return str(inputs.cluster)

    asked = Asked({"cluster": "c1,c2,c3"})
    found = of_each(asked, look)
    assert (found.made, tell_failed(asked, found.failed)) == ({"c3": "c3"}, 1)
    assert tell_failed(asked, {"c2": found.failed["c2"]}, [2, 0]) == 3
    told = capsys.readouterr().err
    assert "error: c1: internal error, please report it: ZeroDivisionError: planted (KR003)" in told
    assert "error: c2: somebody else runs (KR" in told


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        ("plan", 1),
        ("diff", 1),
        ("validate", 1),
        ("cancel --rollback --yes", 1),
        ("topics list", 64),
        ("status", 64),
        ("doctor", 64),
        ("snapshot", 64),
        ("cancel", 64),
    ],
)
def test_a_name_that_no_cluster_has_is_repeated_beside_those_there_are_the_closest_first(
    reconciler: Program, verb: str, code: int
) -> None:
    ended = reconciler(*verb.split(), "--cluster", "unreadible")
    assert ended.code == code
    said = ended.err + ended.out
    assert "desired-state has no cluster 'unreadible'; it has unreadable, " in said
    assert [name for name in NAMES if name not in said] == []
    assert "name one with" not in said
