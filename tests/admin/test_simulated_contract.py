"""The contracts of the admin and of groups, against the simulated cluster: the same tests that real Kafka passes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pytest
from admin.contract import AdminContract
from admin.groups_contract import GroupsContract
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.cluster import Group, GroupMember
from reconciler.model.topic_partition import TopicPartition

OFFSETS = tuple(f"__consumer_offsets-{number}: {1 + number % 3},{1 + (number + 1) % 3}" for number in range(10))


@dataclass
class SimulatedCluster:
    """The simulated cluster in the contract's terms."""

    admin: SimulatedAdmin
    kafka_version: tuple[int, int]

    def produce(self, topic: str, partition: int, size: int) -> None:
        self.admin.produce(TopicPartition(topic, partition), size=size, records=max(1, size // 10_000))

    def write(self, topic: str, partition: int, values: Sequence[bytes], key: bytes | None = None) -> None:
        self.admin.values.setdefault(TopicPartition(topic, partition), []).extend(values)
        self.admin.keys.setdefault(TopicPartition(topic, partition), []).extend([key] * len(values))

    def kill(self, broker_id: int) -> None:
        self.admin.kill_broker(broker_id)

    def start(self, broker_id: int) -> None:
        self.admin.return_broker(broker_id)

    def catch_up(self, topics: Collection[str]) -> None:
        """All of it is one image."""


class SimulatedGroups(SimulatedCluster):
    """The simulated cluster with consumers."""

    def join(self, group_id: str, topic: str) -> None:
        numbers = tuple(partition.partition for partition in self.admin.cluster.topics[topic].partitions)
        member = GroupMember("member-1", subscription=(topic,), assignment={topic: numbers})
        self._set(Group(group_id, "Stable", "range", members=(member,)))

    def leave(self, group_id: str) -> None:
        self._set(Group(group_id, "Empty"))

    def _set(self, group: Group) -> None:
        others = [each for each in self.admin.cluster.groups if each.group_id != group.group_id]
        self.admin.cluster = replace(self.admin.cluster, groups=(*others, group))


class TestTheSimulatedCluster(AdminContract):
    @pytest.fixture(params=[(3, 9), (4, 1), (4, 3)], ids=str)
    def admin_cluster(self, request: pytest.FixtureRequest) -> SimulatedCluster:
        major, minor = request.param
        return SimulatedCluster(SimulatedAdmin(small_cluster(kafka_version=f"{major}.{minor}")), (major, minor))


class TestGroupsOfTheSimulatedCluster(GroupsContract):
    @pytest.fixture
    def group_cluster(self) -> SimulatedGroups:
        return SimulatedGroups(SimulatedAdmin(small_cluster(*OFFSETS, kafka_version="4.3")), (4, 3))
