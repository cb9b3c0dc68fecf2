"""Asks what of tiered topics is not in the remote tier yet: what a new replica copies where KIP-1023 is on."""

from collections.abc import Mapping
from dataclasses import replace

from reconciler.admin.client.observe import log_offsets
from reconciler.admin.client.wire import Wire
from reconciler.model.cluster import REMOTE_STORAGE, TIERED_FETCH, Broker, Partition, Topic
from reconciler.model.topic_partition import TopicPartition

EARLIEST_LOCAL, LATEST_TIERED = -4, -5
"""What ListOffsets calls the first offset on the leader's disk (KIP-405) and the last in the remote tier (KIP-1005)."""

Offsets = Mapping[TopicPartition, int | None]


def with_untiered_bytes(wire: Wire, topics: Mapping[str, Topic], brokers: Mapping[int, Broker]) -> dict[str, Topic]:
    """Return the topics, with `untiered_bytes` of those that are tiered where every living broker has KIP-1023 on."""
    alive = [broker for broker in brokers.values() if not broker.is_fenced]
    tiered = [topic for topic in topics.values() if topic.configs.get(REMOTE_STORAGE) == "true"]
    if not tiered or any(broker.settings.get(TIERED_FETCH) != "true" for broker in alive):
        return dict(topics)
    leaders = {TopicPartition(topic.name, one.partition): one.leader for topic in tiered for one in topic.partitions}
    first, last = log_offsets(wire, leaders, EARLIEST_LOCAL), log_offsets(wire, leaders, LATEST_TIERED)
    return {**topics, **{topic.name: _with(topic, first, last) for topic in tiered}}


def _with(topic: Topic, first: Offsets, last: Offsets) -> Topic:
    def updated(partition: Partition) -> Partition:
        key = TopicPartition(topic.name, partition.partition)
        if key not in first or key not in last:
            return partition
        return replace(partition, untiered_bytes=_untiered(partition, first[key] or 0, last[key]))

    return replace(topic, partitions=tuple(map(updated, topic.partitions)))


def _untiered(partition: Partition, first_local: int, last_tiered: int | None) -> int | None:
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
