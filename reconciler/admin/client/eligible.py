"""Asks for the eligible leader replicas (KIP-966): who, out of sync, still has every committed record."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka.protocol.admin import DescribeTopicPartitionsRequest

from reconciler.admin.client.errors import NONE
from reconciler.admin.client.wire import Wire, batches
from reconciler.model.cluster import Partition, Topic
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.admin import DescribeTopicPartitionsResponse

TOPICS_A_REQUEST = 200

Elr = tuple[tuple[int, ...] | None, tuple[int, ...] | None]


def with_eligible_leaders(wire: Wire, topics: Mapping[str, Topic]) -> dict[str, Topic]:
    """Return the topics with `elr` and `lastKnownElr` of each partition that is out of sync somewhere.

    Only these can have any, so a healthy cluster is asked nothing. Brokers before Kafka 4.0 do not tell.
    """
    doubtful = {name: topic for name, topic in sorted(topics.items()) if any(map(_is_out_of_sync, topic.partitions))}
    if not doubtful or not wire.is_supported(DescribeTopicPartitionsRequest, 0):
        return dict(topics)
    told = {key: elr for some in batches(list(doubtful), TOPICS_A_REQUEST) for key, elr in _asked(wire, some)}
    return {name: _with(topic, told) if name in doubtful else topic for name, topic in topics.items()}


def _is_out_of_sync(partition: Partition) -> bool:
    return len(partition.isr) < len(partition.replicas)


def _asked(wire: Wire, names: list[str]) -> Iterator[tuple[TopicPartition, Elr]]:
    """Yield what one broker tells of these topics, page after page."""
    cursor: object = None
    while True:
        answer = wire.read(_question(names, cursor))
        for topic in answer.topics:
            for one in topic.partitions if topic.error_code == NONE else ():
                yield TopicPartition(topic.name, one.partition_index), _elr(one)
        if answer.next_cursor is None:
            return
        after = answer.next_cursor
        names = [name for name in names if name >= after.topic_name]
        cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=after.topic_name, partition_index=after.partition_index
        )


def _question(names: list[str], cursor: object) -> Callable[[], DescribeTopicPartitionsRequest]:
    form = DescribeTopicPartitionsRequest.TopicRequest
    return lambda: DescribeTopicPartitionsRequest(topics=[form(name=name) for name in names], cursor=cursor)


def _elr(told: "DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic") -> Elr:
    eligible, last_known = told.eligible_leader_replicas, told.last_known_elr
    return (
        None if eligible is None else tuple(sorted(eligible)),
        None if last_known is None else tuple(sorted(last_known)),
    )


def _with(topic: Topic, told: Mapping[TopicPartition, Elr]) -> Topic:
    def updated(partition: Partition) -> Partition:
        elr, last_known = told.get(TopicPartition(topic.name, partition.partition), (None, None))
        held = frozenset(partition.replicas)
        return replace(
            partition,
            elr=None if elr is None else tuple(one for one in elr if one in held),
            last_known_elr=None if last_known is None else tuple(one for one in last_known if one in held),
        )

    return replace(topic, partitions=tuple(map(updated, topic.partitions)))
