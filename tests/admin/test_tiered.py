"""What a new replica of a tiered topic copies, reckoned from the offsets that real brokers told (4.3.0)."""

from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from admin.test_client_wire import Brokers
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.client.offsets import EARLIEST_LOCAL, LATEST_TIERED, with_untiered_bytes
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.consumer import ListOffsetsRequest

KEY = TopicPartition("orders", 0)
ON, OFF = {"follower.fetch.last.tiered.offset.enable": "true"}, {"follower.fetch.last.tiered.offset.enable": "false"}


class Leader:
    """The leader of one partition, which tells the first offset on its disk and the last one in the remote tier."""

    def __init__(self, first_local: int, last_tiered: int, *, error: int = 0) -> None:
        self.told = {EARLIEST_LOCAL: first_local, LATEST_TIERED: last_tiered}
        self.error = error
        self.asked = 0

    def __call__(self, _node: int, request: "ListOffsetsRequest") -> object:
        self.asked += 1
        (asked,) = request.topics[0].partitions
        one = SimpleNamespace(partition_index=0, error_code=self.error, offset=self.told[asked.timestamp])
        return SimpleNamespace(topics=[SimpleNamespace(name="orders", partitions=[one])])


def tiered(local_bytes: int, settings: dict[str, str], value: str = "true") -> Cluster:
    found = small_cluster(f"orders-0: 1,2 size {local_bytes}", fenced=[4])
    brokers = {
        id_: replace(broker, settings={} if broker.is_fenced else settings) for id_, broker in found.brokers.items()
    }
    topic = found.topics["orders"]
    partitions = tuple(replace(one, end_offset=1250) for one in topic.partitions)
    configs = {"remote.storage.enable": value}
    return replace(found, brokers=brokers, topics={"orders": replace(topic, configs=configs, partitions=partitions)})


def asked(cluster: Cluster, leader: Leader) -> Topic:
    return with_untiered_bytes(Brokers(leader).wire(retry_seconds=0), cluster.topics, cluster.brokers)["orders"]


@pytest.mark.parametrize(
    ("local_bytes", "first_local", "last_tiered", "copied", "is_close"),
    [
        (6_568_029, 594, 1187, 620_743, True),  # the last half is on disk, all but the last segment is tiered
        (7_559_126, 500, 1187, 620_743, True),  # the same, after records were deleted
        (12_515_139, 0, 1187, 12_515_139, False),  # the follower finds offset 0 on the leader's disk
        (6_000_000, 594, -1, 6_000_000, False),  # nothing is tiered
        (6_000_000, 594, 400, 6_000_000, False),  # what is tiered is no longer on disk
        (0, 1250, 1249, 0, False),  # nothing is on disk
    ],
)
def test_what_is_copied_is_what_is_not_tiered_yet(
    local_bytes: int, first_local: int, last_tiered: int, copied: int, *, is_close: bool
) -> None:
    found = asked(tiered(local_bytes, ON), Leader(first_local, last_tiered)).partitions[0]
    assert found.bytes_to_copy == (pytest.approx(copied, rel=0.01) if is_close else copied)


@pytest.mark.parametrize("cluster", [tiered(700, OFF), tiered(700, {}), tiered(700, ON, "false")])
def test_elsewhere_nobody_is_asked_and_the_local_bytes_count(cluster: Cluster) -> None:
    leader = Leader(10, 1000)
    found = asked(cluster, leader).partitions[0]
    assert (leader.asked, found.untiered_bytes, found.bytes_to_copy) == (0, None, 700)


def test_where_a_leader_does_not_tell_the_local_bytes_count() -> None:
    found = asked(tiered(700, ON), Leader(10, 1000, error=6)).partitions[0]
    assert (found.untiered_bytes, found.bytes_to_copy) == (None, 700)
