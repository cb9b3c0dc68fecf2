import json
import re
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from cli.mirrored import topic, write
from helpers.program.call import Program, on_a_terminal
from helpers.program.documents import document
from helpers.program.held_runs import HeldRun
from helpers.waiting import wait_for

from reconciler.files.plan_file import read_plan, write_plan
from reconciler.files.snapshot import read_snapshot

pytestmark = pytest.mark.long


@pytest.fixture
def planned(planned_demo: Path, tmp_path: Path) -> Path:
    """Return a folder with the demo and a plan of it, in which the program is called."""
    shutil.copytree(planned_demo, tmp_path, dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize(("answer", "code"), [(False, 5), (True, 0)])
def test_on_a_terminal_the_plan_is_shown_and_asked_for(
    reconciler: Program, planned: Path, monkeypatch: pytest.MonkeyPatch, *, answer: bool, code: int
) -> None:
    asked = on_a_terminal(monkeypatch, answer=answer)
    snapshot = planned / "desired-state" / "demo" / "snapshot.json"
    before = snapshot.read_bytes()
    ended = reconciler("apply", "plan.json")
    assert ended.code == code
    assert asked
    assert asked[0].startswith("Apply plan ")
    assert "replicationFactor 2 -> 3" in ended.err
    assert ("Nothing has been changed." in ended.err) is not answer
    assert (snapshot.read_bytes() == before) is not answer


def test_a_signal_ends_the_run_in_order_and_apply_goes_on(reconciler: Program, planned: Path) -> None:
    applying = HeldRun(planned / "held", "apply", "plan.json", "--yes", at="poll", has_own_journal=False)
    wait_for(lambda: applying.is_there or applying.is_over, "the moves")
    applying.signal(signal.SIGINT)
    applying.go_on()
    ended, told = applying.ended()
    assert ended == 130, told
    assert "stage 3/3" in told
    assert "Traceback" not in told
    assert "run apply again" in told
    snapshot = (planned / "desired-state" / "demo" / "snapshot.json").read_text("utf-8")
    assert "throttled" not in snapshot
    again = reconciler("apply", "plan.json", "--yes")
    assert again.code == 0
    assert again.err.endswith("Planning again: no changes.\n")


def test_a_plan_for_a_cluster_that_is_not_here_says_how_to_reach_it(reconciler: Program, planned: Path) -> None:
    (planned / "desired-state").rename(planned / "elsewhere")
    ended = reconciler("apply", "plan.json", "--yes")
    assert ended.code == 64
    assert "--bootstrap-server" in ended.err
    found = reconciler("apply", "plan.json", "--yes", "-C", "elsewhere", "--max-duration", "0s")
    assert (found.code, "run apply again" in found.err) == (5, True)


def test_new_replicas_go_where_the_plan_predicts_them_and_metrics_are_kept_to_the_exit_code(
    reconciler: Program, planned: Path
) -> None:
    plan = read_plan("plan.json")
    assert reconciler("apply", "plan.json", "--dry-run", "--metrics", "run.prom").code == 0
    assert not (planned / "run.prom").exists()
    ended = reconciler("apply", "plan.json", "--yes", "--log-dirs", "--metrics", "run.prom")
    assert (ended.code, "KR827" in ended.err) == (0, False)
    done = (planned / "run.prom").read_text("utf-8")
    assert '\nreconciler_run_exit_code{cluster="demo"} 0\n' in done
    assert '\nreconciler_run_active{cluster="demo"} 0\n' in done
    assert "\nreconciler_run_last_success_timestamp_seconds{" in done
    seen = read_snapshot(planned / "desired-state" / "demo" / "snapshot.json")
    for key, predicted in plan.predicted_log_dirs.items():
        partition = seen.partition(key)
        assert partition is not None
        found = dict(zip(partition.replicas, partition.log_dirs, strict=True))
        assert predicted.items() <= found.items()


def test_a_plan_that_predicts_no_log_dir_says_so(reconciler: Program, planned: Path) -> None:
    write_plan(replace(read_plan("plan.json"), predicted_log_dirs={}), planned / "plain.json")
    assert "(KR827)" in reconciler("apply", "plain.json", "--yes", "--log-dirs").err


def test_a_refused_run_has_its_exit_code_in_the_metrics(reconciler: Program, planned: Path) -> None:
    snapshot = planned / "desired-state" / "demo" / "snapshot.json"
    snapshot.write_text(snapshot.read_text("utf-8").replace("ZGVtby1kZW1vLWRlbW8tMQ", "another"), "utf-8")
    code = reconciler("apply", "plan.json", "--yes", "--metrics", "run.prom").code
    assert code
    assert f'\nreconciler_run_exit_code{{cluster="demo"}} {code}\n' in (planned / "run.prom").read_text("utf-8")


def test_metrics_that_cannot_be_written_stop_a_run_before_it_begins(reconciler: Program, planned: Path) -> None:
    before = (planned / "desired-state" / "demo" / "snapshot.json").read_bytes()
    ended = reconciler("apply", "plan.json", "--yes", "--metrics", "plan.json/run.prom")
    assert (ended.code, "(KR019)" in ended.err) == (1, True)
    assert (planned / "desired-state" / "demo" / "snapshot.json").read_bytes() == before


def test_plan_comment_apply_and_status_count_the_same_moves_of_partitions_that_move_in_steps(
    reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Partitions of brokers 1 and 2 go to 5 and 6, one replica at a time; one is only put in another order.
    assigned = [[5, 6] if {1, 2} == {1 + n % 6, 1 + (n + 1) % 6} else [1 + n % 6, 1 + (n + 1) % 6] for n in range(12)]
    assigned[1].reverse()
    declared = document("Topic", "orders", f"{{placement: {{assignment: {json.dumps(assigned)}}}}}")
    write("small", [topic("orders", 12, brokers=6)], declared, spec="moves: {perPartition: 1}", brokers=6)
    planned = reconciler("plan", "--out", "plan.json")
    assert planned.code == 0, planned
    stages = json.loads(Path("plan.json").read_text("utf-8"))["stages"]
    moves = [move for stage in stages for move in stage.get("moves", ())]
    copies = sum(len(set(move["to"]) - set(move["from"])) for move in moves)
    partitions = {(move["topic"], move["partition"]) for move in moves}
    assert len(moves) > len(partitions), "a partition moves in several steps"
    assert len(moves) > copies, "some moves copy nothing"
    count = f"{len(moves)} moves"
    assert re.search(rf"^Plan .*: {count}, {copies} replicas to copy, ", planned.out, re.MULTILINE), planned
    assert f"; {count} in all |" in reconciler("show", "plan.json", "-o", "markdown").out
    applied = reconciler("apply", "plan.json", "--yes")
    assert {*re.findall(r"\d+ moves?\b", applied.out)} == {count}, applied
    assert {*re.findall(r"\d+ moves?\b", reconciler("status", "plan.json").out)} == {count}


CHANGED_MEANWHILE = {
    "KR502": (
        [topic("a", 1) | {"partitions": [{"partition": 0, "leader": 3, "replicas": [3, 1], "isr": [3, 1]}]}],
        "a-0: expected [1, 2] or [3, 2], found [3, 1]",
    ),
    "KR503": (
        [topic("a", 1), topic("b", 1, {"retention.ms": "3000"})],
        "topic b: expected retention.ms set to 1000 or set to 2000, found retention.ms set to 3000",
    ),
}


@pytest.mark.parametrize("code", CHANGED_MEANWHILE)
@pytest.mark.parametrize("form", ["text", "json"])
def test_the_first_line_of_a_stale_plan_says_what_changed_expected_and_found(
    reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    declared = [
        document("Topic", "a", "{placement: {assignment: [[3, 2]]}}"),
        document("Topic", "b", '{config: {retention.ms: "2000"}}'),
    ]
    found = {one["name"]: one for one in (topic("a", 1), topic("b", 1, {"retention.ms": "1000"}))}
    write("small", [*found.values()], *declared)
    assert reconciler("plan", "--out", "plan.json").code == 0
    changed, said = CHANGED_MEANWHILE[code]
    write("small", [*(found | {one["name"]: one for one in changed}).values()], *declared)
    ended = reconciler("apply", "plan.json", "--yes", "-o", form)
    assert ended.code == 4, ended
    first = f"the cluster changed since the plan was made: {said}"
    if form == "json":
        error = json.loads(ended.err)["error"]
        assert (error["code"], error["message"].split("\n")[0]) == (code, first)
    else:
        assert ended.err.splitlines()[0] == f"error: {first} ({code})"
