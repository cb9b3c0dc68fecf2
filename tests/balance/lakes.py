"""Samples of several days, written as files, and lakes that are made of them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from helpers.samples.load_oracle import Row
from helpers.samples.sample_tables import START, write_parquet

from reconciler.balance.files.sample_files import Found, find_sample_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reconciler.balance.files.ledger import Ledger
    from reconciler.balance.model.lake_report import LakeReport

NOW = datetime(2027, 1, 1, tzinfo=UTC)
DAY, STEP = 86_400, 3600
# One whose rates are measured, without a hole; one as `collect` writes it, in which all is wrong that can be.
MEASURED, GROWN = "east", "w/e st%"


def day_of(day: int) -> list[Row]:
    """Return the samples of both clusters of that day."""
    return [*measured(day), *grown(day)]


def measured(day: int, *, partitions: int = 2) -> list[Row]:
    """Return one sample an hour of each partition, with all rates."""
    return [
        _sample(Random(f"{day}/{number}/{each}"), day, number, each)
        for each in range(partitions)
        for number in range(DAY // STEP)
    ]


def _sample(random: Random, day: int, number: int, partition: int) -> Row:
    seconds = day * DAY + number * STEP
    size, offset = seconds * (partition + 1) + random.randrange(50), seconds * (partition + 2)
    rates = (random.lognormvariate(8, 1), random.lognormvariate(7, 1), random.lognormvariate(3, 1))
    return Row(START + seconds, MEASURED, "t.o", partition, *rates, size, offset, (day + 1) * DAY)


def grown(day: int) -> list[Row]:
    """Return sizes and end offsets alone; some twice, some broken, some of no partition, one of no time."""
    random = Random(f"grown {day}")
    rows = [replace(row, cluster=GROWN, bytes_in=None, bytes_out=None, messages_in=None) for row in measured(day)]
    for row in random.sample(rows, 6):
        row.end_offset = random.choice((None, 3, -1))
    twice = [replace(row, size_bytes=17) for row in random.sample(rows, 3)]
    first = rows[0]
    assert first.ts is not None
    strange = replace(first, ts=first.ts + 5, topic=None), replace(first, ts=first.ts + 9, bytes_in=float("nan"))
    return [*rows, *twice, *strange, replace(first, ts=None), replace(first, cluster=None)]


def late(day: int) -> list[Row]:
    """Return samples of the middle of that day, of a partition of its own, that are written days later."""
    rows = (row for row in measured(day) if row.partition == 1)
    return [replace(row, partition=2, written=9 * DAY) for row in rows if row.ts and 8 <= row.ts % DAY / 3600 < 12]


def write_file(folder: Path, name: str, rows: Sequence[Row]) -> Path:
    """Write these samples into a file that was last modified when they say that it was written."""
    path = write_parquet(folder / name, rows)
    os.utime(path, (START + rows[0].written, START + rows[0].written))
    return path


def write_day(folder: Path, day: int) -> Path:
    """Write a day's samples into a file that was written when the day was over."""
    return write_file(folder, f"day {day}.parquet", day_of(day))


def bring(
    spark: "SparkSession", place: Path, *samples: Path, cluster: str | None = None, bucket_seconds: int | None = None
) -> "tuple[Ledger, LakeReport]":
    """Bring the lake up to date with these files and folders, or with nothing new."""
    from reconciler.balance.spark.lake import LakeTask, update

    find = partial(_find, samples) if samples else None
    return update(spark, LakeTask(str(place), NOW, bucket_seconds, cluster, find))


def _find(samples: Iterable[Path], is_taken: Callable[[Path], bool]) -> Found:
    return find_sample_files(map(str, samples), is_taken=is_taken)


def contents(place: Path) -> dict[str, list[bytes]]:
    """Return the bytes of the files in each folder of silver and gold, whatever the files' names; none is left over."""
    found: dict[str, list[bytes]] = {}
    for folder, path in files_by_folder(place):
        found.setdefault(folder, []).append(path.read_bytes())
    return found


def files_by_folder(place: Path) -> Iterator[tuple[str, Path]]:
    """Yield each file of silver and gold beside its folder; none is left over from a write that did not end."""
    for path in _parquet(place):
        folder = path.parent.relative_to(place)
        assert not any(part[0] in "._" for part in folder.parts), path
        yield str(folder), path


def times(place: Path) -> dict[str, int]:
    """Return every file of silver and gold, with the time of its last change."""
    return {str(path.relative_to(place)): path.stat().st_mtime_ns for path in _parquet(place)}


def _parquet(place: Path) -> Iterator[Path]:
    for table in ("silver", "gold"):
        yield from sorted((place / table).rglob("*.parquet"))
