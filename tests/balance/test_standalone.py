"""The same jobs on a standalone Spark cluster, with a master and under spark-submit: a cluster of their own."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from balance.spark_cluster import QUICK_JAVA_EVERYWHERE, SparkCluster, spark_cluster, spark_program
from helpers.program.call import Program

if TYPE_CHECKING:
    import pyarrow as pa
from helpers.waiting import HANG

ROOT = Path(__file__).resolve().parents[2]
MAIN = ROOT / "reconciler" / "__main__.py"
START = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEYS = [("cluster", "ascending"), ("topic", "ascending"), ("partition", "ascending")]

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with samples in three files, some of them wrong, and the snapshot of their cluster."""
    import pyarrow as pa
    from pyarrow import parquet

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


def _rows(folder: Path) -> "pa.Table":
    from pyarrow import dataset

    return dataset.dataset(folder, format="parquet").to_table().sort_by(KEYS)


LOADS = ("loads", "--samples", "samples")
BALANCE = ("balance", "--cluster", "lake", "--samples", "samples", "--state", "snapshot.json", "-o", "json")


@pytest.fixture
def in_local_mode(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path) -> Program:
    """Return the program, run in this process and in that folder by the Spark of all tests."""
    monkeypatch.chdir(folder)
    return Program(capsys)


@pytest.mark.deep
def test_loads_on_a_cluster_are_those_of_local_mode(
    cluster: SparkCluster, folder: Path, in_local_mode: Program
) -> None:
    before = cluster.programs()
    two_executors = {"PYSPARK_SUBMIT_ARGS": "--executor-cores 1 pyspark-shell"}
    to_cluster = (*LOADS, "--out", "loads-cluster", "--master", cluster.master)
    _reconciler(*to_cluster, cwd=folder, **cluster.environment, **two_executors)
    assert cluster.programs() == before + 1
    assert in_local_mode(*LOADS, "--out", "loads-local").code == 0
    there, here = folder / "loads-cluster", folder / "loads-local"
    assert _rows(there).num_rows == 40
    assert _rows(there).equals(_rows(here))
    assert (there / "_report.json").read_text() == (here / "_report.json").read_text()
    assert not list(there.rglob("_temporary"))


@pytest.mark.deep
def test_the_balance_under_spark_submit_takes_its_master_and_is_that_of_local_mode(
    cluster: SparkCluster, folder: Path, in_local_mode: Program
) -> None:
    before = cluster.programs()
    submit = (spark_program("spark-submit"), "--master", cluster.master, str(MAIN))
    told = _run(*submit, *BALANCE, cwd=folder, **cluster.environment)
    assert cluster.programs() == before + 1
    local = in_local_mode(*BALANCE)
    assert local.code == 0, local.err
    assert json.loads(told) == json.loads(local.out)
    assert told == local.out
