"""Prints what bad and damaged input costs: `pytest tests/benchmarks/test_inputs_benchmarks.py -m benchmark -s`.

No assertion is about time. A call should take less than 2 CPU seconds and 256 MB, the start of the program included;
the tables show the dearest ones. The variable BENCHMARK_SEEDS says how many damaged files, 1,000 by default.
"""

import os
import shutil
import time
from pathlib import Path

import pytest
from benchmarks.measure import ROOT, Cost, cost_of
from benchmarks.table import show
from cli.bad_inputs import bad_inputs
from cli.fuzz_worker import MEGABYTES, play
from helpers.program.fuzz_folder import KINDS, write_good

pytestmark = pytest.mark.benchmark

CPU_SECONDS = 2
SHOWN = 5


def test_named_bad_inputs(tmp_path: Path) -> None:
    demo = tmp_path / "demo"
    shutil.copytree(ROOT / "desired-state", demo / "desired-state")
    cost_of(["plan", "--cluster", "demo", "--out", "plan.json"], cwd=demo)
    costs: dict[str, Cost] = {}
    for number, bad in enumerate(bad_inputs()):
        folder = tmp_path / str(number)
        folder.mkdir()
        placed = bad.placed(demo, folder)
        cost = costs[f"{bad.kind}: {bad.name}"] = cost_of(placed.arguments, may_fail=True, cwd=placed.cwd)
        assert cost.exit_code == bad.code
    dearest = sorted(costs.items(), key=lambda each: -each[1].cpu_seconds)[:SHOWN]
    show(f"\n| of {len(costs)} bad inputs | CPU s | CPU s / {CPU_SECONDS} | MB |\n|---|---|---|---|")
    for name, cost in dearest:
        ratio = cost.cpu_seconds / CPU_SECONDS
        show(f"| {name} | {cost.cpu_seconds:.2f} | {ratio:.2f} | {cost.peak_megabytes:.0f} |")
    assert max(cost.peak_megabytes for cost in costs.values()) < MEGABYTES


def test_damaged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_good(tmp_path)
    seeds = int(os.environ.get("BENCHMARK_SEEDS", "1000"))
    took: list[tuple[float, int, str]] = []
    for seed in range(seeds + len(KINDS)):
        begun = time.process_time()
        name, _, _, content = play(tmp_path, seed)
        if seed >= len(KINDS):  # every verb has loaded what it loads
            took.append((time.process_time() - begun, seed, f"{name}, {len(content):,} bytes"))
    total = sum(seconds for seconds, _, _ in took)
    show(f"\n| of {seeds:,} damaged files, {total:.0f} CPU s in all | seed | CPU s | CPU s / {CPU_SECONDS} |")
    show("|---|---|---|---|")
    for seconds, seed, name in sorted(took, reverse=True)[:SHOWN]:
        show(f"| {name} | {seed} | {seconds:.2f} | {seconds / CPU_SECONDS:.2f} |")
