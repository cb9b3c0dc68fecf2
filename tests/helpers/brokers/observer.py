"""What real brokers hold, seen through another client library than the one under test."""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigResource, ResourceType
from helpers.waiting import ATTEMPT, HANG, asked_again

THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
)


@dataclass(frozen=True)
class PartitionState:
    """One partition as Metadata shows it."""

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int


class Observer:
    """Reads brokers, topics, configs and records by itself."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def topic(self, name: str) -> dict[int, PartitionState]:
        """Return the partitions of a topic; empty where it does not exist."""
        topics = self._metadata().topics
        if name not in topics:
            return {}
        return {
            number: PartitionState(tuple(state.replicas), frozenset(state.isrs), state.leader)
            for number, state in sorted(topics[name].partitions.items())
        }

    def _metadata(self) -> ClusterMetadata:
        return asked_again(lambda: self._admin.list_topics(timeout=ATTEMPT), KafkaException)

    def partitions(self, *names: str) -> Iterator[PartitionState]:
        """Yield every partition of these topics."""
        for name in names:
            yield from self.topic(name).values()

    def replicas_per_broker(self) -> Counter[int]:
        """Return how many replicas each broker holds, over all topics."""
        topics = self._metadata().topics
        return Counter(
            replica for topic in topics.values() for state in topic.partitions.values() for replica in state.replicas
        )

    def overrides(self, kind: ResourceType, name: str) -> Mapping[str, str]:
        """Return the dynamic overrides of a topic or broker."""
        resource = ConfigResource(kind, name)
        entries = self._admin.describe_configs([resource])[resource].result(timeout=HANG)
        dynamic = {"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"}
        return {key: entry.value for key, entry in entries.items() if _source(entry.source) in dynamic}

    def throttles(self, topics: tuple[str, ...], brokers: tuple[int, ...]) -> dict[str, str]:
        """Return every throttle key that is set on these topics and brokers."""
        self._metadata()  # the client learns of brokers that came since
        found: dict[str, str] = {}
        for kind, names in ((ResourceType.TOPIC, topics), (ResourceType.BROKER, map(str, brokers))):
            for name in names:
                overrides = self.overrides(kind, name)
                found |= {f"{name}:{key}": overrides[key] for key in THROTTLES if key in overrides}
        return found

    def records(self, topic: str) -> dict[tuple[int, int], bytes]:
        """Return every record of a topic by (partition, offset), from the start to where it ends at the call."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "checker", "enable.auto.commit": False})
        ends = {}
        for number in self.topic(topic):
            low, high = _ends(consumer, TopicPartition(topic, number))
            if high > low:
                ends[number] = high
        consumer.assign([TopicPartition(topic, number, 0) for number in ends])
        found: dict[tuple[int, int], bytes] = {}
        while ends:
            message = consumer.poll(HANG)
            assert message is not None, f"no record any more; still to read: {ends}"
            assert message.error() is None, message.error()
            found[message.partition(), message.offset()] = message.value()
            if message.offset() + 1 >= ends.get(message.partition(), sys.maxsize):
                del ends[message.partition()]
        consumer.close()
        return found


def _ends(consumer: Consumer, of: TopicPartition) -> tuple[int, int]:
    """Return a partition's first offset and where it ends; a new leader knows its end once its followers fetched."""
    low, high = asked_again(lambda: consumer.get_watermark_offsets(of, timeout=ATTEMPT), KafkaException)
    return low, high


def _source(number: int) -> str:
    return {1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG"}.get(int(number), "other")
