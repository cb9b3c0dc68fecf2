"""What a history finds on drawn clusters: the planted shift first among what changed, and the brokers that are slow."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from balance.clusters import assigned
from balance.history_oracle import slow_times, slow_windows
from balance.shifted_clusters import Kind, Shifted, shifted
from balance.slow_clusters import SlowCluster, drawn
from helpers.depth import parts

from reconciler.balance.files.arrow_tables import arrow_table
from reconciler.balance.model.history import Cause, Contribution

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@parts("seeds", range(3), deep=range(50))
def test_a_planted_shift_is_the_first_cause(spark: "SparkSession", tmp_path: Path, seeds: range) -> None:
    from reconciler.balance.spark.balance_job import balance_of_samples
    from reconciler.balance.spark.history_collected import collected_history
    from reconciler.balance.spark.history_job import Beside

    clusters = [shifted(seed) for seed in seeds]
    assert {one.kind for one in clusters} == {*Kind}
    tables = assigned(spark, {one.name: one.cluster for one in clusters})
    beside = Beside(brokers=_broker_frame(spark, tmp_path, [row for one in clusters for row in one.brokers]))
    with balance_of_samples(tables, _row_frame(spark, tmp_path, clusters), 3600, beside=beside) as balance:
        assert balance.history is not None
        told = collected_history(balance.history)
    missed = []
    for one in clusters:
        changes = told[one.name].changes
        assert changes is not None
        assert changes.is_by_week
        if not _is_planted(one, changes.of[0].causes[0]):
            missed.append((one.name, one.kind, one.topic, one.moved, changes.of[0].causes[:2]))
    assert missed == []


def _is_planted(one: Shifted, first: Contribution) -> bool:
    if one.kind is Kind.LEADERS:
        return (first.cause, first.from_broker, first.to_broker) == (Cause.LEADERSHIP, *(one.moved or ()))
    return (first.cause, first.topic, first.is_new) == (Cause.TOPIC, one.topic, one.kind is Kind.NEW)


def _frame(
    spark: "SparkSession", path: Path, columns: Mapping[str, object], rows: Iterable[tuple[object, ...]]
) -> "DataFrame":
    from pyarrow import parquet

    parquet.write_table(arrow_table(columns, rows), path)
    return spark.read.parquet(f"file://{path}")


def _row_frame(spark: "SparkSession", folder: Path, clusters: Sequence[Shifted]) -> "DataFrame":
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    from reconciler.balance.spark.buckets import as_rows

    columns = {
        "cluster": pa.string(), "topic": pa.string(), "partition": pa.int32(), "second": pa.int64(),
        "bytes_in": pa.float64(), "bytes_out": pa.float64(), "size_bytes": pa.int64(),
    }  # fmt: skip
    samples = _frame(spark, folder / "rows.parquet", columns, (row for one in clusters for row in one.rows))
    return as_rows(samples.withColumn("bucket", F.col("second") * 1_000_000), F.lit(col=True))


def _broker_frame(spark: "SparkSession", folder: Path, rows: Sequence[tuple[object, ...]]) -> "DataFrame":
    """Return samples of brokers of these rows: second, cluster, broker, bytes in, bytes out; then a flush, if any."""
    import pyarrow as pa
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    columns = {
        "second": pa.int64(), "cluster": pa.string(), "broker": pa.int32(), "bytes_in": pa.float64(),
        "bytes_out": pa.float64(), "log_flush_ms": pa.float64(),
    }  # fmt: skip
    table = _frame(spark, folder / "brokers.parquet", columns, ((*row, None)[:6] for row in rows))
    return table.select(
        F.timestamp_seconds("second").alias("ts"),
        *(name for name in columns if name != "second"),
        F.lit(0.0).alias("replication_bytes_in"),
    )


@parts("seeds", range(2), deep=range(10))
def test_slow_brokers_are_named_bursts_and_pauses_are_not(spark: "SparkSession", tmp_path: Path, seeds: range) -> None:
    from reconciler.balance.spark.history_slow import slow_brokers

    is_whole = len(seeds) > 2
    clusters = {f"cluster-{seed}": drawn(seed, 30 if is_whole else 3) for seed in seeds}
    rows = [
        (second, name, broker, taken, None, flush)
        for name, one in clusters.items()
        for second, broker, flush, taken in one.rows
    ]
    found: dict[str, dict[int, list[tuple[int, int | None, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in slow_brokers(_broker_frame(spark, tmp_path, rows)).collect():
        assert row.flush > 2 * row.peers
        found[row.cluster][row.broker].append((row.since, row.until, row.score))
    named = sum(_is_named(one, found[name]) for name, one in clusters.items())
    alarms = sum(_false_alarms(one, found[name]) for name, one in clusters.items())
    months = sum(one.brokers * one.days / 30 for one in clusters.values())
    assert named >= 0.9 * len(clusters)
    assert alarms <= months
    if not is_whole:
        for name, one in clusters.items():
            windows = slow_windows(one.rows)
            wanted = {broker: times for broker, told in windows.items() if (times := slow_times(told))}
            assert {broker: sorted(times) for broker, times in found[name].items()} == wanted


def _is_named(one: SlowCluster, found: dict[int, list[tuple[int, int | None, int]]]) -> bool:
    planted = one.planted
    return planted is not None and any(
        since < planted.until and (until is None or until > planted.since)
        for since, until, _ in found.get(planted.broker, [])
    )


def _false_alarms(one: SlowCluster, found: dict[int, list[tuple[int, int | None, int]]]) -> int:
    planted = one.planted
    return sum(
        planted is None or broker != planted.broker or since >= planted.until or (until or since) <= planted.since
        for broker, times in found.items()
        for since, until, _ in times
    )
