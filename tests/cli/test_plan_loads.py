"""`plan --loads DIR`: from files to a plan; what is refused, and in which words."""

import json
from pathlib import Path

import pytest
from helpers.clusters.loads_clusters import A_DRIFT
from helpers.program.call import Program

Files = tuple[str, ...]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    desired, snapshot, _ = A_DRIFT.write(tmp_path)
    return ("-C", str(desired), "plan", "--cluster", A_DRIFT.name, "--state", str(snapshot))


def _with_balance(tmp_path: Path, text: str) -> None:
    file = tmp_path / "desired-state" / A_DRIFT.name / "cluster.yaml"
    lines = [f"  balance: {text}" if "balance:" in line else line for line in file.read_text("utf-8").splitlines()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_plan_with_loads_tells_its_gap_and_the_rates_before_and_after(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    ended = reconciler(*files, "--loads", "loads", "--out", "plan.json")
    assert ended.code == 0
    assert "at most 0." in ended.out
    assert "% more than the least possible" in ended.out
    assert "most bytes in 5" in ended.out
    plan = json.loads((tmp_path / "plan.json").read_text("utf-8"))
    assert plan["proof"]["value"] == plan["summary"]["bytes"]
    assert 0 < plan["proof"]["gapPercent"] <= 1
    share = plan["balance"]["after"]["0"]
    assert share["bytesInPerSecond"] > 0 < share["bytesOutPerSecond"]
    shown = reconciler("show", "plan.json")
    assert shown.code == 0
    assert "most bytes out" in shown.out


def test_the_average_can_be_asked_for_and_another_statistic_is_wrong_usage(reconciler: Program, files: Files) -> None:
    assert reconciler(*files, "--loads", "loads", "--statistic", "average").code == 0
    assert reconciler(*files, "--loads", "loads", "--statistic", "median").code == 64


def test_network_without_loads_is_refused_with_its_line_and_disk_alone_needs_none(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    ended = reconciler(*files)
    assert ended.code == 1
    for word in ("networkIn", "networkOut"):
        assert f"balance.{word} needs measured loads: plan with --loads DIR, or turn it off (KR341)" in ended.err
    assert "cluster.yaml:6:" in ended.err
    assert "balance.disk" not in ended.err
    _with_balance(tmp_path, "{disk: {within: 9%}}")
    assert reconciler(*files).code == 0


def test_even_disks_are_refused_when_files_are_checked(reconciler: Program, files: Files, tmp_path: Path) -> None:
    _with_balance(tmp_path, "{disk: even}")
    ended = reconciler(*files[:2], "validate")
    assert ended.code == 1
    assert "cluster.yaml:6:" in ended.out + ended.err


def test_topics_beside_disks_is_refused_in_a_sentence(reconciler: Program, files: Files, tmp_path: Path) -> None:
    _with_balance(tmp_path, "{topics: even, disk: {within: 9%}}")
    ended = reconciler(*files, "--loads", "loads")
    assert ended.code == 1
    assert "balance.topics and balance.disk cannot be planned together yet: turn one of them off (KR304)" in ended.err


def test_loads_of_another_cluster_or_none_are_refused(reconciler: Program, files: Files) -> None:
    ended = reconciler(*files, "--loads", "nowhere")
    assert ended.code == 1
    assert "--loads nowhere: there is no such folder" in ended.err


def test_a_throttle_that_producers_use_up_is_refused_before_it_runs(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    file = tmp_path / "desired-state" / A_DRIFT.name / "cluster.yaml"
    file.write_text(file.read_text("utf-8").replace("throttle: 50MiB/s", "throttle: 1KiB/s"), encoding="utf-8")
    ended = reconciler(*files, "--loads", "loads", "--out", "plan.json")
    assert (ended.code, "KR414" in ended.out + ended.err) == (3, True)
    assert "would never end: beside the copy, broker" in ended.out + ended.err
    assert "KR414" in {one["code"] for one in json.loads((tmp_path / "plan.json").read_text("utf-8"))["violations"]}
