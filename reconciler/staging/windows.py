"""Counts the windows that a plan needs at its throttle, and finds the throttle at which fewer would do.

Which window comes first is not known here, as nothing here knows the time: what is told holds from the worst one on.
"""

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.budget import WindowsNeeded
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Window
from reconciler.model.plan import Plan
from reconciler.staging.dealing import Loads
from reconciler.staging.estimate import served_moves, stage_seconds

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MINUTE, HOUR, DAY = 60, 3600, 86_400  # seconds
STEP = 1024 * 1024  # bytes per second: throttles are told in whole MiB/s
MOST, MOST_STEPS = 10_000, 1 << 20
"""A plan that needs more windows than that is not one that waits for windows; and no network carries 1 TiB/s."""


def windows_needed(plan: Plan, desired: Desired, observed: Cluster, fewer: int | None = None) -> WindowsNeeded | None:
    """Return the windows that the plan needs; None where none are declared, nothing is copied, or a rate is missing.

    `fewer`: for how many a throttle is wanted; by default one less than the plan needs. The throttle is found by
    estimating the plan's own stages at other rates.
    """
    policy, lengths = desired.cluster.moves, _lengths(desired.cluster.windows)
    rate = policy.throttle_bytes_per_second
    if rate is None or not lengths or not plan.summary.bytes:
        return None
    needed = plan.summary.estimated_seconds
    count = next((many for many in range(1, MOST) if _least(lengths, many) >= needed), MOST)
    wanted = max(1, count - 1) if fewer is None else fewer
    loads, room = _loads(plan, observed), _least(lengths, wanted)

    def fits(steps: int) -> bool:
        return sum(stage_seconds(loads, replace(policy, throttle_bytes_per_second=steps * STEP))) <= room

    above = 1
    while not fits(above) and above < MOST_STEPS:
        above *= 2
    below = above // 2
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if fits(middle) else (middle, above)
    return WindowsNeeded(count, wanted, above * STEP if fits(above) else None, rate)


def _loads(plan: Plan, observed: Cluster) -> list[Loads]:
    """Return what the moves of each stage ask of brokers."""
    served = served_moves(plan.stages, observed).by_stage(plan.stages)
    return [Loads.of(each.moves, each.source) for _, each in served]


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
