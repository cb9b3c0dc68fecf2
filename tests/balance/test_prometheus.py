"""Prometheus exports that tell the same thing more than once, and topics whose growth is not known everywhere."""

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from helpers.samples.sample_tables import START

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import Rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
MINUTE = 60
IN = "kafka_server_brokertopicmetrics_bytesin"


def _series(metric: str, topic: str, values: dict[int, float], **labels: str) -> dict[str, Any]:
    points = [[START + minute * MINUTE, str(value)] for minute, value in values.items()]
    return {"metric": {"__name__": metric, "topic": topic, "instance": "a", **labels}, "values": points}


def _log(measure: str, topic: str, partition: int, values: dict[int, float]) -> dict[str, Any]:
    return _series(f"kafka_log_log_{measure}", topic, values, partition=str(partition))


def _export(path: Path, written: int, *series: dict[str, Any]) -> None:
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    path.write_text(json.dumps(answer))
    os.utime(path, (written, written))


def test_what_exports_tell_twice_counts_once_and_a_share_without_growth_is_unknown(
    spark: "SparkSession", tmp_path: Path
) -> None:
    _export(
        tmp_path / "b.json",
        START + 300,
        *(_log("logendoffset", topic, 0, {0: 0, 1: 10, 2: 20}) for topic in ("counter", "names", "gauge")),
        *(_log("logendoffset", topic, 1, {0: 0, 1: 20, 2: 40}) for topic in ("counter", "names", "gauge")),
        _series(f"{IN}_total", "counter", {0: 0, 1: 9000, 2: 18000}),
        _series(f"{IN}_total", "names", {0: 0, 1: 9000, 2: 18000, 3: 27000}),
        _series(f"{IN}persec_count", "names", {0: 0, 1: 9000, 2: 18000, 3: 27000}),
        _series(f"{IN}_oneminuterate", "gauge", {0: 90, 1: 90, 2: 900}),
        # The offset of partition 1 is missing once, and its size is in bytes: no part of what others have in messages.
        _log("logendoffset", "mixed", 0, {0: 0, 1: 10, 2: 20}),
        _log("logendoffset", "mixed", 1, {0: 0, 1: 20}),
        *(_log("size", "mixed", partition, {0: 0, 1: 9000, 2: 18000}) for partition in (0, 1)),
        _series(f"{IN}_oneminuterate", "mixed", {0: 90, 1: 90, 2: 90}),
        # Partition 1 comes later: what it took before it was first seen, nobody knows.
        _log("size", "grows", 0, {0: 0, 1: 100, 2: 200, 3: 300}),
        _log("size", "grows", 1, {2: 500, 3: 800}),
        _series(f"{IN}_oneminuterate", "grows", {0: 80, 1: 80, 2: 80, 3: 80}),
        # Broker b has no counter, as a has. Who broker 1 is, nobody knows: it may be a.
        *(_log("logendoffset", "both", partition, {0: 0, 1: 10 + 10 * partition}) for partition in (0, 1)),
        _series(f"{IN}_total", "both", {0: 0, 1: 9000}),
        *(_series(f"{IN}_oneminuterate", "both", {0: 90, 1: 90}, instance=name) for name in ("a", "b")),
        _series(f"{IN}_oneminuterate", "both", {0: 90, 1: 90}, broker="1"),
    )
    # The next range begins where this one ended. It was written later, so what it says of that moment counts.
    _export(
        tmp_path / "a.json",
        START + 600,
        *(_log("logendoffset", topic, 0, {2: 20, 3: 30}) for topic in ("counter", "names", "gauge")),
        *(_log("logendoffset", topic, 1, {2: 40, 3: 60}) for topic in ("counter", "names", "gauge")),
        _series(f"{IN}_total", "counter", {2: 18000, 3: 27000}),
        _series(f"{IN}_oneminuterate", "gauge", {2: 60, 3: 60}),
    )
    from reconciler.balance.spark.normalise import MARKS, cleaned, rules_of

    # It makes windows where it is loaded, which takes a session.
    from reconciler.balance.spark.sources import read_samples

    samples = read_samples(spark, find_sample_files([str(tmp_path)]).files, cluster="c")
    rows = cleaned(samples, now=NOW).collect()
    found: dict[tuple[str, int], list[float | None]] = {}
    defects: Counter[Rule] = Counter()
    for row in sorted(rows, key=lambda row: row["ts"]):
        rules = rules_of(row[MARKS])
        defects.update(rules)
        if Rule.DUPLICATE not in rules:
            rate = row["bytes_in"]
            found.setdefault((row["topic"], row["partition"]), []).append(None if rate is None else round(rate, 9))
    assert found == {
        ("counter", 0): [None, 50, 50, 50],
        ("counter", 1): [None, 100, 100, 100],
        ("names", 0): [None, 50, 50, 50],
        ("names", 1): [None, 100, 100, 100],
        ("gauge", 0): [None, 30, 20, 20],
        ("gauge", 1): [None, 60, 40, 40],
        ("mixed", 0): [None, 30, 90],
        ("mixed", 1): [None, 60, None],
        ("grows", 0): [None, 80, 80, 20],
        ("grows", 1): [None, 60],
        ("both", 0): [None, 80],
        ("both", 1): [None, 160],
    }
    # Of three topics two partitions each at the shared moment; of two topics the rate then, of one at each moment.
    assert defects == {Rule.DUPLICATE: 6 + 2 + 4, Rule.ESTIMATED: 18 + 3 + 4 + 2}
