"""Finds each row's cheapest legal replica set at given prices, and the duals that prove it cheapest.

A row's legal sets are the bases of a laminar matroid: so many in all, so few and so many in each rack. A greedy
choice by weight is exact there, and it needs of each rack its cheapest brokers alone, so one pass of whole-array
operations over a shortlist of brokers serves all rows.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.model.columns import Bools, Ints, is_at
from reconciler.planner.costs import Cost
from reconciler.planner.rows import Choices, Demand, States

LARGEST = 1 << 60
"""64-bit weights are smaller; where they may not be, all of them are Python's own numbers."""


def far(weight: Ints) -> int:
    """Return what is beyond every weight: for a broker that may not be chosen; its negative for one that must be."""
    return 1 << 240 if weight.dtype == object else LARGEST << 1


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The cheapest sets [n, seats] and their duals.

    `rack_price` [n, racks] is the weight at which a seat of that rack is indifferent: cheaper ones are in every
    cheapest set, dearer ones in none. `price` [n] is the same for the row. `is_only` [n]: whether no other set costs
    as little.
    """

    held: Bools
    is_only: Bools
    rack_price: Ints
    price: Ints


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a row must take in all [n] and from each rack [n, racks], at least and at most."""

    need: Ints
    low: Ints
    high: Ints


def bounds_of(demand: Demand, choices: Choices, index: Ints) -> Bounds:
    """Return the bounds of one partition of these rows, as the objectives solved so far left them."""
    rules, rule = demand.rules, demand.rule[index]
    low, high, racks = rules.low[rule], rules.high[rule], choices.racks[index]
    return Bounds(rules.need[rule], np.where(racks > 0, high, low), np.where(racks < 0, low, high))


@dataclass(frozen=True, slots=True)
class Seats:
    """The brokers worth looking at, arrays [n, seats]: `column` (-1 none), `state`, `weight`, `rack`.

    First come the `named` ones of each row, then as many of each rack as of any other, rack after rack.
    """

    column: Ints
    state: States
    weight: Ints
    rack: Ints
    named: int

    def of_rack(self, rack: int, racks: int) -> Ints:
        """Return the seats that may be of that rack."""
        each = (self.column.shape[1] - self.named) // racks
        start = self.named + rack * each
        return np.append(np.arange(self.named), np.arange(start, start + each))


def cheapest_sets(seats: Seats, bounds: Bounds) -> Cheapest:
    """Return the cheapest sets; between equal ones, the first racks and seats."""
    # Brokers that must be in the set look free beyond measure, those that may not be in it dear beyond measure.
    beyond = far(seats.weight)
    drawn = np.where(seats.state > 0, -beyond, np.where(seats.state < 0, beyond, seats.weight))
    # One more than a rack may give: the next one tells what another broker of the rack would cost, the dual needs it.
    ranked, seat = _ranked(seats, drawn, int(bounds.high.max(initial=0)), bounds.low.shape[1])
    count = _greedy(bounds.need, bounds.low, bounds.high, ranked)
    held = np.zeros(seats.state.shape, dtype=np.bool_)
    row, rack, place = np.nonzero(np.arange(ranked.shape[2]) < count[:, :, None])
    held[row, seat[row, rack, place]] = True
    return Cheapest(held, *_duals(bounds, ranked, count))


def _ranked(seats: Seats, weight: Ints, most: int, racks: int) -> tuple[Ints, Ints]:
    """Return the weights and numbers [n, racks, most + 1] of the cheapest seats of each rack, cheapest first."""
    n, beyond = len(weight), far(weight)
    ranked = np.full((n, racks, most + 1), beyond, dtype=weight.dtype)
    seat = np.zeros((n, racks, most + 1), dtype=np.int64)
    everyone = np.arange(n)
    for rack in range(racks):
        some = seats.of_rack(rack, racks)
        left = np.where(seats.rack[:, some] == rack, weight[:, some], beyond)
        for place in range(min(most + 1, left.shape[1])):
            nearest = left.argmin(axis=1)
            seat[:, rack, place] = some[nearest]
            ranked[:, rack, place] = left[everyone, nearest]
            left[everyone, nearest] = beyond
    return ranked, seat


def _greedy(need: Ints, low: Ints, high: Ints, ranked: Ints) -> Ints:
    """Return the counts: the fewest of each rack, then the cheapest of what the racks may still give."""
    n, racks, places = ranked.shape
    place = np.arange(places)
    is_spare = (place >= low[:, :, None]) & (place < high[:, :, None])
    spare = np.where(is_spare, ranked, 2 * far(ranked)).reshape(n, racks * places)
    order = spare.argsort(axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(racks * places)[None, :], axis=1)
    taken = (rank < (need - low.sum(axis=1))[:, None]).reshape(n, racks, places)
    counted: Ints = low + taken.sum(axis=2)
    return counted


def _duals(bounds: Bounds, ranked: Ints, count: Ints) -> tuple[Bools, Ints, Ints]:
    """Return prices at which each count is cheapest: of the racks, and of the row.

    The first says where every seat that is not chosen is dearer than its rack's price.
    """
    beyond = 2 * far(ranked)
    never = np.full(count.shape, beyond, dtype=ranked.dtype)
    # Padded at both ends: the last seat taken of a rack that gives none is cheaper than all, the next of one that gives
    # every seat dearer, so that both have a place to be looked up at and neither bounds a price.
    padded = np.concatenate([-never[:, :, None], ranked, never[:, :, None]], axis=2)
    last = np.take_along_axis(padded, count[:, :, None], axis=2)[:, :, 0]
    following = np.take_along_axis(padded, count[:, :, None] + 1, axis=2)[:, :, 0]
    # A price may fall to what was taken last where one fewer were allowed, and rise to what comes next where one more
    # were; at its bound a rack says nothing. The row's price is any that all its racks agree on.
    low = np.where(count > bounds.low, last, -beyond).max(axis=1, initial=-beyond)
    high = np.where(count < bounds.high, following, beyond).min(axis=1, initial=beyond)
    price = np.where(low > -beyond, low, np.where(high < beyond, high, 0))
    rack_price = np.minimum(np.maximum(price[:, None], last), following)
    return (following > rack_price).all(axis=1), rack_price, price


@dataclass(frozen=True, slots=True)
class Shortlist:
    """The brokers worth looking at, at one price: `top` [kinds, racks, some] by price, -1 for none.

    `asked` [kinds, brokers] is what price and turns ask of a row of each kind.
    """

    demand: Demand
    choices: Choices
    cost: Cost
    asked: Ints
    top: Ints

    @classmethod
    def at(cls, demand: Demand, choices: Choices, cost: Cost, asked: Ints) -> "Shortlist":
        """Return the shortlist at what is asked for."""
        rules, group = demand.rules, np.where(choices.kinds == 0, 1, 1 - choices.kinds)
        most_named = _most_in_a_rack(rules.rack, demand.named)
        # A row takes at most `high` of a rack; the brokers that it names may be among the top and count apart; one more
        # for the dual.
        size = int(rules.high.max(initial=0)) + 1 + most_named
        top = np.full((len(asked), rules.low.shape[1], size), -1, dtype=np.int64)
        for rack in range(rules.low.shape[1]):
            members = np.flatnonzero(rules.rack == rack)
            order = np.lexsort((asked[:, members], group[:, members]), axis=1)[:, :size]
            is_barred = np.take_along_axis(group[:, members], order, axis=1) > 1
            top[:, rack, : order.shape[1]] = np.where(is_barred, -1, members[order])
        return cls(demand, choices, cost, asked, top)

    def seats(self, index: Ints) -> Seats:
        """Return the seats of these rows: the brokers that they name, then of each rack the cheapest others."""
        named, kind = self.demand.named[index], self.choices.kind[index]
        others = self.top[kind].reshape(len(index), -1)
        others = np.where(is_at(others, named), -1, others)
        column = np.concatenate([named, others], axis=1)
        own = np.concatenate(
            [self.cost.at[index], np.repeat(self.cost.other[index][:, None], others.shape[1], axis=1)], axis=1
        )
        of_kind = np.where(others >= 0, self.choices.kinds[kind[:, None], others], np.int8(-1))
        state = np.concatenate([self.choices.named[index], of_kind], axis=1)
        return Seats(
            column, state, own + self.asked[kind[:, None], column], self.demand.rules.rack[column], named.shape[1]
        )


def _most_in_a_rack(rack: Ints, columns: Ints) -> int:
    """Return the most of one row's brokers that stand in one rack."""
    where = np.where(columns >= 0, rack[columns], -1) if len(rack) else columns
    racks = range(int(rack.max(initial=-1)) + 1)
    return max((int(np.count_nonzero(where == number, axis=1).max(initial=0)) for number in racks), default=0)
