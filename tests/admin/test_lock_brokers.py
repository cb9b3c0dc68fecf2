"""The contract of the lock, against real Kafka, and what only real Kafka can do to it."""

from collections.abc import Iterator

import pytest
from admin.lock_contract import LockContract, Processes
from helpers.brokers import KafkaCluster

from reconciler.admin.client import KafkaAdmin, connect

pytestmark = pytest.mark.brokers


class TestRealKafka(LockContract):
    @pytest.fixture
    def processes(self, kafka: KafkaCluster) -> Iterator[Processes]:
        started: list[KafkaAdmin] = []

        def start() -> KafkaAdmin:
            started.append(connect(kafka.properties))
            return started[-1]

        yield start
        for admin in started:
            admin.close()
