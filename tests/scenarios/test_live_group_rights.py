"""Groups for users with few rights, and coordinators that a plan moves: on a private cluster of real brokers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from helpers.brokers.by_hand import allow
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.declared import assigned, declare
from helpers.program.warm import Ended, reconciler

from reconciler.admin.client import KafkaAdmin, connect
from reconciler.model.change import CreateTopic
from reconciler.model.topic_partition import TopicPartition

pytestmark = pytest.mark.brokers

NewKafka = Callable[..., KafkaCluster]
USERS = {"admin": "admin-password", "reader": "reader-password"}
GROUPS = tuple(f"group-{number}" for number in range(8))
OPEN, CLOSED = "open", "closed"


@pytest.fixture(scope="module")
def three(kafka_version: str) -> Iterator[KafkaCluster]:
    with KafkaCluster(version=kafka_version, broker_ids=(1, 2, 3), users=USERS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(three: KafkaCluster) -> Iterator[KafkaAdmin]:
    """Two topics, and eight groups that have committed offsets of both."""
    admin = connect(three.properties)
    changes = [CreateTopic(name, 2, 2, {}, {0: (1, 2), 1: (2, 3)}) for name in (OPEN, CLOSED)]
    assert all(answer.is_ok for answer in admin.create_topics(changes).values())
    three.wait_for(lambda: len(admin.topics([OPEN, CLOSED])) == 2, "the topics")
    for name in (OPEN, CLOSED):
        three.produce(name, 0, size=30_000)
    offsets = {TopicPartition(name, number): 0 for name in (OPEN, CLOSED) for number in (0, 1)}
    for group_id in GROUPS:  # a coordinator may learn of new topics a moment later than other brokers
        three.wait_for(lambda: all(told.is_ok for told in admin.commit_offsets(group_id, offsets).values()), group_id)  # noqa: B023 - called at once
    yield admin
    admin.close()


@dataclass
class Reader:
    """A user with the rights that it is given, and our program in its hands."""

    kafka: KafkaCluster
    folder: Path

    def grant(self, kind: ResourceType, name: str, operation: AclOperation) -> None:
        """Let the user do that."""
        allow(self.kafka, "reader", kind, name, operation)

    def run(self, *arguments: str, expect: int = 0) -> Ended:
        """Run `reconciler groups ARGUMENTS` as that user."""
        file = self.folder / "reader.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in self.kafka.properties_of("reader").items()))
        return reconciler("groups", *arguments, "--client", str(file), cwd=self.folder, expect=expect)


def test_each_right_that_is_missing_is_told_and_each_that_is_there_is_enough(
    three: KafkaCluster, admin: KafkaAdmin, tmp_path: Path
) -> None:
    assert admin.groups()
    reader = Reader(three, tmp_path)
    first, second = GROUPS[:2]
    assert reader.run("list").out == "No groups.\n"
    told = reader.run("describe", first, expect=1).err
    assert f"needs the right Describe on group {first}, which this user lacks" in told
    reader.grant(ResourceType.GROUP, first, AclOperation.DESCRIBE)
    three.wait_for(lambda: first in reader.run("list").out, "the right to be known")
    assert second not in reader.run("list").out
    # Offsets of topics that may not be described are not told by Kafka at all.
    (group,) = json.loads(reader.run("describe", first, "-o", "json").out)["groups"]
    assert (group["state"], group["partitions"], group["offsetsPartition"]) == ("Empty", [], None)
    reader.grant(ResourceType.TOPIC, OPEN, AclOperation.DESCRIBE)
    three.wait_for(lambda: OPEN in reader.run("lag", first).out, "the right to be known")
    assert CLOSED not in reader.run("lag", first).out

    reset = ("reset-offsets", first, "--to-latest", "--execute")
    told = reader.run(*reset, "--topic", CLOSED, expect=1).err
    assert f"topic {CLOSED} is not known: this user lacks the right Describe on it" in told
    assert f"needs the right Read on group {first}" in reader.run(*reset, "--topic", OPEN, expect=1).out
    reader.grant(ResourceType.GROUP, first, AclOperation.READ)
    three.wait_for(lambda: "on topic" in reader.run(*reset, "--topic", OPEN, expect=1).out, "the right to be known")
    assert f"needs the right Read on topic {OPEN}" in reader.run(*reset, "--topic", OPEN, expect=1).out
    assert admin.groups([first])[first].committed[TopicPartition(OPEN, 0)] == 0
    reader.grant(ResourceType.TOPIC, OPEN, AclOperation.READ)
    three.wait_for(lambda: _is_done(reader, *reset, "--topic", OPEN), "the right to be known")
    assert admin.groups([first])[first].committed[TopicPartition(OPEN, 0)] == 3

    assert f"needs the right Delete on group {first}" in reader.run("delete", first, "--execute", expect=1).out
    reader.grant(ResourceType.GROUP, first, AclOperation.DELETE)
    three.wait_for(lambda: _is_done(reader, "delete", first, "--execute"), "the right to be known")
    assert first not in admin.groups()


def _is_done(reader: Reader, *arguments: str) -> bool:
    try:
        reader.run(*arguments)
    except AssertionError:
        return False
    return True


def test_a_plan_predicts_who_coordinates_each_group_afterwards(
    three: KafkaCluster, admin: KafkaAdmin, tmp_path: Path
) -> None:
    before = {group_id: group.coordinator for group_id, group in admin.groups().items()}
    topic = admin.topics(["__consumer_offsets"])["__consumer_offsets"]
    # Every replica list turned by one: each partition gets another leader, and copies nothing.
    lists = {one.partition: (*one.replicas[1:], one.replicas[0]) for one in topic.partitions}
    declare(tmp_path, three, topics={"__consumer_offsets": assigned(lists)})
    planned = reconciler("plan", "--out", "plan.json", cwd=tmp_path)
    assert "`groups describe --plan PLAN` names them (KR920)" in planned.out + planned.err
    shown = reconciler("groups", "describe", "--plan", "plan.json", "-o", "json", cwd=tmp_path).out
    predicted = {
        group["groupId"]: group["coordinator"]
        if group["coordinatorAfterPlan"] is None
        else group["coordinatorAfterPlan"]
        for group in json.loads(shown)["groups"]
    }
    assert predicted.keys() == before.keys()
    assert all(predicted[group_id] != before[group_id] for group_id in before)
    reconciler("apply", "plan.json", "--yes", cwd=tmp_path)

    def coordinators() -> dict[str, int | None]:
        return {group_id: group.coordinator for group_id, group in admin.groups().items()}

    three.wait_for(lambda: coordinators() == predicted, f"the coordinators to be {predicted}")
