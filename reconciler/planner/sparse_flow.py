"""Solves one objective over all rows: a flow over the few rows that may change, then a price check over all others.

A flow over every row would be exact, and far too large: nearly all partitions stay where they are. So the flow is
solved over the rows that are likely to change. Its prices then say, row by row, whether any legal set would have been
cheaper; where one would, the row is let in, and the flow is solved again. When none would, the prices prove the
solution least among all (Dantzig-Wolfe column generation; the linear programs are integral, because they are flows).
Where few arcs are undecided, or rows stand for whole classes, one flow has them all.

Bounds of counts are bounds of the flow, not costs. Where the rows let in cannot keep them, a flow of its own counts
what is outside, and its prices say which rows would help.
"""

from dataclasses import replace

import numpy as np

from reconciler.model.columns import Bools, Ints, is_missing, place_among_equals
from reconciler.planner.costs import Cost, no_cost
from reconciler.planner.face import Solved, solved
from reconciler.planner.flow import FlowInfeasibleError
from reconciler.planner.goal import Goal
from reconciler.planner.pieces import Sinks
from reconciler.planner.row_flow import Given, flow_over
from reconciler.planner.rows import Standing, placed_as
from reconciler.planner.start import first_sets, likely_rows

FEW_ARCS = 50_000
"""So many arcs are solved at once: the solver takes some tenth of a second (decision 2 has 0.45 s for 1.2 million)."""
ROWS_A_PAIR = 32
"""So many rows are let in at first that would rather be on another broker than on the one that they are on; each time
twice as many."""
FEW_OF_CELLS = 2_000_000
"""So many choices are solved at once where topics' parts are bounded, as most rows are needed anyway: some seconds."""


def solve(standing: Standing, cost: Cost, sinks: Sinks, *, near: Cost | None = None) -> Solved:
    """Minimise the cost of the replicas placed and of the sinks they fill.

    The search for the first objective starts from each row's cheapest set by the cost `near`.
    """
    choices = standing.choices
    if sinks.cells is not None and sinks.cells.say_nothing(standing.demand.total):
        sinks = Sinks(sinks.brokers)
        choices = replace(choices, cell_low=choices.cell_low[:0], cell_high=choices.cell_high[:0])
    goal = Goal.of(standing.demand, choices, cost, sinks)
    if int(goal.choices.many(goal.demand, 0).sum()) <= FEW_ARCS or goal.demand.is_by_class:
        everyone, nobody = np.arange(len(goal.demand.rule)), np.zeros(goal.choices.places, dtype=np.int64)
        return solved(standing, goal, flow_over(goal, everyone, nobody, everyone < 0))
    table = first_sets(goal, near or goal.cost, standing.before)
    return solved(standing, goal, _sifted(goal, table))


def _sifted(goal: Goal, table: Ints) -> Given:
    """Return what is placed at the least cost, from these sets on, and the prices that prove it."""
    is_whole = goal.choices.has_cells and int(goal.choices.many(goal.demand, 0).sum()) <= FEW_OF_CELLS
    active = np.arange(len(table)) if is_whole else likely_rows(goal, table)
    is_pooled = np.ones(len(table), dtype=np.bool_)
    was_left, rows_a_pair = ~is_pooled, ROWS_A_PAIR
    while True:
        table[active] = -1
        still, of = goal.count(table), goal
        try:
            given = flow_over(goal, active, still, is_pooled[active])
        except FlowInfeasibleError:
            of = replace(goal, cost=no_cost(goal.demand.named), turns=None)
            given = flow_over(of, active, still, is_pooled[active], is_relaxed=True)
        table[active] = given.placed.table(len(table), goal.most)[active]
        if len(given.failed):
            is_pooled[given.failed] = False
            continue
        more, is_sure = _cheaper(of, table, given.price, goal.cost.other, rows_a_pair)
        # No row has a cheaper set at these prices: they prove the flow least over all rows, those left out included.
        if not len(more):
            if of is not goal:
                raise FlowInfeasibleError
            return replace(given, placed=placed_as(table))
        if of is goal and goal.choices.has_cells:
            # Rows without an equal choice at these prices keep what they hold, unless they are let in again.
            gone = active[is_sure[active] & ~was_left[active]]
            was_left[gone] = True
            active = np.setdiff1d(active, gone)
        active = np.union1d(active, more)
        rows_a_pair *= 2 if goal.choices.has_cells else 1


def _cheaper(goal: Goal, table: Ints, price: Ints, other: Ints, most: int) -> tuple[Ints, Bools]:
    """Return rows that have a cheaper set at these prices than what they hold, those that gain most by it.

    Of those that gain as much, they are those that lose least of what `other` brokers cost; and so many at the most
    come from one broker to another. Also return which rows surely hold the only cheapest set.
    """
    asked = goal.asked(price)
    dearest, cheapest_other = goal.margins(asked, table)
    rest = np.flatnonzero(dearest > cheapest_other)
    found, gains, pairs = [rest[:0]], [asked[:0, 0]], [rest[:0]]
    for some, seats, cheapest in goal.cheapest(asked, rest):
        held = table[some]
        gain = goal.paid(asked, some, held) - np.where(cheapest.held, seats.weight, 0).sum(axis=1)
        # Equal is not better: a tie changes no value, and letting ties in would bring in nearly all rows.
        better = np.flatnonzero(gain > 0)
        held, column = held[better], np.where(cheapest.held[better], seats.column[better], -1)
        gone, new = is_missing(held, column), is_missing(column, held)
        who = np.arange(len(better))
        left, taken = held[who, gone.argmax(axis=1)], column[who, new.argmax(axis=1)]
        found.append(some[better])
        gains.append(gain[better])
        pairs.append(left * goal.demand.rules.brokers + taken)
    row, pair = np.concatenate(found), np.concatenate(pairs)
    order = np.lexsort((row, other[row], -np.concatenate(gains), pair))
    pair = pair[order]
    rank = place_among_equals(pair)
    return row[order[rank < most]], dearest < cheapest_other
