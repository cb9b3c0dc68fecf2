"""`reconciler balance`: what it refuses before Spark starts, and one run as its users start it."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.program.call import Program
from helpers.program.command_line import reconciler as run
from helpers.samples.sample_tables import PATTERN, STRANGE

from reconciler.balance.workflow.balance import make_balance
from reconciler.balance.workflow.loads import SparkJob
from reconciler.model.problem import ReconcilerError
from reconciler.workflow.demo import write_demo
from reconciler.workflow.inputs import Inputs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either --samples PATH... or --loads DIR"),
        (("--samples", "a", "--loads", "b"), "either --samples PATH... or --loads DIR"),
        (("--loads", "b", "c"), "c is no option; paths follow --samples"),
        (("--samples", "a", "--bucket", "0s"), "--bucket"),
        (("--samples", "a", "-o", "kafka-json"), "'kafka-json' is not one of"),
    ],
)
def test_what_was_measured_is_named_once(arguments: tuple[str, ...], message: str, reconciler: Program) -> None:
    ended = reconciler("balance", *arguments)
    assert (ended.code, message in ended.err) == (64, True), ended


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--samples", "nowhere"), "(KR1"),
        (("--loads", "nowhere"), "(KR150)"),
        (("--loads", "x", "--plan", "nowhere.json"), "nowhere.json"),
        (("--samples", "nowhere", "--out", "mine"), "holds other things"),
    ],
)
def test_what_is_not_there_is_told_before_spark_starts(
    arguments: tuple[str, ...], message: str, reconciler: Program
) -> None:
    write_demo("desired-state")
    Path("mine").mkdir()
    Path("mine/file").touch()
    ended = reconciler("balance", *arguments)
    assert (ended.code, message in ended.err) == (1, True), ended


def test_a_missing_spark_is_told_before_a_cluster_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.balance.spark.session.find_spec", lambda _name: None)
    asked = SparkJob(datetime(2026, 3, 29, tzinfo=UTC), ["nowhere"])
    with pytest.raises(ReconcilerError, match=r"pip install 'WHEEL\[spark\]'"):
        make_balance(Inputs(root=str(tmp_path)), asked)


@pytest.mark.spark
def test_a_plan_is_weighed_by_samples_as_its_reader_does_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyarrow import parquet

    # Java knows ASCII alone then, unless it is told otherwise; SPARK_API_MODE would have it start a Connect server.
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("SPARK_API_MODE", "connect")
    tmp_path = tmp_path / STRANGE
    tmp_path.mkdir()
    run("init", "--demo", cwd=tmp_path)
    run("plan", "--out", "plan.json", cwd=tmp_path)
    snapshot = json.loads((tmp_path / "desired-state" / "demo" / "snapshot.json").read_text("utf-8"))
    with (tmp_path / "samples.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("ts", "cluster", "topic", "partition", "bytes_in"))
        for topic in snapshot["topics"]:
            for partition in topic["partitions"]:
                for minute in range(2):
                    moment = datetime(2026, 3, 29, tzinfo=UTC) + timedelta(minutes=minute)
                    table.writerow((moment.isoformat(), "demo", topic["name"], partition["partition"], 1000))
    given = ("--samples", "samples.csv", "--plan", "plan.json", "--fail-on", "coverage<100%", "--fail-on", "age>1d")
    ended = run("balance", *given, "--out", PATTERN, "-o", "json", cwd=tmp_path, expect=3)
    (failed,) = (line for line in ended.err.splitlines() if line.startswith("error"))
    assert failed.startswith("error: demo: age is ")
    assert "above 1d: the report is written all the same" in failed
    (demo,) = json.loads(ended.out)["clusters"]
    replicas = sum(len(partition["replicas"]) for topic in snapshot["topics"] for partition in topic["partitions"])
    assert demo["total"]["before"]["bytesInPerSecond"]["p95"] == 1000 * replicas
    assert demo["total"]["before"]["bytesOutPerSecond"]["average"] is None
    assert demo["total"]["moved"]["arrivingReplicas"] == 14
    sides = parquet.read_table(tmp_path / PATTERN / "figures", filters=[("level", "=", "cluster")])["side"]
    assert sorted(sides.to_pylist()) == ["after", "before"]
    assert "what goes out is unknown (KR262)" in ended.err
