"""Writes days of samples, and brings them into lakes: `python lake_days.py LAKE FILE...` is one update.

Each day has a sample a minute of each partition. An update is a process of its own, as it is for who runs one a day: it
starts Java, plans and compiles, whatever a day holds.
"""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from benchmarks.tree_cost import tree_cost
from pyarrow import parquet

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.spark.lake import LakeTask, update
from reconciler.balance.spark.session import spark_session
from reconciler.balance.spark.settings import SparkChoice

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


def update_cost(place: Path, samples: Sequence[Path]) -> float:
    """Bring the lake up to date with these files; return the CPU seconds of all processes, from start to end."""
    command = [sys.executable, str(Path(__file__)), str(place), *map(str, samples)]
    return tree_cost(command, place.with_suffix(".out"), cwd=place.parent).cpu_seconds


def main() -> None:
    """Bring a lake up to date."""
    place, *samples = sys.argv[1:]
    find = partial(find_sample_files, samples)
    with spark_session(SparkChoice("local[2]", "3g")) as spark:
        update(spark, LakeTask(place, NOW, find=lambda is_taken: find(is_taken=is_taken)))


if __name__ == "__main__":
    main()
