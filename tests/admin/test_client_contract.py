"""The contract, against real Kafka."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pytest
from admin.contract import AdminContract
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.observer import Observer

from reconciler.admin.client import KafkaAdmin, connect
from reconciler.admin.port import Admin


@dataclass
class RealCluster:
    """Real brokers in the contract's terms."""

    admin: Admin
    brokers: KafkaCluster

    @property
    def kafka_version(self) -> tuple[int, int]:
        major, minor, *_ = self.brokers.version.split(".")
        return int(major), int(minor)

    def produce(self, topic: str, partition: int, size: int) -> None:
        self.brokers.produce(topic, partition, size=size)

    def write(self, topic: str, partition: int, values: Sequence[bytes], key: bytes | None = None) -> None:
        self.brokers.write(topic, partition, values, key)

    def kill(self, broker_id: int) -> None:
        self.brokers.kill(broker_id)
        self.brokers.wait_until_gone(broker_id)

    def start(self, broker_id: int) -> None:
        self.brokers.start(broker_id)

    def catch_up(self, topics: Collection[str]) -> None:
        Observer(self.brokers.bootstrap).catch_up(topics)


@pytest.fixture(scope="module")
def real_admin(kafka: KafkaCluster) -> Iterator[KafkaAdmin]:
    admin = connect(kafka.properties)
    yield admin
    admin.close()


@pytest.mark.brokers
class TestRealKafka(AdminContract):
    @pytest.fixture
    def admin_cluster(self, kafka: KafkaCluster, real_admin: KafkaAdmin) -> RealCluster:
        return RealCluster(real_admin, kafka)
