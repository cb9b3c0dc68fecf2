"""Prints how long apply takes beside its plan's estimate, on real brokers with their own settings.

    pytest tests/benchmarks/test_apply_benchmarks.py -m benchmark -s

The whole command is counted, from its start to its exit, on a machine that should be idle otherwise, at three
throttles; the variable APPLY_RATES names fewer than "1,5,20", in MB/s. Of six brokers one takes in ten replicas, two at
a time, and leads half of them then.
"""

import json
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from benchmarks.table import show, show_row
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.run import MB, PLAN, LiveRun
from live.worlds import events

pytestmark = [pytest.mark.benchmark, pytest.mark.brokers]

DESTINATION, OTHERS = 4, (1, 2, 3, 5, 6)
PARTITIONS = 10
MEGABYTES = {1: 4, 5: 20, 20: 60}
"""MB of each partition, by the throttle in MB/s."""
HEADER = (
    "| throttle MB/s | MB into the busiest broker | stages | estimate s | took s | took / estimate "
    "| each stage: estimate, took |\n" + "|---" * 7 + "|"
)
LEAST, MOST = 0.9, 1.15
QUOTA_WINDOW_SECONDS = 12
"""Brokers hold a rate over 11 seconds: a run that begins within them may spend what one before it left."""


@pytest.fixture(scope="module")
def brokers(kafka_version: str) -> Iterator[KafkaCluster]:
    """Six brokers with their own settings."""
    with KafkaCluster(version=kafka_version, broker_ids=(*OTHERS, DESTINATION)) as cluster:
        yield cluster


def lists(number: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a partition's replicas before and after: the destination leads every second one, and follows in others."""
    first, second = (OTHERS[(number + step) % len(OTHERS)] for step in range(2))
    return (first, second), (first, DESTINATION) if number % 2 else (DESTINATION, second)


def stage_seconds(run: LiveRun) -> list[str]:
    """Return each stage's estimate and what its journal says it took."""
    plan: dict[str, Any] = json.loads((run.folder / PLAN).read_text())
    began: dict[int, float] = {}
    took: dict[int, float] = {}
    for event in events(run.folder):
        moment = datetime.fromisoformat(event["time"]).timestamp()
        if event["step"] == "stage" and event["outcome"] == "started":
            began[event["stage"]] = moment
        if event["step"] == "stage" and event["outcome"] == "done":
            took[event["stage"]] = moment - began[event["stage"]]
    return [f"{one.get('estimatedSeconds', 0)}, {took[one['number']]:.1f}" for one in plan["stages"]]


def measured(folder: Path, brokers: KafkaCluster, rate: int) -> float:
    """Print one row of the table; return what apply took over the estimate."""
    both = {number: lists(number) for number in range(PARTITIONS)}
    before, after = ({number: two[side] for number, two in both.items()} for side in range(2))
    size, throttle = MEGABYTES[rate] * MB, f"{rate}MB/s"
    run = LiveRun(folder, brokers, f"rate-{rate}", before, after, partition_bytes=size, throttle=throttle, per_broker=2)
    summary = json.loads((folder / PLAN).read_text())["summary"]
    estimate: int = summary["estimatedSeconds"]
    time.sleep(QUOTA_WINDOW_SECONDS)
    start = time.monotonic()
    run.start().ended(0)
    took = time.monotonic() - start
    cells = (rate, PARTITIONS * MEGABYTES[rate], summary["stages"], estimate, f"{took:.1f}", f"{took / estimate:.2f}")
    show_row(*cells, "; ".join(stage_seconds(run)))
    return took / estimate


def test_apply_takes_as_long_as_the_plan_says(tmp_path: Path, brokers: KafkaCluster) -> None:
    show(f"\n{HEADER}")
    ratios = {}
    for rate in map(int, os.environ.get("APPLY_RATES", "1,5,20").split(",")):
        folder = tmp_path / str(rate)
        folder.mkdir()
        ratios[rate] = measured(folder, brokers, rate)
    assert {rate: ratio for rate, ratio in ratios.items() if not LEAST <= ratio <= MOST} == {}
