"""Two real clusters of which one copies topics of the other: their folder, what each holds, and what a move takes.

All is counted by a client that is not under test, from the records themselves: each has a value of its own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType
from helpers.brokers.by_hand import allow
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.observer import Observer
from helpers.brokers.rights import PROGRAM
from helpers.program.documents import document
from helpers.program.warm import Ended, reconciler
from helpers.waiting import ATTEMPT, HANG

COPIED = "{{source: us, topics: [{}], config: [retention.ms]}}"
Held = Mapping[int, Mapping[int, bytes]]
"""The value of each record, by partition and offset."""


@dataclass
class TwoClusters:
    """`us` and `eu`, which copies from it, with one folder for both."""

    folder: Path
    us: KafkaCluster
    eu: KafkaCluster
    replication_factor: int = 3
    _read: dict[tuple[str, str], dict[int, dict[int, bytes]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let the program read MirrorMaker 2's own topics, which RIGHTS.md names beside its commands."""
        for kafka, name in ((self.us, "mm2-offset-syncs.eu.internal"), (self.eu, "us.checkpoints.internal")):
            allow(kafka, PROGRAM, ResourceType.TOPIC, name, AclOperation.READ)

    def write(self, topics: Mapping[str, int], retention: str) -> None:
        """Declare these topics of `us`, by their partitions, and that `eu` copies them."""
        spec = f"{{replicationFactor: {self.replication_factor}, config: {{segment.bytes: 64MiB}}}}"
        standard = document("TopicClass", "standard", spec)
        declared = (
            document("Topic", name, f"{{partitions: {count}, config: {{retention.ms: {retention}}}, class: standard}}")
            for name, count in topics.items()
        )
        mirror = document("Mirror", "from-us", COPIED.format(", ".join(f'"{name}"' for name in topics)))
        for name, kafka, documents in (("us", self.us, [*declared]), ("eu", self.eu, [mirror])):
            path = self.folder / "desired-state" / name
            path.mkdir(parents=True, exist_ok=True)
            spec = "{{client: {}, topics: {{managed: all, delete: allow}}}}"
            cluster = document("Cluster", name, spec.format(json.dumps(kafka.client)))
            (path / "cluster.yaml").write_text(cluster, "utf-8")
            (path / "topics.yaml").write_text("---\n".join([standard, *documents]), "utf-8")

    def run(self, *arguments: str, expect: int = 0) -> Ended:
        """Run one command to its end."""
        return reconciler(*arguments, cwd=self.folder, expect=expect)

    def told(self, *arguments: str) -> Any:  # noqa: ANN401 - a document
        """Return what a command prints as JSON."""
        return json.loads(self.run(*arguments, "-o", "json").out)

    def apply_both(self) -> list[str]:
        """Plan both clusters and apply the plans in the order that is told; return it."""
        order: list[str] = self.told("plan", "--cluster", "us,eu", "--out", "plans")["order"]
        for name in order:
            self.run("apply", f"plans/{name}.json", "--yes")
            (self.folder / "plans" / f"{name}.json").unlink()
        return order

    def partitions(self, kafka: KafkaCluster, topic: str) -> int:
        """Return how many partitions a topic has."""
        return len(Observer(kafka.bootstrap).topic(topic))

    def held(self, kafka: KafkaCluster, topic: str) -> Held:
        """Return every record of a topic, to where it ends at the call; what was read once is not read again."""
        known = self._read.setdefault((kafka.bootstrap, topic), {})
        for number in range(self.partitions(kafka, topic)):
            records = known.setdefault(number, {})
            records |= records_from(kafka, topic, number, max(records, default=-1) + 1)
        return known

    def forget(self) -> None:
        """Read all records again the next time: a topic was made again."""
        self._read.clear()

    def commit(self, kafka: KafkaCluster, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Commit offsets for a group without members."""
        consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group, "log_level": 0})
        consumer.commit(
            offsets=[TopicPartition(topic, number, offset) for number, offset in offsets.items()], asynchronous=False
        )
        consumer.close()

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of `us` before these offsets."""
        admin = AdminClient({"bootstrap.servers": self.us.bootstrap})
        asked = [TopicPartition(topic, number, offset) for number, offset in before.items()]
        for answer in admin.delete_records(asked).values():
            answer.result(HANG)


def ends(kafka: KafkaCluster, topic: str, number: int) -> tuple[int, int]:
    """Return a partition's first offset and the one behind its last record."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "ends", "log_level": 0})
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=ATTEMPT)
    consumer.close()
    return low, high


def records_from(kafka: KafkaCluster, topic: str, number: int, start: int) -> dict[int, bytes]:
    """Return the records of a partition from that offset on, to where it ends at the call."""
    low, high = ends(kafka, topic, number)
    settings = {"group.id": "records", "enable.auto.commit": False, "log_level": 0}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **settings})
    found: dict[int, bytes] = {}
    position = max(start, low)
    consumer.assign([TopicPartition(topic, number, position)])
    while position < high:
        message = consumer.poll(ATTEMPT)
        if message is not None:
            assert message.error() is None, message.error()
            found[message.offset()] = message.value()
            position = message.offset() + 1
    consumer.close()
    return found
