"""The same jobs on a standalone Spark cluster and under spark-submit: a master and two workers of their own."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from balance.spark_cluster import QUICK_JAVA_EVERYWHERE, SparkCluster, spark_cluster, spark_program
from helpers.waiting import HANG
from pyarrow import dataset, parquet

ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "reconciler" / "__main__.py"
START = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEYS = [("cluster", "ascending"), ("topic", "ascending"), ("partition", "ascending")]
Run = Callable[..., str]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with samples in three files, some of them wrong, and the snapshot of their cluster."""
    made = tmp_path_factory.mktemp("lake")
    (made / "samples").mkdir()
    drawn = random.Random(7)
    rows = [_sample(drawn, minute, number) for minute in range(60) for number in range(40)]
    rows += [{**row, "bytes_in": 1.0} for row in rows[:5]]
    rows[7]["bytes_out"] = -1.0
    drawn.shuffle(rows)
    for number in range(3):
        parquet.write_table(pa.Table.from_pylist(rows[number::3]), made / "samples" / f"{number}.parquet")
    (made / "snapshot.json").write_text(json.dumps(_snapshot(drawn)))
    _reconciler("-C", "desired-state", "init", "--cluster", "lake", cwd=made)
    return made


def _sample(drawn: random.Random, minute: int, number: int) -> dict[str, object]:
    return {
        "ts": START + timedelta(minutes=minute),
        "cluster": "lake",
        "topic": f"topic-{number // 8}",
        "partition": number % 8,
        "bytes_in": drawn.lognormvariate(10, 1),
        "bytes_out": drawn.lognormvariate(11, 1),
        "messages_in": drawn.lognormvariate(5, 1),
        "size_bytes": 10**6 * (number + 1) + 1000 * minute,
        "end_offset": 100 * minute,
    }


def _snapshot(drawn: random.Random) -> dict[str, object]:
    brokers = [
        {
            "id": number,
            "rack": "abc"[number % 3],
            "logDirs": [{"path": "/d", "totalBytes": 10**9, "usableBytes": 10**8}],
        }
        for number in range(6)
    ]
    partitions = []
    for number in range(40):
        replicas = drawn.sample(range(6), 3)
        held = {"replicas": replicas, "isr": replicas, "sizes": [10**6] * 3, "logDirs": ["/d"] * 3}
        partitions.append({"partition": number % 8, "leader": replicas[0], **held})
    topics = [{"name": f"topic-{number}", "partitions": partitions[8 * number : 8 * number + 8]} for number in range(5)]
    return {"formatVersion": "1.0", "clusterId": "c", "brokers": brokers, "topics": topics}


def _run(*command: str, cwd: Path, **environment: str) -> str:
    """Run the command; paths in it are relative, as users write them and as executors must never see them."""
    held = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**held, "PYTHONPATH": str(ROOT), **QUICK_JAVA_EVERYWHERE, **environment},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def _reconciler(*arguments: str, cwd: Path, **environment: str) -> str:
    return _run(sys.executable, "-m", "reconciler", *arguments, cwd=cwd, **environment)


def _submitted(cluster: SparkCluster, *arguments: str, cwd: Path) -> str:
    submit = (spark_program("spark-submit"), "--master", cluster.master, str(MAIN))
    return _run(*submit, *arguments, cwd=cwd, **cluster.environment)


def _rows(folder: Path) -> pa.Table:
    return dataset.dataset(folder, format="parquet").to_table().sort_by(KEYS)


LOADS = ("loads", "--samples", "samples")
BALANCE = ("balance", "--cluster", "lake", "--samples", "samples", "--state", "snapshot.json", "-o", "json")


@pytest.fixture(scope="module")
def local_loads(folder: Path) -> Path:
    """Return the folder that local mode writes."""
    _reconciler(*LOADS, "--out", "loads-local", "--master", "local[2]", cwd=folder)
    return folder / "loads-local"


@pytest.fixture(scope="module")
def local_balance(folder: Path) -> str:
    """Return what local mode tells."""
    return _reconciler(*BALANCE, "--master", "local[2]", cwd=folder)


def test_loads_on_a_cluster_are_those_of_local_mode(cluster: SparkCluster, folder: Path, local_loads: Path) -> None:
    _reconciler(*LOADS, "--out", "loads-cluster", "--master", cluster.master, cwd=folder, **cluster.environment)
    there = folder / "loads-cluster"
    assert _rows(there).num_rows == 40
    assert _rows(there).equals(_rows(local_loads))
    assert (there / "_report.json").read_text() == (local_loads / "_report.json").read_text()
    assert not list(there.rglob("_temporary"))


def test_the_balance_on_a_cluster_is_that_of_local_mode(
    cluster: SparkCluster, folder: Path, local_balance: str
) -> None:
    told = _reconciler(*BALANCE, "--master", cluster.master, cwd=folder, **cluster.environment)
    assert json.loads(told) == json.loads(local_balance)
    assert told == local_balance


def test_loads_under_spark_submit_take_its_master(cluster: SparkCluster, folder: Path, local_loads: Path) -> None:
    _submitted(cluster, *LOADS, "--out", "loads-submitted", cwd=folder)
    assert _rows(folder / "loads-submitted").equals(_rows(local_loads))


def test_the_balance_under_spark_submit_is_that_of_local_mode(
    cluster: SparkCluster, folder: Path, local_balance: str
) -> None:
    assert _submitted(cluster, *BALANCE, cwd=folder) == local_balance
