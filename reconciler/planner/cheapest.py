"""Each row's cheapest legal replica set at given prices, and the duals that prove it cheapest.

A row's legal sets are the bases of a laminar matroid: so many in all, so few and so many in each rack, at least one in
the leading racks. A greedy choice by weight is exact there, and it needs of each rack its cheapest brokers alone, so
one pass of whole-array operations serves all rows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reconciler.planner.rows import Choices, Rows

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FAR = np.int64(1) << 56
"""Beyond every weight: a broker that may not be chosen; its negative, one that must be."""


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest sets [n, seats] and their duals.

    `rack_price` [n, racks] is the weight at which a seat of that rack is indifferent: cheaper ones are in every
    cheapest set, dearer ones in none. `group_price` [n] is the same for the leading racks together, `price` [n] for
    the row. `is_only` [n]: whether no other set costs as little.
    """

    held: Bools
    is_only: Bools
    rack_price: Ints
    group_price: Ints
    price: Ints


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a row must take from each rack [n, racks], at least and at most, and from its leading racks [n] at least.

    `most_leading` [n] is the most that the leading racks may give.
    """

    low: Ints
    high: Ints
    least_leading: Ints
    most_leading: Ints


def bounds_of(rows: Rows, choices: Choices) -> Bounds:
    """Return the bounds of single partitions as the objectives solved so far left them."""
    return Bounds(
        low=np.where(choices.racks > 0, rows.high, rows.low),
        high=np.where(choices.racks < 0, rows.low, rows.high),
        least_leading=np.where(rows.leading.any(axis=1), 1, 0),
        most_leading=np.where((choices.leading < 0) & rows.leading.any(axis=1), 1, rows.need),
    )


def cheapest_sets(rows: Rows, choices: Choices, weight: Ints) -> Cheapest:
    """Return the cheapest sets at `weight` [n, seats]; between equal ones, the first racks and seats."""
    bounds = bounds_of(rows, choices)
    drawn = np.where(choices.brokers > 0, -FAR, weight)
    drawn[~rows.allowed | (choices.brokers < 0)] = FAR
    ranked, seat = _ranked(rows, drawn, int(bounds.high.max(initial=0)))
    count = _counts(rows, bounds, ranked)
    held = np.zeros(rows.allowed.shape, dtype=np.bool_)
    row, rack, place = np.nonzero(np.arange(ranked.shape[2]) < count[:, :, None])
    held[row, seat[row, rack, place]] = True
    return Cheapest(held, *_duals(rows, bounds, ranked, count))


def _ranked(rows: Rows, weight: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the weights and numbers [n, racks, most + 1] of the cheapest seats of each rack, cheapest first."""
    n, racks = rows.low.shape
    ranked = np.full((n, racks, most + 1), FAR, dtype=np.int64)
    seat = np.zeros((n, racks, most + 1), dtype=np.int64)
    everyone = np.arange(n)
    for rack in range(racks):
        members = np.flatnonzero(rows.rack == rack)
        left = weight[:, members]
        for place in range(min(most + 1, len(members))):
            nearest = left.argmin(axis=1)
            ranked[:, rack, place] = left[everyone, nearest]
            seat[:, rack, place] = members[nearest]
            left[everyone, nearest] = FAR
    return ranked, seat


def _counts(rows: Rows, bounds: Bounds, ranked: Ints) -> Ints:
    """Return how many brokers of each rack [n, racks] the cheapest sets have."""
    count = _greedy(rows.need, bounds.low, bounds.high, ranked)
    leading = np.where(rows.leading, count, 0).sum(axis=1)
    wanting = np.flatnonzero(leading < bounds.least_leading)
    if len(wanting):
        count[wanting] = _led(rows, bounds, ranked, wanting)
    beyond = np.flatnonzero(leading > bounds.most_leading)
    if len(beyond):
        count[beyond] = _one_leading(rows, bounds, ranked, beyond)
    return count


def _greedy(need: Ints, low: Ints, high: Ints, ranked: Ints) -> Ints:
    """Return the counts: the fewest of each rack, then the cheapest of what the racks may still give."""
    n, racks, places = ranked.shape
    place = np.arange(places)
    is_spare = (place >= low[:, :, None]) & (place < high[:, :, None])
    spare = np.where(is_spare, ranked, 2 * FAR).reshape(n, racks * places)
    order = spare.argsort(axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(racks * places)[None, :], axis=1)
    taken = (rank < (need - low.sum(axis=1))[:, None]).reshape(n, racks, places)
    counted: Ints = low + taken.sum(axis=2)
    return counted


def _led(rows: Rows, bounds: Bounds, ranked: Ints, index: Ints) -> Ints:
    """Return the counts of rows whose cheapest set has no leading rack: each in turn is made to give one."""
    high = bounds.high[index]
    return _cheapest_of(
        rows, ranked, index, [(np.maximum(bounds.low[index], first), high) for first in _each_leading(rows, index)]
    )


def _one_leading(rows: Rows, bounds: Bounds, ranked: Ints, index: Ints) -> Ints:
    """Return the counts of rows that may take just one from the leading racks: each in turn is the one to give it."""
    low, high = bounds.low[index], bounds.high[index]
    options = []
    for first in _each_leading(rows, index):
        only = np.where(rows.leading[index], first, high)
        options.append((np.minimum(np.maximum(low, first), only), only))
    return _cheapest_of(rows, ranked, index, options)


def _each_leading(rows: Rows, index: Ints) -> list[Ints]:
    racks = rows.low.shape[1]
    return [np.where(rows.leading[index], np.eye(racks, dtype=np.int64)[rack], 0) for rack in range(racks)]


def _cheapest_of(rows: Rows, ranked: Ints, index: Ints, options: list[tuple[Ints, Ints]]) -> Ints:
    """Return for each row the counts of its cheapest option; an option is the bounds [rows, racks] of its racks."""
    some, need = ranked[index], rows.need[index]
    place = np.arange(some.shape[2])
    best = np.zeros(some.shape[:2], dtype=np.int64)
    least = np.full(len(index), np.iinfo(np.int64).max)
    for low, high in options:
        count = _greedy(need, low, high, some)
        is_one = np.where(rows.leading[index], count, 0).sum(axis=1) > 0
        is_whole = is_one & (low <= high).all(axis=1) & (count.sum(axis=1) == need)
        total = np.where(place < count[:, :, None], some, 0).sum(axis=(1, 2))
        is_better = is_whole & (total < least)
        best[is_better], least[is_better] = count[is_better], total[is_better]
    return best


def _duals(rows: Rows, bounds: Bounds, ranked: Ints, count: Ints) -> tuple[Bools, Ints, Ints, Ints]:
    """Return prices at which each count is cheapest: of the racks, of the leading racks together, of the row.

    The first says where every seat that is not chosen is dearer than its rack's price.
    """
    never = np.full(count.shape, 2 * FAR)
    padded = np.concatenate([-never[:, :, None], ranked, never[:, :, None]], axis=2)
    last = np.take_along_axis(padded, count[:, :, None], axis=2)[:, :, 0]
    following = np.take_along_axis(padded, count[:, :, None] + 1, axis=2)[:, :, 0]
    floor = np.where(count > bounds.low, last, -2 * FAR)
    roof = np.where(count < bounds.high, following, 2 * FAR)

    def span(mask: Bools) -> tuple[Ints, Ints]:
        return (
            np.where(mask, floor, -2 * FAR).max(axis=1, initial=-2 * FAR),
            np.where(mask, roof, 2 * FAR).min(axis=1, initial=2 * FAR),
        )

    other_floor, other_roof = span(~rows.leading)
    group_floor, group_roof = span(rows.leading)
    low, high = np.maximum(other_floor, group_floor), np.minimum(other_roof, group_roof)
    common = np.where(low > -2 * FAR, low, np.where(high < 2 * FAR, high, 0))
    is_led = other_roof < group_floor
    price = np.where(low <= high, common, np.where(is_led, other_roof, other_floor))
    group_price = np.where(low <= high, common, np.where(is_led, group_floor, group_roof))
    above = np.where(rows.leading, group_price[:, None], price[:, None])
    rack_price = np.minimum(np.maximum(above, last), following)
    return (following > rack_price).all(axis=1), rack_price, group_price, price
