"""Every figure of the balance by samples, against plain Python: many clusters in one job, looked at by many tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from balance import oracle
from balance.clusters import BUCKET_SECONDS, assigned, balanced, moved, random_cluster, random_samples
from balance.oracle import Name, Sample
from helpers.clusters.small_cluster import small_cluster

from reconciler.model.cluster import Cluster
from reconciler.model.evenness import evenness

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from reconciler.balance.spark.balance_job import Balance

Rows = Mapping[tuple[str, str, Name], "Row"]
DAY = 86400


@dataclass
class Lake:
    """Clusters, what they are after their plans, and their samples."""

    before: dict[str, Cluster] = field(default_factory=dict)
    after: dict[str, Cluster] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    capacities: dict[str, Mapping[int, int]] = field(default_factory=dict)
    weights: dict[str, Mapping[int, Mapping[str, int]]] = field(default_factory=dict)

    def add(self, name: str, before: Cluster, samples: list[Sample], after: Cluster | None = None) -> None:
        """Add a cluster, with a plan or without."""
        self.before[name], self.samples[name] = before, samples
        if after is not None:
            self.after[name] = after


@dataclass(frozen=True)
class Weighed:
    """What the job found: all rows, how even brokers are, and what each plan moves."""

    rows: Rows
    skews: Sequence["Row"]
    moved: Sequence["Row"]


@pytest.fixture(scope="module")
def lake() -> Lake:
    """Return every cluster that has samples."""
    made, random = Lake(), Random(1)
    for name, few in (("one", {}), ("two", {"brokers": 4, "topics": 2, "has_log_dirs": False})):
        cluster = random_cluster(random, **few)  # type: ignore[arg-type]
        made.add(name, cluster, random_samples(random, cluster), moved(random, cluster))
    random = Random(5)
    gapless = random_cluster(random)
    after = moved(random, gapless)
    made.add("gapless", gapless, random_samples(random, gapless, gaps=0), after)
    random = Random(6)
    once = random_cluster(random)
    samples = random_samples(random, once, buckets=1, gaps=0)
    made.add("once", once, samples)
    made.add("doubled", once, [_doubled(sample) for sample in samples])
    made.add("sums", *_two_partitions_in_turn())
    made.add("growth", *_growing())
    made.add("holed", *_a_hundred_each_of_which_one_is_hardly_seen())
    return made


@pytest.fixture(scope="module")
def weighed(spark: "SparkSession", lake: Lake) -> Weighed:
    """Return the balance of all of them."""
    return _weighed(spark, lake)


@pytest.fixture(scope="module")
def unplanned(spark: "SparkSession") -> Weighed:
    """Return the balance of clusters without a plan: one that grows, one of unequal brokers, one that is empty."""
    made = Lake(capacities={"unequal": {1: 2, 4: 0}}, weights={"unequal": {1: {"leaders": 6}}})
    made.add("growth", *_growing()[:2])
    unequal = small_cluster(*(f"orders-{number}: {1 + number % 3}" for number in range(9)), brokers=(1, 2, 3, 4))
    made.add("unequal", unequal, [])
    made.add("made", *_made_meanwhile())
    made.add("empty", Cluster("id", brokers=small_cluster(brokers=(1, 2)).brokers), [])
    return _weighed(spark, made)


def _weighed(spark: "SparkSession", lake: Lake) -> Weighed:
    with balanced(
        spark, lake.samples, lake.before, lake.after or None, lake.capacities, weights=lake.weights
    ) as balance:
        gone = [] if balance.moved is None else balance.moved.collect()
        return Weighed(_rows(balance), sorted(balance.skews.collect()), gone)


def _doubled(sample: Sample) -> Sample:
    assert sample.bytes_in is not None
    assert sample.bytes_out is not None
    return sample._replace(bytes_in=sample.bytes_in * 2, bytes_out=sample.bytes_out * 2)


def _two_partitions_in_turn() -> tuple[Cluster, list[Sample]]:
    """Return a broker that takes in as much in each bucket, from one of its partitions or the other."""
    cluster = small_cluster("orders-0: 1 leader 1 size 5", "orders-1: 1 leader 1 size 5", brokers=(1,))
    samples = [
        Sample("orders", 0, 0, 10.0, 10.0, 5),
        Sample("orders", 0, 1, 0.0, 0.0, 5),
        Sample("orders", 1, 0, 0.0, 0.0, 5),
        Sample("orders", 1, 1, 10.0, 10.0, 5),
    ]
    return cluster, samples


def _a_hundred_each_of_which_one_is_hardly_seen() -> tuple[Cluster, list[Sample]]:
    """Return a broker that takes in 100 with each of its partitions, of which one is seen in one bucket of ten."""
    cluster = small_cluster("orders-0: 1 leader 1 size 5", "orders-1: 1 leader 1 size 5", brokers=(1,))
    samples = [Sample("orders", 0, bucket, 100.0, 50.0, 5) for bucket in range(10)]
    return cluster, [*samples, Sample("orders", 1, 3, 100.0, 50.0, 5)]


def _growing() -> tuple[Cluster, list[Sample], Cluster]:
    """Return a cluster with a partition that grows and one that shrinks, their sizes, and it after a plan."""
    before = small_cluster("orders-0: 1,2 leader 1 size 1000", "orders-1: 2 leader 2 size 1000", brokers=(1, 2, 3))
    partitions = before.topics["orders"].partitions
    placed = tuple(replace(one, log_dirs=("/d1",) * len(one.replicas)) for one in partitions)
    before = replace(before, topics={"orders": replace(before.topics["orders"], partitions=placed)})
    brokers = {
        one: replace(broker, log_dirs=(replace(broker.log_dirs[0], usable_bytes=9_000_000),))
        for one, broker in before.brokers.items()
    }
    before = replace(before, brokers=brokers)
    gone = replace(placed[1], replicas=(3,), leader=3, isr=(3,))
    after = replace(before, topics={"orders": replace(before.topics["orders"], partitions=(placed[0], gone))})
    samples = [
        Sample("orders", partition, bucket, None, None, 10**6 + step * bucket)
        for partition, step in enumerate((60, -10))
        for bucket in range(5)
    ]
    return before, samples, after


def _made_meanwhile() -> tuple[Cluster, list[Sample]]:
    """Return a broker with a large partition that does not grow, and a small one that is made in the third minute.

    They stand on two disks, of which the one of the small partition is nearly full.
    """
    made = small_cluster("old-0: 1 size 1000000000000", "fresh-0: 1 size 1600", brokers=(1,))
    topics = {
        name: replace(topic, partitions=(replace(topic.partitions[0], log_dirs=(on,)),))
        for (name, topic), on in zip(sorted(made.topics.items()), ("/d2", "/d1"), strict=True)
    }
    disks = tuple(
        replace(disk, usable_bytes=free)
        for disk, free in zip(made.brokers[1].log_dirs, (10**12, 8_640_000), strict=True)
    )
    brokers = {1: replace(made.brokers[1], log_dirs=disks)}
    samples = [Sample("old", 0, bucket, 1.0, 1.0, 10**12) for bucket in range(5)]
    samples += [Sample("fresh", 0, bucket, 1.0, 1.0, 400 + 600 * (bucket - 2)) for bucket in (2, 3, 4)]
    return replace(made, topics=topics, brokers=brokers), samples


def _rows(balance: "Balance") -> Rows:
    return {(row.side, row.cluster, _name(row)): row for row in balance.figures.collect()}


def _name(row: "Row") -> Name:
    told: dict[str, Name] = {
        "cluster": oracle.CLUSTER,
        "rack": ("rack", row.rack or None),
        "broker": ("broker", row.broker),
        "logDir": ("logDir", row.broker, row.log_dir),
        "topic": ("topic", row.topic),
    }
    return told[row.level]


def _check_counts(rows: Rows, side: str, name: str, cluster: Cluster) -> None:
    told = oracle.counts(cluster)
    found = {key: row for (row_side, row_name, key), row in rows.items() if (row_side, row_name) == (side, name)}
    assert found.keys() >= told.keys()
    for key, row in found.items():
        want = told.get(key, oracle.Told())
        assert (row.replicas, row.leaders, row.preferred_leaders, row.unknown_sizes) == (
            want.replicas,
            want.leaders,
            want.preferred,
            want.unknown_sizes,
        ), key
        assert (row.total_bytes, row.free_bytes)[: 1 if side == "after" else 2] == _disk(cluster, key, side), key
        is_known = want.replicas == 0 or want.unknown_sizes < want.replicas
        assert row.size_bytes == (want.size if is_known else None), key
        ratio = (want.preferred - want.preferred_led) / want.preferred if want.preferred else None
        assert row.leader_imbalance == (
            pytest.approx(ratio, abs=1e-6) if key[0] == "broker" and ratio is not None else None
        )


def _disk(cluster: Cluster, key: Name, side: str) -> tuple[int | None, ...]:
    """Return what the disks of that name hold and, before a plan, what is free there: known or not of all of them."""
    disks = [(broker, log_dir) for broker in cluster.brokers.values() for log_dir in broker.log_dirs]
    kinds = {
        "cluster": disks,
        "rack": [(broker, log_dir) for broker, log_dir in disks if (broker.rack,) == key[1:]],
        "broker": [(broker, log_dir) for broker, log_dir in disks if (broker.id,) == key[1:]],
        "logDir": [(broker, log_dir) for broker, log_dir in disks if (broker.id, log_dir.path) == key[1:]],
    }
    if key[0] == "topic":
        return (None,) if side == "after" else (None, None)
    here = [log_dir for _, log_dir in kinds[str(key[0])]]
    total = sum(log_dir.total_bytes or 0 for log_dir in here)
    if side == "after":
        return (total,)
    free = [log_dir.usable_bytes for log_dir in here]
    told = oracle.counts(cluster).get(key, oracle.Told())
    if None in free:
        return total, None if told.unknown_sizes else total - told.size
    return total, sum(one for one in free if one is not None)


def _check_rates(rows: Rows, side: str, name: str, cluster: Cluster, told: tuple[list[Sample], Cluster]) -> None:
    samples, of_peak = told
    filled = oracle.filled(cluster, samples)
    peak = oracle.busiest(of_peak, filled)
    known = {replica.key for replica in oracle.replicas_of(of_peak)}
    seen = [sample.bucket for sample in samples if (sample.topic, sample.partition) in known]
    expected = max(seen) - min(seen) + 1
    for way, of in (("in", "replicas"), ("out", "leaders")):
        sums, averages = oracle.sums(cluster, filled, way), oracle.averages(cluster, samples, way)
        for (row_side, row_name, key), row in rows.items():
            if (row_side, row_name) != (side, name):
                continue
            values = sums.get(key, {})
            if not values:
                assert {row[f"{way}_{what}"] for what in ("average", "p95", "maximum", "peak")} <= {0.0, None}
                assert (row[f"{way}_average"] == 0.0) == (row[of] == 0)
                continue
            each = list(values.values())
            # Each partition's average is rounded to a thousandth.
            assert row[f"{way}_average"] == pytest.approx(averages[key], rel=1e-9, abs=0.02)
            assert row[f"{way}_maximum"] == pytest.approx(max(each), rel=1e-9)
            assert row[f"{way}_p95"] == pytest.approx(oracle.percentile(each, 0.95), rel=1e-9, abs=6e-4)
            assert row[f"{way}_peak"] == (pytest.approx(values[peak], rel=1e-9) if peak in values else None)
            assert 0 < row[f"{way}_coverage"] <= 1
    assert rows[side, name, oracle.CLUSTER].in_coverage == pytest.approx(
        _coverage(cluster, samples, expected), abs=1e-6
    )


def _check_growth(rows: Rows, side: str, name: str, cluster: Cluster, samples: list[Sample]) -> None:
    """Check that each grows by its partitions' slopes, each to six digits, and is full when its first disk is."""
    told = oracle.growths(cluster, samples, DAY / BUCKET_SECONDS)
    found = {key: row for (row_side, row_name, key), row in rows.items() if (row_side, row_name) == (side, name)}
    racks = {broker.id: broker.rack for broker in cluster.brokers.values()}
    for key, row in found.items():
        growth, without_sign = told.get(key, (None, 0.0))
        near = None if growth is None else pytest.approx(growth, abs=6e-6 * without_sign + 1)
        assert row.growth_bytes_per_day == near, key
        disks = [row, *(disk for name, disk in found.items() if _is_disk_of(name, key, racks))]
        days = [each for each in map(_days, disks) if each is not None]
        assert row.days_until_full == (pytest.approx(min(days), abs=0.051) if days else None), key


def _is_disk_of(name: Name, whole: Name, racks: Mapping[int, str | None]) -> bool:
    """Return whether that is a log dir of it; of a rack or the cluster a broker too, whose log dirs may be unknown."""
    if name[0] not in {"logDir", "broker"}:
        return False
    broker = name[1]
    assert isinstance(broker, int)
    return whole in {("cluster",), ("rack", racks[broker]), ("broker", broker)}


def _days(row: "Row") -> float | None:
    if row.free_bytes is None or not (row.growth_bytes_per_day or 0) > 0:
        return None
    return float(max(row.free_bytes, 0) / row.growth_bytes_per_day)


def _coverage(cluster: Cluster, samples: list[Sample], expected: int) -> float:
    factor = {replica.key: replica.followers + 1 for replica in oracle.replicas_of(cluster)}
    seen = sum(factor.get((sample.topic, sample.partition), 0) for sample in samples if sample.bytes_in is not None)
    return seen / (sum(factor.values()) * expected)


def test_every_figure_equals_plain_python_before_and_after_for_many_clusters_at_once(
    lake: Lake, weighed: Weighed
) -> None:
    for side, clusters in (("before", lake.before), ("after", lake.after)):
        for name, cluster in clusters.items():
            _check_counts(weighed.rows, side, name, cluster)
            if name != "growth":
                _check_rates(weighed.rows, side, name, cluster, (lake.samples[name], lake.before[name]))
            _check_growth(weighed.rows, side, name, cluster, lake.samples[name])
            brokers = [weighed.rows[side, name, ("broker", one)] for one in cluster.brokers]
            for measure, column in (("replicas", "replicas"), ("leaders", "leaders"), ("bytesIn", "in_average")):
                values = [row[column] for row in brokers]
                want = None if None in values else evenness((value, 1) for value in values)
                statistic = "average" if measure == "bytesIn" else ""
                told = [
                    (row.max_over_mean, row.coefficient_of_variation, row.gini)
                    for row in weighed.skews
                    if (row.side, row.cluster, row.measure, row.statistic) == (side, name, measure, statistic)
                ]
                figures = (want.max_over_mean, want.coefficient_of_variation, want.gini) if want else None
                assert told == ([pytest.approx(figures, abs=1e-6)] if figures else [])
    traffic = {(row.cluster, row.level, row.broker): row for row in weighed.moved}
    for name, after in lake.after.items():
        _check_moved(traffic, name, lake.before[name], after)


def _check_moved(traffic: Mapping[tuple[str, str, int], "Row"], name: str, before: Cluster, after: Cluster) -> None:
    stood = {(one.key, one.names[2][1]): one.size or 0 for one in oracle.replicas_of(before)}
    stands = {(one.key, one.names[2][1]): one.size or 0 for one in oracle.replicas_of(after)}
    for broker in before.brokers:
        came = [size for key, size in stands.items() if key not in stood and key[1] == broker]
        went = [size for key, size in stood.items() if key not in stands and key[1] == broker]
        row = traffic.get((name, "broker", broker))
        told = (0, 0, 0, 0) if row is None else tuple(row[2 + column] for column in range(1, 5))
        assert told == (len(came), sum(came), len(went), sum(went))


def test_a_percentile_of_a_broker_is_of_its_sum_in_each_bucket(weighed: Weighed) -> None:
    row = weighed.rows["before", "sums", ("broker", 1)]
    assert (row.in_maximum, row.in_p95, row.in_average, row.in_peak) == (10, 10, 10, 10)
    assert (row.out_maximum, row.out_p95, row.out_average, row.out_peak) == (10, 10, 10, 10)


def test_a_gap_is_no_zero(weighed: Weighed) -> None:
    row = weighed.rows["before", "holed", ("broker", 1)]
    assert (row.in_maximum, row.in_p95, row.in_average, row.in_peak, row.in_coverage) == (200, 200, 200, 200, 0.55)
    assert (row.out_maximum, row.out_p95, row.out_average, row.out_peak) == (100, 100, 100, 100)


@pytest.mark.deep
def test_the_order_of_rows_does_not_show(spark: "SparkSession", lake: Lake, weighed: Weighed) -> None:
    random = Random(5)
    shuffled = {name: random.sample(samples, len(samples)) for name, samples in lake.samples.items()}
    again = _weighed(spark, replace(lake, samples=shuffled))
    assert again.rows == weighed.rows
    assert again.skews == weighed.skews


def test_totals_are_kept(weighed: Weighed) -> None:
    rows = {(side, key): row for (side, name, key), row in weighed.rows.items() if name == "gapless"}
    names = ("replicas", "leaders", "unknown_sizes", "size_bytes", "in_average", "out_average", "in_peak", "in_p95")
    for name in names:
        for key in [key for _, key in rows if key[0] in {"cluster", "topic"}]:
            assert rows["before", key][name] == rows["after", key][name], (name, key)
    for side in ("before", "after"):
        whole = rows[side, oracle.CLUSTER]
        for kind in ("rack", "broker", "logDir", "topic"):
            parts = [row for (row_side, key), row in rows.items() if (row_side, key[0]) == (side, kind)]
            for name in ("replicas", "leaders", "size_bytes", "in_average", "in_peak", "out_average", "out_peak"):
                assert sum(row[name] or 0 for row in parts) == pytest.approx(whole[name], abs=0.01), (kind, name)


def test_one_bucket_is_average_percentile_maximum_and_peak_at_once_and_rates_scale(weighed: Weighed) -> None:
    found = {key: row for (_, name, key), row in weighed.rows.items() if name == "once"}
    assert len(found) > 20
    for key, row in found.items():
        for way in ("in", "out"):
            told = {row[f"{way}_{what}"] for what in ("average", "p95", "maximum", "peak")}
            assert len(told) == 1
            value = told.pop()
            twice = weighed.rows["before", "doubled", key][f"{way}_average"]
            assert twice == (None if value is None else pytest.approx(2 * value))
        assert row.growth_bytes_per_day is None


def test_a_partition_made_meanwhile_takes_nothing_from_its_brokers_growth_and_the_first_full_disk_is_told(
    unplanned: Weighed,
) -> None:
    a_day = 600 * DAY // BUCKET_SECONDS
    told = {
        key: (row.growth_bytes_per_day, row.days_until_full)
        for (_, name, key), row in unplanned.rows.items()
        if name == "made" and key[0] != "topic"
    }
    assert told.pop(("logDir", 1, "/d1")) == (0, None)
    assert set(told.values()) == {(a_day, 10.0)}
    assert set(told) == {oracle.CLUSTER, ("rack", "a"), ("broker", 1), ("logDir", 1, "/d2")}


def test_growth_is_the_sum_of_slopes_and_says_when_a_disk_is_full(weighed: Weighed, unplanned: Weighed) -> None:
    a_day = DAY // BUCKET_SECONDS
    before = {
        ("broker", 1): (60 * a_day, 9_000_000, 104.2),
        ("broker", 2): (50 * a_day, 9_000_000, 125.0),
        ("logDir", 2, "/d1"): (50 * a_day, 9_000_000, 125.0),
        ("broker", 3): (None, 9_000_000, None),
        oracle.CLUSTER: (110 * a_day, 27_000_000, 104.2),
        ("topic", "orders"): (110 * a_day, None, None),
    }
    after = {("broker", 2): (60 * a_day, 9_001_000, 104.2), ("broker", 3): (-10 * a_day, 8_999_000, None)}
    assert _growth_of(weighed, "before").items() >= before.items()
    assert _growth_of(unplanned, "before").items() >= before.items()
    assert _growth_of(weighed, "after").items() >= after.items()
    assert weighed.rows["before", "growth", oracle.CLUSTER].in_average is None


def _growth_of(weighed: Weighed, side: str) -> Mapping[Name, tuple[float | None, ...]]:
    return {
        key: (row.growth_bytes_per_day, row.free_bytes, row.days_until_full)
        for (row_side, name, key), row in weighed.rows.items()
        if (row_side, name) == (side, "growth")
    }


def test_evenness_counts_a_broker_of_twice_the_capacity_as_two_and_leaves_out_one_that_is_to_be_empty(
    unplanned: Weighed,
) -> None:
    told = {row.measure: row for row in unplanned.skews if row.cluster == "unequal"}
    want = evenness([(3, 2), (3, 1), (3, 1), (0, 0)])
    assert want == evenness([(1.5, 1), (1.5, 1), (3, 1), (3, 1)])
    assert want is not None
    row = told["replicas"]
    assert (row.max_over_mean, row.coefficient_of_variation, row.gini) == pytest.approx(
        (want.max_over_mean, want.coefficient_of_variation, want.gini), abs=1e-6
    )


def test_evenness_of_leaders_goes_by_their_own_weight(unplanned: Weighed) -> None:
    told = {row.measure: row for row in unplanned.skews if row.cluster == "unequal"}
    want, row = evenness([(3, 6), (3, 1), (3, 1)]), told["leaders"]
    assert want is not None
    assert (row.max_over_mean, row.coefficient_of_variation, row.gini) == pytest.approx(
        (want.max_over_mean, want.coefficient_of_variation, want.gini), abs=1e-6
    )


def test_a_cluster_without_samples_or_partitions_is_counted_all_the_same(
    spark: "SparkSession", unplanned: Weighed
) -> None:
    assert unplanned.rows["before", "empty", oracle.CLUSTER].replicas == 0
    assert unplanned.rows["before", "empty", ("broker", 2)].in_average is None
    assert assigned(spark, {"one": Cluster("id", brokers=small_cluster(brokers=(1, 2)).brokers)}).partitions.isEmpty()
