"""Prints what a day costs in a lake: `python -m pytest tests/benchmarks/test_lake_benchmarks.py -m benchmark -s`.

BENCHMARK_PARTITIONS names how many partitions have a sample each minute, 1,000 by default (45 million samples in 31
days), BENCHMARK_DAYS how many days there are. What is compared are CPU seconds within one session, Java and Python
together: of the last day, brought into a lake that has all before it, and of all days in a new lake.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from balance.lakes import contents
from benchmarks import lake_days

DAYS, PARTITIONS = int(os.environ.get("BENCHMARK_DAYS", "31")), int(os.environ.get("BENCHMARK_PARTITIONS", "1000"))
MOST = 0.05

pytestmark = pytest.mark.benchmark


def test_the_last_day_costs_a_small_part_of_all_days(tmp_path: Path) -> None:
    command = (sys.executable, lake_days.__file__, str(tmp_path), str(DAYS), str(PARTITIONS))
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    cost = json.loads(ended.stdout.splitlines()[-1])
    rows = PARTITIONS * lake_days.MINUTES
    share = cost["the last"] / cost["all"]
    told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cost.items())
    sys.stdout.write(f"\n{DAYS} days of {rows:,} samples, CPU s: {told}; the last day {share:.1%} of all\n")
    assert contents(tmp_path / "daily") == contents(tmp_path / "whole")
    assert (DAYS, PARTITIONS) < (31, 1000) or share <= MOST
