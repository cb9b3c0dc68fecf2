"""The contracts of the admin and of groups, against real Kafka."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from admin.contract import AdminContract
from admin.groups_contract import GroupsContract
from confluent_kafka import Consumer
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.observer import Observer
from helpers.waiting import wait_for

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


@dataclass
class RealGroups(RealCluster):
    """Real brokers with real consumers."""

    consumers: dict[str, Consumer] = field(default_factory=dict)

    def join(self, group_id: str, topic: str) -> None:
        options = {"bootstrap.servers": self.brokers.bootstrap, "group.id": group_id, "enable.auto.commit": False}
        consumer = Consumer({**options, "log_level": 0})
        consumer.subscribe([topic])
        self.consumers[group_id] = consumer
        wait_for(
            lambda: bool(consumer.assignment()), f"{group_id} to get partitions", meanwhile=lambda: consumer.poll(0.2)
        )

    def leave(self, group_id: str) -> None:
        self.consumers.pop(group_id).close()


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


@pytest.mark.brokers
class TestGroupsOfRealKafka(GroupsContract):
    @pytest.fixture
    def group_cluster(self, kafka: KafkaCluster, real_admin: KafkaAdmin) -> Iterator[RealGroups]:
        groups = RealGroups(real_admin, kafka)
        yield groups
        for consumer in groups.consumers.values():
            consumer.close()
