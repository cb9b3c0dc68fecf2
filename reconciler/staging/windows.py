"""Counts the windows that a plan needs at its throttle, and finds the throttle at which fewer would do.

Which window comes first is not known here, as nothing here knows the time: what is told holds from the worst one on.
"""

from collections.abc import Sequence

from reconciler.model.budget import WindowsNeeded
from reconciler.model.desired import Window
from reconciler.model.plan import Plan
from reconciler.model.stage import ReassignStage
from reconciler.staging.estimate import SECONDS_A_STAGE

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds
STEP = 1024 * 1024  # bytes per second: throttles are told in whole MiB/s
MOST = 10_000
"""A plan that needs more windows than these is not one that waits for windows."""


def windows_needed(plan: Plan, windows: Sequence[Window], fewer: int | None = None) -> WindowsNeeded | None:
    """Return the windows that the plan needs; None where none are declared, nothing is copied, or a rate is missing.

    `fewer`: for how many a throttle is wanted; by default one less than the plan needs.
    """
    stages = [stage for stage in plan.stages if isinstance(stage, ReassignStage) and stage.bytes]
    rates = {stage.throttle_bytes_per_second for stage in stages}
    rate = max((each for each in rates if each), default=None)
    lengths = _lengths(windows)
    if rate is None or None in rates or not lengths:
        return None
    needed = plan.summary.estimated_seconds
    count = next((many for many in range(1, MOST) if _least(lengths, many) >= needed), MOST)
    wanted = max(1, count - 1) if fewer is None else fewer
    # What stages take beside their bytes stays as it is at any rate.
    fixed = SECONDS_A_STAGE * len(stages)
    room = _least(lengths, wanted) - fixed
    throttle = -(-rate * max(0, needed - fixed) // (room * STEP)) * STEP if room > 0 else None
    return WindowsNeeded(count, wanted, throttle, rate)


def _lengths(windows: Sequence[Window]) -> list[int]:
    """Return the seconds of each window of a week, in their order."""
    found = []
    for window in windows:
        start, end = (_seconds(text) for text in (window.start, window.end))
        length = end - start if end > start else end - start + DAY
        found += [(DAYS.index(day) * DAY + start, length) for day in window.days]
    return [length for _, length in sorted(found)]


def _least(lengths: Sequence[int], many: int) -> int:
    """Return how long so many windows one after another are at the least, whichever comes first."""
    weeks, rest = divmod(many, len(lengths))
    twice = [*lengths, *lengths]
    return weeks * sum(lengths) + min(sum(twice[start : start + rest]) for start in range(len(lengths)))


def _seconds(text: str) -> int:
    hours, minutes = text.split(":")[:2]
    return int(hours) * HOUR + int(minutes) * MINUTE
