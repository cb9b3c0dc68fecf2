"""A skewed load on real brokers, measured, planned with, and moved: it is then as even as the plan foretold."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from helpers.brokers import KafkaCluster
from helpers.command_line import reconciler
from helpers.observer import Observer, PartitionState
from helpers.program import Program
from helpers.skewed_load import SkewedLoad
from pyarrow import dataset

from reconciler.model.evenness import evenness

pytestmark = [pytest.mark.brokers, pytest.mark.spark]

TOPIC = "clicks"
BROKERS = (1, 2, 3, 4)
# Two replicas each; brokers 1 and 2 hold all that is hot.
ASSIGNMENT = ((1, 2), (2, 1), (1, 2), (2, 1), (3, 4), (4, 3), (3, 4), (4, 3), (1, 4), (2, 3))
RATES = {
    0: 240_000,
    1: 200_000,
    2: 160_000,
    3: 120_000,
    4: 30_000,
    5: 24_000,
    6: 20_000,
    7: 10_000,
    8: 60_000,
    9: 40_000,
}
CLUSTER = """\
apiVersion: reconciler/v1
kind: Cluster
metadata: {{name: live}}
spec:
  client: {{bootstrap.servers: "{bootstrap}"}}
  balance: {{networkIn: {{within: 10%}}, disk: {{within: 25%}}}}
  moves: {{throttle: 50MiB/s}}
---
apiVersion: reconciler/v1
kind: Topic
metadata: {{name: clicks}}
spec: {{placement: {{racks: {{spread: ignore}}}}}}
"""
Loads = Mapping[int, float]


@pytest.fixture
def program(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Return the program, run in this process, where Spark has been started once, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return Program(capsys)


@pytest.mark.usefixtures("spark")
def test_a_measured_load_becomes_as_even_as_the_plan_foretold(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster], program: Program
) -> None:
    kafka = new_kafka(broker_ids=BROKERS)
    create(kafka)
    write_desired(kafka, tmp_path)
    observer = Observer(kafka.bootstrap)
    with SkewedLoad(kafka.bootstrap, TOPIC, RATES) as load:
        loads_before = measured(program, tmp_path, "before")
        assert_rates_are_those_of_the_producer(loads_before)
        before = unevenness(loads_before, observer.topic(TOPIC))
        foretold = unevenness(loads_before, planned(tmp_path, observer.topic(TOPIC)))
        reconciler("apply", "plan.json", "--yes", cwd=tmp_path)
        loads_after = measured(program, tmp_path, "after")
        after = unevenness(loads_after, observer.topic(TOPIC))
    assert load.failed == []
    assert before > 1.5
    assert foretold < 1.11
    assert before - after == pytest.approx(before - foretold, rel=0.1)
    assert after == pytest.approx(foretold, rel=0.1)


def create(kafka: KafkaCluster) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    assignment = [list(replicas) for replicas in ASSIGNMENT]
    admin.create_topics([NewTopic(TOPIC, len(assignment), replica_assignment=assignment)])[TOPIC].result(30)
    kafka.wait_for(lambda: len(Observer(kafka.bootstrap).topic(TOPIC)) == len(ASSIGNMENT), "the topic")


def write_desired(kafka: KafkaCluster, folder: Path) -> None:
    root = folder / "desired-state" / "live"
    root.mkdir(parents=True)
    (root / "cluster.yaml").write_text(CLUSTER.format(bootstrap=kafka.bootstrap))


def measured(program: Program, folder: Path, name: str) -> Loads:
    """Collect for a while and return the bytes a second that each partition takes in, as `loads` finds them."""
    reconciler("collect", "--cluster", "live", "--out", f"samples-{name}", "--every", "2s", "--for", "16s", cwd=folder)
    done = program("loads", "--samples", f"samples-{name}", "--out", f"loads-{name}", "--bucket", "4s")
    assert done.code == 0, done.err
    table = dataset.dataset(folder / f"loads-{name}", format="parquet").to_table().to_pylist()
    return {row["partition"]: row["bytes_in_avg"] for row in table if row["topic"] == TOPIC}


def assert_rates_are_those_of_the_producer(loads: Loads) -> None:
    """A batch's head and each record's add some percent to the producer's own bytes."""
    assert sorted(loads) == sorted(RATES)
    for partition, rate in RATES.items():
        assert 0.9 * rate < loads[partition] < 1.25 * rate, (partition, rate, loads[partition])


def planned(folder: Path, now: Mapping[int, PartitionState]) -> dict[int, tuple[int, ...]]:
    """Plan with the loads measured and return the replicas of each partition that the plan reaches."""
    options = ("--cluster", "live", "--loads", "loads-before", "--statistic", "average", "--out", "plan.json")
    reconciler("plan", *options, "--detailed-exitcode", cwd=folder, expect=2)
    stages = json.loads((folder / "plan.json").read_text())["stages"]
    moves = [move for stage in stages for move in stage.get("moves", ()) if move["topic"] == TOPIC]
    return {number: state.replicas for number, state in now.items()} | {m["partition"]: tuple(m["to"]) for m in moves}


def unevenness(loads: Loads, assignment: Mapping[int, PartitionState] | Mapping[int, tuple[int, ...]]) -> float:
    """Return the most that one broker takes in over the mean: each replica takes in what its partition does."""
    taken: defaultdict[int, float] = defaultdict(float)
    for number, held in assignment.items():
        for replica in held.replicas if isinstance(held, PartitionState) else held:
            taken[replica] += loads[number]
    found = evenness((taken[broker], 1) for broker in BROKERS)
    assert found is not None
    return found.max_over_mean
