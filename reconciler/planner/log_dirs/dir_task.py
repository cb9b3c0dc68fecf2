"""Holds what is to be decided for one broker: its log dirs, their bounds and the replicas, as plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NOWHERE = -1
"""The home of a replica that comes to the broker, or whose log dir is to end empty."""


@dataclass(frozen=True, slots=True)
class DirTask:
    """The log dirs of a broker that may take replicas, and the replicas that lie, or are to lie, in one of them.

    By log dir: its `total` bytes, those `allowed` by `limits.diskUse`, `low` and `high` the band that the balance asks
    for, and `fixed` bytes that nothing moves. By replica: `size` in bytes, and `home`, the log dir that it lies in, or
    NOWHERE.
    `is_free`: replicas with a home may leave it.
    """

    total: tuple[int, ...]
    allowed: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    fixed: tuple[int, ...]
    size: tuple[int, ...]
    home: tuple[int, ...]
    is_free: bool = True

    @property
    def most(self) -> tuple[int, ...]:
        """The bytes at most that limit and band allow, by log dir."""
        return tuple(map(min, zip(self.high, self.allowed, strict=True)))

    def used(self, dirs: Sequence[int]) -> list[int]:
        """Return the bytes in each log dir, with the replicas in these."""
        used = list(self.fixed)
        for size, place in zip(self.size, dirs, strict=True):
            if place != NOWHERE:
                used[place] += size
        return used

    def cost(self, dirs: Sequence[int]) -> "Cost":
        """Return what these places cost."""
        used = self.used(dirs)
        return Cost(
            sum(max(0, held - total) for held, total in zip(used, self.total, strict=True)),
            sum(max(0, held - most) for held, most in zip(used, self.allowed, strict=True)),
            sum(max(0, low - held, held - high) for held, low, high in zip(used, self.low, self.high, strict=True)),
            sum(size for size, home, at in zip(self.size, self.home, dirs, strict=True) if NOWHERE != home != at),
        )


class Cost(NamedTuple):
    """Bytes that no log dir has room for, over what is allowed, outside of the bands, and moved: the first is worst."""

    overflow: int
    excess: int
    outside: int
    moved: int
