"""Computes how even counts are, and the counts that are cheapest at given prices: convex, broker by broker.

A count stands for what one holder has in the end: a broker, or a broker within one topic. Arrays are [..., brokers] and
hold Python's own whole numbers: squares and prices have no largest value here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import numpy as np

from reconciler.model.desired import BalanceTarget, Even, Within
from reconciler.proof.arithmetic import Bools, Ints, exact_sum


@dataclass(frozen=True, slots=True)
class Box:
    """The counts that are still possible: from `low` to `high`, both included."""

    low: Ints
    high: Ints


@dataclass(frozen=True, slots=True)
class Free:
    """Every count is as good as any other."""

    def value(self, counts: Ints) -> int:
        """Return 0."""
        del counts
        return 0

    def weighed(self, times: int) -> "Free":
        """Return the same: nothing costs nothing."""
        del times
        return self

    def cheapest(self, box: Box, price: Ints) -> tuple[int, Box]:
        """Return the least sum of -price x count within the box, and the counts that reach it."""
        low = np.where(price > 0, box.high, box.low)
        high = np.where(price < 0, box.low, box.high)
        return -_sum_of_products(price, low), Box(low, high)


@dataclass(frozen=True, slots=True)
class Squares:
    """Even counts: the sum of weight x count^2, the weights whole numbers in the proportion of 1 / capacity."""

    weight: Ints

    def weighed(self, times: int) -> "Squares":
        """Return so many times the cost."""
        return Squares(self.weight * times)

    def value(self, counts: Ints) -> int:
        """Return how uneven the counts are."""
        return _sum_of_products(self.weight, counts, counts)

    def cheapest(self, box: Box, price: Ints) -> tuple[int, Box]:
        """Return the least sum of weight x count^2 - price x count, and the counts that reach it.

        The count n costs weight x (2n - 1) more than n - 1: all that cost less than the price are worth having, all
        that cost as much may be had.
        """
        must, may = -(-price // self.weight) // 2, (price // self.weight + 1) // 2
        low = np.minimum(np.maximum(must, box.low), box.high)
        high = np.minimum(np.maximum(may, box.low), box.high)
        return self.value(low) - _sum_of_products(price, low), Box(low, high)


@dataclass(frozen=True, slots=True)
class Banded:
    """Counts within bands: the replicas by which counts are below `low` or above `high`."""

    low: Ints
    high: Ints
    times: int = 1

    def weighed(self, times: int) -> "Banded":
        """Return so many times the cost."""
        return Banded(self.low, self.high, self.times * times)

    def value(self, counts: Ints) -> int:
        """Return how many replicas are outside, as often as one counts."""
        return int(self._outside(counts).sum()) if counts.size else 0

    def _outside(self, counts: Ints) -> Ints:
        outside: Ints = np.maximum(self.low - counts, 0) + np.maximum(counts - self.high, 0)
        return outside * self.times

    def cheapest(self, box: Box, price: Ints) -> tuple[int, Box]:
        """Return the least sum of what is outside less price x count, and the counts that reach it.

        The cost is straight between the box's ends and the band's, so it is least at some of these four.
        """
        ends = [np.minimum(np.maximum(end, box.low), box.high) for end in (box.low, self.low, self.high, box.high)]
        costs = [self._outside(end) - price * end for end in ends]
        least = np.minimum(np.minimum(costs[0], costs[1]), np.minimum(costs[2], costs[3]))
        low, high = box.high, box.low
        for end, cost in zip(ends, costs, strict=True):
            low = np.where(cost == least, np.minimum(low, end), low)
            high = np.where(cost == least, np.maximum(high, end), high)
        return int(least.sum()) if least.size else 0, Box(low, high)


CountCost = Free | Squares | Banded


def count_cost_of(target: BalanceTarget, capacity: tuple[int, ...], counts: Ints, sharing: Bools) -> CountCost:
    """Return how counts [..., brokers] are judged by their sums; `sharing` [..., brokers]: who has a fair share."""
    if isinstance(target, Even):
        return squares_of(capacity)
    if not isinstance(target, Within) or not capacity:
        return Free()
    width = len(capacity)
    totals, sharers = counts.reshape(-1, width).sum(axis=1).tolist(), sharing.reshape(-1, width).tolist()
    bands = [
        _bands(target.fraction, [weight * has for weight, has in zip(capacity, row, strict=True)], total)
        for total, row in zip(totals, sharers, strict=True)
    ]
    low = np.array([band[0] for band in bands], dtype=object).reshape(counts.shape)
    high = np.array([band[1] for band in bands], dtype=object).reshape(counts.shape)
    return Banded(low, high)


def squares_of(capacity: tuple[int, ...]) -> Squares:
    """Return how uneven counts are where nothing else is asked for."""
    common = lcm(*capacity)
    return Squares(np.array([common // weight for weight in capacity], dtype=object))


def is_fair(capacity: Sequence[int], counts: Sequence[int]) -> bool:
    """Whether each count is one of the whole numbers next to its broker's share."""
    whole, total = sum(counts), sum(capacity)
    return all(
        whole * weight // total <= count <= -(-whole * weight // total)
        for weight, count in zip(capacity, counts, strict=True)
        if total
    )


def _bands(fraction: Fraction, capacity: Sequence[int], total: int) -> tuple[list[int], list[int]]:
    """Return each broker's band about its fair share; the whole numbers next to the share are always inside."""
    shares = [Fraction(total * weight, max(1, sum(capacity))) for weight in capacity]
    low = [max(0, min(-(-(share * (1 - fraction)) // 1), share // 1)) for share in shares]
    high = [max(share * (1 + fraction) // 1, -(-share // 1)) for share in shares]
    return low, high


def _sum_of_products(*factors: Ints) -> int:
    product: Ints = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return exact_sum(product)
