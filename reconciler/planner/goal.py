"""States one objective over all rows, and what prices mean to each of them: weights, cheapest sets, who is content."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Ints, is_at, is_missing
from reconciler.planner.cheapest_sets import LARGEST, Cheapest, Seats, Shortlist, bounds_of, cheapest_sets, far
from reconciler.planner.costs import Cost
from reconciler.planner.pieces import Pieces, Sinks, exact_dot
from reconciler.planner.rows import Choices, Demand

CHUNK = 1 << 14
"""Rows priced at a time: their arrays of seats take some megabytes, however many rows there are."""


@dataclass(frozen=True, slots=True)
class Goal:
    """An objective: what replicas cost, and what the sinks make of the counts that they lead to."""

    demand: Demand
    choices: Choices
    cost: Cost
    sinks: Sinks
    turns: Ints | None  # [kinds, brokers]: comes on top of what a row pays
    topic_of_kind: Ints

    @classmethod
    def of(cls, demand: Demand, choices: Choices, cost: Cost, sinks: Sinks) -> "Goal":
        """Return the objective, in numbers that are wide enough for it."""
        turns = None
        if cost.turns is not None:
            # Rows of one kind but of different turns are no longer alike.
            number = cost.turns.number
            key = choices.kind * (number.max(initial=0) + 2) + number + 1
            _, first, kind = np.unique(key, return_index=True, return_inverse=True)
            turns = cost.turns.away(number[first][:, None], np.arange(demand.rules.brokers))
            choices = replace(choices, kind=kind, kinds=choices.kinds[choices.kind[first]])
        if _is_wide(demand, cost, sinks):
            cost = replace(cost, other=cost.other.astype(object), at=cost.at.astype(object))
            sinks = Sinks(sinks.brokers.widened(), None if sinks.cells is None else sinks.cells.widened())
        topic = np.zeros(len(choices.kinds), dtype=np.int64)
        topic[choices.kind] = demand.rules.topic[demand.rule]
        return cls(demand, choices, cost, sinks, turns, topic)

    @property
    def pieces(self) -> Pieces:
        """The pieces of the places where replicas end."""
        return self.sinks.cells or self.sinks.brokers

    @property
    def most(self) -> int:
        """The most replicas that a row has."""
        return int(self.demand.need.max(initial=0))

    def place(self, row: Ints, broker: Ints) -> Ints:
        """Return the place where a row's replica on that broker ends."""
        rules = self.demand.rules
        return rules.topic[self.demand.rule[row]] * rules.brokers + broker if self.choices.has_cells else broker

    def count(self, table: Ints) -> Ints:
        """Return how many replicas of a table of brokers [n, most] are in each place."""
        row, seat = np.nonzero(table >= 0)
        return np.bincount(self.place(row, table[row, seat]), minlength=self.choices.places)

    def own(self, row: Ints, broker: Ints) -> Ints:
        """Return what each of these rows pays for the broker beside it."""
        own = self.cost.other[row]
        for named, at in zip(self.demand.named.T, self.cost.at.T, strict=True):
            there = np.flatnonzero(named[row] == broker)
            own[there] = at[row[there]]
        return own if self.turns is None else own + self.turns[self.choices.kind[row], broker]

    def asked(self, price: Ints) -> Ints:
        """Return what prices and turns ask [kinds, brokers] of a row of each kind."""
        by_topic = price.reshape(-1, self.demand.rules.brokers)
        shape = self.choices.kinds.shape
        asked = by_topic[self.topic_of_kind] if len(by_topic) > 1 else np.broadcast_to(by_topic, shape)
        asked = asked if self.turns is None else asked + self.turns
        return asked.astype(self.cost.other.dtype, copy=False)

    def cheapest(self, asked: Ints, index: Ints) -> Iterator[tuple[Ints, Seats, Cheapest]]:
        """Yield the cheapest sets of these rows, a chunk at a time, and the seats that they chose from."""
        short = Shortlist.at(self.demand, self.choices, self.cost, asked)
        for start in range(0, len(index), CHUNK):
            some = index[start : start + CHUNK]
            seats = short.seats(some)
            yield some, seats, cheapest_sets(seats, bounds_of(self.demand, self.choices, some))

    def paid(self, asked: Ints, index: Ints, table: Ints) -> Ints:
        """Return what these rows pay for what they hold, prices included; their `table` is [index, most]."""
        paid, kinds = np.zeros(len(index), dtype=asked.dtype), self.choices.kind[index]
        for column in table.T:
            some = np.flatnonzero(column >= 0)
            broker, kind = column[some], kinds[some]
            turn = 0 if self.turns is None else self.turns[kind, broker]
            paid[some] += self.own(index[some], broker) + asked[kind, broker] - turn
        return paid

    def margins(self, asked: Ints, table: Ints) -> tuple[Ints, Ints]:
        """Return the most that each row pays for a broker it might leave, and the least for one that it might take.

        Where the first is no more than the second, it surely holds a cheapest set; where it is less, the only one.
        What rows hold is legal; the first is beyond everything for a row that does not hold enough.
        """
        named, state, kind = self.demand.named, self.choices.named, self.choices.kind
        weight = self.cost.at + asked[kind[:, None], named]
        beyond = far(weight)
        is_held, is_free = is_at(named, table), state == 0
        dearest = np.where(is_held & is_free, weight, -beyond).max(axis=1, initial=-beyond)
        cheapest = np.where(~is_held & is_free, weight, beyond).min(axis=1, initial=beyond)
        is_open = self.choices.kinds == 0
        other = np.where(is_open, asked, beyond).min(axis=1, initial=beyond)
        cheapest = np.minimum(cheapest, self.cost.other + other[kind])
        # A broker that is held and not named is among the others, so that at best it costs as much as one of them.
        row, seat = np.nonzero(is_missing(table, named))
        broker = table[row, seat]
        row, broker = (each[is_open[kind[row], broker]] for each in (row, broker))
        np.maximum.at(dearest, row, self.cost.other[row] + asked[kind[row], broker])
        return np.where((table >= 0).sum(axis=1) == self.demand.need, dearest, beyond + 1), cheapest


def _is_wide(demand: Demand, cost: Cost, sinks: Sinks) -> bool:
    """Whether weights may not fit 64 bits: a price is no more than all that rows could pay, and two sinks."""
    dearest = np.maximum(np.abs(cost.other), np.abs(cost.at).max(axis=1, initial=0))
    pieces = [each.cost for each in (sinks.brokers, sinks.cells) if each is not None]
    if any(each.dtype == object for each in pieces):
        return True
    most = exact_dot(dearest, demand.count * demand.need)
    most += sum(2 * max(int(each.max(initial=0)), -int(each.min(initial=0))) for each in pieces)
    return 4 * most * max(1, int(demand.need.max(initial=0))) > LARGEST
