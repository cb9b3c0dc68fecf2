import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.program.call import Program, on_a_terminal
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
