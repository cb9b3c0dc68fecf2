"""`plan --loads DIR`: from files to a plan; what is refused, and in which words."""

import json
from pathlib import Path

import pytest
from helpers.clusters.loads_clusters import LoadsCase
from helpers.program.call import Program

pytestmark = pytest.mark.long

Files = tuple[str, ...]
CASE = LoadsCase("small", brokers=6, racks=3, topics=20, partitions=6, is_drifted=True)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    desired, snapshot, _ = CASE.write(tmp_path)
    return ("-C", str(desired), "plan", "--cluster", CASE.name, "--state", str(snapshot))


def _with_balance(tmp_path: Path, text: str) -> None:
    file = tmp_path / "desired-state" / CASE.name / "cluster.yaml"
    lines = [f"  balance: {text}" if "balance:" in line else line for line in file.read_text("utf-8").splitlines()]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_plan_with_loads_tells_its_gap_and_the_rates_before_and_after(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    ended = reconciler(*files, "--loads", "loads", "--out", "plan.json")
    assert ended.code == 0
    assert "at most 0." in ended.out
    assert "% of that could be saved" in ended.out
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
    reconciler: Program, files: Files
) -> None:
    ended = reconciler(*files)
    assert ended.code == 1
    for word in ("networkIn", "networkOut"):
        assert f"balance.{word} needs measured loads: plan with --loads DIR, or turn it off (KR341)" in ended.err
    assert "cluster.yaml:6:" in ended.err
    assert "balance.disk" not in ended.err


def _with_coverage(tmp_path: Path, coverage: float | None) -> None:
    """Let the loads say so of every partition, or nothing; and that their last time bucket is long ago."""
    import pyarrow as pa
    from pyarrow import parquet

    (file,) = (tmp_path / "loads").glob("*.parquet")
    table = parquet.read_table(file)
    kept = table.drop_columns([name for name in table.column_names if name == "coverage"])
    told = kept if coverage is None else kept.append_column("coverage", pa.array([coverage] * len(kept)))
    parquet.write_table(told, file)
    cluster = {"cluster": CASE.name, "lastBucket": "2026-03-29T00:00:00Z", "samples": 100, "defects": {"late": 3}}
    (tmp_path / "loads" / "_report.json").write_text(json.dumps({"clusters": [cluster]}), encoding="utf-8")


def test_loads_of_which_too_little_was_seen_are_refused_unless_that_is_enough(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    _with_coverage(tmp_path, 0.7)
    told = f"{CASE.name}: coverage is 70%, below 75%: no plan is made by --loads loads; "
    advice = "measure longer, look at what the report of loads found, or say with --fail-on what is enough"
    refused = reconciler(*files, "--loads", "loads", "--out", "plan.json")
    assert (refused.code, refused.err) == (3, f"error: {told}{advice} (KR269)\n")
    assert not (tmp_path / "plan.json").exists()
    many = ("coverage<80%", "age>1d", "late>2%", "late>3")
    each = reconciler(*files, "--loads", "loads", *(word for gate in many for word in ("--fail-on", gate)))
    lines = each.err.splitlines()
    assert (each.code, [line.rpartition(" ")[2] for line in lines]) == (3, ["(KR268)"] * 3)
    assert [figure in line for figure, line in zip(("below 80%", "age is", "late is 3%"), lines, strict=True)] == [
        True
    ] * 3


def test_loads_that_tell_no_coverage_are_planned_by_with_a_warning_and_what_is_not_known_passes_no_gate(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    _with_coverage(tmp_path, None)
    told = f"warning: --loads loads does not tell the coverage of {CASE.name}: nobody knows what is missing (KR270)"
    ended = reconciler(*files, "--loads", "loads")
    assert (ended.code, told in ended.err) == (0, True)
    written = reconciler(*files, "--loads", "loads", "--fail-on", "coverage<95%")
    assert (written.code, "coverage is not known" in written.err, "(KR277)" in written.err) == (3, True, True)
    (tmp_path / "loads" / "_report.json").unlink()
    unknown = reconciler(*files, "--loads", "loads", "--fail-on", "age>2h")
    assert (unknown.code, "age is not known" in unknown.err, "(KR277)" in unknown.err) == (3, True, True)
    wrong = reconciler(*files, "--loads", "loads", "--fail-on", "coverage>50%")
    assert (wrong.code, "did you mean coverage<50%?" in wrong.err) == (64, True)
    assert reconciler(*files, "--fail-on", "age>2h").code == 64


def test_loads_that_are_not_there_are_refused(reconciler: Program, files: Files) -> None:
    ended = reconciler(*files, "--loads", "nowhere")
    assert (ended.code, "--loads nowhere: there is no such folder" in ended.err) == (1, True)


def test_a_throttle_that_producers_use_up_is_refused_before_it_runs(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    file = tmp_path / "desired-state" / CASE.name / "cluster.yaml"
    file.write_text(file.read_text("utf-8").replace("throttle: 50MiB/s", "throttle: 1KiB/s"), encoding="utf-8")
    ended = reconciler(*files, "--loads", "loads", "--out", "plan.json")
    assert (ended.code, "KR414" in ended.out + ended.err) == (3, True)
    assert "would never end: beside the copy, broker" in ended.out + ended.err
    assert "KR414" in {one["code"] for one in json.loads((tmp_path / "plan.json").read_text("utf-8"))["violations"]}


def test_a_limit_of_a_rate_is_kept_or_the_plan_exits_3_with_its_line(
    reconciler: Program, files: Files, tmp_path: Path
) -> None:
    _with_balance(tmp_path, "{disk: {within: 20%}}\n  limits: {networkIn: 45MB/s}")
    assert "limits.networkIn needs measured loads" in reconciler(*files).err
    kept = reconciler(*files, "--loads", "loads", "--out", "plan.json")
    assert kept.code == 0, kept.err
    after = json.loads((tmp_path / "plan.json").read_text("utf-8"))["balance"]["after"]
    assert max(share["bytesInPerSecond"] for share in after.values()) <= 45_000_000
    _with_balance(tmp_path, "off")
    text = (tmp_path / "desired-state" / CASE.name / "cluster.yaml").read_text("utf-8")
    text = text.replace("  balance: off\n", "").replace("45MB/s", "40MB/s")
    (tmp_path / "desired-state" / CASE.name / "cluster.yaml").write_text(text, encoding="utf-8")
    above = reconciler(*files, "--loads", "loads")
    assert above.code == 3
    assert "limits.networkIn allows" in above.out
    assert "KR356" in above.out
    assert "cluster.yaml:6" in above.out
