"""Prints what a day costs in a lake: `python -m pytest tests/benchmarks/test_lake_benchmarks.py -m benchmark -s`.

BENCHMARK_PARTITIONS names how many partitions have a sample each minute, 1,000 by default (45 million samples in 31
days), BENCHMARK_DAYS how many days there are. What is compared are CPU seconds of updates that are processes of their
own, Java and all: of the last day, brought into a lake that has all before it, and of all days in a new lake. Half of
what a small day costs is the start of a job, so its share of all days falls with their size: it is held to a bar from
10,000 partitions on. BENCHMARK_WHOLE=no leaves the new lake out, which takes half of the time: the last day is then
compared with all days before it, which cost less.
"""

import os
import shutil
import sys
from pathlib import Path
from statistics import median

import pyarrow as pa
import pytest
from balance.lakes import files_by_folder
from benchmarks import lake_days
from pyarrow import parquet

DAYS, PARTITIONS = int(os.environ.get("BENCHMARK_DAYS", "31")), int(os.environ.get("BENCHMARK_PARTITIONS", "1000"))
IS_WHOLE = os.environ.get("BENCHMARK_WHOLE", "yes") == "yes"
MOST, HELD_FROM = 0.05, 10_000
RUNS = 3

pytestmark = pytest.mark.benchmark


def test_the_last_day_costs_a_small_part_of_all_days(tmp_path: Path) -> None:
    files = [lake_days.write_day(tmp_path / "samples", day, PARTITIONS) for day in range(DAYS)]
    cost = {"all but the last": lake_days.update_cost(tmp_path / "before", files[:-1])}
    last = []
    for run in range(RUNS):
        daily = tmp_path / f"daily-{run}"
        shutil.copytree(tmp_path / "before", daily)
        last.append(lake_days.update_cost(daily, files))
        if run:
            shutil.rmtree(daily)
    cost["the last"] = median(last)
    if IS_WHOLE:
        cost["all"] = lake_days.update_cost(tmp_path / "whole", files)
        cost["nothing new"] = lake_days.update_cost(tmp_path / "whole", files)
        assert _are_equal(tmp_path / "daily-0", tmp_path / "whole")
    of = "all" if IS_WHOLE else "all but the last"
    share = cost["the last"] / cost[of]
    told = ", ".join(f"{name} {seconds:.1f}" for name, seconds in cost.items())
    rows = PARTITIONS * lake_days.MINUTES
    sys.stdout.write(f"\n{DAYS} days of {rows:,} samples, CPU s: {told}; the last day {share:.1%} of {of}\n")
    assert DAYS < 31 or PARTITIONS < HELD_FROM or share <= MOST


def _are_equal(one: Path, other: Path) -> bool:
    """Whether two lakes have the same rows in the same order, folder by folder, whatever the names of their files.

    Bytes are not compared: footers list encodings in an order of each Java's own.
    """
    pairs = zip(files_by_folder(one), files_by_folder(other), strict=True)
    return all(
        (folder, parquet.read_table(pa.memory_map(str(here))))
        == (beside, parquet.read_table(pa.memory_map(str(there))))
        for (folder, here), (beside, there) in pairs
    )
