import json
import sys
from pathlib import Path
from shutil import copy2
from typing import TYPE_CHECKING

import pytest
from helpers.program.call import Program
from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import START, write_parquet

from reconciler.balance.model.load_report import Rule
from reconciler.command.terminal import without_secrets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _csv(folder: Path) -> str:
    path = folder / "a.csv"
    path.write_text("ts,topic,partition\n2026-01-01T00:00:00Z,t,0\n")
    return str(path)


def test_without_java_one_sentence_says_what_to_install(
    reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("reconciler.balance.spark.session._existing", lambda: None)
    result = reconciler("loads", "--samples", _csv(tmp_path), "--out", str(tmp_path / "out"))
    assert result.code == 1
    assert result.err.startswith("error: Java is missing, and Spark runs on it: install Java 17 or newer")
    assert result.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_wrong_usage_and_wrong_files_are_told_before_spark_is_started(reconciler: Program, tmp_path: Path) -> None:
    before = set(sys.modules)
    out = str(tmp_path / "out")
    assert reconciler("loads", "--out", out).code == 64
    assert reconciler("loads", "--samples", _csv(tmp_path), "--out", out, "--bucket", "60").code == 64
    misspelt = reconciler("loads", "--samples", _csv(tmp_path), "--out", out, "--measure", "byte_in")
    assert (misspelt.code, "did you mean bytes_in?" in misspelt.err) == (64, True)
    gate = reconciler("loads", "--samples", _csv(tmp_path), "--out", out, "--fail-on", "coverge<95%")
    assert (gate.code, "there is no figure coverge: did you mean coverage?" in gate.err) == (64, True)
    missing = reconciler("loads", "--samples", str(tmp_path / "none"), "--out", out)
    assert missing.code == 1
    assert "no such file or folder" in missing.err
    (tmp_path / "_hidden.csv").write_text("ts,topic,partition\n")
    hidden = reconciler("loads", "--samples", str(tmp_path / "_hidden.csv"), "--out", out)
    assert (hidden.code, "Spark passes over such names" in hidden.err) == (1, True)
    pattern = tmp_path / "[x]" / "a.csv"
    pattern.parent.mkdir()
    pattern.write_text("ts,topic,partition\n")
    assert "has [ ] in its path" in reconciler("loads", "--samples", str(pattern), "--out", out).err
    occupied = reconciler("loads", "--samples", _csv(tmp_path), "--out", str(tmp_path))
    assert occupied.code == 1
    assert "holds other things" in occupied.err
    assert not {name for name in set(sys.modules) - before if name.partition(".")[0] == "pyspark"}


def test_a_setting_of_sparks_is_refused_where_figures_depend_on_it_and_no_value_is_ever_told(
    reconciler: Program, tmp_path: Path
) -> None:
    asked = ("loads", "--samples", _csv(tmp_path), "--out", str(tmp_path / "out"), "--conf")
    without_key = reconciler(*asked, "s3crets-3cret")
    assert (without_key.code, "number 1 is not KEY=VALUE" in without_key.err) == (64, True)
    ours = reconciler(*asked, "spark.hadoop.fs.s3a.secret.key=s3crets-3cret", "--conf", "spark.sql.ansi.enabled=maybe")
    assert (ours.code, "--conf spark.sql.ansi.enabled: figures depend on it" in ours.err) == (1, True)
    assert "s3cret" not in f"{without_key} {ours}"
    assert without_secrets("it was s3crets-3cret.") == "it was ***."


@pytest.mark.parametrize("out", ["s3a://lake/samples", "hdfs:/samples"])
def test_a_uri_is_no_folder_to_collect_in(reconciler: Program, out: str) -> None:
    ended = reconciler("collect", "--bootstrap-server", "localhost:1", "--out", out)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert f"error: {out}: is a URI, and samples are collected in a folder of this machine" in ended.err


@pytest.mark.parametrize("remote", [None, "sc://spark-1:15002/;token=secret"])
def test_without_its_packages_spark_connect_says_what_to_install(
    reconciler: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str | None
) -> None:
    given = ("--master", "sc://spark-1/;token=secret") if remote is None else ()
    if remote is not None:
        monkeypatch.setenv("SPARK_REMOTE", remote)
    monkeypatch.setattr("reconciler.balance.spark.session._existing", lambda: None)
    monkeypatch.setitem(sys.modules, "grpc", None)
    ended = reconciler("loads", "--samples", _csv(tmp_path), "--out", str(tmp_path / "out"), *given)
    assert (ended.code, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert "pip install 'pyspark[connect]'" in ended.err
    assert "secret" not in ended.err
    assert not (tmp_path / "out").exists()


def test_the_program_makes_loads_that_plan_reads_and_an_older_result_makes_way(
    spark: "SparkSession", tmp_path: Path, reconciler: Program
) -> None:
    from pyarrow import parquet

    del spark
    assert reconciler("init", str(tmp_path / "ds"), "--demo").code == 0
    demo = tmp_path / "ds" / "demo"
    snapshot = json.loads((demo / "snapshot.json").read_text())
    rows = [
        Row(
            START + 60 * minute,
            "demo",
            topic["name"],
            each["partition"],
            1000.0 + each["partition"],
            2000.0,
            10.0,
            10**6,
        )
        for topic in snapshot["topics"]
        for each in topic["partitions"]
        for minute in (0, 1)
    ]
    samples, out = write_parquet(tmp_path / "in.parquet", rows), tmp_path / "loads"
    out.mkdir()
    for older in ("_report.json", "part-old.parquet"):
        (out / older).touch()
    again = Path(copy2(samples, tmp_path / "again.parquet"))  # written at the same time, so not late
    given = ("--samples", str(samples), samples.as_uri(), again.as_uri(), "--cluster", "demo")
    gates = ("--fail-on", "coverage<100%", "--fail-on", "future>0", "--fail-on", "duplicate>99%")
    made = reconciler("loads", *given, "--out", str(out), "-o", "json", *gates)
    assert made.code == 3, made.err
    (failed,) = (line for line in made.err.splitlines() if line.startswith("error"))
    assert failed.startswith(f"error: demo: duplicate is 100%, above 99%: {out} is written all the same; look at the ")
    assert failed.endswith("measure longer, or lower the gate (KR268)")
    assert json.loads(made.out)["clusters"][0]["defects"].keys() == {rule.value for rule in Rule}
    assert "demo: " in made.err
    assert f"duplicate: {len(rows)} samples" in made.err
    assert not (out / "part-old.parquet").exists()
    plan = reconciler("-C", str(tmp_path / "ds"), "plan", "--cluster", "demo", "--loads", str(out))
    assert plan.code == 0, plan.err
    nothing = write_parquet(tmp_path / "none.parquet", [Row(None, "demo", "t", 0)])
    none = reconciler("loads", "--samples", str(nothing), "--out", str(out))
    assert none.code == 1
    assert "no sample counts" in none.err
    assert parquet.read_table(out).num_rows == len(rows) // 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "again.parquet",
        "ds",
        "in.parquet",
        "loads",
        "none.parquet",
    ]
