"""`plan --budget`, `--curve` and `--windows`: from files to what is told, in each form, and what is refused."""

import json
from pathlib import Path

import pytest
from helpers.clusters.flat_clusters import FlatCase
from helpers.program.call import Program

pytestmark = pytest.mark.long

CASE = FlatCase("small", brokers=6, racks=3, topics=3, partitions=6, joining=3)


class Files:
    """A cluster that three brokers join, as files, and the plan verb on it."""

    def __init__(self, reconciler: Program, folder: Path, case: FlatCase = CASE) -> None:
        desired, self.snapshot = case.write(folder)
        self.document = desired / case.name / "cluster.yaml"
        self.cluster = ("-C", str(desired), "--cluster", case.name, "--state", str(self.snapshot))
        self.reconciler = reconciler

    def plan(self, *options: str, code: int = 0) -> str:
        ended = self.reconciler(*self.cluster, "plan", *options)
        assert ended.code == code, ended.err
        return ended.out + ended.err if "-o" not in options else ended.out

    def add(self, line: str) -> None:
        text = self.document.read_text("utf-8")
        self.document.write_text(text.replace("  balance:", f"  {line}\n  balance:"), encoding="utf-8")

    def without_throttle(self) -> None:
        text = self.document.read_text("utf-8")
        self.document.write_text(text.replace("{throttle: 50MiB/s, ", "{"), encoding="utf-8")


@pytest.fixture
def files(reconciler: Program, tmp_path: Path) -> Files:
    return Files(reconciler, tmp_path)


def _whole(files: Files) -> int:
    whole = json.loads(files.plan("-o", "json"))["summary"]["bytes"]
    assert isinstance(whole, int)
    return whole


def test_a_plan_says_its_budget_and_what_the_whole_plan_copies_in_every_form(files: Files) -> None:
    whole = _whole(files)
    budget = f"{whole // 2}B"
    text = files.plan("--budget", budget, "--out", "plan.json")
    assert "With a budget of " in text
    assert "of the way; the whole plan copies " in text
    assert "no plan with the same counts copies less" in text
    plan = json.loads(files.plan("--budget", budget, "-o", "json"))
    assert plan["source"]["budget"] == {"bytes": whole // 2}
    assert plan["summary"]["bytes"] <= whole // 2
    assert plan["budget"]["wholeBytes"] == whole
    (way,) = plan["budget"]["ways"]
    assert way["whole"] < way["reached"] < way["mended"]
    assert "| **Budget** | " in files.plan("--budget", budget, "-o", "markdown")
    assert "with a budget of " in files.plan("--budget", budget, "-o", "html")
    shown = files.reconciler(*files.cluster, "show", "plan.json", "--prove")
    assert shown.code == 1
    assert shown.out.startswith("Bytes proved, balance not: no plan with the same counts copies fewer than ")
    assert "it is not proved that no other plan is better in replicas balance (KR847" in text


def test_a_budget_of_time_is_kept_by_the_estimate_and_needs_a_throttle(files: Files) -> None:
    whole = json.loads(files.plan("-o", "json"))["summary"]["estimatedSeconds"]
    plan = json.loads(files.plan("--budget", f"{whole // 2}s", "-o", "json"))
    assert 0 < plan["summary"]["estimatedSeconds"] <= whole // 2
    assert plan["source"]["budget"] == {"seconds": whole // 2}
    files.without_throttle()
    refused = files.plan("--budget", "6h", code=1)
    assert ("moves.throttle is not written" in refused, "(KR371)" in refused) == (True, True)


def test_what_mends_rules_alone_is_told_where_it_is_more_than_the_budget(files: Files) -> None:
    files.add("brokers: [{id: 1, state: draining}]")
    text = files.plan("--budget", "1MiB")
    assert "the plan is made of that alone (KR870)" in text


@pytest.mark.parametrize("budget", ["2", "-1GiB", "0s", "1h30m"])
def test_a_budget_without_a_unit_is_wrong_usage(files: Files, budget: str) -> None:
    assert "is no budget: write bytes or a time with a unit" in files.plan("--budget", budget, code=64)


def test_too_little_budget_brings_nothing_nearer_and_is_a_difference(files: Files) -> None:
    text = files.plan("--budget", "1B", "--detailed-exitcode", code=2)
    assert text.startswith("No changes. With a budget of 1 B: replicas balance 0% of the way; the whole plan copies ")
    assert "brings the balance no nearer" in text
    assert "(KR871)" in text


def test_the_advice_beside_a_limit_of_bytes_names_a_budget_that_fits(files: Files) -> None:
    half = -(-_whole(files) // (2 << 30))
    files.add(f"limits: {{movedBytes: {half}GiB}}")
    text = files.plan(code=3)
    assert f"the plan is made with --budget {half}GiB" in text
    files.plan("--budget", f"{half}GiB")


def test_the_curve_is_told_in_every_form_and_takes_no_other_options(files: Files) -> None:
    text = files.plan("--curve")
    assert text.splitlines()[0].split() == ["budget", "time", "of", "the", "way", "max/mean", "replicas", "balance"]
    assert "The curve bends at " in text
    curve = json.loads(files.plan("--curve", "-o", "json"))
    assert curve["points"][-1]["bytes"] == curve["wholeBytes"] == _whole(files)
    assert [point["share"] for point in curve["points"]] == sorted(point["share"] for point in curve["points"])
    page = files.plan("--curve", "-o", "html")
    assert "<svg" in page
    assert "default-src 'none'" in page
    assert files.plan("--curve", "-o", "markdown").startswith("| budget | time |")
    assert "it takes --only" in files.plan("--curve", "--budget", "1GiB", code=64)
    files.without_throttle()
    assert "Without moves.throttle nobody knows how long it takes." in files.plan("--curve")


def test_windows_are_counted_and_the_throttle_for_fewer_is_told(files: Files) -> None:
    assert "The plan needs" not in files.plan()
    assert "--windows: needs windows and moves.throttle" in files.plan("--windows", "1")
    files.add('windows: [{days: [mon, tue], from: "23:58", to: "00:00"}]')
    seconds = json.loads(files.plan("-o", "json"))["summary"]["estimatedSeconds"]
    count = -(-seconds // 120)
    assert count > 1
    told = files.plan()
    assert f"The plan needs up to {count} windows at 50 MiB/s; {count - 1} window" in told
    asked = files.plan("--windows", "1")
    assert "1 window would do with moves.throttle at " in asked
    rate = int(asked.split("moves.throttle at ")[1].split(" MiB/s")[0])
    text = files.document.read_text("utf-8")
    for each, needed in ((rate, "1 window"), (rate - 1, "2 windows")):
        files.document.write_text(text.replace("50MiB/s", f"{each}MiB/s"), encoding="utf-8")
        assert f"The plan needs up to {needed} at {each} MiB/s" in files.plan()
