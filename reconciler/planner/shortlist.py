"""For each row the few brokers that its cheapest set can come from, where most brokers cost it the same.

At given prices a row's cheapest choices in a rack are brokers it is on, or the cheapest others of the rack; and which
these are is the same for all rows of a class. So a row needs a dozen seats, however many brokers there are.
"""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.cheapest import FAR
from reconciler.planner.costs import HeldCost
from reconciler.planner.rows import Choices, Ints, Rows


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
        kind = self.classes.of_row[index]
        held, at = self._held(rows.rack, index, racks)
        others = self.top[kind]
        is_held = (others[:, :, :, None] == held[:, :, None, :]).any(axis=3)
        others = np.where(is_held, -1, others)
        column = np.concatenate([held, others], axis=2).reshape(len(index), -1)
        own = np.concatenate([at, np.broadcast_to(self.cost.other[index][:, None, None], others.shape)], axis=2)
        seat = np.maximum(column, 0)
        state = self.classes.choices.brokers[kind[:, None], seat]
        allowed = (column >= 0) & self.classes.rows.allowed[kind[:, None], seat]
        weight = own.reshape(column.shape) + self.price[kind[:, None], seat]
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
