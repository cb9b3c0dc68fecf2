"""`topics describe` beside Kafka's own tool, on brokers of which some are dead and with moves that wait for them."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from helpers.brokers.by_hand import kafka_tool
from helpers.brokers.cluster import KafkaCluster
from helpers.program.warm import reconciler

from reconciler.admin.client import connect
from reconciler.model.change import CreateTopic
from reconciler.model.topic_configs import TOPIC_CONFIGS, rule_of
from reconciler.model.topic_partition import TopicPartition

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

NOT_TO_SET = {"remote.log.copy.disable", "remote.log.delete.on.disable", "remote.storage.enable"}


def every_config(version: str) -> dict[str, str]:
    """Return each topic config of that version at its default, which counts as an override."""
    # Of two keys in one bin of Java's hash map, 3.9 shows the other one first.
    left_out = {*NOT_TO_SET, "min.cleanable.dirty.ratio"} if version.startswith("3.") else NOT_TO_SET
    rules = {key: rule_of(key, version) for key in TOPIC_CONFIGS if key not in left_out}
    return {key: rule.default for key, rule in rules.items() if rule is not None and rule.default}


def test_the_lines_of_kafka_topics_are_printed_as_kafkas_tool_prints_them(
    new_kafka: Callable[..., KafkaCluster], kafka_version: str, tmp_path: Path
) -> None:
    kafka = new_kafka()
    admin = connect(kafka.properties)
    topics = (
        CreateTopic("configs", 1, 3, every_config(kafka_version), {0: (1, 2, 3)}),
        CreateTopic("dying", 3, 3, {"min.insync.replicas": "2"}, {0: (4, 5, 6), 1: (5, 6, 4), 2: (1, 2, 3)}),
        CreateTopic("moving", 2, 2, {}, {0: (1, 2), 1: (2, 3)}),
        CreateTopic("off.line", 1, 1, {}, {0: (6,)}),
    )
    assert all(answer.is_ok for answer in admin.create_topics(topics).values())
    names = [topic.topic for topic in topics]
    kafka.wait_for(lambda: len(admin.topics(names)) == len(names), "the topics")

    def has_lost(broker: int) -> bool:
        found = [one for topic in admin.topics(names).values() for one in topic.partitions if len(one.replicas) > 1]
        return not any(broker in one.isr for one in found)

    for broker in (6, 5):  # one after the other: the second may lead then, and is in the ELR
        kafka.kill(broker)
        kafka.wait_for(partial(has_lost, broker), "the ISR")
    targets = {TopicPartition("moving", 0): (6, 2), TopicPartition("moving", 1): (2, 3, 6)}
    assert all(answer.is_ok for answer in admin.reassign(targets).values())
    kafka.wait_for(
        lambda: sum(6 in one.replicas for one in admin.topics(["moving"])["moving"].partitions) == 2, "moves"
    )

    ours = reconciler("topics", "describe", "--bootstrap-server", kafka.bootstrap, *names, cwd=tmp_path).out
    theirs = kafka_tool(kafka, "TopicCommand", "--describe", "--exclude-internal")
    shown = [line for line in ours.splitlines() if line.lstrip("\t").startswith("Topic: ")]
    assert shown == sorted(filter(None, theirs.splitlines()), key=topic_of)
    assert {"Adding Replicas: 6", "Leader: none"} <= {cell for line in shown for cell in line.split("\t")}
    as_json = reconciler("topics", "list", "--bootstrap-server", kafka.bootstrap, "-o", "json", cwd=tmp_path).out
    (told,) = json.loads(as_json)["clusters"]
    assert {one["topic"]: one["partitions"] for one in told["topics"]} == {one.topic: one.partitions for one in topics}
    admin.close()


def topic_of(line: str) -> str:
    return line.split("\t")[line.startswith("\t")]
