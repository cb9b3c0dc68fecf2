"""The machine's clock as a run sees it: set by hand meanwhile, it moves no wait."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from reconciler.admin.client import kafka_admin
from reconciler.admin.client.kafka_admin import RealClock


@pytest.mark.parametrize("hours", [3, -3])
def test_a_clock_that_is_set_shows_in_the_time_of_day_alone(monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    passed = [0.0]
    monkeypatch.setattr(kafka_admin, "now", lambda: passed[0])
    clock = RealClock()
    began = clock.now()
    moved = datetime(2026, 11, 23, tzinfo=UTC) + timedelta(hours=hours)
    monkeypatch.setattr(kafka_admin, "datetime", SimpleNamespace(now=lambda _zone: moved))
    passed[0] = 5.0
    assert clock.now() - began == timedelta(seconds=5)
    assert clock.time_of_day() == moved
