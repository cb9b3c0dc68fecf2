"""Reads the records of a topic that tells something of the cluster, from each partition's leader, without a group."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import kafka.errors
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from reconciler.admin.client import observe
from reconciler.admin.client.errors import AUTHORIZATION_FAILED, NONE, missing_right, name_of, said
from reconciler.admin.client.offsets import by_leader
from reconciler.admin.client.wire import Build, Wire, by_topic
from reconciler.admin.port import Records
from reconciler.model.cluster import leaders_of
from reconciler.model.problem import ClusterUnavailable
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

PARTITION_BYTES, ANSWER_BYTES = 4 << 20, 32 << 20
NAMED_TOPICS = 12
"""From version 13 on a fetch names topics by their ids."""
WAIT_MILLISECONDS = 100

Positions = Mapping[TopicPartition, int]


def records(wire: Wire, positions: Positions) -> dict[TopicPartition, Records]:
    """Return what comes next in each partition, a few megabytes at most; one whose leader is silent is left out."""
    leaders = leaders_of(observe.topics(wire, {key.topic for key in positions}).values())
    asked = by_leader({key: leaders.get(key) for key in positions})
    builds = {leader: _question(keys, positions) for leader, keys in asked.items()}
    found: dict[TopicPartition, Records] = {}
    for answer in wire.read_each(builds).values():
        found |= _told(answer, positions)
    return found


def _question(keys: list[TopicPartition], positions: Positions) -> Build:
    topic_form = FetchRequest.FetchTopic
    partition_form = topic_form.FetchPartition
    topics = [
        topic_form(
            topic=topic,
            partitions=[
                partition_form(
                    partition=number,
                    fetch_offset=positions[TopicPartition(topic, number)],
                    partition_max_bytes=PARTITION_BYTES,
                )
                for number in numbers
            ],
        )
        for topic, numbers in by_topic(keys).items()
    ]
    # A session is what brokers remember of a consumer: -1 is none.
    return lambda: FetchRequest(
        max_wait_ms=WAIT_MILLISECONDS, min_bytes=1, max_bytes=ANSWER_BYTES, isolation_level=0, session_id=0,
        session_epoch=-1, topics=topics, forgotten_topics_data=[], rack_id="", max_version=NAMED_TOPICS,
    )  # fmt: skip


def _told(answer: "ApiMessage", positions: Positions) -> dict[TopicPartition, Records]:
    found = {}
    for topic in answer.responses:
        for partition in topic.partitions:
            key = TopicPartition(topic.topic, partition.partition_index)
            if partition.error_code in AUTHORIZATION_FAILED:
                raise missing_right("Read", "topic", (key.topic,), "Reading its records")
            if partition.error_code != NONE:
                found[key] = Records((), positions[key], name_of(partition.error_code))
            else:
                found[key] = _values(key, partition.records or b"", positions[key])
    return found


def _values(key: TopicPartition, content: bytes, position: int) -> Records:
    """Return what stands from the position on: a batch may begin before it, and the last one be cut off."""
    batches = MemoryRecords(content)
    values, keys = [], []
    try:
        while batches.has_next():
            batch = batches.next_batch()
            if not batch.is_control_batch:
                told = [each for each in batch if each.offset >= position and each.value is not None]
                values += [(each.offset, each.value) for each in told]
                keys += [each.key for each in told]
            position = max(position, batch.next_offset)
    except (kafka.errors.KafkaError, ValueError, AssertionError) as error:
        raise ClusterUnavailable(f"The records of {key} cannot be read: {said(error)}.") from None
    return Records(tuple(values), position, keys=tuple(keys))
