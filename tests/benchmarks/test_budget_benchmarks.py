"""What a curve and a plan within a budget cost: `pytest tests/benchmarks/test_budget_benchmarks.py -m benchmark -s`.

No assertion is about time.
"""

from pathlib import Path

import pytest
from benchmarks.measure import cost_of
from benchmarks.table import show, show_row
from helpers.clusters.flat_clusters import FlatCase

pytestmark = pytest.mark.benchmark

CASES = (
    FlatCase("b6", brokers=6, racks=3, topics=60, partitions=12, joining=3),
    FlatCase("b54", brokers=54, racks=3, topics=400, partitions=50, joining=6),
    FlatCase("b96", brokers=96, racks=4, topics=2000, partitions=100, joining=4),
)


def test_budgets_of_clusters_that_brokers_join(tmp_path: Path) -> None:
    show("\n| cluster | partitions | asked | CPU s | MB |\n|---|---|---|---|---|")
    for case in CASES:
        root, snapshot = case.write(tmp_path / case.name)
        plan = ("-C", str(root), "plan", "--cluster", case.name, "--state", str(snapshot))
        for asked in (("--curve",), ("--budget", "500GiB")):
            cost = cost_of([*plan, *asked])
            assert cost.exit_code == 0
            cells = (case.name, f"{case.topics * case.partitions:,}", " ".join(asked), f"{cost.cpu_seconds:.1f}")
            show_row(*cells, f"{cost.peak_megabytes:.0f}")
