from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reconciler.balance.spark.java import java_version, require_java
from reconciler.balance.spark.session import settings, spark_session
from reconciler.model.problem import ReconcilerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_samples_are_read_in_utc_and_the_page_of_spark_stays_closed() -> None:
    chosen = settings(None, {})
    assert chosen["spark.sql.session.timeZone"] == "UTC"
    assert chosen["spark.ui.enabled"] == "false"


def test_without_a_master_spark_is_local() -> None:
    assert settings(None, {})["spark.master"] == "local[*]"


@pytest.mark.parametrize(
    "environ",
    [{"PYSPARK_GATEWAY_PORT": "1"}, {"SPARK_HOME": "/spark"}, {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}],
)
def test_a_master_given_outside_is_left_alone(environ: dict[str, str]) -> None:
    chosen = settings(None, environ)
    assert "spark.master" not in chosen
    assert "spark.driver.host" not in chosen
    assert settings("local[3]", environ)["spark.master"] == "local[3]"


def test_only_a_local_driver_hides_behind_the_loopback_address() -> None:
    assert settings("local[2]", {})["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in settings("spark://host:7077", {})


@pytest.mark.parametrize(
    ("told", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_version_of_java_is_read_from_what_it_tells(told: str, version: int | None) -> None:
    assert java_version(told) == version


def test_a_missing_java_is_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReconcilerError, match=r"Java is missing.* install Java 17 or newer") as missing:
        require_java({"PATH": str(tmp_path)})
    assert "\n" not in str(missing.value)


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReconcilerError, match=r"JAVA_HOME is .*, which holds no bin/java"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})


@pytest.mark.parametrize(
    ("says", "sentence"),
    [('openjdk version "11.0.2"', r"is Java 11, and Spark needs 17"), ("hello", r"does not say which Java it is")],
)
def test_an_old_or_strange_java_is_told_by_its_path(tmp_path: Path, says: str, sentence: str) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    with pytest.raises(ReconcilerError, match=sentence):
        require_java({"PATH": f"{tmp_path}:/usr/bin:/bin"})


@pytest.mark.parametrize("missing", ["pyspark", "py4j", "pyarrow"])
def test_a_missing_spark_says_how_to_install_it(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.balance.spark.session.find_spec", lambda name: None if name == missing else name)
    with pytest.raises(ReconcilerError, match=r"pip install 'kafka-reconciler\[spark\]'"), spark_session():
        pass


def test_a_session_that_was_there_is_used_and_left_alive(spark: "SparkSession") -> None:
    with spark_session("local[1]") as used:
        assert used is spark
    assert spark.range(3).count() == 3


def test_a_result_that_went_to_another_machines_disk_is_told(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconciler.balance.spark import session

    monkeypatch.setattr(session, "as_hadoop", lambda folder: f"file://{folder}-of-a-worker")
    with pytest.raises(ReconcilerError, match="nothing arrived on this machine's: let --out name a folder that all"):
        session.write_parquet(spark.range(3), tmp_path / "out")
