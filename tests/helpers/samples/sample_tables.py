"""Samples written as files by pyarrow and by hand, so that Spark reads what another tool wrote."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from helpers.samples.load_oracle import MEASURES, RATES, Row

START = int(datetime(2026, 3, 29, 0, 0, tzinfo=UTC).timestamp())
# Names of all that shells, URIs, Hadoop and Hive's partitions read something into, and of what patterns are made of.
STRANGE = "a b%20é#=:;,&'"
PATTERN = STRANGE + "?[x]{y,z}*\\"
COLUMNS = ("ts", "cluster", "topic", "partition", *MEASURES)


def write_parquet(path: Path, rows: Sequence[Row]) -> Path:
    """Write these samples, with the times in microseconds."""
    import pyarrow as pa
    from pyarrow import parquet

    types = {
        "ts": pa.timestamp("us", tz="UTC"),
        "cluster": pa.string(),
        "topic": pa.string(),
        "partition": pa.int32(),
        **{rate: pa.float64() for rate in RATES},
        "size_bytes": pa.int64(),
        "end_offset": pa.int64(),
    }
    values = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    values["ts"] = [None if ts is None else round(ts * 1_000_000) for ts in values["ts"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table({name: pa.array(values[name], types[name]) for name in COLUMNS}), path)
    return path


def write_by_age(folder: Path, rows: Sequence[Row], *, prefix: str = "part") -> Path:
    """Write a file for each `written`, last modified that many seconds after the start."""
    for written in sorted({row.written for row in rows}):
        path = write_parquet(folder / f"{prefix}-{written}.parquet", [row for row in rows if row.written == written])
        os.utime(path, (START + written, START + written))
    return folder


def drawn_rows(seed: int, *, partitions: int = 6, minutes: int = 40) -> list[Row]:
    """Return samples of two clusters in which everything that can be wrong is wrong somewhere."""
    random = Random(seed)
    rows = []
    for cluster in ("east", "west"):
        for partition in range(partitions):
            if partition == 2 and cluster == "west":
                continue
            offset, size = random.randrange(1000), random.randrange(10_000)
            for minute in range(minutes):
                if random.random() < 0.1:
                    continue
                offset, size = _next(random, offset, size)
                rows.append(
                    _drawn(
                        random,
                        Row(START + minute * 60 + random.choice((0, 7, 31.5)), cluster, "t.o", partition),
                        offset,
                        size,
                    )
                )
    _let_some_lag(Random(-1 - seed), rows)
    rows += [random.choice(rows) for _ in range(10)]
    seldom = {partitions: (5, 21), partitions + 1: (3, 9, 17, 25, 33)}
    rows += [
        Row(START + minute * 60, "west", "t.o", partition, 8.0, 3.0, 1.0)
        for partition, seen in seldom.items()
        for minute in seen
    ]
    rows.append(Row(None, "east", "t.o", 1, 5.0))
    rows.append(Row(START, None, "t.o", 1, 5.0))
    rows.append(Row(START, "east", "t.o", -1, 5.0))
    rows.append(Row(START + 10 * 365 * 86400, "west", "t.o", 0, 5.0))
    return rows


def _let_some_lag(random: Random, rows: Sequence[Row]) -> None:
    """Let the end offset now and then be that of a replica that lags, a little or by far."""
    for row in rows:
        if row.end_offset is not None and random.random() < 0.1:
            row.end_offset -= random.choice((min(3, row.end_offset), row.end_offset // 3, row.end_offset))


def _next(random: Random, offset: int, size: int) -> tuple[int, int]:
    if random.random() < 0.04:
        return random.randrange(50), random.randrange(5000)
    added = random.choice((0, 0, random.randrange(500)))
    fallen = random.randrange(size + 1) if random.random() < 0.1 else 0
    return offset + added, size - fallen + added * random.randrange(90, 110)


def _drawn(random: Random, row: Row, offset: int, size: int) -> Row:
    """Fill in the measures: some unknown, some impossible."""
    if random.random() < 0.7:
        row.bytes_in = random.choice((random.lognormvariate(8, 2), random.lognormvariate(8, 2), -3.0, float("nan")))
    if random.random() < 0.7:
        row.bytes_out = random.choice((random.lognormvariate(8, 2), 0.0, float("inf"), 1e13))
    if random.random() < 0.5:
        row.messages_in = random.lognormvariate(3, 1)
    row.end_offset = None if random.random() < 0.15 else offset
    row.size_bytes = random.choice((size, size, size, None, -1))
    row.written = random.choice((100, 100, 100, 200, 300))
    return row
