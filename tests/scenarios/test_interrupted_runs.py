"""A run on real brokers that is killed mid-way: the next one goes on, or `cancel` takes it back."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.controller import PartitionState
from helpers.brokers.observer import Observer
from helpers.program.command_line import reconciler

pytestmark = pytest.mark.brokers

TOPIC = "interrupted"
Assignment = Mapping[int, tuple[int, ...]]
BEFORE: Assignment = {0: (3, 1), 1: (6, 4), 2: (5, 3), 3: (2, 6)}
AFTER: Assignment = {0: (4, 3, 2), 1: (6, 4, 5), 2: (1, 5, 3), 3: (2, 6, 1)}


def write(folder: Path, kafka: KafkaCluster, assignment: Assignment, *, throttle: str = "1MiB/s") -> None:
    root = folder / "desired-state" / "live"
    root.mkdir(parents=True, exist_ok=True)
    lists = [list(replicas) for replicas in assignment.values()]
    (root / "cluster.yaml").write_text(
        f"""
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: live}}
spec:
  client: {{bootstrap.servers: "{kafka.bootstrap}"}}
  moves: {{throttle: {throttle}, perPartition: 2}}
---
apiVersion: reconciler/v1
kind: Topic
metadata: {{name: {TOPIC}}}
spec: {{placement: {{assignment: {lists}}}}}
"""
    )


def kill_mid_way(folder: Path, plan: str, observer: Observer, kafka: KafkaCluster) -> None:
    """Start an apply and kill it with SIGKILL once Kafka shows its moves."""
    command = [sys.executable, "-m", "reconciler", "apply", plan, "--yes"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        kafka.wait_for(lambda: any(len(s.replicas) > 2 for s in observer.partitions(TOPIC)), "the moves to begin")
        os.kill(running.pid, signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL


def state(observer: Observer) -> dict[int, tuple[tuple[int, ...], int]]:
    return {number: (found.replicas, found.leader) for number, found in observer.topic(TOPIC).items()}


def led_by_the_first(assignment: Assignment) -> dict[int, tuple[tuple[int, ...], int]]:
    return {number: (replicas, replicas[0]) for number, replicas in assignment.items()}


def wait_until_unthrottled(observer: Observer, kafka: KafkaCluster) -> None:
    """Wait a moment: a broker may answer from before the change that the controller has acknowledged."""
    kafka.wait_for(lambda: not observer.throttles((TOPIC,), kafka.alive), "the throttles to be gone")


def is_in_sync(found: PartitionState) -> bool:
    return found.isr == set(found.replicas)


@pytest.mark.deep
def test_a_killed_run_is_cancelled_to_its_ordered_start_or_goes_on_to_its_end(
    tmp_path: Path, kafka: KafkaCluster
) -> None:
    observer = Observer(kafka.bootstrap)
    write(tmp_path, kafka, BEFORE)
    reconciler("plan", "--out", "create.json", cwd=tmp_path)
    reconciler("apply", "create.json", "--yes", cwd=tmp_path)
    for number in BEFORE:
        kafka.produce(TOPIC, number, size=6_000_000)
    write(tmp_path, kafka, AFTER, throttle="100KiB/s")  # what is to be taken back does not end meanwhile
    reconciler("plan", "--out", "slow.json", "--detailed-exitcode", cwd=tmp_path, expect=2)

    kill_mid_way(tmp_path, "slow.json", observer, kafka)
    assert observer.throttles((TOPIC,), kafka.alive) != {}
    assert "in flight" in reconciler("status", "slow.json", cwd=tmp_path).out
    reconciler("cancel", "slow.json", cwd=tmp_path)
    assert state(observer) == led_by_the_first(BEFORE)
    wait_until_unthrottled(observer, kafka)

    write(tmp_path, kafka, AFTER)
    reconciler("plan", "--out", "grow.json", "--detailed-exitcode", cwd=tmp_path, expect=2)
    kill_mid_way(tmp_path, "grow.json", observer, kafka)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "grow.json").rename(tmp_path / "elsewhere" / "grow.json")
    reconciler("apply", "grow.json", "--yes", "--bootstrap-server", kafka.bootstrap, cwd=tmp_path / "elsewhere")
    assert state(observer) == led_by_the_first(AFTER)
    assert all(is_in_sync(found) for found in observer.partitions(TOPIC))
    wait_until_unthrottled(observer, kafka)
    reconciler("plan", "--detailed-exitcode", cwd=tmp_path)
