"""A newcomer's first five minutes, on the simulated cluster, through the command line."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.program.call import ROOT, Program, all_of, modules_loaded_by
from helpers.program.fixtures import with_small_logs

from reconciler.files.plan_file import read_plan
from reconciler.files.snapshot import read_snapshot
from reconciler.render import as_markdown

pytestmark = pytest.mark.long

DEMO = ROOT / "desired-state" / "demo"


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    """Return a copy of the demo, as `init --demo` writes it, in the folder that the program is called in."""
    shutil.copytree(DEMO, tmp_path / "desired-state" / "demo")
    return tmp_path / "desired-state" / "demo"


@pytest.fixture
def planned(planned_demo: Path, tmp_path: Path) -> Path:
    """Return the same beside its plan, plan.json."""
    shutil.copytree(planned_demo, tmp_path, dirs_exist_ok=True)
    return tmp_path / "desired-state" / "demo"


def test_the_demo_is_planned_applied_and_then_nothing_is_left(reconciler: Program) -> None:
    begun = reconciler("init", "--demo")
    assert begun.code == 0
    assert all_of(begun.err, ["Wrote desired-state/demo: 6 simulated brokers, 3 racks", "plan --cluster demo"]) == []
    with_small_logs(Path("desired-state/demo/snapshot.json"))
    planned = reconciler("plan", "--out", "plan.json", "--detailed-exitcode")
    assert planned.code == 2
    assert all_of(planned.out, ["replicationFactor 2 -> 3", "(no plan can copy less)", "desired-state/demo/"]) == []
    assert planned.err.endswith("Saved to plan.json. Nothing has been changed.\n")
    applied = reconciler("apply", "plan.json", "--yes")
    assert applied.code == 0
    assert applied.out.startswith("Done in ")
    assert "(simulated " in applied.out
    assert applied.err.endswith("Planning again: no changes.\n")
    again = reconciler("plan", "--detailed-exitcode")
    assert (again.code, again.out.partition(".")[0]) == (0, "No changes")
    assert reconciler("diff", "--detailed-exitcode").code == 0
    assert reconciler("apply", "plan.json", "--yes").code == 0


@pytest.mark.usefixtures("demo")
def test_a_plan_changes_nothing_but_its_own_file(reconciler: Program, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    for arguments in (("plan",), ("diff",), ("validate",), ("status",), ("plan", "-o", "json")):
        assert reconciler(*arguments).code == 0
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


@pytest.mark.usefixtures("demo")
def test_json_and_markdown_of_a_plan_parse_and_agree_with_its_file(reconciler: Program) -> None:
    told = reconciler("plan", "-o", "json", "--out", "plan.json")
    assert told.out == Path("plan.json").read_text("utf-8")
    assert json.loads(told.out)["cluster"]["name"] == "demo"
    assert "Plan " in told.err
    assert reconciler("plan", "-o", "markdown").out == as_markdown.plan(read_plan("plan.json"))


def test_a_snapshot_stands_in_for_the_cluster(reconciler: Program, demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (demo / "snapshot.json").rename("elsewhere.json")
    assert reconciler("plan").code == 1
    assert reconciler("plan", "--state", "elsewhere.json").code == 0
    with Path("elsewhere.json").open("rb") as file:
        monkeypatch.setattr("sys.stdin", file)
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": file, "isatty": lambda _: False})())
        assert reconciler("diff", "--state", "-").code == 0


@pytest.mark.usefixtures("demo")
def test_only_names_the_topics_that_may_change(reconciler: Program) -> None:
    value = json.loads(reconciler("plan", "--only", "clicks", "-o", "json").out)
    moves = [move for stage in value["stages"] for move in stage.get("moves", [])]
    assert {move["topic"] for move in moves} == {"clicks"}
    wrong = reconciler("plan", "--only", "nosuch*")
    assert (wrong.code, wrong.out) == (1, "")
    assert "nosuch*" in wrong.err


def test_another_cluster_is_refused_with_both_ids(reconciler: Program, demo: Path) -> None:
    value = json.loads((demo / "snapshot.json").read_text("utf-8"))
    declared, value["clusterId"] = value["clusterId"], "somebody-elses"
    (demo / "snapshot.json").write_text(json.dumps(value))
    for verb in ("plan", "diff"):
        ended = reconciler(verb)
        assert ended.code == 1
        assert all_of(ended.err, [declared, "somebody-elses", "demo/cluster.yaml"]) == []


def test_over_a_limit_the_plan_is_shown_exits_3_and_apply_refuses(reconciler: Program, demo: Path) -> None:
    file = demo / "cluster.yaml"
    file.write_text(file.read_text("utf-8").replace("movedBytes: 250GiB", "movedBytes: 1MiB"))
    before = (demo / "snapshot.json").read_bytes()
    planned = reconciler("plan", "--out", "plan.json", "--detailed-exitcode")
    assert planned.code == 3
    assert all_of(planned.out, ["violation: ", "movedBytes", "desired-state/demo/cluster.yaml:"]) == []
    applied = reconciler("apply", "plan.json", "--yes")
    assert (applied.code, applied.out) == (3, "")
    assert (demo / "snapshot.json").read_bytes() == before


def test_a_stale_plan_exits_4_and_changes_nothing(reconciler: Program, planned: Path) -> None:
    value = json.loads((planned / "snapshot.json").read_text("utf-8"))
    clicks = next(topic for topic in value["topics"] if topic["name"] == "clicks")
    replicas = clicks["partitions"][0]["replicas"]
    elsewhere = next(broker["id"] for broker in value["brokers"] if broker["id"] not in replicas)
    clicks["partitions"][0] |= {"replicas": [elsewhere], "isr": [elsewhere], "leader": elsewhere}
    clicks["partitions"][0] |= {"sizes": [1], "logDirs": [None]}
    (planned / "snapshot.json").write_text(json.dumps(value))
    before = read_snapshot(planned / "snapshot.json").topics
    ended = reconciler("apply", "plan.json", "--yes")
    assert (ended.code, ended.out) == (4, "")
    assert "clicks-0" in ended.err
    assert read_snapshot(planned / "snapshot.json").topics == before


def test_a_dry_run_lists_the_steps_and_changes_nothing(reconciler: Program, planned: Path) -> None:
    before = (planned / "snapshot.json").read_bytes()
    ended = reconciler("apply", "plan.json", "--dry-run")
    assert ended.code == 0
    assert "move clicks-0 " in ended.out
    assert ended.err == "Dry run: nothing has been changed.\n"
    told = json.loads(reconciler("apply", "plan.json", "--dry-run", "-o", "json").out)
    assert (told["state"], told["stagesDone"], told["writes"]) == ("checked", 0, 0)
    assert (planned / "snapshot.json").read_bytes() == before
    assert not Path("runs").exists()


@pytest.mark.usefixtures("planned")
def test_a_run_leaves_its_journal_and_status_finds_it(reconciler: Program) -> None:
    assert "no run is known here" in reconciler("status").out
    plan_id = read_plan("plan.json").id
    assert reconciler("apply", "plan.json", "--yes", "--journal", "here.jsonl").code == 0
    assert Path("here.jsonl").exists()
    assert reconciler("apply", "plan.json", "--yes").code == 0
    assert Path("runs", "demo", f"{plan_id}.jsonl").exists()
    assert reconciler("status").out.startswith(f"demo: run {plan_id}, done: ")
    assert json.loads(reconciler("status", "plan.json", "-o", "json").out)["planId"] == plan_id
    cancelled = reconciler("cancel")
    assert cancelled.code == 0
    assert cancelled.out.startswith(f"Nothing to cancel: the run of plan {plan_id} has ended, ")


@pytest.mark.usefixtures("demo")
def test_cancel_without_a_run_says_what_to_name(reconciler: Program) -> None:
    ended = reconciler("cancel")
    assert (ended.code, ended.out) == (1, "")
    assert "PLAN" in ended.err


def test_a_snapshot_is_written_and_read_back(reconciler: Program, demo: Path) -> None:
    ended = reconciler("snapshot", "--out", "now.json.gz")
    assert ended.code == 0
    assert "6 brokers" in ended.err
    assert read_snapshot("now.json.gz").topics == read_snapshot(demo / "snapshot.json").topics
    assert json.loads(reconciler("snapshot").out)["formatVersion"] == "1.1"


def test_every_problem_of_every_file_is_told_at_once(reconciler: Program, demo: Path) -> None:
    file = demo / "web.yaml"
    file.write_text(file.read_text("utf-8").replace("replicationFactor: 3", "replicationFacter: 3", 1))
    with (demo / "shop.yaml").open("a", encoding="utf-8") as shop:
        shop.write("---\n{\n")
    ended = reconciler("validate")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert len(lines) >= 2
    assert all(line.startswith("desired-state/demo/") and line.split(":")[1].isdigit() for line in lines)
    assert "replicationFactor" in ended.out
    told = json.loads(reconciler("validate", "-o", "json").out)["problems"]
    assert len(told) == len(lines)
    assert {each["file"] for each in told} == {"demo/web.yaml", "demo/shop.yaml"}
    planned = reconciler("plan")
    assert planned.code == 1
    assert planned.err.splitlines() == [f"error: {line}" for line in lines]


def test_init_never_overwrites(reconciler: Program, demo: Path) -> None:
    before = {file: file.read_bytes() for file in demo.rglob("*") if file.is_file()}
    ended = reconciler("init", "--demo")
    assert ended.code == 1
    assert "exists already" in ended.err
    assert {file: file.read_bytes() for file in demo.rglob("*") if file.is_file()} == before


def test_a_new_layout_is_valid_and_names_what_to_do(reconciler: Program) -> None:
    ended = reconciler("init", "--cluster", "prod-eu")
    assert ended.code == 0
    assert "reconciler plan --cluster prod-eu" in ended.err
    assert reconciler("validate").code == 0


def test_several_clusters_want_a_name(reconciler: Program) -> None:
    for name in ("a", "b"):
        assert reconciler("init", "--cluster", name).code == 0
    ended = reconciler("plan")
    assert ended.code == 64
    assert "--cluster: a, b" in ended.err
    assert reconciler("validate").err.startswith("2 clusters, ")


def test_a_cluster_that_does_not_answer_is_one_sentence(reconciler: Program) -> None:
    ended = reconciler("snapshot", "--bootstrap-server", "127.0.0.1:9", "-o", "json")
    assert ended.code == 1
    assert ended.out == ""
    assert "the broker: connection refused" in json.loads(ended.err)["error"]["message"]


def test_a_plan_from_a_snapshot_loads_neither_spark_nor_the_client(tmp_path: Path) -> None:
    shutil.copytree(DEMO, tmp_path / "desired-state" / "demo")
    loaded = modules_loaded_by("plan", "--state", "desired-state/demo/snapshot.json", cwd=tmp_path)
    assert {"numpy", "ortools"} <= loaded
    assert loaded & {"pyspark", "kafka"} == set()
