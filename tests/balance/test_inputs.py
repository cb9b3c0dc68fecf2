"""Samples as other programs leave them: kafka-exporter, KMinion, recorded rules, semicolons, zst.

No file here is written by Spark, and what should come out is worked out in plain Python.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from helpers.samples.load_oracle import MEASURES, Row, expected_loads
from helpers.samples.sample_tables import START, STRANGE, write_parquet
from pyspark.errors import PySparkException

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.loads_job import SampleTask, run_loads
from reconciler.render.as_json import document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
# What Spark before 4.1 says.
NO_ZSTD_SAID = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0: "
    "java.lang.RuntimeException: native zStandard library not available: this version of libhadoop was built without "
    "zstd support."
)
MINUTE = 60
Key = tuple[str, int]


def compress(path: Path, text: str) -> None:
    import pyarrow as pa

    with pa.output_stream(str(path), compression="zstd") as stream:
        stream.write(text.encode())


def series_of(partition: int) -> list[Row]:
    """Return half an hour of a partition, with fractions, unknown figures and an offset that grows."""
    random = Random(partition)
    return [
        Row(
            START + minute * MINUTE + 5,
            "c",
            "t",
            partition,
            random.randrange(10**9) / 1024,
            None if minute % 7 == 3 else random.randrange(10**6) / 8,
            random.randrange(10**4) / 4,
            10**6 + minute * 1000,
            50 * minute,
        )
        for minute in range(30)
    ]


def at(row: Row) -> str:
    return f"{datetime.fromtimestamp(row.ts or 0, UTC):%Y-%m-%dT%H:%M:%SZ}"


def csv_text(rows: Sequence[Row], separator: str, point: str) -> str:
    lines = [separator.join(("ts", "cluster", "topic", "partition", *MEASURES))]
    for row in rows:
        figures = ("" if (value := getattr(row, name)) is None else str(value) for name in MEASURES)
        fields = at(row), row.cluster, row.topic, str(row.partition), *(each.replace(".", point) for each in figures)
        lines.append(separator.join(map(str, fields)))
    return "\n".join(lines) + "\n"


def json_lines(rows: Sequence[Row]) -> str:
    names = ("cluster", "topic", "partition", *MEASURES)
    return "".join(json.dumps({"ts": at(row)} | {name: getattr(row, name) for name in names}) + "\n" for row in rows)


def test_semicolons_and_zst_come_to_the_same_loads_as_parquet(spark: "SparkSession", tmp_path: Path) -> None:
    from pyarrow import parquet

    folder = tmp_path / STRANGE
    every = [series_of(partition) for partition in range(4)]
    write_parquet(folder / "0.parquet", every[0])
    (folder / "1.csv").write_text(csv_text(every[1], ";", ","))
    compress(folder / "2.csv.zst", csv_text(every[2], ",", "."))
    compress(folder / "3.jsonl.zst", json_lines(every[3]))
    task = SampleTask(find_sample_files([str(folder)]).files, MINUTE, NOW)
    report = run_loads(spark, task, str(tmp_path / "out"), document)
    found = {row["partition"]: row for row in parquet.read_table(tmp_path / "out").to_pylist()}
    assert report.clusters[0].defects[Rule.UNREADABLE] == 0
    expected = expected_loads([row for rows in every for row in rows], MINUTE, NOW.timestamp()).loads
    assert set(found) == {key[2] for key in expected}
    for (_, _, partition), load in expected.items():
        for name, value in load.items():
            # Growth is told in six digits.
            accuracy = 1e-5 if name.startswith("growth") else 1e-9
            assert found[partition][name] == (None if value is None else pytest.approx(value, rel=accuracy)), name


def test_what_an_older_spark_cannot_read_is_told_in_one_sentence() -> None:
    from reconciler.balance.spark.session import spark_errors
    from reconciler.model.problem import ReconcilerError

    with pytest.raises(ReconcilerError, match=r"^this Spark cannot read \.zst files"), spark_errors():
        raise PySparkException(NO_ZSTD_SAID)


def series(labels: Mapping[str, str], values: Mapping[int, float]) -> dict[str, Any]:
    return {"metric": labels, "values": [[START + minute * MINUTE, str(value)] for minute, value in values.items()]}


def answer(*found: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": found}})


def sample_rows(
    spark: "SparkSession", path: Path
) -> tuple[dict[Key, dict[int, dict[str, Any]]], Counter[Rule], list[Any]]:
    """Return the samples by partition and minute, and what the rules found."""
    from reconciler.balance.spark.normalise import MARKS, cleaned, rules_of
    from reconciler.balance.spark.sources import read_samples

    rows = cleaned(read_samples(spark, find_sample_files([str(path)]).files, cluster="c"), now=NOW).collect()
    samples: dict[Key, dict[int, dict[str, Any]]] = {}
    rules: Counter[Rule] = Counter()
    for row in rows:
        rules.update(rules_of(row[MARKS]))
        if row["partition"] is not None and Rule.DUPLICATE not in rules_of(row[MARKS]):
            minute = round((row["ts"].astimezone(UTC).timestamp() - START) / MINUTE)
            samples.setdefault((row["topic"], row["partition"]), {})[minute] = row.asDict()
    return samples, rules, rows


def grown(random: Random, minutes: int, most: int) -> dict[int, float]:
    """Return a counter that grows each minute."""
    value, found = float(random.randrange(most)), {}
    for minute in range(minutes):
        found[minute] = value
        value += 1 + random.randrange(most)
    return found


def a_second(counter: Mapping[int, float]) -> dict[int, float]:
    return {minute: (counter[minute] - counter[before]) / MINUTE for before, minute in pairwise(sorted(counter))}


def test_exporters_recorded_rules_and_nameless_rates_are_told_apart(spark: "SparkSession", tmp_path: Path) -> None:
    random = Random(5)
    offsets = {(topic, number): grown(random, 6, 900) for topic in ("exporter", "minion") for number in range(3)}
    counters = {broker: grown(random, 6, 10**7) for broker in ("a", "b")}
    bytes_out = {minute: random.randrange(10**6) / 2 for minute in range(6)}
    own = {number: {minute: random.randrange(10**6) / 4 for minute in range(6)} for number in range(2)}
    kafka = "kafka_topic_partition"
    exported = [
        *(
            series({"__name__": f"{kafka}_current_offset", "topic": "exporter", "partition": str(number)}, values)
            for (topic, number), values in offsets.items()
            if topic == "exporter"
        ),
        *(
            series(
                {"__name__": f"kminion_{kafka}_high_water_mark", "topic_name": "minion", "partition_id": str(number)},
                values,
            )
            for (topic, number), values in offsets.items()
            if topic == "minion"
        ),
        # Confluent's rules name a counter so.
        *(
            series(
                {"__name__": "kafka_server_brokertopicmetrics_bytesinpersec", "topic": "exporter", "instance": broker},
                values,
            )
            for broker, values in counters.items()
        ),
        *(
            series({"__name__": "kafka:topic_bytes_in:rate5m", "topic": "recorded", "partition": str(number)}, values)
            for number, values in own.items()
        ),
        # None of these is a partition's log, or what producers and consumers move.
        *(
            series({"__name__": name, "topic": "exporter", "partition": "0"}, {0: 7, 1: 7})
            for name in (
                "kafka_consumergroup_current_offset",
                f"{kafka}_oldest_offset",
                "kafka:replication_bytes_in:rate5m",
                "kafka:topic_bytes_in:increase5m",
                "kafka:topic_bytes_in:max",
                "kafka_consumer_fetch_manager_bytes_consumed_rate",
            )
        ),
    ]
    (tmp_path / "exporters.json").write_text(answer(*exported))
    compress(tmp_path / "prod-bytes_out.json.zst", answer(series({"topic": "exporter"}, bytes_out)))
    samples, rules, _ = sample_rows(spark, tmp_path)
    for (topic, number), values in offsets.items():
        found = samples[topic, number]
        assert {minute: row["end_offset"] for minute, row in found.items()} == values
        if topic == "exporter":
            rates = {key: a_second(each) for key, each in offsets.items() if key[0] == topic}
            for minute in range(1, 6):
                share = rates[topic, number][minute] / sum(each[minute] for each in rates.values())
                bytes_in = sum(a_second(each)[minute] for each in counters.values())
                assert found[minute]["bytes_in"] == pytest.approx(bytes_in * share, rel=1e-9)
                assert found[minute]["bytes_out"] == pytest.approx(bytes_out[minute] * share, rel=1e-9)
    for number, values in own.items():
        assert {minute: row["bytes_in"] for minute, row in samples["recorded", number].items()} == values
    assert rules[Rule.UNUSED_SERIES] == 6
    assert rules[Rule.ESTIMATED] == 3 * 5
