"""When a run may work."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from reconciler.model.desired import Window

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def is_open(windows: Sequence[Window], now: datetime) -> bool:
    """Whether a run may work now: inside one of the windows, or there is none."""
    return not windows or any(_is_inside(window, now) for window in windows)


def described(windows: Sequence[Window]) -> str:
    """Return the windows in words."""
    return "; ".join(f"{','.join(w.days)} {w.start}-{w.end} {w.timezone}" for w in windows)


def _is_inside(window: Window, now: datetime) -> bool:
    """Tell by the local time of day; the part after midnight belongs to the day before."""
    local = now.astimezone(ZoneInfo(window.timezone))
    minute = local.hour * 60 + local.minute
    start, end = _minutes(window.start), _minutes(window.end)
    today, yesterday = DAYS[local.weekday()], DAYS[(local - timedelta(days=1)).weekday()]
    if start < end:
        return today in window.days and start <= minute < end
    return (today in window.days and minute >= start) or (yesterday in window.days and minute < end)


def _minutes(text: str) -> int:
    hours, minutes = text.split(":")[:2]
    return int(hours) * 60 + int(minutes)
