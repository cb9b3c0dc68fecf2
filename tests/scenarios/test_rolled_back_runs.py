"""A run on real brokers whose first stages ended and whose last was killed, rolled back to where it began."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.observer import Observer
from helpers.program.command_line import reconciler

from reconciler.files.plan_file import read_plan
from reconciler.model.stage import ReassignStage

pytestmark = pytest.mark.brokers

Assignment = Mapping[str, tuple[tuple[int, ...], ...]]
# A factor up, a factor down, a change of order, whole swaps.
BEFORE: Assignment = {"back-grown": ((3, 1), (6, 4), (2, 6)), "back-shrunk": ((5, 3, 1), (1, 2, 3), (4, 5, 6))}
AFTER: Assignment = {"back-grown": ((4, 3, 2), (4, 6, 5), (1, 5, 3)), "back-shrunk": ((3, 5), (4, 6), (6, 4))}
TOPICS = tuple(BEFORE)


def write(folder: Path, kafka: KafkaCluster, assignment: Assignment) -> None:
    root = folder / "desired-state" / "live"
    root.mkdir(parents=True, exist_ok=True)
    topics = "".join(
        f"""---
apiVersion: reconciler/v1
kind: Topic
metadata: {{name: {name}}}
spec: {{placement: {{assignment: {[list(replicas) for replicas in lists]}}}}}
"""
        for name, lists in assignment.items()
    )
    (root / "cluster.yaml").write_text(
        f"""
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: live}}
spec:
  client: {{bootstrap.servers: "{kafka.bootstrap}"}}
  moves: {{throttle: 4MiB/s, perPartition: 2, perStage: 2, electionBatch: 2}}
{topics}"""
    )


def state(observer: Observer) -> dict[tuple[str, int], tuple[tuple[int, ...], int]]:
    return {
        (name, number): (found.replicas, found.leader)
        for name in TOPICS
        for number, found in observer.topic(name).items()
    }


def led_by_the_first(assignment: Assignment) -> dict[tuple[str, int], tuple[tuple[int, ...], int]]:
    return {
        (name, number): (replicas, replicas[0])
        for name, lists in assignment.items()
        for number, replicas in enumerate(lists)
    }


def kill_in_its_last_stage(folder: Path, kafka: KafkaCluster) -> None:
    """Start the plan and kill it with SIGKILL once Kafka has taken moves of its last stage."""
    plan = read_plan(folder / "plan.json")
    stages = [stage for stage in plan.stages if isinstance(stage, ReassignStage)]
    assert len(stages) >= 3
    journal = folder / "runs" / "live" / f"{plan.id}.jsonl"

    def has_begun() -> bool:
        whole, _, _ = (journal.read_text("utf-8") if journal.exists() else "").rpartition("\n")
        events = [json.loads(line) for line in whole.splitlines()]
        return any((event["step"], event.get("stage")) == ("reassign", stages[-1].number) for event in events)

    command = [sys.executable, "-m", "reconciler", "apply", "plan.json", "--yes"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        kafka.wait_for(has_begun, "the last stage to begin")
        os.kill(running.pid, signal.SIGKILL)
    assert running.returncode == -signal.SIGKILL


@pytest.mark.deep
def test_two_stages_that_ended_and_one_that_was_killed_go_back_as_a_plan_shown_first(
    tmp_path: Path, kafka: KafkaCluster
) -> None:
    observer = Observer(kafka.bootstrap)
    write(tmp_path, kafka, BEFORE)
    reconciler("plan", "--out", "create.json", cwd=tmp_path)
    reconciler("apply", "create.json", "--yes", cwd=tmp_path)
    for name, number in led_by_the_first(BEFORE):
        kafka.produce(name, number, size=4_000_000)
    records = [observer.records(name) for name in TOPICS]
    write(tmp_path, kafka, AFTER)
    reconciler("plan", "--out", "plan.json", "--detailed-exitcode", cwd=tmp_path, expect=2)
    kill_in_its_last_stage(tmp_path, kafka)
    moved = {key for key, where in state(observer).items() if where != led_by_the_first(BEFORE)[key]}
    assert len(moved) >= 3

    saved = reconciler("cancel", "--rollback", "--out", "back.json", cwd=tmp_path)
    assert "nothing has been changed" in saved.err
    shown = reconciler("show", "back.json", cwd=tmp_path).out
    assert f"A rollback: undoes plan {read_plan(tmp_path / 'plan.json').id}." in shown
    assert "to where the plan found them" in shown

    reconciler("cancel", "--rollback", "--yes", cwd=tmp_path)
    assert state(observer) == led_by_the_first(BEFORE)
    assert all(found.isr == set(found.replicas) for found in observer.partitions(*TOPICS))
    kafka.wait_for(lambda: not observer.throttles(TOPICS, kafka.alive), "the throttles to be gone")
    assert [observer.records(name) for name in TOPICS] == records
    again = reconciler("cancel", "--rollback", "--yes", "plan.json", cwd=tmp_path)
    assert "is left to undo" in again.out
    write(tmp_path, kafka, BEFORE)
    reconciler("plan", "--detailed-exitcode", cwd=tmp_path)
