"""History of clusters against plain Python: the week, the series, skew by period, what changed, who stood where."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
from balance import history_oracle, oracle
from balance.clusters import BUCKETED, assigned, moved, random_cluster
from balance.history_oracle import Clock
from balance.oracle import Sample

from reconciler.balance.model.history import Carried, Cause, History, Placement, Step
from reconciler.model.cluster import Cluster
from reconciler.model.evenness import Evenness

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = datetime(2026, 3, 18, 21, 20, tzinfo=UTC)  # a Wednesday; the clocks of Europe change within two weeks
LONG = Clock(int(START.timestamp()), 1800, 15 * 48)
SHORT = Clock(int(START.timestamp()), 600, 40)
FEW = Clock(int(START.timestamp()), 3600, 65)


@dataclass(frozen=True)
class Case:
    """One cluster, its samples, and where its replicas stood in the first half of them."""

    clock: Clock
    cluster: Cluster
    samples: list[Sample]
    then: Cluster

    @property
    def filled(self) -> list[Sample]:
        """The samples, with the rates that are missing of them estimated."""
        return history_oracle.filled(self.samples, self.clock, self.cluster)


def _drawn(random: Random, clock: Clock) -> Case:
    cluster = random_cluster(random, brokers=5, topics=4)
    samples = []
    for key, _ in cluster.partitions():
        rate, size = random.randrange(10**6), random.randrange(10**6)
        first = 0 if random.random() < 0.7 else random.randrange(clock.buckets)
        for bucket in range(first, clock.buckets):
            if random.random() < 0.93 and not 5 <= bucket < 9:
                size += random.randrange(-1000, 5000)
                taken, sent = (None if random.random() < 0.03 else random.randrange(rate + 1) + 0.125 for _ in range(2))
                known = size if random.random() < 0.9 else None
                samples.append(Sample(key.topic, key.partition, bucket, taken, sent, known))
    return Case(clock, cluster, samples, moved(random, cluster))


@pytest.fixture(scope="module")
def cases() -> Mapping[str, Case]:
    random = Random(7)
    made = {"long": _drawn(random, LONG), "short": _drawn(random, SHORT), "few": _drawn(random, FEW)}
    return made | {"turned": replace(made["short"], samples=made["short"].samples[::-1])}


@pytest.fixture(scope="module")
def told(spark: "SparkSession", cases: Mapping[str, Case]) -> Mapping[str, History]:
    from reconciler.balance.spark.history_collected import collected_history
    from reconciler.balance.spark.history_job import Beside

    with _balanced(spark, cases, Beside(replicas=_replica_samples(spark, cases))) as tables:
        return collected_history(tables)  # type: ignore[arg-type]


@contextmanager
def _balanced(spark: "SparkSession", cases: Mapping[str, Case], beside: object) -> Iterator[object]:
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    from reconciler.balance.spark.balance_job import balance_of_samples
    from reconciler.balance.spark.buckets import as_rows

    rows = [
        (name, one.topic, one.partition, _time(case, one.bucket), one.bytes_in, one.bytes_out, None, one.size_bytes)
        for name, case in cases.items()
        for one in case.samples
    ]
    tables = assigned(spark, {name: case.cluster for name, case in cases.items()})
    buckets = spark.createDataFrame(rows, BUCKETED).withColumn("bucket", F.unix_micros("bucket"))
    counted = as_rows(buckets, F.lit(col=True))
    with balance_of_samples(tables, counted, 600, beside=beside) as balance:  # type: ignore[arg-type]
        yield balance.history


def _time(case: Case, bucket: int) -> datetime:
    return datetime.fromtimestamp(case.clock.first, UTC) + timedelta(seconds=bucket * case.clock.step)


def _stood(case: Case, bucket: int) -> Cluster:
    return case.then if bucket < case.clock.buckets // 2 else case.cluster


def _replica_samples(spark: "SparkSession", cases: Mapping[str, Case]) -> "DataFrame":
    from reconciler.balance.spark.schemas import REPLICA_SAMPLES

    rows = [
        (_time(case, bucket), name, broker, "/d1", key.topic, key.partition, 100 * bucket + broker, 0, False)
        for name, case in cases.items()
        for bucket in range(0, case.clock.buckets, 2)
        for key, partition in _stood(case, bucket).partitions()
        for broker in partition.replicas
    ]
    return spark.createDataFrame(rows, REPLICA_SAMPLES)


def test_the_week_and_the_series_are_the_means_of_what_each_broker_carries(
    cases: Mapping[str, Case], told: Mapping[str, History]
) -> None:
    for name, case in cases.items():
        history, clock = told[name], case.clock
        assert history.step is (Step.DAY if name in {"long", "few"} else Step.HOUR)
        assert len(history.periods) == clock.period(clock.buckets - 1) + 1
        week = history_oracle.hour_of_week(clock)
        for way in ("in", "out"):
            for rows, place in ((history.hours_of_week, week), (history.series, clock.period)):
                wanted = history_oracle.means(case.cluster, case.filled, way, place)
                _assert_carried(rows, way, wanted)
        assert {len(one.bytes_in) for one in history.hours_of_week} == {168}
        assert {len(one.bytes_out) for one in history.series} == {len(history.periods)}
    assert told["short"].periods[:2] == ("2026-03-18T21:00:00Z", "2026-03-18T22:00:00Z")
    assert told["long"].periods[0] == "2026-03-18T00:00:00Z"


def _assert_carried(rows: Sequence[Carried], way: str, wanted: Mapping[int | None, Mapping[int, float]]) -> None:
    brokers = [row.broker for row in rows]
    assert brokers == sorted(brokers, key=lambda one: one or 0)
    assert {one for one, means in wanted.items() if means} <= {*brokers}
    for row in rows:
        values = row.bytes_in if way == "in" else row.bytes_out
        for at, value in enumerate(values):
            mean = wanted[row.broker].get(at)
            assert (value is None) == (mean is None)
            assert value is None or mean is None or abs(value - mean) <= 0.5 + 1e-6


def test_skew_is_told_of_each_period_by_the_placement_of_today_and_by_that_of_then(
    cases: Mapping[str, Case], told: Mapping[str, History]
) -> None:
    for name, case in cases.items():
        wanted = history_oracle.skews(case.cluster, case.filled, case.clock)
        found = {(one.period, one.placement): one for one in told[name].skews}
        for (at, what), even in wanted.items():
            one = found.get((at, Placement.TODAY))
            _assert_even(None if one is None else getattr(one, _FIELDS[what]), even)
        assert all(one.replicas is None for one in told[name].skews if one.placement is Placement.TODAY)
        for (at, what), even in _skews_then(case).items():
            _assert_even(getattr(found[at, Placement.THEN], _FIELDS[what]), even)
        assert any(one.bytes_in is not None for key, one in found.items() if key[1] is Placement.THEN)


_FIELDS = {"in": "bytes_in", "out": "bytes_out", "size": "size_bytes", "replicas": "replicas"}


def _skews_then(case: Case) -> Mapping[tuple[int, str], Evenness | None]:
    """Return how even replicas, sizes and what comes in were, by the last round of each period."""
    found: dict[tuple[int, str], Evenness | None] = {}
    rates: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for one in case.samples:
        if one.bytes_in is not None:
            rates[one.topic, one.partition, case.clock.period(one.bucket)].append(one.bytes_in)
    for at in range(case.clock.period(case.clock.buckets - 1) + 1):
        rounds = [bucket for bucket in range(0, case.clock.buckets, 2) if case.clock.period(bucket) == at]
        stood = _stood(case, rounds[-1])
        held: dict[int, list[tuple[str, int]]] = {broker: [] for broker in stood.brokers}
        for key, partition in stood.partitions():
            for broker in partition.replicas:
                held[broker].append((key.topic, key.partition))
        found[at, "replicas"] = history_oracle.even(float(len(held[one])) for one in held)
        found[at, "size"] = history_oracle.even(float(len(held[one]) * (100 * rounds[-1] + one)) for one in held)
        in_rates: dict[int, float | None] = {}
        for broker, keys in held.items():
            means = [sum(told) / len(told) for key in keys if (told := rates.get((*key, at)))]
            in_rates[broker] = sum(means) if means or not keys else None
        found[at, "in"] = history_oracle.even(in_rates.values())
    return found


def _assert_even(found: object, wanted: object) -> None:
    assert (found is None) == (wanted is None)
    for name in ("max_over_mean", "coefficient_of_variation", "gini") if wanted is not None else ():
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), abs=2e-5)


def test_what_changed_is_the_sum_of_what_each_topic_and_each_moved_replica_brought(
    cases: Mapping[str, Case], told: Mapping[str, History]
) -> None:
    for name, case in cases.items():
        changes = told[name].changes
        assert changes is not None
        assert changes.is_by_week is (name == "long")
        figures = history_oracle.compared(case.cluster, case.samples, case.clock)
        whole, *brokers = changes.of
        assert whole.broker is None
        assert len(brokers) == 3
        sums = _sums(case.cluster, figures)
        busiest = sorted(case.cluster.brokers, key=lambda one: (-sums[one, "in_after"] - sums[one, "out_after"], one))
        assert [one.broker for one in brokers] == busiest[:3]
        for scope in changes.of:
            key = "all" if scope.broker is None else scope.broker
            for what, shift in (("in", scope.bytes_in), ("out", scope.bytes_out), ("size", scope.size_bytes)):
                assert shift is not None
                assert shift.before == pytest.approx(float(sums[key, f"{what}_before"]), abs=1)
                assert shift.after == pytest.approx(float(sums[key, f"{what}_after"]), abs=1)
        topics = [one for one in whole.causes if one.cause is Cause.TOPIC]
        assert len(topics) == len(case.cluster.topics)
        for one in topics:
            assert one.bytes_in is not None
            assert one.bytes_in.change == pytest.approx(
                float(sums[one.topic, "in_after"] - sums[one.topic, "in_before"]), abs=2
            )
        order = sorted(
            case.cluster.brokers,
            key=lambda one: -sum(abs(sums[one, f"{way}_after"] - sums[one, f"{way}_before"]) for way in ("in", "out")),
        )
        held = {replica.names[2][1] for replica in oracle.replicas_of(case.cluster)}
        assert [one.broker for one in changes.brokers] == [one for one in order if one in held]
        shares = [one.share for one in whole.causes]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1, abs=1e-4) or len(shares) == 10


def _sums(
    cluster: Cluster, figures: Mapping[tuple[str, int], Mapping[str, object]]
) -> Mapping[tuple[object, str], float]:
    found: dict[tuple[object, str], float] = defaultdict(float)
    for replica in oracle.replicas_of(cluster):
        own = figures.get(replica.key, {})
        told: dict[str, float] = {}
        for half in ("before", "after"):
            if f"in_{half}" in own:
                told[f"in_{half}"] = float(own[f"in_{half}"])  # type: ignore[arg-type]
            if replica.is_leader and f"out_{half}" in own and (f"in_{half}" in own or not replica.followers):
                fetched = float(own[f"in_{half}"]) * replica.followers if replica.followers else 0.0  # type: ignore[arg-type]
                told[f"out_{half}"] = float(own[f"out_{half}"]) + fetched  # type: ignore[arg-type]
            if f"size_{half}" in own:
                told[f"size_{half}"] = float(own[f"size_{half}"])  # type: ignore[arg-type]
        for what in ("in", "out", "size"):
            if f"{what}_before" in told and f"{what}_after" in told:
                for key in ("all", replica.names[2][1], replica.key[0]):
                    for half in ("before", "after"):
                        found[key, f"{what}_{half}"] += told[f"{what}_{half}"]
    return found


def test_replicas_that_stood_elsewhere_are_told_by_both_brokers(
    cases: Mapping[str, Case], told: Mapping[str, History]
) -> None:
    case, changes = cases["few"], told["few"].changes
    assert changes is not None
    wanted = set()
    for key, partition in case.cluster.partitions():
        then = case.then.topics[key.topic].partitions[key.partition].replicas
        gone = sorted(set(then) - set(partition.replicas))
        come = sorted(set(partition.replicas) - set(then))
        wanted |= set(zip(gone, come, strict=True))
    found = {(one.from_broker, one.to_broker) for one in changes.of[0].causes if one.cause is Cause.REPLICAS}
    assert found <= wanted
    assert len(found) >= 3


def test_no_order_of_rows_shows(told: Mapping[str, History]) -> None:
    assert told["turned"] == told["short"]
