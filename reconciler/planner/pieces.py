"""Holds what the units that a place takes cost: piece after piece, each unit dearer than the one before."""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Ints, counted
from reconciler.planner.rows import Choices


def exact_dot(values: Ints, units: Ints) -> int:
    """Return the sum of the products, however large it is."""
    most = max(int(values.max(initial=0)), -int(values.min(initial=0))) * int(np.abs(units).sum())
    if values.dtype != object and most < 1 << 62:
        return int((values * units).sum())
    return sum(value * unit for value, unit in zip(values.tolist(), units.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rising costs in pieces: each takes from `lower` to `upper` units of place `at`, at `cost` a unit.

    A chunk stands for several units whose own costs rise; its cost is that of the unit at its edge. Only that unit is
    priced right, so the window of single units moves until no count lies in a chunk.
    """

    at: Ints
    lower: Ints
    upper: Ints
    cost: Ints
    is_chunk: np.ndarray

    def widened(self) -> "Pieces":
        """Return the same pieces with costs in Python's own numbers."""
        return replace(self, cost=self.cost.astype(object))

    def say_nothing(self, total: int) -> bool:
        """Whether so many units may be filled in any way, at no cost."""
        is_free = not self.cost.any() and not (self.lower > 0).any()
        return is_free and bool((self.bounds(int(self.at.max(initial=-1)) + 1)[1] >= total).all())

    def times(self, many: Ints) -> "Pieces":
        """Return the pieces of so many alike places [places] in the place of each."""
        return replace(self, lower=self.lower * many[self.at], upper=self.upper * many[self.at])

    def weighed(self, times: int) -> "Pieces":
        """Return the pieces at so many times their cost; numbers that may pass 64 bits are Python's own."""
        most = max(int(self.cost.max(initial=0)), -int(self.cost.min(initial=0)))
        cost = self.cost.astype(object) if most * times >= 1 << 62 else self.cost
        return replace(self, cost=cost * times)

    def bound(self, price: Ints) -> int:
        """Return the least that the pieces cost, less the price [places] of each unit."""
        reduced = self.cost - price[self.at]
        at_bound = np.where(reduced > 0, self.lower, self.upper)
        return exact_dot(reduced, at_bound)

    def narrowed(self, price: Ints) -> tuple[Ints, Ints]:
        """Return the fewest and most units [places] of the cheapest fillings at these prices."""
        reduced = self.cost - price[self.at]
        must = np.where(reduced < 0, self.upper, self.lower)
        # At a price that equals a chunk's, its last unit alone costs as much: the others cost less and must be filled.
        must = np.where(self.is_chunk & (reduced == 0), np.maximum(self.upper - 1, self.lower), must)
        may = np.where(reduced > 0, self.lower, self.upper)
        return self._summed_at(self.at, must, len(price)), self._summed_at(self.at, may, len(price))

    def bounds(self, places: int) -> tuple[Ints, Ints]:
        """Return the fewest and most units [places] that may be filled."""
        return self._summed_at(self.at, self.lower, places), self._summed_at(self.at, self.upper, places)

    def wanted(self, units: Ints) -> Ints:
        """Return the cheapest filling [places] for the same total; among equals, the one nearest to `units`."""
        order = np.lexsort((self.cost, self.at))
        at, upper = self.at[order], self.upper[order]
        before = np.cumsum(upper) - upper
        before -= before[np.searchsorted(at, np.arange(len(units)))][at]
        # Each piece falls in three: what must be filled comes before all else, then of equal costs what is filled now,
        # then the rest. Taken in that order up to the total, the filling costs least and moves fewest.
        there = np.clip(units[at] - before, self.lower[order], upper)
        parts = np.concatenate([self.lower[order], there - self.lower[order], upper - there])
        rank = np.repeat([0, 1, 2], len(at))
        queue = np.lexsort((np.tile(at, 3), rank, np.tile(self.cost[order], 3), rank > 0))
        after = np.cumsum(parts[queue])
        taken = np.clip(int(units.sum()) - (after - parts[queue]), 0, parts[queue])
        return self._summed_at(np.tile(at, 3)[queue], taken, len(units))

    @staticmethod
    def _summed_at(at: Ints, units: Ints, places: int) -> Ints:
        summed: Ints = np.zeros(places, dtype=np.int64)
        np.add.at(summed, at, units)
        return summed


@dataclass(frozen=True, slots=True)
class Sinks:
    """The pieces of the brokers and, where topics are balanced, of the cells (topic * brokers + broker)."""

    brokers: Pieces
    cells: Pieces | None = None


def flat(low: Ints, high: Ints) -> Pieces:
    """Return one piece a place, between these bounds, that costs nothing."""
    places = np.arange(len(low))
    return Pieces(places, low, high, np.zeros_like(low), np.zeros(len(low), dtype=np.bool_))


def flat_sinks(choices: Choices) -> Sinks:
    """Return sinks that cost nothing, within the bounds that are left."""
    cells = flat(choices.cell_low, choices.cell_high) if choices.has_cells else None
    return Sinks(flat(choices.low, choices.high), cells)


def rising(low: Ints, high: Ints, window: tuple[Ints, Ints], base: Ints, weight: Ints) -> Pieces:
    """Return pieces of (base + units)^2 * weight, unit by unit within the window, in one chunk below and one above."""
    first, last = window
    places = np.arange(len(base))
    wide = last - first
    unit = np.repeat(places, wide)
    number = first[unit] + counted(wide) + 1

    def marginal(place: Ints, units: Ints) -> Ints:
        # The cost of the unit that makes it so many: n^2 - (n - 1)^2 = 2n - 1.
        return (2 * (base[place] + units) - 1) * weight[place]

    none, one = np.zeros_like(base), np.ones_like(unit)
    return Pieces(
        at=np.concatenate([places, unit, places]),
        lower=np.concatenate([low, 0 * unit, none]),
        upper=np.concatenate([first, one, high - last]),
        cost=np.concatenate([marginal(places, first), marginal(unit, number), marginal(places, last + 1)]),
        is_chunk=np.concatenate([first > low, np.zeros(len(unit) + len(base), dtype=np.bool_)]),
    )


def outside(low: Ints, high: Ints, floor: Ints, roof: Ints) -> Pieces:
    """Return pieces that gain one for each unit up to `floor`, and cost one for each above `roof`."""
    places = np.arange(len(low))
    none = np.zeros_like(low)
    return Pieces(
        at=np.concatenate([places, places, places]),
        lower=np.concatenate([low, none, none]),
        upper=np.concatenate([floor, roof - floor, high - roof]),
        cost=np.concatenate([none - 1, none, none + 1]),
        is_chunk=np.zeros(3 * len(low), dtype=np.bool_),
    )
