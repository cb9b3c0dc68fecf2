import json
import math
import random
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from balance.broken_series import broken_series
from helpers.samples.load_oracle import RATES, Expected, Row, expected_loads
from helpers.samples.sample_tables import START, drawn_rows, write_by_age

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import LoadReport, Rule
from reconciler.balance.spark.loads_job import SampleTask, run_loads
from reconciler.render.as_json import document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
STATISTICS = ("avg", "p95", "max", "peak")
COLUMNS = [
    "cluster", "topic", "partition",
    *(f"{rate}_{statistic}" for rate in RATES for statistic in STATISTICS),
    "size_bytes", "growth_bytes_per_day", "coverage",
]  # fmt: skip


def _run(spark: "SparkSession", out: Path, *paths: Path, bucket: int = 60) -> LoadReport:
    files = find_sample_files(map(str, paths)).files
    return run_loads(spark, SampleTask(files, bucket, NOW), str(out), document)


def _rows(out: Path) -> list[dict[str, Any]]:
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(out).to_pylist()
    return rows


def _assert_equal(found: list[dict[str, Any]], expected: Expected) -> None:
    assert [(row["cluster"], row["topic"], row["partition"]) for row in found] == sorted(expected.loads)
    for row in found:
        wanted = expected.loads[row["cluster"], row["topic"], row["partition"]]
        for name, value in wanted.items():
            # Times have 16 digits, of which a slope's centre keeps few: a few of a slope's own are lost.
            near = {"rel_tol": 1e-6, "abs_tol": 1e-6} if name == "growth_bytes_per_day" else {"rel_tol": 1e-9}
            is_same = row[name] is value or math.isclose(row[name], value, **near)
            assert is_same, (row["cluster"], row["partition"], name, row[name], value)


@pytest.fixture(scope="module")
def lake() -> list[Row]:
    """Return samples of many clusters in which everything that can be wrong is wrong somewhere."""
    once = [Row(START, "one", "t", number, 1.5 * number, 2.0, 3.0, 10) for number in range(4)]
    many = [replace(row, cluster="many") for row in drawn_rows(4, partitions=3, minutes=20) if row.cluster == "east"]
    for sample in many:
        sample.end_offset = sample.size_bytes = None
        sample.bytes_in, sample.bytes_out = None if sample.ts is None else sample.ts % 1009, sample.messages_in
    scaled = [_scaled(sample, 8.0) for sample in many]
    return [*drawn_rows(1), *once, *many, *scaled, *broken_series()]


@pytest.fixture(scope="module")
def minutes(
    spark: "SparkSession", lake: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> tuple[LoadReport, Path]:
    """Return what is found of the lake, in buckets of a minute, and the folder that it is written to."""
    home = tmp_path_factory.mktemp("minutes")
    return _run(spark, home / "out", write_by_age(home / "in", lake, prefix="a")), home / "out"


def test_every_figure_and_every_count_equals_the_oracles(lake: list[Row], minutes: tuple[LoadReport, Path]) -> None:
    report, out = minutes
    _assert_is_the_oracles(report, out, expected_loads(lake, 60, NOW.timestamp()))
    assert json.loads((out / "_report.json").read_text()) == json.loads(document(report))


@pytest.mark.deep
def test_and_they_do_in_wider_buckets(spark: "SparkSession", tmp_path: Path) -> None:
    rows = drawn_rows(2)
    report = _run(spark, tmp_path / "out", write_by_age(tmp_path / "in", rows), bucket=90)
    _assert_is_the_oracles(report, tmp_path / "out", expected_loads(rows, 90, NOW.timestamp()))


def _assert_is_the_oracles(report: LoadReport, out: Path, expected: Expected) -> None:
    found = _rows(out)
    assert list(found[0]) == COLUMNS
    _assert_equal(found, expected)
    for cluster in report.clusters:
        counted = {rule.value: count for rule, count in cluster.defects.items() if count}
        assert counted == {rule: count for rule, count in expected.defects[cluster.cluster].items() if count}
    drawn = {rule.value for cluster in report.clusters for rule, count in cluster.defects.items() if count}
    assert drawn >= {rule.value for rule in Rule} - {"unreadable", "unknownPartition", "notSplit", "unusedSeries"}


def test_neither_the_order_of_rows_nor_of_files_shows_and_two_runs_are_equal_to_the_byte(
    spark: "SparkSession", tmp_path: Path, lake: list[Row], minutes: tuple[LoadReport, Path]
) -> None:
    mixed = random.Random(1).sample(lake, len(lake))
    _run(spark, tmp_path / "two", write_by_age(tmp_path / "b", mixed, prefix="z"))
    (first,), (second,) = (list(out.glob("*.parquet")) for out in (minutes[1], tmp_path / "two"))
    assert first.read_bytes() == second.read_bytes()
    assert (minutes[1] / "_report.json").read_bytes() == (tmp_path / "two" / "_report.json").read_bytes()


def test_one_bucket_is_average_percentile_maximum_and_peak_and_rates_scale(minutes: tuple[LoadReport, Path]) -> None:
    found = {(row["cluster"], row["partition"]): row for row in _rows(minutes[1])}
    once = {partition: row for (cluster, partition), row in found.items() if cluster == "one"}
    assert len(once) == 4
    for partition, row in once.items():
        assert all(len({row[f"{rate}_{statistic}"] for statistic in STATISTICS}) == 1 for rate in RATES)
        assert row["bytes_in_avg"] == 1.5 * partition
        assert row["growth_bytes_per_day"] is None
    names = [f"{rate}_{statistic}" for rate in RATES for statistic in STATISTICS]
    compared: list[tuple[str, Any, Any]] = [
        (name, found["scaled", partition][name], _times(row[name], 8.0))
        for (cluster, partition), row in found.items()
        if cluster == "many"
        for name in names
    ]
    assert len(compared) == 3 * len(names)
    assert sum(value is not None for _, _, value in compared) > len(names)
    for name, other, value in compared:
        # Estimates are whole thousandths, and averages have none.
        near = {"rel_tol": 1e-12, "abs_tol": 0.0 if name.endswith("_avg") else 0.1}
        assert other is value or math.isclose(other, value, **near), name


def _scaled(row: Row, factor: float) -> Row:
    return replace(
        row,
        cluster="scaled",
        bytes_in=_times(row.bytes_in, factor),
        bytes_out=_times(row.bytes_out, factor),
        messages_in=_times(row.messages_in, factor),
    )


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
