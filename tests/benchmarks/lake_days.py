"""Brings days into lakes within one Spark session, and prints as JSON what each run cost: CPU seconds of all processes.

    python lake_days.py FOLDER DAYS PARTITIONS [MASTER]

Each day has a sample a minute of each partition. One lake takes all days but the last, then the last one; another one
takes all days at once. A small lake is made first, so that the compiler is warm for both.
"""

import json
import os
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.spark.lake import LakeTask, update
from reconciler.balance.spark.session import spark_session
from reconciler.balance.spark.settings import SparkChoice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
NOW = datetime(2027, 1, 1, tzinfo=UTC)
DAY, MINUTES = 86_400, 1440


def write_day(folder: Path, day: int, partitions: int) -> Path:
    """Write a day's samples, in the order of time, into one file that was written when the day was over."""
    drawn = np.random.default_rng(day)
    count = partitions * MINUTES
    seconds = START + day * DAY + np.repeat(np.arange(MINUTES, dtype=np.int64) * 60, partitions)
    rates = {name: np.round(drawn.lognormal(9, 1, count), 3) for name in ("bytes_in", "bytes_out", "messages_in")}
    numbers = np.tile(np.arange(partitions, dtype=np.int32), MINUTES)
    table = {
        "ts": pa.array(seconds * 10**6, pa.timestamp("us", "UTC")),
        "cluster": pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), ["prod"]).cast(pa.string()),
        "topic": pa.DictionaryArray.from_arrays(numbers // 100, [f"topic-{each}" for each in range(partitions)]).cast(
            pa.string()
        ),
        "partition": numbers % 100,
        **rates,
        "size_bytes": (seconds - START) * 1000 + numbers,
        "end_offset": (seconds - START) * 10,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{day:03}.parquet"
    parquet.write_table(pa.table(table), path, compression="zstd")
    written = START + (day + 1) * DAY
    os.utime(path, (written, written))
    return path


def cost_of(spark: "SparkSession", place: Path, samples: list[Path]) -> float:
    """Bring the lake up to date with these files; return the CPU seconds that Java and this process spent on it."""
    before = _cpu(spark)
    find = partial(find_sample_files, [*map(str, samples)])
    update(spark, LakeTask(str(place), NOW, find=lambda is_taken: find(is_taken=is_taken)))
    return _cpu(spark) - before


def _cpu(spark: "SparkSession") -> float:
    java = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr] # the Java that this process started
    spent = 0
    for process in (os.getpid(), java):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        spent += int(fields[11]) + int(fields[12])
    return spent / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run all of it."""
    folder, days, partitions = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    master = sys.argv[4] if len(sys.argv) > 4 else "local[2]"
    files = [write_day(folder / "samples", day, partitions) for day in range(days)]
    small = [write_day(folder / "small", day, 10) for day in range(6)]
    with spark_session(SparkChoice(master, "3g")) as spark:
        for count in range(1, len(small) + 1):
            cost_of(spark, folder / "warm", small[:count])
        told = {
            "all but the last": cost_of(spark, folder / "daily", files[:-1]),
            "the last": cost_of(spark, folder / "daily", files),
            "all": cost_of(spark, folder / "whole", files),
            "nothing new": cost_of(spark, folder / "whole", files),
        }
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
