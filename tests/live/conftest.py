"""What the live tests share: one count over all of them, and brokers on which a throttle holds from the start."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from helpers.brokers.cluster import KafkaCluster
    from helpers.figures import Tell
    from live.faults import Tally


@pytest.fixture(scope="session")
def tally(figures: "Tell") -> "Tally":
    """Count scenarios and records, printed at the end of the run."""
    from live.faults import Tally

    return Tally(figures)


@pytest.fixture(scope="session")
def steady(kafka_version: str, at_unit_end: Callable[[Callable[[], None]], None]) -> Iterator["KafkaCluster"]:
    """Six brokers in three racks, shared: remove your topics; who kills or freezes a broker takes `mended`."""
    from helpers.brokers.cluster import KafkaCluster
    from helpers.brokers.run import SMOOTH

    with KafkaCluster(version=kafka_version, settings=SMOOTH) as cluster:
        at_unit_end(cluster.close)
        yield cluster


@pytest.fixture
def mended(steady: "KafkaCluster") -> Iterator["KafkaCluster"]:
    """The shared brokers for a test that kills or freezes some: all well, and without topics, at its end."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient
    from helpers.waiting import ATTEMPT, HANG

    yield steady
    for broker in steady.alive:
        steady.resume(broker)
    steady.start(*sorted({*steady.broker_ids} - {*steady.alive}))
    steady.wait_until_alive(steady.broker_ids)
    admin = AdminClient({"bootstrap.servers": steady.bootstrap})
    topics = [name for name in admin.list_topics(timeout=ATTEMPT).topics if not name.startswith("__")]
    for answer in (admin.delete_topics(topics) if topics else {}).values():
        with suppress(KafkaException):  # a broker that has just come may still list what is gone
            answer.result(HANG)
