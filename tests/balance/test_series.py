"""Partitions whose samples need no neighbours are summed without them, and those that do are found and done again."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.samples.load_oracle import Row, expected_loads
from helpers.samples.sample_tables import START, write_by_age
from pyarrow import parquet

from reconciler.balance.loads_job import SampleTask, run_loads
from reconciler.files.sample_files import find_sample_files
from reconciler.render.as_load_report import load_report_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
MINUTE = 60
MINUTES = 30


def _series(partition: int) -> list[Row]:
    """Return a partition's samples with nothing wrong, from files written in the order of time."""
    return [
        Row(
            START + minute * MINUTE + 5,
            "one",
            "t",
            partition,
            (partition + 1) / 7 * ((minute * 7919) % 31),
            None if minute % 11 == 3 else minute / 3,
            minute % 5 / 9,
            1000 + partition * minute**2 if minute % 4 else None,
            50 * minute if minute % 6 else None,
            minute // 10,
        )
        for minute in range(MINUTES)
    ]


def _reset(rows: list[Row]) -> list[Row]:
    return [*rows[:10], replace(rows[10], end_offset=3), *rows[11:]]


def _late(rows: list[Row]) -> list[Row]:
    return [replace(rows[2], written=3), *rows[:2], *rows[3:]]


def _one_other(**wrong: object) -> Callable[[list[Row]], list[Row]]:
    return lambda rows: [*rows[:4], replace(rows[4], **wrong), *rows[5:]]  # type: ignore[arg-type]


BROKEN: Sequence[Callable[[list[Row]], list[Row]]] = (
    _reset,
    _late,
    lambda rows: [*rows, replace(rows[9], bytes_in=1e6)],
    lambda rows: [*rows, replace(rows[9], ts=(rows[9].ts or 0) + 1)],
    _one_other(bytes_in=None),
    _one_other(messages_in=None),
    _one_other(bytes_out=-1.0),
    _one_other(bytes_in=float("nan")),
    _one_other(ts=float(START + 10**9)),
    _one_other(ts=None),
)
CLEAN = 4


def _lake() -> list[Row]:
    rows = [row for partition in range(CLEAN) for row in _series(partition)]
    for number, broken in enumerate(BROKEN):
        rows += broken(_series(CLEAN + number))
    return [*rows, replace(rows[0], partition=None), replace(rows[0], cluster=None)]


def _partitions(samples: "DataFrame") -> "tuple[list[Any], list[Any]]":
    """Return the rows of partitions, alone and beside their neighbours, by partition."""
    from reconciler.balance.growth import with_growth
    from reconciler.balance.load import partitions_of
    from reconciler.balance.normalise import cleaned, normalised
    from reconciler.balance.series import alone

    by_itself = alone(cleaned(samples, now=NOW), MINUTE).orderBy("cluster", "partition").collect()
    in_order = with_growth(normalised(samples, bucket_seconds=MINUTE, now=NOW))
    return by_itself, partitions_of(in_order).orderBy("cluster", "partition").collect()


def test_a_partition_is_summed_alone_where_that_changes_nothing_and_nowhere_else(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from reconciler.balance.sources import read_samples

    files = find_sample_files([str(write_by_age(tmp_path / "in", _lake()))]).files
    alone, beside = _partitions(read_samples(spark, files))
    sound = {row.partition for row in alone if row.is_sound}
    assert sound == set(range(CLEAN))
    same = {row.partition: row.asDict() for row in beside if row.partition in sound and row.cluster is not None}
    for row in alone:
        if row.is_sound:
            found = row.asDict()
            del found["is_sound"]
            # To the last digit: what is summed alone is summed in the same order.
            assert found == same[row.partition]


def test_loads_of_sound_and_other_partitions_together_are_the_oracles(spark: "SparkSession", tmp_path: Path) -> None:
    rows = _lake()
    expected = expected_loads(rows, MINUTE, NOW.timestamp())
    files = find_sample_files([str(write_by_age(tmp_path / "in", rows))]).files
    report = run_loads(spark, SampleTask(files, MINUTE, NOW), tmp_path / "out", load_report_json)
    found = {
        (row["cluster"], row["topic"], row["partition"]): row
        for row in parquet.read_table(tmp_path / "out").to_pylist()
    }
    assert found.keys() == expected.loads.keys()
    for key, wanted in expected.loads.items():
        for name, value in wanted.items():
            tolerance = 1e-6 if name == "growth_bytes_per_day" else 1e-9
            assert found[key][name] == (value if value is None else pytest.approx(value, rel=tolerance)), (key, name)
    for cluster in report.clusters:
        counted = {rule.value: count for rule, count in cluster.defects.items() if count}
        assert counted == {rule: count for rule, count in expected.defects[cluster.cluster].items() if count}
