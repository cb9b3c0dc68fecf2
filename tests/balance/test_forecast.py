"""Days until a disk is full: by hand, where growth goes on, and where retention, deletion or nothing ends it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from balance.clusters import assigned, balanced
from balance.oracle import Sample
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
MIB, GIB = 1 << 20, 1 << 30
DAILY_GROWTH = 24.0 * MIB


@pytest.mark.parametrize(
    ("free", "days"),
    [
        (1000, 10.0),
        (1050, 10.5),
        (2500, 25.0),
        (36500, 365.0),
        (10, 0.1),
        (0, 0.0),
        (-5, 0.0),
        (10**9, None),
        (None, None),
    ],
)
def test_a_straight_line_is_full_after_what_is_free_over_the_growth(free: int | None, days: float | None) -> None:
    from reconciler.balance.spark.forecast import AHEAD_DAYS, days_until_full

    assert days_until_full([100 * day for day in AHEAD_DAYS], free) == days


@dataclass(frozen=True)
class One:
    """A partition that has a disk to itself, what it grows by a day, and the days until that disk is full."""

    configs: Mapping[str, str]
    size: int
    growth: float | None
    free: int
    days: float | None


DAILY = {"retention.ms": str(10 * DAY_MS), "segment.ms": str(2 * DAY_MS), "segment.bytes": str(GIB)}
ALONE = {
    "unbounded": One({"retention.ms": "-1", "retention.bytes": "-1"}, 72 * MIB, DAILY_GROWTH, 72 * MIB, 3.0),
    # Ten days of 24 MiB, and half of the two days that a segment takes: 264 MiB, of which it has 144.
    "room": One(DAILY, 144 * MIB, DAILY_GROWTH, 119 * MIB, 5.0),
    "bounded": One(DAILY, 144 * MIB, DAILY_GROWTH, 121 * MIB, None),
    "over": One(DAILY, 300 * MIB, DAILY_GROWTH, MIB, None),
    "bytes": One(
        {"retention.ms": "-1", "retention.bytes": str(700 * MIB), "segment.bytes": str(20 * MIB)},
        700 * MIB, DAILY_GROWTH, 11 * MIB, None,
    ),
    "local": One(
        {"remote.storage.enable": "true", "local.retention.ms": str(DAY_MS), "segment.bytes": str(2 * MIB)},
        20 * MIB, DAILY_GROWTH, 6 * MIB, None,
    ),
    "compact": One({"cleanup.policy": "compact"}, 60 * MIB, DAILY_GROWTH, 48 * MIB, 2.0),
    "shrinks": One({"retention.ms": "-1"}, 60 * MIB, -DAILY_GROWTH, MIB, None),
    "still": One({"retention.ms": "-1"}, GIB, 0.0, MIB, None),
    "unknown": One({"retention.ms": "-1"}, GIB, None, MIB, None),
    "later": One({"retention.ms": "-1"}, GIB, DAILY_GROWTH, 2400 * MIB, 100.0),
    "ten-years": One({"retention.ms": "-1"}, GIB, DAILY_GROWTH / 24, 4000 * MIB, None),
}  # fmt: skip


def _alone() -> Cluster:
    """Return a cluster of one broker that has a disk for each."""
    dirs = tuple(LogDir(f"/{name}", one.size + one.free, one.free) for name, one in ALONE.items())
    topics = {
        name: Topic(
            name, (Partition(0, 1, (1,), (1,), sizes=(one.size,), log_dirs=(f"/{name}",)),), configs=one.configs
        )
        for name, one in ALONE.items()
    }
    return Cluster("id", brokers={1: Broker(1, rack="a", log_dirs=dirs)}, topics=topics)


@pytest.fixture(scope="module")
def rows(spark: "SparkSession") -> list["Row"]:
    """Return the figures of that cluster by loads."""
    from reconciler.balance.spark.balance_job import balance_of_loads
    from reconciler.balance.spark.schemas import LOADS

    loads = [
        {"cluster": "one", "topic": name, "partition": 0, "size_bytes": one.size, "growth_bytes_per_day": one.growth}
        for name, one in ALONE.items()
    ]
    tables = assigned(spark, {"one": _alone()}, has_retention=True)
    with balance_of_loads(tables, spark.createDataFrame(loads, LOADS)) as balance:
        return balance.figures.collect()


@pytest.mark.parametrize("name", ALONE)
def test_a_disk_fills_by_the_growth_of_its_partitions_until_retention_ends_it(rows: list["Row"], name: str) -> None:
    (row,) = (row for row in rows if (row.level, row.log_dir) == ("logDir", f"/{name}"))
    assert row.days_until_full == ALONE[name].days


def test_a_broker_a_rack_and_the_cluster_are_full_when_their_first_disk_is(rows: list["Row"]) -> None:
    days = {row.level: row.days_until_full for row in rows if row.level in {"broker", "rack", "cluster"}}
    assert days == dict.fromkeys(("broker", "rack", "cluster"), 2.0)


# Three neighbouring minutes; and a line of fifteen days, of which an earlier version told an interval.
@pytest.mark.parametrize("buckets", [range(3), pytest.param(range(0, 15 * 1440 + 1, 180), marks=pytest.mark.deep)])
def test_a_disk_that_is_soon_full_by_the_growth_of_samples_is_held_against_retention(
    spark: "SparkSession", buckets: range
) -> None:
    """Two partitions grow alike, on two brokers; one keeps its records for an hour."""
    made = small_cluster("kept-0: 1 size 1600", "swept-0: 2 size 1600", brokers=(1, 2))
    bounds = {"kept": {"retention.ms": "-1"}, "swept": {"retention.ms": str(HOUR_MS), "segment.bytes": str(MIB)}}
    topics = {
        name: replace(topic, configs=bounds[name], partitions=(replace(topic.partitions[0], log_dirs=("/d1",)),))
        for name, topic in made.topics.items()
    }
    brokers = {
        one: replace(broker, log_dirs=(LogDir("/d1", 10**9, 8_640_000),)) for one, broker in made.brokers.items()
    }
    samples = [Sample(name, 0, minute, 1.0, 1.0, 400 + 600 * minute) for name in bounds for minute in buckets]
    cluster = replace(made, topics=topics, brokers=brokers)
    with balanced(spark, {"one": samples}, {"one": cluster}, has_retention=True) as balance:
        rows = balance.figures.where("level != 'topic'").collect()
    days = {(row.level, row.broker, row.rack): row.days_until_full for row in rows}
    assert days["cluster", -1, ""] == days["logDir", 1, ""] == days["broker", 1, ""] == days["rack", -1, "a"] == 10.0
    assert days["logDir", 2, ""] is days["broker", 2, ""] is days["rack", -1, "b"] is None
