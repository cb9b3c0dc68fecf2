"""Windows are local times of day; one that ends before it starts ends on the next day."""

from datetime import UTC, datetime

import pytest

from reconciler.apply.checks import described, is_inside_windows
from reconciler.model.desired import Window

NIGHTS = Window(("mon", "tue"), "22:00", "05:00", "Europe/Berlin")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-11-23T20:59", False),  # Monday, 21:59 in Berlin
        ("2026-11-23T21:00", True),
        ("2026-11-24T03:59", True),
        ("2026-11-24T04:00", False),
        ("2026-11-24T21:30", True),
        ("2026-11-25T03:59", True),  # Wednesday morning belongs to Tuesday's window
        ("2026-11-25T21:30", False),
        ("2026-11-23T03:00", False),  # Monday morning belongs to Sunday
        ("2026-07-06T20:00", True),  # summer time
    ],
)
def test_a_window_over_midnight_belongs_to_the_day_it_starts_on(time: str, expected: bool) -> None:  # noqa: FBT001 - a table's column
    assert is_inside_windows([NIGHTS], datetime.fromisoformat(time).replace(tzinfo=UTC)) is expected


def test_without_windows_it_is_always_open() -> None:
    assert is_inside_windows([], datetime(2026, 1, 1, tzinfo=UTC))


def test_one_open_window_is_enough() -> None:
    noon = datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert is_inside_windows([NIGHTS, Window(("mon",), "11:00", "13:00")], noon)


@pytest.mark.parametrize(
    ("time", "opening"),
    [("2026-11-23T20:59", "Mon 2026-11-23 21:00"), ("2026-11-25T12:00", "Mon 2026-11-30 21:00")],
)
def test_the_next_opening_is_said(time: str, opening: str) -> None:
    now = datetime.fromisoformat(time).replace(tzinfo=UTC)
    assert described([NIGHTS], now) == f"mon,tue 22:00-05:00 Europe/Berlin; the next opens at {opening} UTC"
