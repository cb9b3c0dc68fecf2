from pathlib import Path
from typing import TYPE_CHECKING

from balance.lakes import bring, contents, samples_of_day, write_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_smoke(spark: "SparkSession", tmp_path: Path) -> None:
    for day in range(3):
        write_day(tmp_path / "in", day, samples_of_day(day))
        ledger, report = bring(spark, tmp_path / "daily", tmp_path / "in")
        print(report)
    _, report = bring(spark, tmp_path / "whole", tmp_path / "in")
    print(report)
    import subprocess

    print(subprocess.run(["find", str(tmp_path)], capture_output=True, text=True).stdout)
    assert contents(tmp_path / "daily") == contents(tmp_path / "whole")
