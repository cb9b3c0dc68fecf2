"""What operators do to a cluster by hand, through clients that are not under test.

create(kafka, {"orders": [[1, 2], [2, 3]]}, {"retention.ms": "86400000"})   # returns when every broker shows them
delete(kafka, "orders", "gone-already")
allow(kafka, "reader", ResourceType.TOPIC, "orders", AclOperation.READ)
kafka_tool(kafka, "TopicCommand", "--describe")                             # what Kafka's own tool prints
"""

import subprocess
from collections.abc import Mapping, Sequence

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.kafka_jars import QUICK_JAVA, jars, java, tools_jar
from helpers.brokers.observer import Observer
from helpers.waiting import HANG

Lists = Sequence[Sequence[int]] | Mapping[int, Sequence[int]]


def create(kafka: KafkaCluster, topics: Mapping[str, Lists], configs: Mapping[str, str] | None = None) -> None:
    """Create topics whose partitions have these replicas, and wait until they are there."""
    lists = {
        name: [list(replicas) for _, replicas in sorted(of.items() if isinstance(of, Mapping) else enumerate(of))]
        for name, of in topics.items()
    }
    new = [
        NewTopic(name, len(places), replica_assignment=places, config=dict(configs or {}))
        for name, places in lists.items()
    ]
    admin, observer = AdminClient({"bootstrap.servers": kafka.bootstrap}), Observer(kafka.bootstrap)
    for answer in admin.create_topics(new).values():
        answer.result(HANG)
    kafka.wait_for(
        lambda: all(len(observer.topic(name)) == len(lists[name]) for name in lists), f"the topics {[*lists]}"
    )


def delete(kafka: KafkaCluster, *topics: str) -> None:
    """Delete those of these topics that are there, and wait until they are gone."""
    admin, observer = AdminClient({"bootstrap.servers": kafka.bootstrap}), Observer(kafka.bootstrap)
    left = [topic for topic in topics if observer.topic(topic)]
    for answer in (admin.delete_topics(left) if left else {}).values():
        answer.result(HANG)
    kafka.wait_for(lambda: not list(observer.partitions(*topics)), "the topics to be gone")


def allow(kafka: KafkaCluster, user: str, kind: ResourceType, name: str, *operations: AclOperation) -> None:
    """Let a user do that; brokers know it a moment later."""
    rule = (kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*")
    acls = [AclBinding(*rule, operation, AclPermissionType.ALLOW) for operation in operations]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for done in admin.create_acls(acls).values():
        done.result(HANG)


def kafka_tool(kafka: KafkaCluster, name: str, *arguments: str) -> str:
    """Run one of Kafka's own tools, and return what it prints."""
    class_path = f"{jars(kafka.version)}/*:{tools_jar(kafka.version)}"
    flags = ("-Xmx128m", *QUICK_JAVA, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
    command = [java(), *flags, "-cp", class_path, f"org.apache.kafka.tools.{name}"]
    asked = [*command, "--bootstrap-server", kafka.bootstrap, *arguments]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=HANG)
    assert "Error" not in done.stdout, done.stdout
    return done.stdout
