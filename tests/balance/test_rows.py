"""Samples that need no neighbours are summed as they come; those that do are noticed, and everything is counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from balance.clusters import assigned
from helpers.clusters.small_cluster import small_cluster
from helpers.samples.load_oracle import Row, expected_loads
from helpers.samples.sample_tables import START, drawn_rows, write_by_age

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import FILLED, Rule
from reconciler.balance.spark.balance_job import rows_of_buckets, rows_of_samples
from reconciler.balance.spark.loads_job import SampleTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reconciler.balance.spark.soundness import Told

NOW = datetime(2026, 4, 1, tzinfo=UTC)
MINUTE = 60
# More than 64 partitions: a topic is then carried in two parts.
PARTITIONS = 70
Summed = dict[tuple[int, int], tuple[int, ...]]


class Lake:
    """Clusters of 70 partitions on three brokers, and what the sums of their samples come to."""

    def __init__(self, spark: "SparkSession", folder: Path, *clusters: str) -> None:
        from reconciler.balance.spark.buckets import carried
        from reconciler.balance.spark.replica_load import known_carriers

        self._spark, self._folder, self._count = spark, folder, 0
        held = small_cluster(*(f"t-{number}: {1 + number % 3},{1 + (number + 1) % 3}" for number in range(PARTITIONS)))
        self._tables = assigned(spark, dict.fromkeys(clusters, held))
        self._carriers = carried(self._tables.partitions).persist()
        self._known = known_carriers(self._tables.carriers).persist()

    def alone(self, rows: Sequence[Row]) -> "tuple[Told, Summed]":
        """Return what is told where each sample is a row of its own."""
        found = rows_of_samples(self._spark, self._task(rows))
        assert found is not None
        return self._summed(found)

    def beside(self, rows: Sequence[Row]) -> "tuple[Told, Summed]":
        """Return what is told where samples are sorted first."""
        return self._summed(rows_of_buckets(self._spark, self._task(rows)))

    def _task(self, rows: Sequence[Row]) -> SampleTask:
        self._count += 1
        folder = write_by_age(self._folder / str(self._count), rows)
        return SampleTask(find_sample_files([str(folder)]).files, MINUTE, NOW)

    def _summed(self, rows: "DataFrame") -> "tuple[Told, Summed]":
        from reconciler.balance.spark.buckets import bucketed, sums, with_growth
        from reconciler.balance.spark.soundness import told

        summed = sums(rows, self._carriers).persist()
        names = ("bytes_in", "bytes_out", "seen_in", "seen_out")
        whole = told(summed, self._tables.carriers, self._tables.partition_counts, MINUTE)
        each = bucketed(with_growth(summed, rows, self._carriers, whole.with_slopes), self._known).collect()
        found = {
            (row.key, row.bucket): tuple(row[name] or 0 for name in names) for row in each if row.bucket is not None
        }
        # What is grown is told once, in some bucket or in none.
        found |= {
            (key, -1): (sum(row.growth or 0 for row in each if row.key == key),) for key in {row.key for row in each}
        }
        summed.unpersist()
        return whole, found


@pytest.fixture(scope="module")
def lake(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("lake"), "one")


def _whole(minutes: int = 4) -> list[Row]:
    """Return a sample for each partition and minute but one, from files written in the order of time."""
    return [
        Row(
            START + minute * MINUTE + 5,
            "one",
            "t",
            number,
            10.0 * number + minute,
            3.5,
            1.0,
            100 + minute * (number + 1),
            minute,
            minute,
        )
        for minute in range(minutes)
        for number in range(PARTITIONS)
        if (minute, number) != (2, 66)
    ]


def _broken(rows: Sequence[Row]) -> list[Row]:
    """Return the samples with everything wrong that shows in a sample by itself."""
    wrong = [
        replace(rows[0], bytes_out=-1.0),
        replace(rows[1], bytes_out=float("nan"), size_bytes=-5),
        replace(rows[2], messages_in=-1.0),
    ]
    strays = [
        replace(rows[3], topic="gone"),
        replace(rows[3], topic="gone", partition=1, bytes_out=-1.0),
        replace(rows[4], partition=None),
        replace(rows[5], ts=float(START + 10**9)),
    ]
    return [*wrong, *rows[3:], *strays]


def test_what_is_wrong_with_a_sample_by_itself_is_counted_without_sorting(lake: Lake) -> None:
    rows = _broken(_whole())
    alone, summed = lake.alone(rows)
    sorted_first, same = lake.beside(rows)
    assert alone.is_sound
    assert alone.with_holes == ("one",)
    assert {rule: count for rule, count in alone.defects.items() if count} == {
        Rule.NEGATIVE: 3,
        Rule.NOT_A_NUMBER: 1,
        Rule.UNKNOWN_PARTITION: 2,
        Rule.INCOMPLETE: 1,
        Rule.FUTURE: 1,
        Rule.GAP: 1,
    }
    assert alone.defects == sorted_first.defects
    sizes = [row["unsized"] for row in alone.spans]
    assert sizes == [1]
    assert [{**row.asDict(), "unsized": 0} for row in alone.spans] == [
        {**row.asDict(), "unsized": 0} for row in sorted_first.spans
    ]
    assert summed == same
    assert len({bucket for _, bucket in summed}) == 4 + 1
    # Each minute a partition grows by a byte more than the one before it, on two brokers each.
    assert max(grown for (_, bucket), (grown, *_) in summed.items() if bucket == -1) == 2 * 1440 * sum(
        range(1, PARTITIONS + 1)
    )


def _twice(rows: list[Row]) -> list[Row]:
    return [*rows, replace(rows[9], bytes_in=1e6)]


def _two_in_a_bucket(rows: list[Row]) -> list[Row]:
    return [*rows, replace(rows[9], ts=(rows[9].ts or 0) + 1)]


def _late(rows: list[Row]) -> list[Row]:
    return [replace(rows[9], written=9), *rows[:9], *rows[10:]]


def _without_a_rate(rows: list[Row]) -> list[Row]:
    return [*rows[:PARTITIONS], replace(rows[PARTITIONS], bytes_in=None), *rows[PARTITIONS + 1 :]]


# What each does to samples that are sound, and the rule that is counted for it.
BROKEN: Mapping[str, tuple[Callable[[list[Row]], list[Row]], Rule | None]] = {
    "twice": (_twice, Rule.DUPLICATE),
    "two in a bucket": (_two_in_a_bucket, None),
    "late": (_late, Rule.LATE),
    "without a rate": (_without_a_rate, Rule.ESTIMATED),
    "whole": (list, None),
}


def test_samples_that_want_their_neighbours_are_noticed(spark: "SparkSession", tmp_path: Path) -> None:
    lake = Lake(spark, tmp_path, *BROKEN)
    rows = [replace(row, cluster=name) for name, (broken, _) in BROKEN.items() for row in broken(_whole())]
    alone = lake.alone(rows)[0]
    assert {row.cluster: row.is_unsound for row in alone.spans} == {name: name != "whole" for name in BROKEN}
    assert not alone.is_sound
    counted = {each: count for each, count in lake.beside(rows)[0].defects.items() if count}
    assert counted == {Rule.GAP: len(BROKEN), **{rule: 1 for _, rule in BROKEN.values() if rule}}


def test_growth_follows_from_sums_only_where_each_partition_has_a_size_in_every_bucket(
    spark: "SparkSession", tmp_path: Path
) -> None:
    whole = [*_whole(2), *(row for row in _whole(4) if (row.ts or 0) >= START + 3 * MINUTE)]
    of_clusters = {
        "holed": _whole(),
        "unsized": [replace(whole[0], size_bytes=None), *whole[1:]],
        "huge": [replace(whole[0], size_bytes=2 * 10**15), *whole[1:]],
        "whole": whole,
    }
    lake = Lake(spark, tmp_path, *of_clusters)
    rows = [replace(row, cluster=name) for name, each in of_clusters.items() for row in each]
    alone, summed = lake.alone(rows)
    assert alone.with_slopes == ("holed", "huge", "unsized")
    assert lake.beside(rows)[0].with_slopes == tuple(sorted(of_clusters))
    # What is told partition by partition is what grows in three clusters of four.
    growing = {key for (key, bucket), (grown, *_) in summed.items() if bucket == -1 and grown}
    assert 4 * len(growing) == 3 * len({key for key, _ in summed})


def test_counts_after_sorting_are_the_oracles(lake: Lake) -> None:
    drawn = [replace(row, messages_in=None, end_offset=None) for row in drawn_rows(5) if row.cluster in {"east", None}]
    rows = [replace(row, cluster="one", topic="t") for row in drawn if row.cluster is not None]
    expected = expected_loads(rows, MINUTE, NOW.timestamp()).defects["one"]
    found = lake.beside(rows)[0].defects
    assert found.keys() == set(Rule)
    for rule in set(Rule) - {Rule.MISSING_PARTITION, Rule.ESTIMATED, *FILLED}:
        assert found[rule] == expected.get(rule.value, 0), rule
    assert found[Rule.DUPLICATE] > 3
    assert found[Rule.LATE] > 3
    assert found[Rule.MISSING_PARTITION] == PARTITIONS - len(
        {row.partition for row in rows if row.partition not in {None, -1}}
    )
