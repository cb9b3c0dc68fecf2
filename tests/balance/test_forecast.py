"""Forecasts of disks: by hand for one partition a disk, and back-tests on clusters that a simulator plays."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from balance.clusters import balanced
from balance.disk_traces import GIB, MIB, NOW, SEEN, Trace, cluster_of, drawn_trace, samples_of
from balance.oracle import Sample
from helpers.clusters.small_cluster import small_cluster
from pyarrow import parquet

from reconciler.model.cluster import Broker, Cluster, LogDir, Partition, Topic

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

Sizes = tuple[str, int, int, int]  # topic, partition, hour, size
EPOCH = 1_760_000_400 // 3600 * 3600
DAY, WEEK = 24, 168
HAND = "hand"
HOUR_MS = 3_600_000


def _foretold(
    spark: "SparkSession", folder: "Path", clusters: Mapping[str, Cluster], samples: Mapping[str, Iterable[Sizes]]
) -> list["Row"]:
    """Return the figures of these clusters, by one size of each partition and hour."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    from reconciler.balance.files.assignment_table import Side, broker_table, partition_table, place_table
    from reconciler.balance.files.retention_table import retention_table
    from reconciler.balance.spark.balance_job import assignments, balance_of_samples
    from reconciler.balance.spark.buckets import as_rows

    rows = [(name, *sample) for name, told in samples.items() for sample in told]
    columns = zip(
        *((name, topic, part, (EPOCH + 3600 * hour) * 10**6, size) for name, topic, part, hour, size in rows),
        strict=True,
    )
    names = ("cluster", "topic", "partition", "bucket", "size_bytes")
    kinds = (pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
    parquet.write_table(pa.table(dict(zip(names, arrays, strict=True))), folder / "sizes.parquet")
    sides = [Side(name, cluster) for name, cluster in clusters.items()]
    tables = partition_table(sides), place_table(sides), broker_table(sides, {})
    assigned = assignments(spark, *tables, has_plan=False, retention=retention_table(sides))
    unknown = F.lit(None).cast("double")
    sized = spark.read.parquet(str(folder / "sizes.parquet")).withColumns({"bytes_in": unknown, "bytes_out": unknown})
    with balance_of_samples(assigned, as_rows(sized, F.lit(col=True)), 3600) as balance:
        return balance.figures.collect()


@dataclass(frozen=True)
class One:
    """A partition that has a disk to itself."""

    configs: Mapping[str, str]
    sizes: Sequence[int]
    """Its size in each hour, the last one that of now."""
    free: int


def _line(hours: int, by: int = MIB, first: int = 0) -> list[int]:
    return [first + by * hour for hour in range(hours)]


def _saw(top: int, teeth: int, ends_at: int) -> list[int]:
    """Return a log that loses a segment of so many MiB whenever it is full, and ends so high above the least."""
    return [(top - teeth + (hour + ends_at - NOW) % teeth) * MIB for hour in range(SEEN)]


ALONE = {
    "line": One({"retention.ms": "-1"}, _line(SEEN), 240 * MIB),
    "outgrown": One(
        {"retention.ms": str(48 * HOUR_MS), "segment.ms": str(24 * HOUR_MS)}, _line(SEEN), 240 * MIB
    ),
    "saw": One({"retention.ms": str(200 * HOUR_MS), "segment.bytes": str(48 * MIB)}, _saw(248, 48, 47), 10 * MIB),
    "slow-saw": One({"retention.ms": str(200 * HOUR_MS)}, _saw(300, 100, 3), 100 * MIB),
    "new": One({"retention.ms": str(WEEK * HOUR_MS), "segment.bytes": str(10 * MIB)}, _line(73), 10 * GIB),
    "bytes": One(
        {"retention.ms": "-1", "retention.bytes": str(700 * MIB), "segment.bytes": str(20 * MIB)}, _line(SEEN), 50 * MIB
    ),
    "unbounded": One({"retention.ms": "-1", "retention.bytes": "-1"}, _line(73), 72 * MIB),
    "local": One(
        {"remote.storage.enable": "true", "local.retention.ms": str(WEEK * HOUR_MS), "segment.bytes": str(2 * MIB)},
        _line(WEEK + 1),
        10 * MIB,
    ),
    "compact": One({"cleanup.policy": "compact"}, _saw(300, 56, 20), 60 * MIB),
    "workdays": One(
        {"retention.ms": "-1"},
        [MIB * (120 * (hour // WEEK) + min(hour % WEEK, 120)) for hour in range(SEEN + 1)],
        60 * MIB,
    ),
    "hours-old": One({"retention.ms": "-1"}, _line(5), 10 * MIB),
    "still": One({"retention.ms": "-1"}, [GIB] * SEEN, MIB),
}  # fmt: skip


def _alone() -> Cluster:
    """Return a cluster of one broker that has a disk for each."""
    dirs = tuple(LogDir(f"/{name}", one.sizes[-1] + one.free, one.free) for name, one in ALONE.items())
    topics = {
        name: Topic(
            name,
            (Partition(0, 1, (1,), (1,), sizes=(one.sizes[-1],), log_dirs=(f"/{name}",)),),
            configs=one.configs,
        )
        for name, one in ALONE.items()
    }
    return Cluster("id", brokers={1: Broker(1, rack="a", log_dirs=dirs)}, topics=topics)


def _alone_sizes() -> Iterator[Sizes]:
    for name, one in ALONE.items():
        for back, size in enumerate(reversed(one.sizes)):
            yield name, 0, NOW - back, size


@dataclass(frozen=True)
class BackTest:
    """Forecasts, and what came of them: of each disk of each trace."""

    traces: Sequence[Trace]
    free: Mapping[str, Mapping[tuple[int, str], int]]
    rows: Mapping[tuple[str, int, str], "Row"]
    levels: Sequence["Row"]

    def disks(self) -> Iterator[tuple[Trace, tuple[int, str], "Row"]]:
        """Yield every disk with its forecast."""
        for trace in self.traces:
            for disk in trace.disks:
                yield trace, disk, self.rows[trace.name, *disk]

    def size_errors(self, days: int) -> list[float]:
        """Return how far sizes were off, as a share of what they became."""
        return [
            abs(row[f"size_{days}"] - trace.disk(*disk, NOW + DAY * days)) / trace.disk(*disk, NOW + DAY * days)
            for trace, disk, row in self.disks()
        ]

    def growth_errors(self, days: int, at_least: float) -> list[float]:
        """Return how far changes were off, as a share of the change, where that was so much of the size."""
        found = []
        for trace, disk, row in self.disks():
            now, then = (trace.disk(*disk, hour) for hour in (NOW, NOW + DAY * days))
            if abs(then - now) >= at_least * now:
                found.append(abs(row[f"size_{days}"] - then) / abs(then - now))
        return found

    def held(self, days: int) -> float:
        """Return the share of the truths that lay in their intervals."""
        inside = [
            row[f"size_{days}_low"] <= trace.disk(*disk, NOW + DAY * days) <= row[f"size_{days}_high"]
            for trace, disk, row in self.disks()
        ]
        return inside.count(True) / len(inside)

    def false_alarms(self) -> list[tuple[str, tuple[int, str], float]]:
        """Return the disks that are said to be full within a week, though retention keeps them below that."""
        found = []
        for trace, disk, row in self.disks():
            held = {key[0] for key, places in trace.places.items() if disk in places}
            is_bounded = all(trace.topics[name].is_bounded for name in held)
            most = max(trace.disk(*disk, hour) for hour in range(NOW, NOW + 14 * DAY + 1))
            fills = most - trace.disk(*disk, NOW) >= self.free[trace.name][disk]
            if is_bounded and not fills and row.days_until_full is not None and row.days_until_full <= 7:
                found.append((trace.name, disk, row.days_until_full))
        return found


def _back_tested(spark: "SparkSession", folder: "Path", traces: Sequence[Trace], *, others: bool = False) -> BackTest:
    free = {}
    for trace in traces:
        random = Random(trace.name)
        free[trace.name] = {disk: int(trace.disk(*disk, NOW) * random.uniform(0.05, 0.6)) for disk in trace.disks}
    clusters = {trace.name: cluster_of(trace, free[trace.name]) for trace in traces}
    samples: dict[str, Iterable[Sizes]] = {trace.name: samples_of(trace) for trace in traces}
    if others:
        clusters |= {HAND: _alone(), "short": _alone()}
        samples |= {HAND: _alone_sizes(), "short": [one for one in _alone_sizes() if one[2] > NOW - 5 * DAY]}
    rows = _foretold(spark, folder, clusters, samples)
    disks = {(row.cluster, row.broker, row.log_dir): row for row in rows if row.level == "logDir"}
    return BackTest(traces, free, disks, rows)


@pytest.fixture(scope="module")
def small(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> BackTest:
    """Return a trace, disks of one partition each, and the same with five days of samples."""
    traces = [drawn_trace(1, topics=3, brokers=2)]
    return _back_tested(spark, tmp_path_factory.mktemp("forecast"), traces, others=True)


def _hand(small: BackTest, name: str) -> "Row":
    return small.rows[HAND, 1, f"/{name}"]


def test_a_line_goes_on_and_is_sure_of_it(small: BackTest) -> None:
    row = _hand(small, "line")
    now = (SEEN - 1) * MIB
    for days in (7, 14):
        then = now + days * DAY * MIB
        assert (row[f"size_{days}"], row[f"size_{days}_low"], row[f"size_{days}_high"]) == (then, then, then)
    assert (row.days_until_full, row.full_earliest, row.full_latest) == (10.0, 10.0, 10.0)


def test_what_has_outgrown_its_retention_is_not_held_by_it(small: BackTest) -> None:
    assert _hand(small, "outgrown").days_until_full == 10.0


@pytest.mark.parametrize("name", ["saw", "slow-saw", "compact", "still"])
def test_what_retention_or_compaction_holds_is_not_said_to_fill_wherever_in_the_tooth_samples_end(
    small: BackTest, name: str
) -> None:
    row, one = _hand(small, name), ALONE[name]
    assert row.days_until_full is None
    assert min(one.sizes) <= row.size_14 <= max(one.sizes)


def test_a_new_topic_grows_until_its_retention_and_no_further(small: BackTest) -> None:
    row = _hand(small, "new")
    assert row.size_7 == row.size_14 == (WEEK + 5) * MIB
    assert row.days_until_full is None


def test_bytes_end_growth_at_the_retention_and_half_a_segment(small: BackTest) -> None:
    assert (_hand(small, "bytes").size_14, _hand(small, "bytes").days_until_full) == (710 * MIB, None)


def test_a_tiered_topic_grows_until_its_local_retention(small: BackTest) -> None:
    assert (_hand(small, "local").size_14, _hand(small, "local").days_until_full) == ((WEEK + 1) * MIB, None)


def test_what_nothing_bounds_grows_on_though_it_is_new_but_of_some_hours_nobody_knows(small: BackTest) -> None:
    assert (_hand(small, "unbounded").size_14, _hand(small, "unbounded").days_until_full) == ((72 + 336) * MIB, 3.0)
    assert (_hand(small, "hours-old").size_14, _hand(small, "hours-old").days_until_full) == (4 * MIB, None)


def test_a_disk_that_fills_on_workdays_is_full_when_they_have_filled_it(small: BackTest) -> None:
    # Samples end as five days of growth begin: the mean of the week would say three and a half.
    assert _hand(small, "workdays").days_until_full == pytest.approx(2.5, abs=0.15)


def test_a_broker_a_rack_and_the_cluster_are_full_when_their_first_disk_is(small: BackTest) -> None:
    rows = {row.level: row for row in small.levels if row.cluster == HAND and row.level != "topic"}
    for level in ("broker", "rack", "cluster"):
        assert rows[level].days_until_full == _hand(small, "workdays").days_until_full
        assert rows[level].full_earliest is not None
        sizes = [_hand(small, name).size_14 for name in ALONE]
        assert rows[level].size_14 == pytest.approx(sum(sizes), abs=2 * len(sizes))


def test_below_two_weeks_nothing_is_foretold_and_growth_alone_tells_of_days(small: BackTest) -> None:
    short = [row for row in small.levels if row.cluster == "short"]
    assert {row.size_14 for row in short} == {row.full_earliest for row in short} == {None}
    assert small.rows["short", 1, "/line"].days_until_full == 10.0


def test_the_small_back_test_is_near_the_truth(small: BackTest) -> None:
    assert median(small.size_errors(14)) <= 0.15
    assert small.held(14) >= 0.5
    assert small.false_alarms() == []


def test_a_disk_that_is_soon_full_by_growth_alone_is_held_against_retention(spark: "SparkSession") -> None:
    """Two partitions grow alike for some minutes, on two brokers; one keeps its records for an hour."""
    made = small_cluster("kept-0: 1 size 1600", "swept-0: 2 size 1600", brokers=(1, 2))
    bounds = {"kept": {"retention.ms": "-1"}, "swept": {"retention.ms": str(HOUR_MS), "segment.bytes": str(MIB)}}
    topics = {
        name: replace(topic, configs=bounds[name], partitions=(replace(topic.partitions[0], log_dirs=("/d1",)),))
        for name, topic in made.topics.items()
    }
    brokers = {
        one: replace(broker, log_dirs=(LogDir("/d1", 10**9, 8_640_000),)) for one, broker in made.brokers.items()
    }
    samples = [Sample(name, 0, minute, 1.0, 1.0, 400 + 600 * minute) for name in bounds for minute in range(3)]
    cluster = replace(made, topics=topics, brokers=brokers)
    with balanced(spark, {"one": samples}, {"one": cluster}, has_retention=True) as balance:
        rows = balance.figures.where("level != 'topic'").collect()
    days = {(row.level, row.broker, row.rack): row.days_until_full for row in rows}
    assert days["cluster", -1, ""] == days["logDir", 1, ""] == days["broker", 1, ""] == days["rack", -1, "a"] == 10.0
    assert days["logDir", 2, ""] is days["broker", 2, ""] is days["rack", -1, "b"] is None


@pytest.mark.deep
def test_the_back_test_on_thirty_clusters(spark: "SparkSession", tmp_path: "Path") -> None:
    found = _back_tested(spark, tmp_path, [drawn_trace(seed) for seed in range(1, 31)])
    assert median(found.size_errors(14)) <= 0.15
    assert 0.75 <= found.held(14) <= 0.85
    assert median(found.growth_errors(14, 0.2)) <= 0.15
    assert found.false_alarms() == []
