"""What real brokers hold, seen through another client library than the one under test.

Each broker shows its own image, and one that has just come back shows the past for a while, though all take it for
alive. So what is asked of a topic is asked of every broker, and again until all show the same.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata, ConfigEntry, ConfigResource, ResourceType
from helpers.brokers.controller import PartitionState, topic_shown_by
from helpers.waiting import ATTEMPT, HANG, asked_again

THROTTLES = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


Shown = TypeVar("Shown")


class Behind(Exception):
    """Brokers show different things, or one of them shows nothing."""


class Observer:
    """Reads brokers, topics, configs and records by itself."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def topic(self, name: str) -> dict[int, PartitionState]:
        """Return the partitions of a topic as every broker that runs shows them; empty where it does not exist."""
        return asked_again(lambda: agreed(self._topic_by_broker(name), name), Behind, pause=0.1)

    def catch_up(self, topics: Iterable[str]) -> None:
        """Wait until every broker shows the same of these topics: whoever reads them next may ask any broker."""
        for name in topics:
            if self.topic(name):
                self.overrides(ResourceType.TOPIC, name)

    def _topic_by_broker(self, name: str) -> dict[str, dict[int, PartitionState]]:
        found = {}
        for address in self._bootstrap.split(","):
            with suppress(OSError):  # it is down, or frozen
                found[address] = topic_shown_by(address, name)
        return found

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
        """Return the dynamic overrides of a broker, or of a topic as every broker that is alive shows them."""
        resource = ConfigResource(kind, name)
        if kind is not ResourceType.TOPIC:
            return _dynamic(self._admin.describe_configs([resource])[resource].result(timeout=HANG))
        found = asked_again(lambda: agreed(self._overrides_by_broker(resource), name), Behind, pause=0.1)
        if found is None:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"no broker knows {name}"))
        return found

    def _overrides_by_broker(self, topic: ConfigResource) -> dict[int, Mapping[str, str] | None]:
        alive = sorted(self._metadata().brokers)
        asked = {
            broker: self._admin.describe_configs([topic], broker=broker, request_timeout=ATTEMPT)[topic]
            for broker in alive
        }
        return {broker: _dynamic_or_none(answer) for broker, answer in asked.items()}

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


def agreed(shown: Mapping[int, Shown] | Mapping[str, Shown], name: str) -> Shown:
    """Return what all brokers show; raise Behind where one of them shows something else, or none shows anything."""
    found = list(shown.values())
    if not found or any(other != found[0] for other in found):
        raise Behind(f"brokers do not show the same of {name}: {shown}")
    return found[0]


def _dynamic_or_none(answer: Future[Mapping[str, ConfigEntry]]) -> Mapping[str, str] | None:
    """Return the overrides that one broker shows; None where it does not know the topic."""
    try:
        return _dynamic(answer.result(timeout=HANG))
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        if code < 0:  # librdkafka's own: no answer came
            raise Behind(str(error)) from None
        raise


def _dynamic(entries: Mapping[str, ConfigEntry]) -> Mapping[str, str]:
    dynamic = {"DYNAMIC_TOPIC_CONFIG", "DYNAMIC_BROKER_CONFIG"}
    return {key: entry.value for key, entry in entries.items() if _source(entry.source) in dynamic}


def _source(number: int) -> str:
    return {1: "DYNAMIC_TOPIC_CONFIG", 2: "DYNAMIC_BROKER_CONFIG"}.get(int(number), "other")
