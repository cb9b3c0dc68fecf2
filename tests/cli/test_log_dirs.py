"""Log dirs from the file to the plan: a disk that is to be emptied, and disks that are to be as full as each other."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.clusters.small_cluster import small_cluster
from helpers.program.call import Program, run_program
from helpers.program.documents import document, write_simulated

from reconciler.model.cluster import LogDir

pytestmark = pytest.mark.long

FULL = 100 << 30


def write(wish: str) -> None:
    observed = small_cluster(*(f"orders-{number}: 1 size {9 << 30} dir /d1" for number in range(10)), brokers=[1])
    dirs = (LogDir("/d1", FULL, FULL // 10), LogDir("/d2", FULL, FULL))
    observed = replace(observed, brokers={1: replace(observed.brokers[1], log_dirs=dirs)})
    write_simulated(observed, document("Topic", "orders", "{partitions: 10}"), name="prod", spec=wish)


@pytest.mark.parametrize(
    ("wish", "replicas", "difference"),
    [
        ("balance: {logDirs: {within: 10%}}", 5, "balance: 90% full, 40.5% to 49.5% wanted"),
        ("brokers: [{id: 1, logDirs: [{path: /d1, state: draining}]}]", 10, "draining: it holds 10 replicas, 90.0 GiB"),
    ],
)
def test_a_wish_of_log_dirs_is_a_difference_a_plan_and_files_for_kafkas_tool(
    wish: str, replicas: int, difference: str, reconciler: Program
) -> None:
    write(wish)
    differing = reconciler("diff", "--detailed-exitcode")
    assert differing.code == 2
    assert difference in differing.out
    planned = reconciler("plan", "--out", "plan.json", "--detailed-exitcode")
    assert planned.code == 2, planned
    assert f"log dirs: {replicas} replicas from /d1 to /d2" in planned.out
    proved = reconciler("show", "plan.json", "--prove", "--state", "desired-state/prod/snapshot.json")
    assert proved.code == 0, proved
    told = reconciler("show", "plan.json", "--explain", "orders-9").out
    assert "orders-9   [1]" in told
    assert "from /d1 to /d2 on broker 1" in told
    shown = reconciler("show", "plan.json", "-o", "kafka-json", "--out", "files")
    assert "--replica-alter-log-dirs-throttle" in shown.err
    moved = json.loads(Path("files/stage-01-reassign.json").read_text("utf-8"))["partitions"]
    assert [(one["replicas"], one["log_dirs"]) for one in moved] == [([1], ["/d2"])] * replicas


def test_where_nothing_is_asked_nothing_differs(reconciler: Program) -> None:
    write("balance: {logDirs: off}")
    for verb in ("plan", "diff"):
        assert reconciler(verb, "--detailed-exitcode").code == 0


def test_a_log_dir_that_is_not_there_is_named_with_the_line(reconciler: Program) -> None:
    write("brokers: [{id: 1, logDirs: [{path: /d12, state: draining}]}]")
    ended = reconciler("plan")
    assert ended.code != 0
    assert "broker 1 has no log dir /d12; did you mean /d" in ended.err
    assert "desired-state/prod/cluster.yaml:4:" in ended.err


def test_the_hash_seed_shows_in_no_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("balance: {logDirs: {within: 10%}}")
    for seed in ("1", "2"):
        run_program("plan", "--out", f"plan-{seed}.json", cwd=tmp_path, env={"PYTHONHASHSEED": seed})
    assert Path("plan-1.json").read_bytes() == Path("plan-2.json").read_bytes()
