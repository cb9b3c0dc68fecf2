"""Brokers that alone have a topic's records die and are declared draining: no plan costs a record, whatever is elected.

What Kafka does with an empty replica beside them is seen too, by hand: the records are lost. So the test can fail.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.brokers.declared import client_file, declare
from helpers.depth import parts
from helpers.program.warm import reconciler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helpers.brokers.cluster import KafkaCluster
    from helpers.figures import Tell

pytestmark = pytest.mark.brokers

CONTROLLERS = (1, 2, 3)
HOLDERS = (5, 6)
"""Brokers that are no controllers, so that the quorum stands while both are down."""
WRITTEN = 1000
UNCLEAN = "unclean.leader.election.enable"
FORMS = [(factor, where) for factor in (1, 2) for where in ("topic", "broker", "by hand")]


class Lost:
    """A topic `pay` whose brokers die after its last record was acknowledged."""

    def __init__(self, kafka: "KafkaCluster", factor: int, where: str, folder: Path) -> None:
        from confluent_kafka.admin import AdminClient
        from helpers.brokers.by_hand import create
        from helpers.brokers.observer import Observer

        self.kafka, self.folder, self.where, self.holders = kafka, folder, where, HOLDERS[-factor:]
        self.topic = f"pay-{factor}-{where.replace(' ', '-')}"
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        self.observer = Observer(kafka.bootstrap)
        self.elect_uncleanly(is_on=where == "broker")
        create(
            kafka,
            {self.topic: [self.holders], f"{self.topic}-well": [(1, 6)]},
            {} if where == "broker" else {UNCLEAN: "true"},
        )
        kafka.write(self.topic, 0, [b"%d" % number for number in range(WRITTEN)])
        for broker in self.holders:
            kafka.kill(broker)
        for broker in self.holders:
            kafka.wait_until_gone(broker)
        kafka.wait_for(lambda: not self.has_leader(), f"{self.topic} to be without a leader")

    def elect_uncleanly(self, *, is_on: bool) -> None:
        """Set it on the controllers, which go by their own where a topic does not say."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
        from helpers.waiting import HANG

        kind = AlterConfigOpType.SET if is_on else AlterConfigOpType.DELETE
        entry = ConfigEntry(UNCLEAN, "true" if is_on else None, incremental_operation=kind)
        for controller in CONTROLLERS:
            resource = ConfigResource(ResourceType.BROKER, str(controller), incremental_configs=[entry])
            for answer in self.admin.incremental_alter_configs([resource]).values():
                answer.result(HANG)

    def has_leader(self) -> bool:
        """Whether a broker leads the partition."""
        return int(self.observer.topic(self.topic)[0].leader) >= 0

    def files(self) -> None:
        """Declare the topics, and their dead brokers draining, as for brokers that will not come back."""
        brokers = ", ".join(f"{{id: {broker}, state: draining}}" for broker in self.holders)
        documents = {
            name: f"replicationFactor: {count}"
            for name, count in ((self.topic, len(self.holders)), (f"{self.topic}-well", 2))
        }
        declare(self.folder, self.kafka, f"moves: {{throttle: 50MiB/s}}, brokers: [{brokers}]", documents)

    def back(self) -> int:
        """Start the dead brokers again, and return how many of the records are there."""
        self.kafka.start(*self.holders)
        self.kafka.wait_until_alive(self.kafka.broker_ids)
        self.kafka.wait_for(self.has_leader, f"{self.topic} to have a leader")
        return len(self.observer.records(self.topic))


@parts("forms", [(1, "topic")], deep=FORMS)
def test_no_plan_costs_a_record_of_a_partition_whose_brokers_are_dead(
    tmp_path: Path, mended: "KafkaCluster", figures: "Tell", forms: "Sequence[tuple[int, str]]"
) -> None:
    from helpers.brokers.by_hand import delete

    for factor, where in forms:
        folder = tmp_path / f"{factor}-{where}"
        folder.mkdir()
        lost = Lost(mended, factor, where, folder)
        try:
            if where == "by hand":
                _add_by_hand(lost)
            else:
                _plan_and_apply(lost)
            there = lost.back()
        finally:
            lost.elect_uncleanly(is_on=False)
        delete(mended, lost.topic, f"{lost.topic}-well")
        figures(f"RF {factor}, {where}", f"{there} of {WRITTEN} acknowledged records")
        assert there == (0 if where == "by hand" else WRITTEN)


def _plan_and_apply(lost: Lost) -> None:
    lost.files()
    made = reconciler("plan", "--out", "plan.json", "--detailed-exitcode", "-o", "json", cwd=lost.folder, expect=2)
    plan = json.loads(made.out)
    moved = {move["topic"] for stage in plan["stages"] for move in stage.get("moves", ())}
    assert moved - {"__consumer_offsets"} == {f"{lost.topic}-well"}
    assert any(f"{lost.topic}-0" in one["message"] for one in plan["warnings"] if one["code"] == "KR817")
    reconciler("apply", "plan.json", "--yes", cwd=lost.folder, expect=0)
    again = reconciler("plan", "--detailed-exitcode", cwd=lost.folder, expect=2)
    assert "No changes can be planned; 1 difference stays" in again.out
    said = reconciler("doctor", *client_file(lost.folder, lost.kafka), cwd=lost.folder, expect=1)
    assert "1 partition on it has no living replica in sync" in said.out or "not those of 1 partition" in said.out


def _add_by_hand(lost: Lost) -> None:
    """Do what no plan does: put an empty replica on a living broker, and have it elected as Kafka does in its turn."""
    from confluent_kafka import ElectionType, TopicPartition
    from confluent_kafka.admin import AdminClient
    from helpers.waiting import HANG
    from live.other_hands import reassign

    reassign(lost.kafka.bootstrap, {f"{lost.topic}-0": (1, *lost.holders)})
    if not lost.has_leader():
        # A client that saw brokers die may still look for the controller there.
        admin = AdminClient({"bootstrap.servers": lost.kafka.bootstrap})
        admin.elect_leaders(ElectionType.UNCLEAN, [TopicPartition(lost.topic, 0)]).result(HANG)
    lost.kafka.wait_for(lost.has_leader, "the empty replica to lead")


def test_a_config_is_planned_and_applied_while_a_broker_restarts(tmp_path: Path, mended: "KafkaCluster") -> None:
    from confluent_kafka.admin import ResourceType
    from helpers.brokers.by_hand import create
    from helpers.brokers.observer import Observer

    create(mended, {"shop": [(4, 5, 6)], "logs": [(6,)]}, {})
    observer = Observer(mended.bootstrap)
    before = observer.topic("shop")[0].replicas
    mended.stop(6)
    mended.wait_until_gone(6)
    documents = {"shop": "config: {retention.ms: 7d}", "logs": "config: {retention.ms: 8d}"}
    declare(tmp_path, mended, "moves: {throttle: 1MiB/s}", documents)
    reconciler("plan", "--out", "plan.json", "--detailed-exitcode", cwd=tmp_path, expect=2)
    reconciler("apply", "plan.json", "--yes", cwd=tmp_path, expect=0)
    kept = [observer.overrides(ResourceType.TOPIC, name)["retention.ms"] for name in documents]
    assert kept == [str(days * 86_400_000) for days in (7, 8)]
    matched = reconciler("plan", "--detailed-exitcode", cwd=tmp_path, expect=0)
    assert "No changes" in matched.out
    assert observer.topic("shop")[0].replicas == before
