import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from balance.any_spark import STRANGE_SETTINGS, strange_session

from reconciler.balance.spark.connect import server_of, shown
from reconciler.balance.spark.java import java_version, require_java
from reconciler.balance.spark.session import spark_session
from reconciler.balance.spark.settings import SparkChoice, conf_of, secrets_of, settings
from reconciler.balance.workflow.loads import SparkJob, make_loads
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.balance.spark.work import Work


def test_samples_are_read_in_utc_and_the_page_of_spark_stays_closed() -> None:
    chosen = settings(SparkChoice(), {})
    assert chosen["spark.sql.session.timeZone"] == "UTC"
    assert chosen["spark.ui.enabled"] == "false"


def test_without_a_master_spark_is_local() -> None:
    assert settings(SparkChoice(), {})["spark.master"] == "local[*]"


@pytest.mark.parametrize(
    "environ",
    [{"PYSPARK_GATEWAY_PORT": "1"}, {"SPARK_HOME": "/spark"}, {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}],
)
def test_a_master_given_outside_is_left_alone(environ: dict[str, str]) -> None:
    chosen = settings(SparkChoice(), environ)
    assert "spark.master" not in chosen
    assert "spark.driver.host" not in chosen
    assert settings(SparkChoice("local[3]"), environ)["spark.master"] == "local[3]"


def test_only_a_local_driver_hides_behind_the_loopback_address() -> None:
    assert settings(SparkChoice("local[2]"), {})["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in settings(SparkChoice("spark://host:7077"), {})


@pytest.mark.parametrize(
    ("conf", "environ"),
    [
        ({"spark.driver.extraJavaOptions": "-Da=b -XX:+UseG1GC"}, {}),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"}, {}),
        ({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}),
        ({}, {"SPARK_HOME": "/spark"}),
    ],
)
def test_a_collector_that_somebody_chose_is_the_only_one(conf: dict[str, str], environ: dict[str, str]) -> None:
    options = settings(SparkChoice("local[2]", conf=conf), environ)["spark.driver.extraJavaOptions"]
    assert "UseParallelGC" not in options
    assert "CompileThresholdScaling" in options


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
    with pytest.raises(ReconcilerError, match=r"pip install 'WHEEL\[spark\]'"), spark_session(SparkChoice()):
        pass


def test_in_a_session_that_was_there_figures_are_those_of_utc_and_its_settings_stay_as_they_are(
    spark: "SparkSession", tmp_path: Path
) -> None:
    times = ("2026-03-29T01:30:00", "2026-03-29 03:30:00", "2026-10-25T00:30:00Z")  # around the two changes of the hour
    (tmp_path / "samples.csv").write_text("\n".join(["ts,cluster,topic,partition", *(f"{at},c,t,0" for at in times)]))
    job = SparkJob(datetime(2027, 1, 1, tzinfo=UTC), (str(tmp_path / "samples.csv"),), spark=SparkChoice("local[1]"))
    before = {row["key"]: row["value"] for row in spark.sql("SET").collect()}
    try:
        with strange_session(spark):
            report = make_loads(Inputs(str(tmp_path)), job, str(tmp_path / "out"))
    finally:
        for key in STRANGE_SETTINGS:
            spark.conf.set(key, before[key]) if key in before else spark.conf.unset(key)
    (cluster,) = report.clusters
    assert (cluster.first_bucket, cluster.last_bucket) == ("2026-03-29T01:30:00Z", "2026-10-25T00:30:00Z")
    assert cluster.samples == 3


def test_settings_of_the_user_go_before_ours_but_for_those_that_figures_depend_on() -> None:
    conf = {"spark.ui.enabled": "true", "spark.executor.memory": "4g", "spark.driver.extraJavaOptions": "-Da=b"}
    chosen = settings(SparkChoice("local[2]", conf=conf), {})
    assert (chosen["spark.ui.enabled"], chosen["spark.executor.memory"]) == ("true", "4g")
    assert chosen["spark.driver.extraJavaOptions"].startswith("-Dlog4j2.configurationFile=file:///")
    assert chosen["spark.driver.extraJavaOptions"].endswith(" -XX:+UseParallelGC -Da=b")
    assert settings(SparkChoice(conf={"spark.master": "spark://a:7077"}), {})["spark.master"] == "spark://a:7077"
    with pytest.raises(
        InvalidInput, match=r"--conf spark.sql.ansi.enabled: figures depend on it, so it is always true"
    ):
        conf_of(["spark.a=b=c", "spark.sql.ansi.enabled=hunter2"])
    assert conf_of(["spark.a=b=c", "spark.a=d", "spark.e="]) == {"spark.a": "d", "spark.e": ""}


def test_a_setting_that_a_running_spark_does_not_take_is_told_and_the_rest_is_left_alone(spark: "SparkSession") -> None:
    own = SparkChoice(conf={"spark.executor.memory": "3g"})
    with (
        pytest.raises(ReconcilerError, match=r"spark.executor.memory cannot be set in a Spark that"),
        spark_session(own),
    ):
        pass
    assert spark.range(3).count() == 3


def test_memory_for_a_driver_that_runs_already_is_told_to_do_nothing(spark: "SparkSession") -> None:
    told: list[Problem] = []
    with spark_session(SparkChoice(driver_memory="4g", on_warning=told.append)) as session:
        assert session.conf.get("spark.sql.session.timeZone") == "UTC"
    with spark_session(SparkChoice(on_warning=told.append)):
        pass
    assert spark.range(1).count() == 1
    assert list(map(str, told)) == [
        "--driver-memory 4g does nothing: Spark's driver runs already; give it memory where it is started (KR289)"
    ]


def test_what_jobs_cost_is_told_where_a_block_ends_well_and_jobs_of_others_do_not_count(spark: "SparkSession") -> None:
    told: list[Work] = []
    spark.range(10).repartition(3).count()
    with spark_session(SparkChoice(on_work=told.append)) as session:
        session.range(1000).repartition(3).count()
    spark.range(10).repartition(3).count()
    (work,) = told
    assert 1 <= work.jobs <= 3
    assert 0 < work.shuffled_bytes < 100_000
    assert work.cpu_seconds, "CPU is used"


@pytest.mark.parametrize(
    ("master", "environ", "server"),
    [
        ("sc://h:15002/;token=t", {}, "sc://h:15002/;token=t"),
        (None, {"SPARK_REMOTE": "sc://h"}, "sc://h"),
        ("local[2]", {"SPARK_REMOTE": "sc://h"}, None),
        (None, {"SPARK_REMOTE": "local[2]"}, None),
        (None, {}, None),
    ],
)
def test_a_spark_connect_server_is_what_the_master_or_else_the_environment_names(
    master: str | None, environ: dict[str, str], server: str | None
) -> None:
    assert server_of(master, environ) == server
    assert shown(server or "sc://h") in {"sc://h:15002", "sc://h"}


def test_secrets_among_settings_are_found_by_their_keys() -> None:
    conf = {
        "spark.hadoop.fs.s3a.secret.key": "one",
        "spark.hadoop.fs.s3a.access.key": "two",
        "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": "three",
        "spark.executor.memory": "4g",
    }
    assert secrets_of(f"{key}={value}" for key, value in conf.items()) == ("one", "two", "three")


def test_a_result_that_went_to_another_machines_disk_is_told(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconciler.balance.spark import session

    monkeypatch.setattr(session, "as_hadoop", lambda folder: f"file://{folder}-of-a-worker")
    with pytest.raises(ReconcilerError, match="nothing arrived on this machine's: let --out name a folder that all"):
        session.write_parquet(spark.range(3), tmp_path / "out")


SHOWN = """
import sys
from pathlib import Path
from reconciler.balance.spark.session import spark_session
from reconciler.balance.spark.settings import SparkChoice

secret, login = sys.stdin.read().split()
conf = {
    "spark.hadoop.fs.s3a.secret.key": secret,
    "spark.hadoop.fs.s3a.endpoint": f"https://ada:{login}@s3.invalid",
    "spark.hadoop.fs.s3a.path.style.access": "true",
}
with spark_session(SparkChoice("local[1]", conf=conf)) as session:
    files = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    java = session._jsc.hadoopConfiguration()
    assert any(b"path.style.access=true" in file for file in files)
    assert [java.get(name.removeprefix("spark.hadoop.")) for name in conf] == [*conf.values()]
    print([file for file in files if secret.encode() in file or login.encode() in file])
"""


@pytest.mark.spark
def test_no_command_line_shows_a_secret_that_a_setting_has_and_spark_gets_it() -> None:
    """Every user of a machine can read the command line of every process."""
    run = subprocess.run(
        [sys.executable, "-c", SHOWN], input="c4n4ry 10g1n", capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout.strip()) == (0, "[]"), run.stderr[-2000:]
