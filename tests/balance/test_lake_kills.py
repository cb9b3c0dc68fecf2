"""Runs that bring a lake up to date and are killed, Java with them, at points all over; each next run puts it right."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from balance.lakes import bring, contents, late, write_day, write_file
from helpers.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POINTS = 20


@pytest.mark.deep
def test_a_lake_is_readable_wherever_its_run_was_killed_and_ends_where_an_undisturbed_one_ends(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Half of the runs make a new lake; the others bring late samples into it."""
    folder = tmp_path / "in"
    write_day(folder, 0)
    bring(spark, tmp_path / "first", folder)
    write_day(folder, 1)
    write_file(folder, "late.parquet", late(0))
    bring(spark, tmp_path / "whole", folder)
    expected = contents(tmp_path / "whole")
    for name in ("new", "first"):
        most = _brought(tmp_path / name if name == "new" else _copied(tmp_path / name), folder, None)
        for point in range(POINTS // 2):
            place = tmp_path / f"{name} {point}"
            if name == "first":
                _copied(tmp_path / name, place)
            after = 1 + most * point * 2 // POINTS
            _brought(place, folder, after)
            _assert_readable(place)
            bring(spark, place, folder)
            assert contents(place) == expected, (name, point, after)


def _copied(place: Path, to: Path | None = None) -> Path:
    new = to or place.with_name(f"{place.name} undisturbed")
    subprocess.run(["cp", "-a", place, new], check=True)
    return new


def _brought(place: Path, folder: Path, most: int | None) -> int:
    """Run the verb until so many files and folders have been seen in the lake; return how many there were."""
    command = (sys.executable, "-m", "reconciler", "loads", "--samples", str(folder), "--lake", str(place))
    run = subprocess.Popen(
        (*command, "--master", "local[2]"), start_new_session=True, stderr=subprocess.PIPE, text=True
    )
    seen: set[str] = set()

    def is_there() -> bool:
        seen.update(_below(str(place)))
        return run.poll() is not None or (most is not None and len(seen) >= most)

    wait_for(is_there, "the run's end, or its files", pause=0.001)
    if run.poll() is None:
        os.killpg(run.pid, signal.SIGKILL)
    _, told = run.communicate()
    assert run.returncode in {0, -signal.SIGKILL}, told
    return len(seen)


def _below(place: str) -> list[str]:
    return [f"{folder}/{name}" for folder, *held in os.walk(place) for names in held for name in names]


def _assert_readable(place: Path) -> None:
    from pyarrow import parquet

    for table in ("bronze", "silver", "gold/loads", "gold/report"):
        for path in (place / table).rglob("*.parquet"):
            if not any(part[0] in "._" for part in path.relative_to(place).parts):
                parquet.ParquetFile(path).read()
