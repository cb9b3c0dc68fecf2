import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.samples.sample_tables import START, STRANGE

from reconciler.balance.files.sample_files import Kind, SampleFile, find_sample_files
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.spark.loads_job import SampleTask, run_loads
from reconciler.model.topic_partition import TopicPartition
from reconciler.render.as_json import document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
MINUTE = 60


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """Return a folder whose name is not to be read as a pattern, an URI or a partition."""
    folder = tmp_path / STRANGE
    folder.mkdir()
    return folder


def _run(
    spark: "SparkSession", out: Path, *paths: Path, cluster: str | None = None, keys: list[TopicPartition] | None = None
) -> tuple[LoadReport, dict[tuple[str, int], dict[str, Any]]]:
    from pyarrow import parquet

    task = SampleTask(find_sample_files(map(str, paths)).files, MINUTE, NOW, cluster, keys)
    report = run_loads(spark, task, str(out), document)
    return report, {(row["topic"], row["partition"]): row for row in parquet.read_table(out).to_pylist()}


def _defects(report: LoadReport) -> dict[str, int]:
    return {rule.value: count for cluster in report.clusters for rule, count in cluster.defects.items() if count}


def test_files_of_many_folders_are_read_together_where_one_reader_can() -> None:
    from reconciler.balance.spark.sources import _alike

    columns = (("ts", "timestamp[us]"), ("topic", "string"), ("bytes_in", "double"))
    others = (*columns[:2], ("bytes_in", "float"))
    alike = [SampleFile(f"/{number}/a.parquet", Kind.PARQUET, columns, f"/{number}") for number in range(100)]
    alone = [
        SampleFile("/0/b.parquet", Kind.PARQUET, others, "/0"),
        SampleFile("/1/cluster=x/a.parquet", Kind.PARQUET, columns, "/1", ("cluster",)),
        SampleFile("/2/cluster=x/a.parquet", Kind.PARQUET, columns, "/2", ("cluster",)),
        SampleFile("/3", Kind.DELTA, columns, "/3"),
        SampleFile("/4", Kind.DELTA, columns, "/4"),
    ]
    groups = _alike([*alone, *alike])
    assert sorted(map(len, groups)) == [1] * len(alone) + [len(alike)]


def _at(minute: float) -> str:
    return f"{datetime.fromtimestamp(START + minute * MINUTE, UTC):%Y-%m-%dT%H:%M:%SZ}"


def test_csv_and_json_lines_are_read_by_their_own_headers_and_what_cannot_be_read_is_counted(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    # Berlin's clocks go forward at 01:00 UTC on this day: local times leap, the samples stay a minute apart.
    (folder / "a.csv").write_text(
        "partition,topic,ts,bytes_in,size_bytes\n"
        "0,t,2026-03-29T01:59:00+01:00,10,100\n"
        "0,t,2026-03-29T03:00:00+02:00,30,200\n"
        f"0,t,{START + 3660},20,x\n"
        "1,t,2026-03-29 01:00:00,7,1.5e3\n"
        "1,t\n"
    )
    lines = [
        {"ts": _at(59), "topic": "t", "partition": 1, "bytes_in": 5, "cluster": None},
        {"ts": (START + 3660) * 1000, "topic": "t", "partition": 1, "bytes_out": "9", "cluster": "other"},
        {"ts": _at(59), "topic": "t", "partition": 2, "bytes_in": "many"},
    ]
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(("\n".join(map(json.dumps, lines)) + "\n{no\n").encode()))
    report, rows = _run(spark, tmp_path / "out", folder, cluster="c")
    assert set(rows) == {("t", 0), ("t", 1), ("t", 2)}
    assert rows["t", 0]["bytes_in_avg"] == 20
    assert rows["t", 0]["coverage"] == 1.0
    assert rows["t", 0]["size_bytes"] == 200
    assert (rows["t", 1]["bytes_in_avg"], rows["t", 1]["size_bytes"], rows["t", 1]["bytes_out_avg"]) == (6, 1500, None)
    assert rows["t", 2]["bytes_in_avg"] is None
    assert report.clusters[0].first_bucket == "2026-03-29T00:59:00Z"
    # A field, a line cut short, a text for a number, a line that is no JSON.
    assert _defects(report)["unreadable"] == 4
    assert _defects(report)["incomplete"] == 2


def test_snapshots_become_rates_by_growth_and_strangers_to_the_state_are_left_out(
    spark: "SparkSession", tmp_path: Path
) -> None:
    for minute, sizes, end_offset in ((0, [500, 700], 10), (10, [1000, 1200], 110), (20, [400, 1700], 210)):
        partitions = [
            {"partition": 0, "leader": 2, "replicas": [1, 2], "isr": [1, 2], "sizes": sizes, "endOffset": end_offset},
            {"partition": 1, "leader": None, "replicas": [1], "isr": [], "sizes": [minute]},
        ]
        document = {"formatVersion": "1.0", "clusterId": "id", "observedAt": _at(minute), "brokers": []}
        topics = [{"name": "t", "partitions": partitions}]
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / f"{minute}.json").write_text(json.dumps(document | {"topics": topics}, indent=1))
    known = [TopicPartition("t", 0), TopicPartition("u", 0)]
    report, rows = _run(spark, tmp_path / "out", tmp_path / "in", keys=known)
    row = rows["t", 0]
    assert set(rows) == {("t", 0)}
    assert row["cluster"] == "id"
    assert row["messages_in_avg"] == pytest.approx(100 / 600)
    assert row["bytes_in_max"] == pytest.approx(500 / 600)
    assert (row["size_bytes"], row["coverage"], row["bytes_out_avg"]) == (1700, 1.0, None)
    assert row["growth_bytes_per_day"] == pytest.approx(1000 / 1200 * 86400, rel=1e-6)
    assert _defects(report) == {"unknownPartition": 3, "estimated": 2, "missingPartition": 1}


def _series(metric: str, values: dict[int, float | str], **labels: str) -> dict[str, Any]:
    points = [[START + minute * MINUTE, str(value)] for minute, value in values.items()]
    return {"metric": {"__name__": metric, **labels}, "values": points}


def test_a_topics_rate_is_split_over_its_partitions_by_growth_of_offsets(spark: "SparkSession", tmp_path: Path) -> None:
    from reconciler.balance.spark.growth import with_growth
    from reconciler.balance.spark.load import buckets_of
    from reconciler.balance.spark.normalise import MARKED, normalised
    from reconciler.balance.spark.sources import read_samples

    of = {"topic": "t", "cluster": "c"}
    bytes_in, bytes_out = (
        "kafka_server_brokertopicmetrics_bytesin_total",
        "kafka_server_BrokerTopicMetrics_OneMinuteRate",
    )
    series = [
        _series("kafka_log_log_size", {0: 0, 1: 100, 2: 200, 3: 300}, partition="0", instance="a", **of),
        _series("kafka_log_log_size", {0: 0, 1: 90, 2: 200, 3: 300}, partition="0", instance="b", **of),
        _series("kafka_log_Log_Value", {0: 0, 1: 300, 2: 600, 3: 900}, name="Size", partition="1", instance="b", **of),
        _series("kafka_log_log_logendoffset", {0: 0, 1: 10, 2: 20, 3: 30}, partition="0", instance="a", **of),
        _series("kafka_log_log_logendoffset", {0: 0, 1: 30, 2: 60, 3: 90}, partition="1", instance="b", **of),
        # Broker a restarts between 1 and 2; what broker b said at 2 is missing, so the topic's rate then is unknown.
        _series(bytes_in, {0: 1000, 1: 7000, 2: 600, 3: 1200}, instance="a", **of),
        _series(bytes_in, {0: 0, 1: 6000, 3: 18000}, instance="b", **of),
        _series(bytes_out, {1: 40, 2: 80, 3: "NaN"}, name="BytesOutPerSec", instance="a", **of),
        _series(bytes_in, {0: 1, 1: 2}, instance="a", topic="elsewhere", cluster="c"),
        _series("up", {0: 1}, instance="a", cluster="c"),
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    path = tmp_path / "prometheus.json"
    path.write_text(json.dumps(answer))
    samples = read_samples(spark, find_sample_files([str(path)]).files)
    buckets = buckets_of(with_growth(normalised(samples, bucket_seconds=MINUTE, now=NOW)))
    rows = buckets.collect()
    found = {
        (row["partition"], (-row["bucket_back"] // 10**6 - START) // MINUTE): row for row in rows if row["samples"]
    }
    bytes_in_of = {key: row["bytes_in"] for key, row in found.items()}
    # At 1: (6000 + 6000) / 60 a second, a quarter of the growth was partition 0's. At 3: 600/60 + 12000/120.
    assert bytes_in_of[0, 1] == pytest.approx(50)
    assert bytes_in_of[1, 1] == pytest.approx(150)
    assert bytes_in_of[0, 3] == pytest.approx(27.5)
    # Where the topic's rate is unknown, growth of the log tells: 100 bytes, 300 bytes a minute.
    assert bytes_in_of[0, 2] == pytest.approx(100 / 60)
    assert {key: row["bytes_out"] for key, row in found.items() if key[0] == 1} == {
        (1, 0): None, (1, 1): pytest.approx(30), (1, 2): pytest.approx(60), (1, 3): None,
    }  # fmt: skip
    assert found[0, 2]["messages_in"] == pytest.approx(10 / 60)
    assert found[1, 3]["size_bytes"] == 900
    counted = {rule.value: sum(row[rule.value] for row in rows) for rule in MARKED}
    assert {rule: count for rule, count in counted.items() if count} == {
        "notANumber": 1, "counterReset": 1, "estimated": 6, "notSplit": 2, "unusedSeries": 1,
    }  # fmt: skip


def test_columns_of_replicas_are_not_used_and_the_largest_row_of_a_partition_counts(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = tmp_path / "in" / "cluster=c%2Fd" / "date=2026-03-29"
    folder.mkdir(parents=True)
    lines = [f"{_at(0)},1,/d,t,0,100", f"{_at(0)},2,/d,t,0,90", f"{_at(1)},2,/d,t,0,150", f"{_at(1)},1,/d,t,0,160"]
    (folder / "r.csv").write_text("\n".join(["ts,broker,log_dir,topic,partition,size_bytes", *lines, ""]))
    report, rows = _run(spark, tmp_path / "out", tmp_path / "in")
    assert rows["t", 0]["cluster"] == "c/d"
    assert rows["t", 0]["size_bytes"] == 160
    assert rows["t", 0]["bytes_in_avg"] == 1.0
    assert _defects(report) == {"duplicate": 2, "estimated": 1}
