"""Defines the budget of a plan: what it may copy, and how far on the way to the whole balance that brings it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from reconciler.model.codec import REQUIRED, AtLeast, Integer, Key


@dataclass(frozen=True, slots=True)
class Budget:
    """What a plan may copy: bytes, or as much as the busiest broker copies in a time."""

    bytes: Annotated[int | None, "Bytes between brokers."] = None
    seconds: Annotated[int | None, AtLeast(1), "Seconds at the throttle."] = None


@dataclass(frozen=True, slots=True)
class Way:
    """One measure of balance: how far it is without any copy for it, with this plan, and with the whole one."""

    measure: Annotated[str, "What is balanced: replicas balance, topics balance, or a load."]
    mended: Annotated[Integer, "How uneven it is where only rules are mended."]
    reached: Annotated[Integer, "How uneven this plan leaves it."]
    whole: Annotated[Integer, "How uneven the whole plan leaves it."]

    @property
    def share(self) -> Fraction:
        """How much of the way is gone, 0 to 1; 1 where there is nothing to go."""
        way = self.mended - self.whole
        return Fraction(self.mended - self.reached, way) if way else Fraction(1)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One plan of the curve."""

    bytes: Annotated[int, "What it copies, and so the least budget that buys it."]
    seconds: Annotated[
        int | None, REQUIRED, "How long the busiest broker takes for it at the throttle; null: there is no throttle."
    ]
    share: Annotated[
        float,
        "How much of the way to the whole balance is gone, 0 to 1: each measure has an equal part, in their order.",
    ]
    max_over_mean: Annotated[float, "The fullest broker's replicas by capacity over the mean of all."]
    imbalance: Annotated[
        Mapping[str, Integer], REQUIRED, "Measure to how uneven it is: replicas balance, topics balance."
    ]


@dataclass(frozen=True, slots=True)
class CurveReport:
    """What each budget buys."""

    cluster_name: Annotated[str, Key("cluster"), "The cluster."]
    throttle_bytes_per_second: Annotated[int | None, REQUIRED, "The throttle of moves; null: none."]
    mended_bytes: Annotated[int, "What mending the rules alone copies: the first point."]
    whole_bytes: Annotated[int, "What the whole plan copies: the last point."]
    knee_bytes: Annotated[
        int, "Where the curve bends most: from there on a byte buys less than the mean byte of the whole way."
    ]
    points: Annotated[tuple[CurvePoint, ...], REQUIRED, "Plans by rising bytes; the balance gets better with each."]


@dataclass(frozen=True, slots=True)
class Budgeted:
    """What a plan within a budget is beside the whole one."""

    bytes: Annotated[int, "The most that it may copy; of a budget of time, the bytes that this comes to."]
    mended_bytes: Annotated[int, "What mending the rules alone copies."]
    whole_bytes: Annotated[int, "What the whole plan copies."]
    ways: Annotated[tuple[Way, ...], REQUIRED, "Each measure of balance, the first the most important."] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the plan is the whole one."""
        return self.whole_bytes <= self.bytes

    @property
    def excess(self) -> int:
        """By how many bytes mending the rules alone is above the budget."""
        return max(0, self.mended_bytes - self.bytes)


@dataclass(frozen=True, slots=True)
class WindowsNeeded:
    """How many windows a plan takes, one after another, and the least throttle at which `fewer` would do."""

    windows: int
    fewer: int
    throttle_bytes_per_second: int | None  # None: no throttle would do
    present_bytes_per_second: int
