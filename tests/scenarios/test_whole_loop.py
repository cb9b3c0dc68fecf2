"""The whole loop on real brokers, each step through the command line, each end state seen by another client."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import ResourceType
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import declare
from helpers.brokers.delivery import Delivery, delivery_faults
from helpers.brokers.observer import Observer
from helpers.program.documents import document
from helpers.program.warm import Ended, reconciler

pytestmark = pytest.mark.brokers

ORDERS, PAYMENTS, AUDIT = "orders", "payments", "audit"
TOPICS = (ORDERS, PAYMENTS, AUDIT)
NEW = 4
RACK = {1: "a", 2: "b", 3: "c", NEW: "a"}


class Operator:
    """Edits the desired state and runs plan and apply, as the operator of the cluster `live` would."""

    def __init__(self, folder: Path, kafka: KafkaCluster) -> None:
        self.folder = folder
        self.kafka = kafka
        self.observer = Observer(kafka.bootstrap)
        self.brokers: list[str] = []
        self.moves = "throttle: 20MiB/s, perBroker: 20"
        self.topics: dict[str, str] = {}

    def write(self) -> None:
        """Write the desired state."""
        brokers = ", ".join(self.brokers)
        spec = f"brokers: [{brokers}], balance: {{replicas: even, leaders: even}}, moves: {{{self.moves}}}"
        topics = {name: f"class: spread, {spec}" for name, spec in self.topics.items()}
        root = declare(self.folder, self.kafka, spec, topics)
        spread = document("TopicClass", "spread", "{placement: {racks: {spread: strict}}}")
        (root / "classes.yaml").write_text(spread)

    def run(self, *arguments: str | Path, expect: int = 0) -> Ended:
        """Run one command on the cluster."""
        return reconciler(*arguments, cwd=self.folder, expect=expect)

    def plan(self, name: str) -> dict[str, object]:
        """Plan into a file of that name; there must be changes."""
        self.write()
        path = self.folder / f"{name}.json"
        self.run("plan", "--cluster", "live", "--out", path, "--detailed-exitcode", expect=2)
        plan: dict[str, object] = json.loads(path.read_text())
        return plan

    def apply(self, name: str) -> None:
        """Apply the plan of that name; then nothing is left to do, nothing is throttled, all is in sync."""
        applied = self.run("apply", self.folder / f"{name}.json", "--yes")
        assert applied.err.endswith("Planning again: no changes.\n"), applied.err
        self.kafka.wait_for(self.is_unthrottled, "the throttles to be gone")
        for state in self.observer.partitions(*TOPICS):
            assert state.isr == set(state.replicas)
            assert state.leader == state.replicas[0]
            racks = [RACK[replica] for replica in state.replicas]
            assert len(set(racks)) == min(len(racks), 3)

    def is_unthrottled(self) -> bool:
        """Whether no throttle key is set; brokers may show a removal a moment late."""
        return not self.observer.throttles(TOPICS, self.kafka.alive)

    def is_in_sync(self) -> bool:
        """Whether every replica of every topic is in sync."""
        return all(state.isr == set(state.replicas) for state in self.observer.partitions(*TOPICS))

    def change(self, name: str) -> dict[str, object]:
        """Plan and apply."""
        plan = self.plan(name)
        self.apply(name)
        return plan


def summary(plan: dict[str, object]) -> dict[str, int]:
    found = plan["summary"]
    assert isinstance(found, dict)
    return found


def test_topics_and_brokers_come_change_and_go_through_reviewed_plans(
    tmp_path: Path, new_kafka: Callable[..., KafkaCluster]
) -> None:
    kafka = new_kafka(broker_ids=(1, 2, 3))
    operator = Operator(tmp_path, kafka)
    create_three_topics(operator)
    for number in range(6):
        kafka.produce(ORDERS, number, size=1_000_000)
    grow_one_change_configs_and_raise_a_replication_factor(operator)
    fill_a_new_broker_and_lower_the_replication_factor(operator)
    drain_it_under_traffic(operator)
    rebalance_leaders_in_batches(operator)
    operator.run("plan", "--cluster", "live", "--detailed-exitcode", expect=0)


def create_three_topics(operator: Operator) -> None:
    operator.topics = {
        ORDERS: "partitions: 6, replicationFactor: 2, config: {retention.ms: 7d}",
        PAYMENTS: "partitions: 4, replicationFactor: 3, config: {min.insync.replicas: 2}",
        AUDIT: "partitions: 3, replicationFactor: 2, config: {cleanup.policy: compact}",
    }
    operator.change("create")
    seen = operator.observer
    assert {name: len(seen.topic(name)) for name in TOPICS} == {ORDERS: 6, PAYMENTS: 4, AUDIT: 3}
    assert {len(state.replicas) for state in seen.partitions(PAYMENTS)} == {3}
    assert seen.overrides(ResourceType.TOPIC, ORDERS) == {"retention.ms": "604800000"}


def grow_one_change_configs_and_raise_a_replication_factor(operator: Operator) -> None:
    operator.topics |= {
        ORDERS: "partitions: 6, replicationFactor: 3, config: {retention.ms: 1d, segment.bytes: 64MiB}",
        AUDIT: "partitions: 5, replicationFactor: 2, config: {cleanup.policy: null}",
    }
    plan = operator.change("grow")
    seen = operator.observer
    assert len(seen.topic(AUDIT)) == 5
    assert seen.overrides(ResourceType.TOPIC, AUDIT) == {}
    wanted = {"retention.ms": "86400000", "segment.bytes": str(64 * 1024**2)}
    assert seen.overrides(ResourceType.TOPIC, ORDERS) == wanted
    assert {len(state.replicas) for state in seen.partitions(ORDERS)} == {3}
    assert summary(plan)["replicaMoves"] >= 6


def fill_a_new_broker_and_lower_the_replication_factor(operator: Operator) -> None:
    operator.topics[ORDERS] = operator.topics[ORDERS].replace("replicationFactor: 3", "replicationFactor: 2")
    operator.kafka.add(NEW)
    operator.change("fill")
    assert {len(state.replicas) for state in operator.observer.partitions(ORDERS)} == {2}
    assert operator.observer.replicas_per_broker()[NEW] >= (6 + 4 + 5) // 2, "half of what its rack may hold"


def drain_it_under_traffic(operator: Operator) -> None:
    operator.brokers = [f"{{id: {NEW}, state: draining, reason: host retirement}}"]
    operator.moves = "throttle: 2MiB/s, perBroker: 20"
    with Delivery(operator.kafka.bootstrap, ORDERS, 6) as delivery:
        operator.change("drain")
    assert operator.observer.replicas_per_broker()[NEW] == 0
    assert delivery.sent.failures == ()
    assert delivery_faults(delivery.sent, operator.observer.records(ORDERS), 6) == []


def rebalance_leaders_in_batches(operator: Operator) -> None:
    preferred = Counter(state.replicas[0] for state in operator.observer.partitions(*TOPICS))
    ((most, _),) = preferred.most_common(1)
    operator.kafka.stop(most)
    operator.kafka.start(most)
    operator.kafka.wait_for(operator.is_in_sync, f"broker {most} to be in sync again")
    operator.moves = "throttle: 20MiB/s, electionBatch: 2"
    plan = operator.plan("elect")
    assert summary(plan)["bytes"] == 0
    stages = plan["stages"]
    assert isinstance(stages, list)
    (stage,) = stages
    assert (stage["kind"], len(stage["elections"]) > 2) == ("elect", True)
    operator.apply("elect")
    lines = (operator.folder / "runs" / "live" / f"{plan['id']}.jsonl").read_text().splitlines()
    batches = [event["detail"]["partitions"] for event in map(json.loads, lines) if event["step"] == "elect"]
    assert all(0 < len(batch) <= 2 for batch in batches)
    wanted = {f"{one['topic']}-{one['partition']}" for one in stage["elections"]}
    assert {key for batch in batches for key in batch} == wanted
