"""Samples of several days, written as files of their days, and lakes that are made of them."""

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import START, write_parquet

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.lake_report import LakeReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.balance.files.ledger import Ledger

NOW = datetime(2027, 1, 1, tzinfo=UTC)
DAY = 86_400
STEP = 1800


def samples_of_day(day: int, *, seed: int = 0, partitions: int = 3, clusters: Sequence[str] = ("east", "w/e st%")) -> list[Row]:
    """Return what is measured each half hour of that day, in buckets of a minute, without a hole."""
    rows = []
    for cluster in clusters:
        for partition in range(partitions):
            random = Random(f"{seed}/{day}/{cluster}/{partition}")
            for number in range(DAY // STEP):
                ts = START + day * DAY + number * STEP
                seconds = ts - START
                row = Row(ts, cluster, "t.o", partition, random.lognormvariate(8, 1), random.lognormvariate(7, 1))
                row.messages_in = random.lognormvariate(3, 1)
                row.size_bytes = 1000 + seconds * (partition + 1) + random.randrange(50)
                row.end_offset = seconds * (partition + 2)
                rows.append(row)
    return rows


def without_rates(rows: Iterable[Row]) -> list[Row]:
    """Return the same as `collect` writes them: sizes and end offsets."""
    return [
        Row(row.ts, row.cluster, row.topic, row.partition, size_bytes=row.size_bytes, end_offset=row.end_offset)
        for row in rows
    ]


def write_file(folder: Path, name: str, rows: Sequence[Row], *, written: int) -> Path:
    """Write these samples into a file that was last modified so many seconds after the start."""
    path = write_parquet(folder / name, rows)
    os.utime(path, (START + written, START + written))
    return path


def write_day(folder: Path, day: int, rows: Sequence[Row]) -> Path:
    """Write a day's samples into a file that was written when the day was over."""
    return write_file(folder, f"day-{day:02d}.parquet", rows, written=(day + 1) * DAY)


def bring(
    spark: "SparkSession", place: Path, *samples: Path, cluster: str | None = None, bucket_seconds: int | None = None
) -> "tuple[Ledger, LakeReport]":
    """Bring the lake up to date with these files and folders, or with nothing new."""
    from reconciler.balance.spark.lake import LakeTask, update

    find: Callable[..., object] | None = partial(_find, samples) if samples else None
    return update(spark, LakeTask(str(place), NOW, bucket_seconds, cluster, find))  # type: ignore[arg-type]


def _find(samples: Iterable[Path], is_taken: Callable[[Path], bool]) -> object:
    return find_sample_files(map(str, samples), is_taken=is_taken)


def contents(place: Path, *tables: str) -> dict[str, list[bytes]]:
    """Return the bytes of the Parquet files in each folder of these tables, whatever their names."""
    found: dict[str, list[bytes]] = {}
    for table in tables or ("silver", "gold"):
        for path in sorted((place / table).rglob("*.parquet")):
            folder = str(path.parent.relative_to(place))
            assert not any(part[0] in "._" for part in Path(folder).parts), path
            found.setdefault(folder, []).append(path.read_bytes())
    return found


def files_of(place: Path) -> dict[str, int]:
    """Return every Parquet file of silver and gold, with the time of its last change."""
    return {
        str(path.relative_to(place)): path.stat().st_mtime_ns
        for table in ("silver", "gold")
        for path in (place / table).rglob("*.parquet")
    }
