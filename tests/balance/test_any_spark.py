"""The same jobs on the same samples by every PySpark, in every way to run one: figures are equal to the last bit."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from balance.any_spark import EXISTING, make_lake
from balance.spark_cluster import QUICK_JAVA_EVERYWHERE, connect_server, spark_cluster, spark_program
from balance.spark_versions import VERSIONS, python_with
from helpers.program.call import ROOT, run_program
from helpers.waiting import HANG

pytestmark = [pytest.mark.spark, pytest.mark.deep]
PROGRAM = ("-m", "balance.any_spark")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with samples, and in `expected` what the installed PySpark makes of them on this machine."""
    home = tmp_path_factory.mktemp("lake")
    make_lake(home)
    _run(Path(sys.executable), PROGRAM, home, home / "expected", "local[2]")
    return home


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("master", ["local[2]", EXISTING])
def test_on_this_machine_and_in_a_session_of_somebody_else(
    version: str, master: str, lake: Path, tmp_path: Path
) -> None:
    _run(python_with(version), PROGRAM, lake, tmp_path / "out", master)
    _assert_same(tmp_path / "out", lake / "expected")


@pytest.mark.parametrize("version", VERSIONS)
def test_by_spark_submit_on_a_standalone_cluster(version: str, lake: Path, tmp_path: Path) -> None:
    python = python_with(version)
    with spark_cluster(tmp_path, python) as cluster:
        program = ("--master", cluster.master, str(ROOT / "tests" / "balance" / "any_spark.py"))
        _run(Path(spark_program("spark-submit", python)), program, lake, tmp_path / "out", **cluster.environment)
        assert cluster.programs() > 0
    _assert_same(tmp_path / "out", lake / "expected")


def test_a_master_on_the_command_line_is_taken_and_places_are_those_of_the_folder(lake: Path, tmp_path: Path) -> None:
    from pyarrow import dataset

    with spark_cluster(tmp_path) as cluster:
        two_executors = {"PYSPARK_SUBMIT_ARGS": "--executor-cores 1 pyspark-shell"}
        command = ("loads", "--samples", "even", "--out", "loads", "--master", cluster.master)
        ended = run_program(*command, cwd=lake, env={**cluster.environment, **two_executors})
        assert (ended.code, cluster.programs()) == (0, 1), ended.err
    keys = [(name, "ascending") for name in ("cluster", "topic", "partition")]
    found, expected = (
        dataset.dataset(folder, format="parquet").to_table().sort_by(keys)
        for folder in (lake / "loads", lake / "expected" / "tables" / "even")
    )
    assert found.equals(expected)
    assert not list((lake / "loads").rglob("_temporary"))


@pytest.mark.parametrize("version", VERSIONS)
def test_on_spark_connect(version: str, lake: Path, tmp_path: Path) -> None:
    python = python_with(version)
    with connect_server(tmp_path, python) as server:
        _run(python, PROGRAM, lake, tmp_path / "out", server)
    _assert_same(tmp_path / "out", lake / "expected")


# The first gives settings back, the last works in a copy.
@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
def test_in_a_session_of_somebody_else_on_spark_connect(version: str, lake: Path, tmp_path: Path) -> None:
    python = python_with(version)
    with connect_server(tmp_path, python) as server:
        _run(python, PROGRAM, lake, tmp_path / "out", EXISTING, SPARK_REMOTE=server)
    _assert_same(tmp_path / "out", lake / "expected")


def _run(program: Path, arguments: Sequence[str], lake: Path, out: Path, *master: str, **more: str) -> None:
    held: Mapping[str, str] = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    done = subprocess.run(
        [str(program), *arguments, str(lake), str(out), *master],
        env={**held, **QUICK_JAVA_EVERYWHERE, **more},
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]


def _assert_same(found: Path, expected: Path) -> None:
    names = sorted(path.name for path in expected.glob("*.txt"))
    assert sorted(path.name for path in found.glob("*.txt")) == names
    for name in names:
        assert (found / name).read_text().splitlines() == (expected / name).read_text().splitlines(), name
