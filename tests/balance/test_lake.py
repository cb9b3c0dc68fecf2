"""Places of a lake for real: an S3 server, workers without a shared disk, tables of Delta and Iceberg."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from balance.lake_servers import TABLE_SPARK, NoServerError, object_store, s3_jars, table_jars
from balance.spark_cluster import QUICK_JAVA_EVERYWHERE, connect_server, spark_cluster
from balance.spark_versions import python_with
from helpers.program.call import ROOT
from helpers.waiting import HANG

from reconciler.files.loads import read_loads, seen_of_loads
from reconciler.files.places import file_system

pytestmark = [pytest.mark.spark, pytest.mark.deep]
START = datetime(2026, 3, 29, tzinfo=UTC)
SAMPLES, LOADS = "s3a://lake/in [x] ö%20", "s3a://lake/out a%20ö"


def _run(*command: str, cwd: Path, **environment: str) -> str:
    held = {name: value for name, value in os.environ.items() if not name.startswith("RECONCILER_")}
    path = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**held, "PYTHONPATH": path, **QUICK_JAVA_EVERYWHERE, **environment},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_loads_balance_and_plan_go_through_an_object_store_by_workers_without_a_shared_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import fs

    home = tmp_path / "home"
    home.mkdir()
    try:
        with object_store(tmp_path) as store, spark_cluster(tmp_path, workers=2) as cluster:
            for name, value in store.environment.items():
                monkeypatch.setenv(name, value)
            reconciler = (sys.executable, "-m", "reconciler")
            _run(*reconciler, "init", "ds", "--demo", cwd=home)
            files, _ = file_system(SAMPLES)
            _fill(files, json.loads((home / "ds" / "demo" / "snapshot.json").read_text()))
            path = s3_jars()
            settings = {
                "spark.driver.extraClassPath": path,
                "spark.executor.extraClassPath": path,
                "spark.executor.cores": "1",
                "spark.hadoop.fs.s3a.endpoint": store.end_point,
                "spark.hadoop.fs.s3a.path.style.access": "true",
            }
            conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
            spark = ("--master", cluster.master, *conf)
            before = sorted(home.rglob("*"))
            for _ in range(2):
                _run(
                    *reconciler, "loads", "--samples", SAMPLES, "--out", LOADS, *spark, cwd=home, **cluster.environment
                )
            of_loads = (
                "-C",
                "ds",
                "balance",
                "--cluster",
                "demo",
                "--loads",
                LOADS,
                "--out",
                "s3a://lake/tables",
                "-o",
                "json",
            )
            told = json.loads(_run(*reconciler, *of_loads, *spark, cwd=home, **cluster.environment))
            assert told["clusters"][0]["total"]["before"]["bytesIn"]["average"] > 0
            plan = _run(*reconciler, "-C", "ds", "plan", "--cluster", "demo", "--loads", LOADS, cwd=home)
            assert "Digest sha256:" in plan
            kept = files.get_file_info(fs.FileSelector(LOADS.removeprefix("s3a://"), recursive=True))
            listed = json.loads(_text(files, f"{LOADS.removeprefix('s3a://')}/_files/list.json"))["files"]
            assert sorted(file.base_name for file in kept if file.base_name.endswith(".parquet")) == listed
            assert not [file.path for file in kept if "_new-" in file.path or "_temporary" in file.path]
            assert json.loads(_text(files, f"{LOADS.removeprefix('s3a://')}/_report.json"))["partitions"] == 480
            assert sorted(home.rglob("*")) == before
            workers = sorted(tmp_path.glob("work*"))
            assert len([folder for folder in workers if list(folder.glob("app-*/*/stderr"))]) == 2
            assert not [file for folder in workers for file in folder.rglob("*.parquet")]
    except NoServerError as missing:
        pytest.skip(str(missing))


def _fill(files: "object", snapshot: dict[str, list[dict[str, list[dict[str, object]]]]]) -> None:
    """Write samples of each partition, in three files of one folder that is named by its cluster."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = [
        {
            "ts": START + timedelta(minutes=minute),
            "topic": topic["name"],
            "partition": each["partition"],
            "bytes_in": 1000.0,
            "bytes_out": 2000.0,
            "messages_in": 1.0,
            "size_bytes": 10**6,
        }
        for topic in snapshot["topics"]
        for each in topic["partitions"]
        for minute in range(3)
    ]
    for number in range(3):
        name = f"{SAMPLES.removeprefix('s3a://')}/cluster=demo/{number}.parquet"
        parquet.write_table(pa.Table.from_pylist(rows[number::3]), name, filesystem=files)


def _text(files: "object", path: str) -> bytes:
    with files.open_input_stream(path) as file:  # type: ignore[attr-defined]
        return bytes(file.read())


def test_delta_and_iceberg_tables_are_read_and_replaced_as_tables(tmp_path: Path) -> None:
    python, path = python_with(TABLE_SPARK), table_jars()
    options = {"PYSPARK_SUBMIT_ARGS": f"--driver-class-path {path} pyspark-shell"}
    told = json.loads(_run(str(python), "-m", "balance.table_formats", str(tmp_path), cwd=tmp_path, **options))
    assert set(told.pop("rows").values()) == {3}
    assert told.pop("commits") == [2, 2]
    assert told.pop("part of Delta") == "KR281"
    assert {told.pop("over another's Iceberg"), told.pop("over another's Delta")} == {"KR147"}
    assert len(told) == 8
    assert set(told.values()) == {3}, told


def test_without_java_at_hand_a_result_at_a_uri_is_put_there_by_spark_itself(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = [
        {"ts": START + timedelta(minutes=minute), "cluster": "c", "topic": "t", "partition": part, "bytes_in": 1.0}
        for minute in range(3)
        for part in range(4)
    ]
    for name in ("lake/in", "lake/mine", "home"):
        (tmp_path / name).mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "lake" / "in" / "a.parquet")
    (tmp_path / "lake" / "mine" / "a.parquet").touch()
    mount = f"spark.hadoop.fs.viewfs.mounttable.lake.link./data={(tmp_path / 'lake').as_uri()}"
    python = python_with(TABLE_SPARK)  # which has what Spark Connect's client needs
    loads = (str(python), "-m", "reconciler", "loads", "--samples", "viewfs://lake/data/in")
    with connect_server(tmp_path, python, ("--conf", mount)) as server:
        for _ in range(2):
            _run(*loads, "--out", "viewfs://lake/data/out ö", "--master", server, cwd=tmp_path / "home")
        with pytest.raises(AssertionError, match="holds other things"):
            _run(*loads, "--out", "viewfs://lake/data/mine", "--master", server, cwd=tmp_path / "home")
    out = str(tmp_path / "lake" / "out ö")
    assert len(read_loads(out, "c").of) == 4
    assert seen_of_loads(out, "c", START).counts is not None
    assert list((tmp_path / "home").iterdir()) == []
