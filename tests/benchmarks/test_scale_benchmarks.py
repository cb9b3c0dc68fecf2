"""Thousands of topics: what each verb costs on files and on real brokers, and how often it asks the cluster.

`python -m pytest tests/benchmarks/test_scale_benchmarks.py -m benchmark -s`; no assertion is about time. The variable
BENCHMARK_LIVE_TOPICS names how many topics three real brokers hold; 10,000 of them take some minutes to create.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from benchmarks.measure import cost_of
from benchmarks.table import show, show_row
from benchmarks.topics_at_scale import ManyTopics
from helpers.brokers.sent_requests import READS, requests_of

if TYPE_CHECKING:
    from helpers.brokers.cluster import KafkaCluster

pytestmark = pytest.mark.benchmark

MOST_REQUESTS = 200


def test_thousands_of_topics_on_files(tmp_path: Path) -> None:
    show("\n| topics | partitions | verb | CPU s | MB |\n|---|---|---|---|---|")
    for topics in (2_000, 5_000, 10_000):
        case = ManyTopics(topics)
        folder = tmp_path / str(topics)
        root, snapshot = case.write(folder), case.write_snapshot(folder)
        state = ("--state", str(snapshot))
        for name, arguments, code in (
            ("validate", ("validate",), 0),
            ("diff", ("diff", *state, "--detailed-exitcode"), 2),
            ("plan", ("plan", *state, "--detailed-exitcode", "--out", str(folder / "plan.json")), 2),
            ("plan -o markdown", ("show", str(folder / "plan.json"), "-o", "markdown"), 0),
        ):
            cost = cost_of(["-C", str(root), *arguments])
            assert cost.exit_code == code
            cells = (f"{topics:,}", f"{topics * case.partitions:,}", name)
            show_row(*cells, f"{cost.cpu_seconds:.2f}", f"{cost.peak_megabytes:.0f}")


def test_thousands_of_topics_on_real_brokers(
    tmp_path: Path, new_kafka: Callable[..., "KafkaCluster"], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = ManyTopics(int(os.environ.get("BENCHMARK_LIVE_TOPICS", "10000")), brokers=3, factor=1)
    monkeypatch.setattr("helpers.brokers.cluster.JVM_FLAGS", ("-Xms256m", "-Xmx1g", "-XX:+UseSerialGC"))
    kafka = new_kafka(broker_ids=(1, 2, 3), settings={"log.index.size.max.bytes": "65536"})
    began = time.monotonic()
    case.create(kafka.bootstrap)
    show(f"\n{case.topics:,} topics, {case.topics * case.partitions:,} partitions made in {_seconds_since(began)}")
    case.write(tmp_path, bootstrap=kafka.bootstrap)
    kafka.wait_for(lambda: _topics_seen(tmp_path) == case.topics, "all topics to be shown")
    show("\n| verb | CPU s | wall s | MB | requests |\n|---|---|---|---|---|")
    for name, arguments, code in (
        ("snapshot", ("snapshot", "--out", "snapshot.json"), 0),
        ("diff", ("diff", "--detailed-exitcode"), 2),
        ("plan", ("plan", "--detailed-exitcode", "--out", "plan.json"), 2),
    ):
        monkeypatch.chdir(tmp_path)
        began = time.monotonic()
        cost = cost_of(arguments)
        wall = _seconds_since(began)
        assert cost.exit_code == code
        sent = requests_of(*arguments, cwd=tmp_path, expect=code).counts
        kinds = ", ".join(f"{count} {READS.get(key, key)}" for key, count in sorted(sent.items()))
        cells = (name, f"{cost.cpu_seconds:.2f}", wall, f"{cost.peak_megabytes:.0f}", f"{sent.total()}: {kinds}")
        show_row(*cells)
        assert sent.total() < MOST_REQUESTS, "a request a topic"
    for broker_id in kafka.alive:
        kafka.kill(broker_id)
        for log_dir in kafka.log_dirs(broker_id):
            shutil.rmtree(log_dir, ignore_errors=True)  # longer than a fixture waits for its end


def _topics_seen(folder: Path) -> int:
    """Return how many topics a snapshot shows; brokers tell of new ones late, and the first look makes another one."""
    requests_of("snapshot", "--out", "first.json", cwd=folder)
    return sum(not topic["internal"] for topic in json.loads((folder / "first.json").read_text("utf-8"))["topics"])


def _seconds_since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"
