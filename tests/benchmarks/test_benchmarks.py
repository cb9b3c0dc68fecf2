"""Prints the table of benchmarks: `python -m pytest tests/benchmarks -m benchmark -s`; no assertion is about time.

The variable BENCHMARK_CASES names others than the default; `e` has 200,000 partitions on 100 + 4
brokers, and a number stands for case d with so many partitions.
"""

import os
from pathlib import Path

import pytest
from benchmarks.measure import Figures, figures_of, start_cost
from benchmarks.table import MACHINE, show, show_row
from helpers.clusters.flat_clusters import CASES, FlatCase, growing
from helpers.program.written_commands import verbs

DEFAULT = "2000,a,b,c,d,200000,e"
STARTS = {"--help": ["--help"], "a wrong flag": ["plan", "--no-such-flag"], "plan --help": ["plan", "--help"]}
USAGE = 64
START_SECONDS = 0.25
"""What help and errors should take less of, in CPU seconds."""

pytestmark = pytest.mark.benchmark


def _cases() -> list[FlatCase]:
    names = os.environ.get("BENCHMARK_CASES", DEFAULT).split(",")
    return [growing(int(name)) if name.isdigit() else CASES[name] for name in names]


def test_plans_of_the_flat_clusters(tmp_path: Path) -> None:
    show(f"{MACHINE}{Figures.HEADER}")
    for case in _cases():
        folder = tmp_path / case.name
        folder.mkdir()
        figures = figures_of(case, folder)
        show_row(*figures.cells)
        assert figures.ratio == 1, f"{case.name} copies {figures.ratio} times the least"


def test_starting_the_program() -> None:
    show(f"\n| start | CPU s | CPU s / {START_SECONDS} | MB |\n|---|---|---|---|")
    for name, arguments in STARTS.items():
        cost = start_cost(arguments)
        ratio = cost.cpu_seconds / START_SECONDS
        show(f"| {name} | {cost.cpu_seconds:.3f} | {ratio:.2f} | {cost.peak_megabytes:.0f} |")
        assert cost.exit_code == (USAGE if "flag" in name else 0)


def test_starting_every_verbs_help() -> None:
    costs = {" ".join(words): start_cost([*words, "--help"], times=3) for words, _ in verbs()}
    show("\n| help of | CPU s | MB |\n|---|---|---|")
    for name, cost in sorted(costs.items(), key=lambda each: -each[1].cpu_seconds)[:5]:
        show(f"| {name} | {cost.cpu_seconds:.3f} | {cost.peak_megabytes:.0f} |")
    assert {cost.exit_code for cost in costs.values()} == {0}
