"""A run whose requests a quota of the cluster holds back: slower, and no more than that."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.brokers.cluster import KafkaCluster
from helpers.brokers.run import MB, PLAN, LiveRun
from kafka.protocol.admin import AlterClientQuotasRequest
from live.faults import Tally

from reconciler.admin.client import connect

pytestmark = [pytest.mark.brokers, pytest.mark.deep]

BEFORE = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2), 3: (4, 5, 3)}
AFTER = {0: (6, 2, 3), 1: (2, 3, 6), 2: (3, 1, 5), 3: (4, 5, 6)}
LEAST_PERCENT = 0.01
"""Of a thread's time: every request is more, and is held back for the second that a broker may."""


@contextmanager
def request_quota(kafka: KafkaCluster, percent: float) -> Iterator[None]:
    """Let each client have so much of the brokers' time, within the block."""
    set_quota(kafka, percent)
    try:
        yield
    finally:
        set_quota(kafka, None)


def set_quota(kafka: KafkaCluster, percent: float | None) -> None:
    form = AlterClientQuotasRequest.EntryData
    everyone = form.EntityData(entity_type="client-id", entity_name=None)
    change = form.OpData(key="request_percentage", value=percent or 0.0, remove=percent is None)
    admin = connect(kafka.properties)
    entry = form(entity=[everyone], ops=[change])
    answer = admin.wire.write(lambda: AlterClientQuotasRequest(entries=[entry], validate_only=False))
    admin.close()
    assert [told.error_code for told in answer.entries] == [0]


def test_a_quota_slows_a_run_and_is_told_as_what_it_is(tmp_path: Path, mended: KafkaCluster, tally: Tally) -> None:
    run = LiveRun(tmp_path, mended, "held-back", BEFORE, AFTER, partition_bytes=2 * MB, throttle="1MB/s")
    with run.delivery() as delivery, request_quota(mended, LEAST_PERCENT):
        applying = run.start()
        applying.ended(0)
    assert applying.told.count("A quota of the cluster slows this client down") == 1
    assert "is changing the cluster" not in applying.told
    run.checker.finished(tmp_path, PLAN, delivery)
    tally.passed("request quota", run, delivery)
