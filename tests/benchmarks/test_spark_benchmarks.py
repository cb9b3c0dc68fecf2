"""Prints what `loads` and `balance` cost: `python -m pytest tests/benchmarks/test_spark_benchmarks.py -m benchmark -s`.

The variable BENCHMARK_ROWS names millions of samples, `20` by default; `5,20,50` makes the whole table. With
BENCHMARK_PARTITIONS there are others than 100,000 partitions. Beside each verb stand the same figures with nothing
around them (`bare_jobs`), in Spark as it comes, in Spark with the settings that the program gives it, and in DuckDB,
from the same files; all results must be equal. The first ratio is held to a bar; the second one tells what stands
around the figures. A last line tells what only the brokers' rates would cost, a part of what `balance` tells.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bare_jobs
from benchmarks.sample_lake import BROKERS, CLUSTER, PARTITIONS, RACKS, TOPICS, write_lake
from benchmarks.table import MACHINE, show, show_row
from benchmarks.tree_cost import TreeCost, tree_cost
from pyarrow import dataset

SIZES = [float(each) for each in os.environ.get("BENCHMARK_ROWS", "20").split(",")]
MOST = 1.2
BAR_FROM_ROWS = 20_000_000
RECONCILER = (sys.executable, "-m", "reconciler")
ON_TWO_CORES = ("--samples", "samples", "--cluster", CLUSTER, "--master", "local[2]")
LEVELS = ("brokers", "racks", "logDirs", "topics")
HEADER = (
    "| rows | job | reconciler CPU s | GiB | bare Spark CPU s | GiB | ratio | with our settings CPU s | GiB | ratio "
    "| DuckDB CPU s | GiB |\n" + "|---" * 12 + "|"
)

pytestmark = pytest.mark.benchmark


@pytest.fixture(params=SIZES, ids=lambda millions: f"{millions:g}M")
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """Yield a folder with the samples, and how many time buckets they have; it goes afterwards."""
    buckets = int(request.param * 1_000_000) // PARTITIONS
    write_lake(tmp_path, buckets)
    bare_jobs.write_replicas(tmp_path / bare_jobs.REPLICAS)
    yield tmp_path, buckets
    shutil.rmtree(tmp_path)


def test_loads_and_balance_beside_the_bare_aggregation(lake: tuple[Path, int]) -> None:
    folder, buckets = lake
    show(f"{MACHINE}{HEADER}")
    verbs = {
        "loads": ("loads", *ON_TWO_CORES, "--out", "loads"),
        "balance": ("balance", *ON_TWO_CORES, "--state", "snapshot.json", "-o", "json"),
    }
    ratios = {}
    for job, arguments in verbs.items():
        ours = tree_cost([*RECONCILER, *arguments], folder / f"{job}-reconciler.json", cwd=folder)
        bare = {engine: _bare(engine, job, folder, buckets) for engine in bare_jobs.ENGINES}
        ratios[job] = ours.cpu_seconds / bare["spark"].cpu_seconds
        _tell_row(PARTITIONS * buckets, job, ours, bare)
    bare = {engine: _bare(engine, "brokers", folder, buckets) for engine in bare_jobs.ENGINES}
    _tell_row(PARTITIONS * buckets, "balance, brokers only", None, bare)
    _same_loads(folder)
    _same_balance(folder)
    # Below that, what Spark and the snapshot take to start with outweighs the work.
    assert PARTITIONS * buckets < BAR_FROM_ROWS or max(ratios.values()) <= MOST, ratios


def _bare(engine: str, job: str, folder: Path, buckets: int) -> TreeCost:
    command = [sys.executable, bare_jobs.__file__, engine, job, str(buckets)]
    return tree_cost(command, folder / f"{job}-{engine}.json", cwd=folder)


def _tell_row(rows: int, job: str, ours: TreeCost | None, bare: Mapping[str, TreeCost]) -> None:
    cells = [f"{rows:,}", job, *(("", "") if ours is None else _cells(ours))]
    for engine, cost in bare.items():
        cells += _cells(cost)
        if engine != "duckdb":
            cells.append("" if ours is None else f"{ours.cpu_seconds / cost.cpu_seconds:.2f}")
    show_row(*cells)


def _cells(cost: TreeCost) -> tuple[str, str]:
    return f"{cost.cpu_seconds:.1f}", f"{cost.peak_bytes / 2**30:.1f}"


def _same_loads(folder: Path) -> None:
    """Compare what was written with DuckDB's, each figure to a millionth."""
    keys = [("topic", "ascending"), ("partition", "ascending")]
    ours, theirs = (
        dataset.dataset(folder / name, format="parquet").to_table().sort_by(keys)
        for name in ("loads", f"{bare_jobs.OUT}.parquet")
    )
    assert ours.num_rows == PARTITIONS
    for name in set(ours.column_names) - {"cluster", "topic"}:
        assert ours[name].to_pylist() == pytest.approx(theirs[name].to_pylist(), rel=1e-6), name


def _same_balance(folder: Path) -> None:
    """Compare each level's figures with DuckDB's, each to a millionth."""
    cluster = json.loads((folder / "balance-reconciler.json").read_text("utf-8"))["clusters"][0]
    told = [cluster["total"], *(row for level in LEVELS for row in cluster[level])]
    ours = {_name(row.get("broker"), row.get("logDir"), row): row["before"] for row in told}
    theirs = json.loads((folder / "balance-duckdb.json").read_text("utf-8"))
    assert len(ours) == len(theirs) == 1 + BROKERS + RACKS + BROKERS + TOPICS
    for row in theirs:
        found = ours[_name(row["broker"], row["log_dir"], row)]
        # It is told to six digits.
        assert found["growthBytesPerDay"] == pytest.approx(row["growth_bytes_per_day"], rel=1e-5), row
        for way, name in (("bytesInPerSecond", "bytes_in"), ("bytesOutPerSecond", "bytes_out")):
            for figure, column in (("average", "avg"), ("p95", "p95"), ("maximum", "max"), ("peak", "peak")):
                assert found[way][figure] == pytest.approx(row[f"{name}_{column}"], rel=1e-6), (row, way, figure)


def _name(broker: int | None, log_dir: str | None, row: Mapping[str, Any]) -> tuple[object, ...]:
    """Return which row of which level it is; a broker's own tells its rack too."""
    return broker, log_dir, row.get("rack") if broker is None else None, row.get("topic")
