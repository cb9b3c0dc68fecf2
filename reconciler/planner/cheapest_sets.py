"""Finds each row's cheapest legal replica set at given prices, and the duals that prove it cheapest.

A row's legal sets are the bases of a laminar matroid: so many in all, so few and so many in each rack, at least one in
the leading racks. A greedy choice by weight is exact there, and it needs of each rack its cheapest brokers alone, so
one pass of whole-array operations serves all rows.
"""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.costs import HeldCost
from reconciler.planner.rows import Bools, Choices, Ints, Rows

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
    # Brokers that must be in the set look free beyond measure, those that may not be in it dear beyond measure.
    drawn = np.where(choices.brokers > 0, -FAR, weight)
    drawn[~rows.allowed | (choices.brokers < 0)] = FAR
    # One more than a rack may give: the next one tells what another broker of the rack would cost, the dual needs it.
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
    # Greedy is exact without leading racks: bounds on disjoint racks and one total are a matroid. A bound on the
    # leading racks together is nested above these, and binds seldom: only rows that break it are solved again, rack by
    # rack.
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
    # Padded at both ends: the last seat taken of a rack that gives none is cheaper than all, the next of one that gives
    # every seat dearer, so that both have a place to be looked up at and neither bounds a price.
    padded = np.concatenate([-never[:, :, None], ranked, never[:, :, None]], axis=2)
    last = np.take_along_axis(padded, count[:, :, None], axis=2)[:, :, 0]
    following = np.take_along_axis(padded, count[:, :, None] + 1, axis=2)[:, :, 0]
    # A price may fall to what was taken last where one fewer were allowed, and rise to what comes next where one more
    # were; at its bound a rack says nothing. The row's price is any that all its racks agree on.
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
    # Where no price suits both, the bound on the leading racks is what keeps them apart, and each side has its own.
    common = np.where(low > -2 * FAR, low, np.where(high < 2 * FAR, high, 0))
    is_led = other_roof < group_floor
    price = np.where(low <= high, common, np.where(is_led, other_roof, other_floor))
    group_price = np.where(low <= high, common, np.where(is_led, group_floor, group_roof))
    above = np.where(rows.leading, group_price[:, None], price[:, None])
    rack_price = np.minimum(np.maximum(above, last), following)
    return (following > rack_price).all(axis=1), rack_price, group_price, price


@dataclass(frozen=True, slots=True)
class Classes:
    """Rows with equal rules and equal choices: one of each class, and the class of each row."""

    rows: Rows
    choices: Choices
    of_row: Ints


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The seats worth looking at, at one price: `top` [classes, racks, some] columns by price, -1 for none.

    `price` [classes, brokers] is what the prices ask, `forced` marks brokers that each row of a class must take.
    """

    classes: Classes
    cost: HeldCost
    price: Ints
    top: Ints
    most_held: int

    @classmethod
    def at(cls, classes: Classes, cost: HeldCost, price: Ints) -> "Shortlist":
        """Return the shortlist at these prices [brokers or cells]."""
        rows = classes.rows
        by_class = price.reshape(-1, rows.brokers)
        by_class = by_class[rows.topic] if len(by_class) > 1 else np.repeat(by_class, len(rows.count), axis=0)
        state = classes.choices.brokers
        drawn = np.where(state > 0, -FAR, by_class)
        drawn[~rows.allowed | (state < 0)] = FAR
        most_held = _most_in_a_rack(rows.rack, cost.columns)
        # A row takes at most `high` of a rack; its own brokers may be among the top and count apart; one more for the
        # dual.
        size = int(rows.high.max(initial=0)) + 1 + most_held
        racks = rows.low.shape[1]
        top = np.full((len(rows.count), racks, size), -1, dtype=np.int64)
        for rack in range(racks):
            members = np.flatnonzero(rows.rack == rack)
            order = drawn[:, members].argsort(axis=1, kind="stable")[:, :size]
            found = np.where(np.take_along_axis(drawn[:, members], order, axis=1) < FAR, members[order], -1)
            top[:, rack, : found.shape[1]] = found
        return cls(classes, cost, by_class, top, most_held)

    def of(self, rows: Rows, choices: Choices, index: Ints) -> tuple[Rows, Choices, Ints]:
        """Return these rows over their seats, their choices, and the weight of each seat [index, seats]."""
        racks = rows.low.shape[1]
        of_row = self.classes.of_row[index]
        held, at = self._held(rows.rack, index, racks)
        others = self.top[of_row]
        is_held = (others[:, :, :, None] == held[:, :, None, :]).any(axis=3)
        others = np.where(is_held, -1, others)
        column = np.concatenate([held, others], axis=2).reshape(len(index), -1)
        own = np.concatenate([at, np.broadcast_to(self.cost.other[index][:, None, None], others.shape)], axis=2)
        seat = np.maximum(column, 0)
        state = self.classes.choices.brokers[of_row[:, None], seat]
        allowed = (column >= 0) & self.classes.rows.allowed[of_row[:, None], seat]
        weight = own.reshape(column.shape) + self.price[of_row[:, None], seat]
        width = held.shape[2] + others.shape[2]
        shortened = replace(rows, allowed=allowed, column=seat, rack=np.repeat(np.arange(racks), width))
        return shortened, replace(choices, brokers=state), weight

    def _held(self, rack: Ints, index: Ints, racks: int) -> tuple[Ints, Ints]:
        """Return the brokers that rows are on, rack by rack [index, racks, most], and their costs."""
        columns, costs = self.cost.columns[index], self.cost.at[index]
        held = np.full((len(index), racks, self.most_held), -1, dtype=np.int64)
        at = np.zeros_like(held)
        filled = np.zeros((len(index), racks), dtype=np.int64)
        for place in range(columns.shape[1]):
            row = np.flatnonzero(columns[:, place] >= 0)
            column = columns[row, place]
            where = rack[column]
            held[row, where, filled[row, where]] = column
            at[row, where, filled[row, where]] = costs[row, place]
            filled[row, where] += 1
        return held, at


def _most_in_a_rack(rack: Ints, columns: Ints) -> int:
    """Return the most of one row's brokers that stand in one rack."""
    where = np.where(columns >= 0, rack[columns], -1)
    racks = range(int(rack.max(initial=-1)) + 1)
    return max((int((where == number).sum(axis=1).max(initial=0)) for number in racks), default=0)
