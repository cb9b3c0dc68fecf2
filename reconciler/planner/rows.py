"""Holds what is to be placed as arrays: rules by class, and rows that name the few brokers which differ to them.

Most brokers are alike to a partition but those that it is on, so no array here has a place for each row and broker.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reconciler.model.columns import Bools, Ints, alike, place_among_equals

Floats = NDArray[np.float64]
States = NDArray[np.int8]
Scalar = TypeVar("Scalar", bound=np.generic)
Range = tuple[Ints, Ints]
"""The fewest and the most of each place."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What classes of partitions demand, all arrays with one entry a class.

    `need` [n]: replicas of one partition. `allowed` [n, brokers]: who may hold one. `low`, `high` [n, racks]: the
    fewest and most replicas of one partition in a rack; `high` is no more than the rack's allowed brokers. `rack`
    [brokers]: the rack of each broker. `topic` [n]: the number of its topic, where topics are balanced. `taken` [n,
    brokers]: who has to hold one; None: nobody in particular.
    """

    need: Ints
    allowed: Bools
    low: Ints
    high: Ints
    rack: Ints
    topic: Ints
    taken: Bools | None = None

    @classmethod
    def within(cls, need: Ints, allowed: Bools, low: Ints, high: Ints, *, rack: Ints) -> "Rows":
        """Return classes of no topic; a rack takes no more than its allowed brokers."""
        high = np.minimum(high, room(allowed, rack, low.shape[1]))
        return cls(need, allowed, low, high, rack, np.zeros_like(need))

    @property
    def brokers(self) -> int:
        """How many brokers there are."""
        return len(self.rack)

    def take(self, index: Ints) -> "Rows":
        """Return these classes alone, or one for each row."""
        taken = None if self.taken is None else self.taken[index]
        columns = (self.need[index], self.allowed[index], self.low[index], self.high[index])
        return Rows(*columns, self.rack, self.topic[index], taken)


@dataclass(frozen=True, slots=True)
class Demand:
    """Rows that demand brokers: a partition each, or `count` [n] partitions of one class.

    `rule` [n]: their class in `rules`. `named` [n, some]: brokers that differ to a row from those that are alike to its
    class, as it is on them already; -1 for none.
    """

    rules: Rows
    rule: Ints
    named: Ints
    count: Ints

    def take(self, index: Ints) -> "Demand":
        """Return these rows alone."""
        return Demand(self.rules, self.rule[index], rows_at(self.named, index), self.count[index])

    @property
    def need(self) -> Ints:
        """Replicas of one partition [n]."""
        return self.rules.need[self.rule]

    @property
    def is_by_class(self) -> bool:
        """Whether rows stand for classes, which name no brokers, and not for a partition each."""
        return not self.named.shape[1]

    @property
    def total(self) -> int:
        """Replicas to place."""
        return int((self.count * self.need).sum())

    def of_topics(self, topics: int) -> Ints:
        """Return the replicas to place of each topic."""
        of_row = self.rules.topic[self.rule]
        return np.bincount(of_row, weights=self.count * self.need, minlength=topics).astype(np.int64)


def rows_at(table: NDArray[Scalar], index: Ints) -> NDArray[Scalar]:
    """Return these rows of a table of few columns, column by column in memory: so it is computed with fastest."""
    return np.take(table.T, index, axis=1).T


def one_a_class(rules: Rows, count: Ints) -> Demand:
    """Return a row for each class, of so many partitions."""
    number = np.arange(len(count))
    return Demand(rules, number, np.zeros((len(count), 0), dtype=np.int64), count)


@dataclass(frozen=True, slots=True)
class Placed:
    """Who holds what: `units` replicas of each `row` on each `broker`; sorted by row, then broker."""

    row: Ints
    broker: Ints
    units: Ints

    @classmethod
    def of(cls, row: Ints, broker: Ints, units: Ints) -> "Placed":
        """Return what is placed, in order; entries without units are dropped."""
        order = np.lexsort((broker, row))
        order = order[units[order] > 0]
        return cls(row[order], broker[order], units[order])

    def table(self, rows: int, width: int) -> Ints:
        """Return the brokers of each row [rows, width] of one partition, -1 beyond the last."""
        table = np.full((rows, width), -1, dtype=np.int64, order="F")
        table[self.row, place_among_equals(self.row)] = self.broker
        return table


def marked(columns: Ints, brokers: int) -> Bools:
    """Return [rows, brokers] which brokers are among these columns [rows, some], -1 being none."""
    found = np.zeros((len(columns), brokers), dtype=np.bool_)
    row, place = np.nonzero(columns >= 0)
    found[row, columns[row, place]] = True
    return found


def placed_as(table: Ints) -> Placed:
    """Return what a table of brokers [rows, some] places."""
    table = np.sort(table, axis=1)
    row, place = np.nonzero(table >= 0)
    return Placed(row, table[row, place], np.ones_like(row))


def columns_of(held: Bools) -> Ints:
    """Return the columns [rows, most] that a mask [rows, columns] marks, -1 beyond the last."""
    row, column = np.nonzero(held)
    return Placed(row, column, np.ones_like(row)).table(len(held), max(1, int(held.sum(axis=1).max(initial=0))))


def with_rows(table: Ints, rows: Ints, mask: Bools) -> Ints:
    """Return the table with these rows as the mask [rows, columns] marks them."""
    table, columns = table.copy(order="F"), columns_of(mask)
    table[rows] = -1
    table[rows, : columns.shape[1]] = columns
    return table


@dataclass(frozen=True, slots=True)
class Choices:
    """Which choices are still free, as the objectives solved so far left them: the face of their optimal solutions.

    States are -1 for what is barred or left, 1 for what is taken, 0 for what is free: `kinds` [kinds, brokers] those of
    brokers that a row does not name, by the row's `kind` [n], `named` [n, some] those of brokers that it names.
    `racks` [n, racks] are -1 where held at the lower bound, 1 at the upper. `low`, `high` [brokers]: bounds of what
    each broker gets in all; `cell_low`, `cell_high` [topics * brokers]: the same for each topic's part of it, empty
    where topics are not balanced.
    """

    kind: Ints
    kinds: States
    named: States
    racks: States
    low: Ints
    high: Ints
    cell_low: Ints
    cell_high: Ints

    @property
    def has_cells(self) -> bool:
        """Whether each topic's replicas on each broker are counted by themselves."""
        return len(self.cell_low) > 0

    @property
    def places(self) -> int:
        """How many places replicas may end in: the brokers, or the cells."""
        return len(self.cell_low) or len(self.low)

    def bounds(self, *, are_cells: bool) -> Range:
        """Return the fewest and the most that each broker, or each cell, gets."""
        return (self.cell_low, self.cell_high) if are_cells else (self.low, self.high)

    def counts(self, demand: Demand, placed: Placed) -> Ints:
        """Return how many replicas are placed in each place."""
        topic = demand.rules.topic[demand.rule]
        place = topic[placed.row] * demand.rules.brokers + placed.broker if self.has_cells else placed.broker
        return np.bincount(place, weights=placed.units, minlength=self.places).astype(np.int64)

    def without(self, count: Ints) -> "Choices":
        """Return the bounds of counts beside so many replicas [places]."""
        of_broker = count.reshape(-1, len(self.low)).sum(axis=0)
        of_cell = count if self.has_cells else count[:0]
        return replace(
            self,
            low=self.low - of_broker,
            high=self.high - of_broker,
            cell_low=self.cell_low - of_cell,
            cell_high=self.cell_high - of_cell,
        )

    def states(self, demand: Demand, rows: Ints) -> States:
        """Return the state [rows, brokers] of each choice of these rows, named or not."""
        state = self.kinds[self.kind[rows]]
        row, seat = np.nonzero(demand.named[rows] >= 0)
        state[row, demand.named[rows[row], seat]] = self.named[rows[row], seat]
        return state

    def many(self, demand: Demand, state: int) -> Ints:
        """Return how many brokers [n] are in that state to each row."""
        found: Ints = (self.kinds == state).sum(axis=1)[self.kind] + (self.named == state).sum(axis=1)
        for place in range(demand.named.shape[1]):
            broker = demand.named[:, place]
            found -= (broker >= 0) & (self.kinds[self.kind, broker] == state)
        return found

    def take(self, index: Ints) -> "Choices":
        """Return those of these rows alone, and the kinds that they are of."""
        kind = self.kind[index]
        is_used = np.bincount(kind, minlength=len(self.kinds)) > 0
        return replace(
            self,
            kind=(np.cumsum(is_used) - 1)[kind],
            kinds=self.kinds[is_used],
            named=rows_at(self.named, index),
            racks=self.racks[index],
        )

    def reached(self, demand: Demand) -> Bools:
        """Return the cells in which some row may have a replica."""
        topic, found = demand.rules.topic[demand.rule], np.zeros(len(self.cell_high), dtype=np.bool_)
        _, first = np.unique(self.kind * (topic.max(initial=0) + 1) + topic, return_index=True)
        row, broker = np.nonzero(self.kinds[self.kind[first]] >= 0)
        found[topic[first[row]] * demand.rules.brokers + broker] = True
        row, seat = np.nonzero(self.named >= 0)
        found[topic[row] * demand.rules.brokers + demand.named[row, seat]] = True
        return found

    def of_topics(self, of_class: Ints, group: Ints, brokers: int) -> "Choices":
        """Return the choices of classes that have their topic alone, from those [of_class] of alike topics [topics].

        Alike topics share out evenly what they hold together.
        """
        kind, times = self.kind[of_class], np.bincount(group)[:, None]
        low, high = ((each.reshape(-1, brokers) // times)[group].ravel() for each in (self.cell_low, self.cell_high))
        left = replace(self, kind=np.arange(len(kind)), kinds=self.kinds[kind], cell_low=low, cell_high=high)
        return replace(left, racks=self.racks[of_class])

    def spread(self, of_row: Ints, named: Ints) -> "Choices":
        """Return the choices of rows that are of these classes and name these brokers."""
        kind = self.kind[of_row]
        states = np.asfortranarray(np.where(named >= 0, self.kinds[kind[:, None], named], np.int8(-1)))
        return replace(self, kind=kind, named=states, racks=self.racks[of_row])


def free_choices(demand: Demand, topics: int = 0, most: Ints | None = None, least: Ints | None = None) -> Choices:
    """Return choices with nothing decided; with `topics`, so many are counted broker by broker.

    `least`, `most` [brokers]: what each has to get in all, and may get.
    """
    rules, named, total = demand.rules, demand.named, demand.total
    brokers, cells = rules.brokers, topics * rules.brokers
    kinds = np.where(rules.allowed, np.int8(0), np.int8(-1))
    if rules.taken is not None:
        kinds[rules.taken] = 1
    return Choices(
        kind=demand.rule,
        kinds=kinds,
        named=np.where(named >= 0, kinds[demand.rule[:, None], named], np.int8(-1)),
        racks=np.zeros((len(named), rules.low.shape[1]), dtype=np.int8),
        low=np.zeros(brokers, dtype=np.int64) if least is None else least,
        high=np.full(brokers, total, dtype=np.int64) if most is None else np.minimum(most, total),
        cell_low=np.zeros(cells, dtype=np.int64),
        cell_high=np.full(cells, total, dtype=np.int64),
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """What the objectives solved so far leave: the rows that still have a choice, and what all others hold."""

    demand: Demand  # of the rows that have a choice
    choices: Choices  # theirs; the bounds of counts are of what these rows get
    number: Ints  # [rows]: which of all rows they are
    held: Ints  # [all rows, most]: the brokers of rows without a choice, -1 beyond the last and for other rows
    settled: Ints  # [brokers or cells]: how many replicas those are
    before: Placed | None = None  # what the objective before gave to the rows that have a choice

    @classmethod
    def of(cls, demand: Demand, choices: Choices, number: Ints, rows: int) -> "Standing":
        """Return these rows, which all have a choice, out of so many."""
        held = np.full((rows, max(1, int(demand.need.max(initial=0)))), -1, dtype=np.int64, order="F")
        return cls(demand, choices, number, held, np.zeros(choices.places, dtype=np.int64))

    def counts(self, *, are_cells: bool) -> tuple[Ints, Ints]:
        """Return how many replicas each broker, or each cell, has: of rows without a choice, and of the others now."""
        parts = [self.settled, 0 * self.settled]
        if self.before is not None:
            parts[1] = self.choices.counts(self.demand, self.before)
        settled, given = (each if are_cells else each.reshape(-1, len(self.choices.low)).sum(axis=0) for each in parts)
        return settled, given

    @property
    def table(self) -> Ints:
        """The brokers of all rows [all rows, most], -1 beyond the last."""
        table = self.held.copy(order="F")
        if self.before is not None:
            table[self.number] = self.before.table(len(self.number), table.shape[1])
        return table

    def narrowed(self, choices: Choices, placed: Placed, is_closed: Bools) -> "Standing":
        """Return what these choices leave, of which some rows have none."""
        rest = np.flatnonzero(~is_closed)
        if len(rest) == len(is_closed):
            return replace(self, choices=choices, before=placed)
        is_over = is_closed[placed.row]
        gone = Placed(placed.row[is_over], placed.broker[is_over], placed.units[is_over])
        held = self.held.copy(order="F")
        held[self.number[is_closed]] = gone.table(len(is_closed), held.shape[1])[is_closed]
        some = placed.row[~is_over]
        before = Placed((np.cumsum(~is_closed) - 1)[some], placed.broker[~is_over], placed.units[~is_over])
        count = choices.counts(self.demand, gone)
        left = choices.take(rest).without(count)
        return Standing(self.demand.take(rest), left, self.number[rest], held, self.settled + count, before)


def room(rows_allowed: Bools, rack: Ints, racks: int) -> Ints:
    """Return [n, racks]: the brokers of each rack that may hold a replica."""
    found = np.zeros((len(rows_allowed), racks), dtype=np.int64)
    for number in range(racks):
        found[:, number] = rows_allowed[:, rack == number].sum(axis=1)
    return found


def classes(rules: Rows, rule: Ints, topic: Ints) -> tuple[Rows, Ints, Ints]:
    """Return the classes of rows with the same rules and topics [n], the class of each row, and how many rows each has.

    `rule` [n] are the rows' positions in `rules`.
    """
    first, of_row = alike([rule, topic])
    return replace(rules.take(rule[first]), topic=topic[first]), of_row, np.bincount(of_row, minlength=len(first))
