"""Prints what a plan costs against the size of the cluster, in the form in which the guides show it.

`python -m pytest tests/benchmarks/test_size_benchmarks.py -m benchmark -s` takes some minutes; no assertion is about
time. The variables BENCHMARK_SIZES (`2000,20000`) and BENCHMARK_KINDS (`drain,join`) name fewer.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from benchmarks.measure import figures_of
from benchmarks.table import show, show_row
from helpers.clusters.flat_clusters import FlatCase

pytestmark = pytest.mark.benchmark

RACKS, TOPIC, JOINING = 4, 100, 4
BROKERS = {2_000: 12, 20_000: 60, 200_000: 100, 500_000: 300, 1_000_000: 500}
"""How many brokers a cluster of so many partitions has."""
HEADER = (
    "| partitions | brokers | what | copies | bytes / least | stages | time / busiest broker | CPU s | MB |\n"
    + "|---" * 9
    + "|"
)


def _drain(partitions: int, brokers: int) -> FlatCase:
    return FlatCase("drain", brokers, RACKS, partitions // TOPIC, TOPIC, leaving=(brokers - 1,))


def _join(partitions: int, brokers: int) -> FlatCase:
    return FlatCase("join", brokers, RACKS, partitions // TOPIC, TOPIC, joining=JOINING)


def _grow(partitions: int, brokers: int) -> FlatCase:
    return FlatCase("factor", brokers, RACKS, partitions // TOPIC, TOPIC, before=2)


KINDS: dict[str, tuple[str, Callable[[int, int], FlatCase]]] = {
    "drain": ("1 broker leaves", _drain),
    "join": (f"{JOINING} join", _join),
    "factor": ("RF 2 → 3", _grow),
}


def _wanted() -> Iterator[tuple[int, str]]:
    sizes = os.environ.get("BENCHMARK_SIZES", ",".join(map(str, BROKERS))).split(",")
    kinds = os.environ.get("BENCHMARK_KINDS", ",".join(KINDS)).split(",")
    return ((int(size), kind) for size in sizes for kind in kinds)


def test_cost_against_size(tmp_path: Path) -> None:
    show(f"\n{HEADER}")
    for partitions, kind in _wanted():
        told, case_of = KINDS[kind]
        folder = tmp_path / f"{kind}-{partitions}"
        folder.mkdir()
        figures = figures_of(case_of(partitions, BROKERS[partitions]), folder)
        show_row(
            f"{partitions:,}",
            BROKERS[partitions],
            told,
            f"{figures.copies:,}",
            f"{figures.ratio:.4f}",
            figures.stages,
            f"{figures.over_bound:.2f}",
            f"{figures.cost.cpu_seconds:.1f}",
            f"{figures.cost.peak_megabytes:,.0f}",
        )
        assert figures.ratio == 1, f"{kind} of {partitions:,} copies {figures.ratio} times the least"
