"""Finds the best placement within a budget between two corners of the curve: an exact search among a few choices.

Beside optimal prices each choice has a reduced cost: by so much a placement with it is above the least weighted sum, at
the least. A placement that is within the budget and no less even than the best one known is above it by no more than
the slack between the two. So a choice whose reduced cost is more than that is in no better placement, and is left out.
On a small cluster all the rest fits one search, which is then exact; on a large one it fits for most budgets, as the
corners are close there. Where it does not, what is nearest to the prices is searched, and the bound tells the gap.

The search (CP-SAT) runs in one thread and stops after a count of its own steps, never by a clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from ortools.sat.python import cp_model

from reconciler.model.columns import Bools, Ints
from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.costs import Cost
from reconciler.planner.face import Solved
from reconciler.planner.goal import Goal
from reconciler.planner.integer import FOUND, solved
from reconciler.planner.objectives import CountTargets, weights
from reconciler.planner.pieces import flat_sinks
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Placed, Standing, marked

MOST_CHOICES, MOST_ROWS = 1_500, 400
"""So many pairs of a row and a broker, and so many rows, are searched at the most."""
EFFORT = 0.5
"""What one measure may take."""


@dataclass(frozen=True, slots=True)
class Room:
    """What may differ from the placement of an edge: its standing, costs, and the slack that is left above its prices.

    `targets` are to be even one after another; `weights` are those of the first balance and of bytes.
    """

    task: PlacementTask
    standing: Standing
    cost: Cost
    targets: Sequence[CountTargets]
    weights: tuple[int, int]
    solved: Solved
    slack: int


def searched(room: Room, best: Ints, at_prices: Ints, budget: int) -> Ints | None:
    """Return the best table [partitions, most] found within the budget; None where none is better than `best`.

    `at_prices` is the table of an optimum of the edge. What decides: the measures in their order, then the bytes.
    """
    choice = _choice(room, best, at_prices)
    if not len(choice[0]):
        return None
    return _Search(room, choice, best, at_prices, budget).run()


def _choice(room: Room, best: Ints, at_prices: Ints) -> tuple[Ints, Bools, Bools]:
    """Return the rows that may differ, and whom each may, and must, take [rows, brokers].

    Their reduced costs leave them in question; where these are many, they are the nearest to the prices.
    """
    demand, choices, number = room.standing.demand, room.standing.choices, room.standing.number
    cost = Cost(room.cost.other * room.weights[1], room.cost.at * room.weights[1]).take(number)
    goal = Goal.of(demand, choices, cost, flat_sinks(choices))
    asked, held = goal.asked(room.solved.price), at_prices[number]
    dearest, cheapest_other = goal.margins(asked, held)
    differs = (np.sort(held, axis=1) != np.sort(best[number], axis=1)).any(axis=1)
    margin = np.where(differs, 0, cheapest_other - dearest)
    near = np.flatnonzero(margin <= room.slack)
    near = near[np.lexsort((near, margin[near]))][:MOST_ROWS]
    row, broker = (each.ravel() for each in np.indices((len(near), demand.rules.brokers)))
    state = choices.states(demand, near)
    kind, shape = choices.kind[near[row]], state.shape
    weight = (goal.own(near[row], broker) + asked[kind, broker]).reshape(shape)
    is_held = marked(held[near], shape[1]) | marked(best[number[near]], shape[1])
    may_take = (state >= 0) & (is_held | (weight - dearest[near][:, None] <= room.slack))
    fits = (np.cumsum(may_take.sum(axis=1)) <= MOST_CHOICES) | differs[near]
    return near[fits], may_take[fits], (state > 0)[fits]


class _Search:
    """The rows in question as an integer program: 0 or 1 for each broker that a row may take."""

    def __init__(self, room: Room, choice: tuple[Ints, Bools, Bools], best: Ints, at_prices: Ints, budget: int) -> None:
        self._room, self._best = room, best
        self._rows, may_take, self._must_take = choice
        self._model = cp_model.CpModel()
        self._row, self._broker = np.nonzero(may_take)
        self._takes = [self._model.new_bool_var("") for _ in range(len(self._row))]
        self._number = room.standing.number[self._rows]
        self._others = best.copy()
        self._others[self._number] = -1
        self._keep_rules()
        self._keep_counts()
        self._bytes = self._copied()
        self._model.add(self._bytes <= budget)
        self._measures = [self._measure(targets, place, at_prices) for place, targets in enumerate(room.targets)]

    def run(self) -> Ints | None:
        """Return the best table, or None where none is better than the one that is known."""
        held = marked(self._best[self._number], self._must_take.shape[1])[self._row, self._broker]
        values = [*map(int, held)]
        is_better = False
        for goal in (*self._measures, self._bytes):
            self._model.clear_hints()
            for variable, value in zip(self._takes, values, strict=True):
                self._model.add_hint(variable, value)
            self._model.minimize(goal)
            status, solver = solved(self._model, EFFORT, seed=0)
            if status not in FOUND:
                break
            found = [solver.value(variable) for variable in self._takes]
            is_better |= found != values
            values = found
            self._model.add(goal <= round(solver.objective_value))
        if not is_better:
            return None
        table = self._others
        taken = np.flatnonzero(values)
        rows = Placed.of(self._row[taken], self._broker[taken], np.ones_like(taken))
        table[self._number] = rows.table(len(self._number), table.shape[1])
        return table

    def _keep_rules(self) -> None:
        standing, model = self._room.standing, self._model
        bounds, rack = bounds_of(standing.demand, standing.choices, self._rows), standing.demand.rules.rack
        for entry in np.flatnonzero(self._must_take[self._row, self._broker]).tolist():
            model.add(self._takes[entry] == 1)
        for row in range(len(self._rows)):
            entries = np.flatnonzero(self._row == row).tolist()
            model.add(self._sum(entries) == int(bounds.need[row]))
            racks = rack[self._broker[entries]]
            for number in range(bounds.low.shape[1]):
                some = [entry for entry, own in zip(entries, racks.tolist(), strict=True) if own == number]
                self._between(self._sum(some), int(bounds.low[row, number]), int(bounds.high[row, number]), len(some))

    def _between(self, expression: cp_model.LinearExprT, low: int, high: int, most: int) -> None:
        if low > 0:
            self._model.add(expression >= low)
        if high < most:
            self._model.add(expression <= high)

    def _sum(self, entries: Sequence[int]) -> cp_model.LinearExprT:
        return cp_model.LinearExpr.sum([self._takes[entry] for entry in entries])

    def _copied(self) -> cp_model.LinearExprT:
        """Return the bytes that all rows copy."""
        room = self._room
        fixed = room.cost.of(room.task.replicas, self._others)
        is_named = room.task.replicas[self._number[self._row]] == self._broker[:, None]
        each = np.where(
            is_named.any(axis=1),
            np.where(is_named, room.cost.at[self._number[self._row]], 0).sum(axis=1),
            room.cost.other[self._number[self._row]],
        )
        return cp_model.LinearExpr.weighted_sum(self._takes, each.tolist()) + fixed

    def _measure(self, targets: CountTargets, place: int, at_prices: Ints) -> cp_model.LinearExprT:
        """Return the imbalance of these counts, which the model gets to know as the largest of straight lines."""
        room, model = self._room, self._model
        count = room.task.counts(self._others, are_cells=targets.is_cells) + targets.base
        there = room.task.counts(at_prices, are_cells=targets.is_cells) + targets.base
        entries = self._by_place(are_cells=targets.is_cells)
        worth, price = _uneven(targets, int(there.sum())), room.solved.broker_price
        if targets.is_cells:
            price = np.resize(room.solved.price, len(count)) - np.resize(price, len(count))
        known = room.task.counts(self._best, are_cells=targets.is_cells) + targets.base
        rest = np.ones(len(count), dtype=np.bool_)
        rest[[*entries]] = False
        parts: list[cp_model.LinearExprT] = [sum(worth(at, int(count[at])) for at in np.flatnonzero(rest).tolist())]
        for at, some in entries.items():
            uneven, low, high = partial(worth, at), int(count[at]), int(count[at]) + len(some)
            if not place:
                low, high = self._domain(uneven, int(price[at]), int(there[at]), (low, high))
                low, high = min(low, int(known[at])), max(high, int(known[at]))
            expression = self._sum(some) + int(count[at])
            self._between(expression, low, high, int(count[at]) + len(some))
            value = model.new_int_var(0, max(uneven(low), uneven(high)), "")
            for units in range(low, max(high, low + 1)):
                rise = uneven(units + 1) - uneven(units)
                model.add(value >= uneven(units) + rise * (expression - units))
            parts.append(value)
        return cp_model.LinearExpr.sum(parts)

    def _domain(self, uneven: Callable[[int], int], price: int, there: int, bounds: tuple[int, int]) -> tuple[int, int]:
        """Return the counts within bounds at which no more than the slack is lost beside `there`, an optimum."""

        def is_lost(count: int) -> bool:
            more = self._room.weights[0] * (uneven(count) - uneven(there)) - price * (count - there)
            return more > self._room.slack

        low = high = min(max(there, bounds[0]), bounds[1])
        while low > bounds[0] and not is_lost(low - 1):
            low -= 1
        while high < bounds[1] and not is_lost(high + 1):
            high += 1
        return low, high

    def _keep_counts(self) -> None:
        """Keep the bounds of counts that were decided before."""
        room, choices = self._room, self._room.standing.choices
        for are_cells in (False, True) if choices.has_cells else (False,):
            count = room.task.counts(self._others, are_cells=are_cells)
            count -= room.standing.counts(are_cells=are_cells)[0]
            for at, some in self._by_place(are_cells=are_cells).items():
                least, most = (int(each[at] - count[at]) for each in choices.bounds(are_cells=are_cells))
                self._between(self._sum(some), least, most, len(some))

    def _by_place(self, *, are_cells: bool) -> dict[int, list[int]]:
        """Return the entries of each broker, or of each topic on a broker, in order."""
        topic = self._room.task.topic[self._number[self._row]] * self._room.standing.demand.rules.brokers
        place = self._broker + topic if are_cells else self._broker
        return {at: np.flatnonzero(place == at).tolist() for at in np.unique(place).tolist()}


def _uneven(targets: CountTargets, most: int) -> Callable[[int, int], int]:
    """Return what tells how uneven a count of one place is."""
    if targets.band is None:
        weight = weights(targets.capacity, most).tolist()
        return lambda place, count: count * count * int(weight[place])
    low, high = (limit.tolist() for limit in targets.band)
    return lambda place, count: int(max(low[place] - count, 0) + max(count - high[place], 0))
