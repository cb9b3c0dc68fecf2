"""Asks the leaders of partitions for offsets: the ends of logs, and what of tiered topics is on the leader's disk."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka.protocol.consumer import ListOffsetsRequest

from reconciler.admin.client.errors import NONE
from reconciler.admin.client.wire import Build, Wire, batches, by_topic
from reconciler.admin.port import LATEST
from reconciler.model.cluster import REMOTE_STORAGE, TIERED_FETCH, Broker, Partition, Topic, leaders_of
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api_message import ApiMessage

PARTITIONS_A_REQUEST = 20_000
"""An answer is then about half a megabyte: 27 bytes a partition."""

EARLIEST_LOCAL, LATEST_TIERED = -4, -5
"""What ListOffsets calls the first offset on the leader's disk (KIP-405) and the last in the remote tier (KIP-1005)."""

NEWEST, TELLS_NEWEST = -3, 7
"""What ListOffsets calls the record with the latest time (KIP-734), and the version from which it knows that."""

UNCOMMITTED, COMMITTED = 0, 1
"""Isolation levels: the latest offset is the high watermark, or the last stable offset."""

Offsets = Mapping[TopicPartition, int | None]
Leaders = Mapping[TopicPartition, int | None]


def end_offsets(wire: Wire, leaders: Leaders, isolation: int = UNCOMMITTED) -> dict[TopicPartition, int]:
    """Return the end offset of each partition, asked of its leader; what no leader told is left out."""
    return {key: told.offset for key, told in _told(wire, leaders, LATEST, isolation) if told.offset >= 0}


def log_offsets(wire: Wire, leaders: Leaders, at: int) -> dict[TopicPartition, int | None]:
    """Return each partition's offset at EARLIEST, LATEST or a time in ms (None: no record is that late).

    Each is asked of its leader; what no leader told is left out.
    """
    return {key: told.offset if told.offset >= 0 else None for key, told in _told(wire, leaders, at)}


def newest_records(wire: Wire, leaders: Leaders) -> dict[TopicPartition, int | None]:
    """Return the latest time of each partition's records, in ms; None: it has none. What nobody told is left out."""
    if not wire.is_supported(ListOffsetsRequest, TELLS_NEWEST):
        return {}
    return {key: told.timestamp if told.offset >= 0 else None for key, told in _told(wire, leaders, NEWEST)}


def _told(
    wire: Wire, leaders: Leaders, at: int, isolation: int = UNCOMMITTED
) -> "Iterator[tuple[TopicPartition, ApiMessage]]":
    """Yield the answer of each partition's leader."""
    batches_of = {leader: batches(some, PARTITIONS_A_REQUEST) for leader, some in by_leader(leaders).items()}
    while any(batches_of.values()):
        builds = {leader: _question(left.pop(0), at, isolation) for leader, left in batches_of.items() if left}
        for answer in wire.read_each(builds).values():
            for topic in answer.topics:
                for partition in topic.partitions:
                    if partition.error_code == NONE:
                        yield TopicPartition(topic.name, partition.partition_index), partition


def by_leader(leaders: Leaders) -> dict[int, list[TopicPartition]]:
    """Return what each broker leads, both in order; partitions without a leader are left out."""
    found: dict[int, list[TopicPartition]] = defaultdict(list)
    for topic_partition, leader in sorted(leaders.items()):
        if leader is not None:
            found[leader].append(topic_partition)
    return dict(sorted(found.items()))


def with_untiered_bytes(wire: Wire, topics: Mapping[str, Topic], brokers: Mapping[int, Broker]) -> dict[str, Topic]:
    """Return the topics, with `untiered_bytes` of those that are tiered where every living broker has KIP-1023 on.

    That is what a new replica copies there: what is in the remote tier already it does not fetch.
    """
    alive = [broker for broker in brokers.values() if not broker.is_fenced]
    tiered = [topic for topic in topics.values() if topic.configs.get(REMOTE_STORAGE) == "true"]
    if not tiered or any(broker.settings.get(TIERED_FETCH) != "true" for broker in alive):
        return dict(topics)
    leaders = leaders_of(tiered)
    first, last = log_offsets(wire, leaders, EARLIEST_LOCAL), log_offsets(wire, leaders, LATEST_TIERED)
    return {**topics, **{topic.name: _with_untiered_bytes(topic, first, last) for topic in tiered}}


def _with_untiered_bytes(topic: Topic, first: Offsets, last: Offsets) -> Topic:
    def updated(partition: Partition) -> Partition:
        key = TopicPartition(topic.name, partition.partition)
        if key not in first or key not in last:
            return partition
        return replace(partition, untiered_bytes=_untiered_bytes(partition, first[key] or 0, last[key]))

    return replace(topic, partitions=tuple(map(updated, topic.partitions)))


def _untiered_bytes(partition: Partition, first_local: int, last_tiered: int | None) -> int | None:
    """Return the leader's bytes behind the last tiered offset, records taken to be of one size.

    A follower that starts at offset 0 and finds it on the leader's disk copies everything: only where the leader sends
    it to the remote tier does it begin behind what is there (seen on 4.3.0).
    """
    local = partition.size_on(partition.leader) if partition.leader is not None else None
    if local is None or partition.end_offset is None:
        return None
    begin = first_local if first_local == 0 or last_tiered is None else max(first_local, last_tiered + 1)
    held = partition.end_offset - first_local
    return local if held <= 0 else local * max(0, partition.end_offset - begin) // held


def _question(topic_partitions: Collection[TopicPartition], at: int, isolation: int) -> Build:
    topic_form = ListOffsetsRequest.ListOffsetsTopic
    form = topic_form.ListOffsetsPartition
    asked = [
        topic_form(name=topic, partitions=[form(partition_index=number, timestamp=at) for number in numbers])
        for topic, numbers in by_topic(topic_partitions).items()
    ]
    return lambda: ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=asked)
