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

from reconciler.planner.arcs import flow_over
from reconciler.planner.costs import Cost, is_at, no_cost
from reconciler.planner.face import Solved, solved
from reconciler.planner.flow import FlowInfeasibleError
from reconciler.planner.goal import Goal
from reconciler.planner.pieces import Sinks
from reconciler.planner.row_flow import Flow
from reconciler.planner.rows import Choices, Demand, Ints, Placed, placed_as
from reconciler.planner.start import first_sets, likely_rows

FEW_ARCS = 50_000
"""So many arcs are solved at once: the solver takes some tenth of a second (decision 2 has 0.45 s for 1.2 million)."""
ROWS_A_PAIR = 32
"""So many rows are let in at a time that would rather be on another broker than on the one that they are on."""


def solve(
    demand: Demand,
    choices: Choices,
    cost: Cost,
    sinks: Sinks,
    *,
    near: Cost | None = None,
    before: Placed | None = None,
) -> Solved:
    """Minimise the cost of the replicas placed and of the sinks they fill.

    `before` is what the objective before placed, None for the first; then the search starts from each row's cheapest
    set by the cost `near`.
    """
    goal = Goal.of(demand, choices, cost, sinks, before)
    free = int(goal.choices.many(demand, 0).sum())
    if free <= FEW_ARCS or demand.is_by_class:
        return solved(goal, *_at_once(goal))
    return solved(goal, *_sifted(goal, near or goal.cost))


def _at_once(goal: Goal) -> tuple[Placed, Flow]:
    """Return what is placed at the least cost, and the flow whose prices prove it."""
    demand, before, still = goal.demand, goal.before, np.zeros(goal.places, dtype=np.int64)
    kept = Placed(*(np.zeros(0, dtype=np.int64),) * 3)
    if before is not None:
        is_still = ~np.isin(before.row, goal.open_rows)
        kept = Placed(before.row[is_still], before.broker[is_still], before.units[is_still])
        of_topic = demand.rules.topic[demand.rule] if goal.choices.has_cells else None
        still = kept.counts(goal.places, of_topic, demand.rules.brokers)
    given = flow_over(goal, goal.open_rows, still, np.zeros(len(goal.open_rows), dtype=np.bool_))
    columns = zip((kept.row, kept.broker, kept.units), (given.row, given.broker, given.units), strict=True)
    return Placed.of(*(np.concatenate(pair) for pair in columns)), given.flow


def _sifted(goal: Goal, near: Cost) -> tuple[Placed, Flow]:
    """Return the same, by flows over the rows that may change."""
    table = first_sets(goal, near)
    active = likely_rows(goal, table)
    is_pooled = np.ones(len(table), dtype=np.bool_)
    while True:
        table[active] = -1
        still = goal.count(table)
        is_relaxed = False
        try:
            given = flow_over(goal, active, still, is_pooled[active])
        except FlowInfeasibleError:
            is_relaxed = True
            given = flow_over(goal, active, still, is_pooled[active], is_relaxed=True)
        found = Placed.of(given.row, given.broker, given.units)
        table[active] = found.table(len(table), goal.most)[active]
        if len(given.failed):
            is_pooled[given.failed] = False
            continue
        of = replace(goal, cost=no_cost(goal.demand.named), turns=None) if is_relaxed else goal
        more = _cheaper(of, table, given.flow.price, goal.cost.other)
        # No row has a cheaper set at these prices: they prove the flow least over all rows, those left out included.
        if not len(more):
            if is_relaxed:
                raise FlowInfeasibleError
            return placed_as(table), given.flow
        active = np.union1d(active, more)


def _cheaper(goal: Goal, table: Ints, price: Ints, other: Ints) -> Ints:
    """Return rows that have a cheaper set at these prices than what they hold, those that gain most by it.

    Of those that gain as much, they are those that lose least of what `other` brokers cost.
    """
    asked = goal.asked(price)
    rest = goal.open_rows[~goal.content(asked, goal.open_rows, table[goal.open_rows])[0]]
    found, gains, pairs = [rest[:0]], [asked[:0, 0]], [rest[:0]]
    for some, seats, cheapest in goal.cheapest(asked, rest):
        held = table[some]
        gain = goal.paid(asked, some, held) - np.where(cheapest.held, seats.weight, 0).sum(axis=1)
        # Equal is not better: a tie changes no value, and letting ties in would bring in nearly all rows.
        better = np.flatnonzero(gain > 0)
        held, column = held[better], np.where(cheapest.held[better], seats.column[better], -1)
        gone, new = (held >= 0) & ~is_at(held, column), (column >= 0) & ~is_at(column, held)
        who = np.arange(len(better))
        left, taken = held[who, gone.argmax(axis=1)], column[who, new.argmax(axis=1)]
        found.append(some[better])
        gains.append(gain[better])
        pairs.append(left * goal.demand.rules.brokers + taken)
    row, pair = np.concatenate(found), np.concatenate(pairs)
    order = np.lexsort((row, other[row], -np.concatenate(gains), pair))
    pair = pair[order]
    rank = np.arange(len(order)) - np.searchsorted(pair, pair)
    return row[order[rank < ROWS_A_PAIR]]
