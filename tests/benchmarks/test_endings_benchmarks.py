"""Prints how soon a run that meets an end is over, on real brokers:

    pytest tests/benchmarks/test_endings_benchmarks.py -m benchmark -s

No assertion is about time. What is promised: the lock of a killed holder is free within 10 s, a second signal ends
the waiting within 10 s, and a dead destination's moves are taken back within a minute.
"""

import signal
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from benchmarks.table import show
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.run import MB, SMOOTH, LiveRun
from helpers.program.held_runs import HeldRun
from live.worlds import events

from reconciler.admin.client import connect

pytestmark = [pytest.mark.benchmark, pytest.mark.brokers]

BEFORE, AFTER = {0: (1, 2), 1: (2, 1)}, {0: (1, 3), 1: (2, 3)}
DESTINATION = 3
SLOW = "200kB/s"
FREE_SECONDS, STOP_SECONDS, TOLD_SECONDS = 10, 10, 60
FAILED, TERMINATED = 1, 143


@pytest.fixture(scope="module")
def brokers(kafka_version: str) -> Iterator[KafkaCluster]:
    """Four brokers; a dead one is missed sooner than by default."""
    settings = SMOOTH | {"broker.session.timeout.ms": "6000", "broker.heartbeat.interval.ms": "1000"}
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3, 4), settings=settings) as cluster:
        yield cluster


def _tell(what: str, seconds: float, promised: int) -> None:
    show(f"\n{what}: {seconds:.1f} s, {seconds / promised:.2f} of {promised} s")


def test_the_lock_of_a_killed_holder(tmp_path: Path, brokers: KafkaCluster) -> None:
    run = LiveRun(tmp_path, brokers, "held", BEFORE, AFTER, partition_bytes=MB)
    holder = HeldRun(tmp_path / "held", "apply", "plan.json", "--yes", "--bootstrap-server", brokers.bootstrap)
    brokers.wait_for(lambda: holder.is_there, "the lock to be held")
    admin = connect(brokers.properties)
    holder.kill()
    began = time.monotonic()
    with admin.lock("a benchmark"):
        _tell("the lock of a killed holder is free after", time.monotonic() - began, FREE_SECONDS)
    admin.close()
    holder.ended()
    assert run.before == BEFORE


def test_a_second_signal(tmp_path: Path, brokers: KafkaCluster) -> None:
    run = LiveRun(tmp_path, brokers, "signalled", BEFORE, AFTER, partition_bytes=2 * MB, throttle=SLOW)
    applying = run.start()
    run.wait_in_flight(DESTINATION)
    brokers.pause(DESTINATION)  # it will not answer when its throttle is to go
    applying.process.send_signal(signal.SIGTERM)
    brokers.wait_for(lambda: "ending in order" in applying.told, "the first signal to be told of")
    began = time.monotonic()
    applying.process.send_signal(signal.SIGTERM)
    applying.ended(TERMINATED)
    _tell("a second signal ends the run after", time.monotonic() - began, STOP_SECONDS)
    brokers.resume(DESTINATION)
    brokers.wait_until_alive([DESTINATION])
    run.reconciler("cancel", "plan.json")


def test_a_destination_that_dies(tmp_path: Path, brokers: KafkaCluster) -> None:
    run = LiveRun(tmp_path, brokers, "dead", BEFORE, AFTER, partition_bytes=2 * MB, throttle=SLOW)
    applying = run.start()
    run.wait_in_flight(DESTINATION)
    lost_at = time.time()
    brokers.kill(DESTINATION)
    applying.ended(FAILED)
    withdrawn = next(event["time"] for event in events(run.folder) if event["step"] == "withdraw")
    seconds = datetime.fromisoformat(withdrawn).timestamp() - lost_at
    _tell("a dead destination's moves are taken back after", seconds, TOLD_SECONDS)
    brokers.start(DESTINATION)
