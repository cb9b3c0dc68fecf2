"""The contract, against the simulated cluster: the same tests that real Kafka passes."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pytest
from admin.contract import AdminContract
from helpers.clusters.small_cluster import small_cluster

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.model.topic_partition import TopicPartition


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


class TestTheSimulatedCluster(AdminContract):
    @pytest.fixture(params=[(3, 9), (4, 1), (4, 3)], ids=str)
    def admin_cluster(self, request: pytest.FixtureRequest) -> SimulatedCluster:
        major, minor = request.param
        return SimulatedCluster(SimulatedAdmin(small_cluster(kafka_version=f"{major}.{minor}")), (major, minor))
