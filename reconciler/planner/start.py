"""Finds where the search for an optimum starts: a set for each row, near the optimum, and the rows likely to change."""

from dataclasses import replace

import numpy as np

from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.costs import Cost, is_at
from reconciler.planner.goal import Goal
from reconciler.planner.rows import Bools, Ints
from reconciler.planner.spreading import spread

SPARE_ROWS = 64
"""Rows a broker that may move beside those needed, so that the first prices are seldom far from the last."""


def first_sets(goal: Goal, near: Cost) -> Ints:
    """Return a table [n, most] of brokers: each open row's cheapest set, whatever the brokers get.

    Without prices every row is on its own. What that costs is a lower bound already; the flow then only mends the
    counts. Of equal sets the one of the objective before is taken, as its counts are right.
    """
    goal = replace(goal, cost=near)
    asked = goal.asked(np.zeros(goal.places, dtype=np.int64))
    index = goal.open_rows
    before = goal.before
    table = _present(goal) if before is None else before.table(len(goal.demand.rule), goal.most)
    rest = index[~goal.content(asked, index, table[index])[0]]
    for some, seats, cheapest in goal.cheapest(asked, rest):
        held = np.where(cheapest.held, seats.weight, 0).sum(axis=1)
        is_dearer = np.ones(len(some), dtype=np.bool_)
        if before is not None:
            is_dearer = goal.paid(asked, some, table[some]) > held
        row, seat = np.nonzero(cheapest.held & is_dearer[:, None])
        first = np.searchsorted(row, row)
        table[some[is_dearer]] = -1
        table[some[row], np.arange(len(row)) - first] = seats.column[row, seat]
    if before is None:
        spread(goal, table, rest)
    return table


def _present(goal: Goal) -> Ints:
    """Return the brokers that each row names, where they are a legal set, else none."""
    demand, named, index = goal.demand, goal.demand.named, goal.open_rows
    table = np.full((len(demand.rule), goal.most), -1, dtype=np.int64)
    bounds, is_there = bounds_of(demand, goal.choices, index), goal.choices.named[index] >= 0
    held = np.zeros(bounds.low.shape, dtype=np.int64)
    row, seat = np.nonzero(is_there)
    np.add.at(held, (row, demand.rules.rack[named[index[row], seat]]), 1)
    led = np.where(bounds.leading, held, 0).sum(axis=1)
    is_legal: Bools = (is_there.sum(axis=1) == bounds.need) & ((bounds.low <= held) & (held <= bounds.high)).all(axis=1)
    is_legal &= (led >= bounds.least_leading) & (led <= bounds.most_leading)
    is_legal &= goal.choices.many(demand, 1)[index] == (goal.choices.named[index] > 0).sum(axis=1)
    row, seat = np.nonzero(is_there & is_legal[:, None])
    table[index[row], np.arange(len(row)) - np.searchsorted(row, row)] = named[index[row], seat]
    return table


def likely_rows(goal: Goal, table: Ints) -> Ints:
    """Return the rows that are cheapest to move from places with too much to places with too little."""
    demand, choices, brokers = goal.demand, goal.choices, goal.demand.rules.brokers
    count = goal.count(table)
    wanted = goal.pieces.wanted(count)
    lacking = (wanted > count).reshape(-1, brokers)
    lacking = lacking[goal.topic_of_kind] if len(lacking) > 1 else np.broadcast_to(lacking, choices.kinds.shape)
    lacks = (choices.kinds == 0) & lacking
    index = goal.open_rows
    held, named, kind = table[index], demand.named[index], choices.kind[index]
    is_held = is_at(named, held)
    can_named = (choices.named[index] == 0) & ~is_held & lacking[kind[:, None], named]
    # A broker that is alike to the row, lacks replicas, and does not hold one of it yet.
    others = lacks.sum(axis=1)[kind]
    for column in (*named.T, *np.where(is_at(held, named), -1, held).T):
        others -= (column >= 0) & lacks[kind, column]
    row, seat = np.nonzero((held >= 0) & (others[:, None] + can_named.sum(axis=1, keepdims=True) > 0))
    place = goal.place(index[row], held[row, seat])
    is_much = (count > wanted)[place]
    row, seat, place = row[is_much], seat[is_much], place[is_much]
    broker = held[row, seat]
    is_free = choices.kinds[kind[row], broker] == 0
    for at in range(named.shape[1]):
        there = named[row, at] == broker
        is_free[there] = choices.named[index[row[there]], at] == 0
    row, place, broker = row[is_free], place[is_free], broker[is_free]
    turn = 0 if goal.turns is None else np.where(lacks, goal.turns, goal.turns.max()).min(axis=1)[kind[row]]
    other = goal.cost.other[index[row]] + turn
    elsewhere = np.where(others[row] > 0, other, goal.cost.at[index[row]].max(axis=1, initial=0))
    for at in range(named.shape[1]):
        is_less = can_named[row, at] & (goal.cost.at[index[row], at] < elsewhere)
        elsewhere = np.where(is_less, goal.cost.at[index[row], at], elsewhere)
    regret = elsewhere - goal.own(index[row], broker)
    # Each place offers its cheapest replicas first, and some more than must go, as a row may be wanted at several.
    order = np.lexsort((row, regret, place))
    place = place[order]
    rank = np.arange(len(order)) - np.searchsorted(place, place)
    few = count - wanted + -(-SPARE_ROWS * brokers // goal.places)
    return np.unique(index[row[order[rank < few[place]]]])
