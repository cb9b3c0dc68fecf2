"""What bounds a topic on a disk: its overrides, the brokers' settings, Kafka's defaults, local retention."""

from collections.abc import Mapping

import pytest

from reconciler.balance.files.assignment_table import Side
from reconciler.balance.files.retention_table import retention_table
from reconciler.model.cluster import BROKER_SETTINGS, Broker, Cluster, Partition, Topic

DAY = 86_400_000
WEEK, GIB = 7 * DAY, 1 << 30
TIERED = {"remote.storage.enable": "true", "retention.ms": str(30 * DAY)}


@pytest.mark.parametrize(
    ("configs", "settings", "kept"),
    [
        ({}, {}, (False, WEEK, None, WEEK, GIB)),
        ({"retention.ms": "1000", "segment.bytes": "5"}, {}, (False, 1000, None, WEEK, 5)),
        ({"retention.ms": "-1", "retention.bytes": "9"}, {}, (False, None, 9, WEEK, GIB)),
        ({}, {"log.retention.hours": "24", "log.retention.bytes": "7"}, (False, DAY, 7, WEEK, GIB)),
        ({}, {"log.retention.hours": "24", "log.retention.ms": "-1"}, (False, None, None, WEEK, GIB)),
        ({"cleanup.policy": "compact"}, {}, (True, None, None, WEEK, GIB)),
        ({}, {"log.cleanup.policy": "compact"}, (True, None, None, WEEK, GIB)),
        ({"cleanup.policy": "compact, delete"}, {}, (True, WEEK, None, WEEK, GIB)),
        (TIERED, {}, (False, 30 * DAY, None, WEEK, GIB)),
        (TIERED | {"local.retention.ms": "-2"}, {}, (False, 30 * DAY, None, WEEK, GIB)),
        (TIERED | {"local.retention.ms": "3000"}, {}, (False, 3000, None, WEEK, GIB)),
        (TIERED, {"log.local.retention.ms": "3000"}, (False, 3000, None, WEEK, GIB)),
        (TIERED | {"local.retention.bytes": "8"}, {}, (False, 30 * DAY, 8, WEEK, GIB)),
        ({"local.retention.ms": "3000"}, {}, (False, WEEK, None, WEEK, GIB)),
        ({}, {"log.roll.hours": "24", "log.segment.bytes": "5"}, (False, WEEK, None, DAY, 5)),
        ({"segment.bytes": "6"}, {"log.roll.hours": "24", "log.roll.ms": "7"}, (False, WEEK, None, 7, 6)),
    ],
)
def test_what_a_broker_keeps_on_its_disks(
    configs: Mapping[str, str], settings: Mapping[str, str], kept: tuple[object, ...]
) -> None:
    topic = Topic("orders", (Partition(0, 1, (1,), (1,)),), configs=configs)
    cluster = Cluster("id", brokers={1: Broker(1, settings=settings)}, topics={"orders": topic})
    (row,) = retention_table([Side("prod", cluster)]).to_pylist()
    assert tuple(row.values()) == ("prod", "orders", *kept)


def test_of_brokers_that_differ_the_one_that_keeps_most_counts() -> None:
    topic = Topic("orders", (Partition(0, 1, (1,), (1,)),))
    brokers = {one: Broker(one, settings={"log.retention.hours": str(24 * one)}) for one in (1, 2)}
    (row,) = retention_table([Side("prod", Cluster("id", brokers=brokers, topics={"orders": topic}))]).to_pylist()
    assert row["kept_ms"] == 2 * DAY


def test_the_settings_that_bound_a_topic_on_a_disk_are_read_from_brokers() -> None:
    assert {"log.segment.bytes", "log.roll.ms", "log.roll.hours"} <= {*BROKER_SETTINGS}
