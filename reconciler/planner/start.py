"""Finds where the search for an optimum starts: a set for each row, near the optimum, and the rows likely to change.

Replicas to be found are first spread over the brokers that are alike to their rows, so that the counts come near what
is asked. Rows that keep as many of their brokers in each rack may choose alike: only how many of them each broker gets
matters, which is one small flow for all of them.
"""

from dataclasses import replace

import numpy as np

from reconciler.model.columns import Bools, Ints, alike, is_at, narrowed, place_among_equals
from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.costs import Cost, no_cost
from reconciler.planner.goal import Goal
from reconciler.planner.row_flow import dealt, flow_over
from reconciler.planner.rows import Choices, Demand, Placed, Rows, free_choices, one_a_class

SPARE_ROWS = 32
"""Rows a broker that may move beside those needed, so that the first prices are seldom far from the last."""
SPARE_OF_TOPIC, MANY_OF_TOPIC = 8, 5
"""Replicas of a topic that may move: so many, and so many for each that its parts lack."""


def first_sets(goal: Goal, near: Cost, before: Placed | None) -> Ints:
    """Return a table [n, most] of brokers: each row's cheapest set, whatever the brokers get.

    Without prices every row is on its own. What that costs is a lower bound already; the flow then only mends the
    counts. Of equal sets the one of the objective before is taken, as its counts are right.
    """
    goal = replace(goal, cost=near)
    asked = goal.asked(np.zeros(goal.choices.places, dtype=np.int64))
    table = _present(goal) if before is None else before.table(len(goal.demand.rule), goal.most)
    dearest, cheapest_other = goal.margins(asked, table)
    rest = np.flatnonzero(dearest > cheapest_other)
    for some, seats, cheapest in goal.cheapest(asked, rest):
        held = np.where(cheapest.held, seats.weight, 0).sum(axis=1)
        is_dearer = np.ones(len(some), dtype=np.bool_)
        if before is not None:
            is_dearer = goal.paid(asked, some, table[some]) > held
        row, seat = np.nonzero(cheapest.held & is_dearer[:, None])
        table[some[is_dearer]] = -1
        table[some[row], place_among_equals(row)] = seats.column[row, seat]
    if before is None:
        _spread(goal, table, rest)
    return table


def _present(goal: Goal) -> Ints:
    """Return the brokers that each row names, where they are a legal set, else none."""
    demand, named, states = goal.demand, goal.demand.named, goal.choices.named
    table = np.full((len(demand.rule), goal.most), -1, dtype=np.int64, order="F")
    bounds, is_there = bounds_of(demand, goal.choices, np.arange(len(table))), states >= 0
    rack = np.where(is_there, demand.rules.rack[named], -1)
    held = np.column_stack([(rack == number).sum(axis=1) for number in range(bounds.low.shape[1])])
    is_legal: Bools = (is_there.sum(axis=1) == bounds.need) & ((bounds.low <= held) & (held <= bounds.high)).all(axis=1)
    is_legal &= goal.choices.many(demand, 1) == (states > 0).sum(axis=1)
    row, seat = np.nonzero(is_there & is_legal[:, None])
    table[row, place_among_equals(row)] = named[row, seat]
    return table


def likely_rows(goal: Goal, table: Ints) -> Ints:
    """Return the rows that are cheapest to move from places with too much to places with too little."""
    choices, brokers, named, kind = goal.choices, goal.demand.rules.brokers, goal.demand.named, goal.choices.kind
    count = goal.count(table)
    wanted = goal.pieces.wanted(count)
    lacking = (wanted > count).reshape(-1, brokers)
    lacking = lacking[goal.topic_of_kind] if len(lacking) > 1 else np.broadcast_to(lacking, choices.kinds.shape)
    lacks = (choices.kinds == 0) & lacking
    can_named = (choices.named == 0) & ~is_at(named, table) & lacking[kind[:, None], named]
    # A broker that is alike to the row, lacks replicas, and does not hold one of it yet.
    others = lacks.sum(axis=1)[kind]
    for column in (*named.T, *np.where(is_at(table, named), -1, table).T):
        others -= (column >= 0) & lacks[kind, column]
    row, seat = np.nonzero((table >= 0) & ((others > 0) | can_named.any(axis=1))[:, None])
    broker = table[row, seat]
    place = goal.place(row, broker)
    is_free = choices.kinds[kind[row], broker] == 0
    for column, state in zip(named.T, choices.named.T, strict=True):
        there = np.flatnonzero(column[row] == broker)
        is_free[there] = state[row[there]] == 0
    is_much = is_free & ((count > wanted)[place] | choices.has_cells)
    row, place, broker = row[is_much], place[is_much], broker[is_much]
    turn = 0 if goal.turns is None else np.where(lacks, goal.turns, goal.turns.max()).min(axis=1)[kind[row]]
    elsewhere = np.where(others[row] > 0, goal.cost.other[row] + turn, goal.cost.at[row].max(axis=1, initial=0))
    for can, at in zip(can_named.T, goal.cost.at.T, strict=True):
        is_less = can[row] & (at[row] < elsewhere)
        elsewhere = np.where(is_less, at[row], elsewhere)
    regret = elsewhere - goal.own(row, broker)
    # Each place offers its cheapest replicas first, and some more than must go, as a row may be wanted at several; so
    # does each topic where its parts are bounded, whichever of its parts they come from.
    few = count - wanted + SPARE_ROWS
    if choices.has_cells:
        place = place // brokers
        few = SPARE_OF_TOPIC + MANY_OF_TOPIC * np.maximum(wanted - count, 0).reshape(-1, brokers).sum(axis=1)
    order = np.argsort(narrowed(place), kind="stable")
    ends = np.searchsorted(place[order], np.arange(len(few)), side="right")
    parts = zip(np.split(order, ends), np.maximum(few, 0).tolist(), strict=False)
    return np.unique(np.concatenate([row[:0], *(row[part[_least(regret[part], most)]] for part, most in parts)]))


def _least(regret: Ints, most: int) -> Ints:
    """Return where the least of these numbers are, so many at most; of equal ones the first."""
    if most >= len(regret):
        return np.arange(len(regret))
    some = np.flatnonzero(regret <= np.partition(regret, most)[most])
    return some[np.argsort(regret[some], kind="stable")[:most]]


def _spread(goal: Goal, table: Ints, index: Ints) -> None:
    """Give rows of this table of brokers [n, most] others in place of those that they hold and do not name."""
    demand, choices = goal.demand, goal.choices
    forced = np.flatnonzero((choices.kinds > 0).any(axis=1))
    index = index[~np.isin(choices.kind[index], forced)]
    held = table[index]
    is_kept = is_at(held, demand.named[index])
    short = np.flatnonzero(((held >= 0) & ~is_kept).any(axis=1))
    index, held, is_kept = index[short], held[short], is_kept[short]
    if not len(index):
        return
    group, free, of_row = _alike(goal, index, held, is_kept)
    table[index] = np.where(is_kept, held, -1)
    inner, everyone = Goal.of(group, free, no_cost(group.named), goal.sinks), np.arange(len(group.rule))
    given = flow_over(inner, everyone, goal.count(table), everyone < 0, is_relaxed=True)
    row, broker, failed = _dealt_to_rows(inner, given.placed, of_row, demand.named[index])
    own, seat = np.nonzero(is_kept)
    rows, brokers = np.concatenate([own, row]), np.concatenate([held[own, seat], broker])
    found = Placed.of(rows, brokers, np.ones_like(rows)).table(len(index), table.shape[1])
    found[failed] = held[failed]
    table[index] = found


def _alike(goal: Goal, index: Ints, held: Ints, is_kept: Bools) -> tuple[Demand, Choices, Ints]:
    """Return a row for each class of rows with the same choice beside what they keep, its choices, and their class."""
    demand, choices, rack = goal.demand, goal.choices, goal.demand.rules.rack
    bounds = bounds_of(demand, choices, index)
    kept = np.zeros_like(bounds.low)
    row, seat = np.nonzero(is_kept)
    np.add.at(kept, (row, rack[held[row, seat]]), 1)
    kind, rule = choices.kind[index], demand.rule[index]
    columns = [kind, rule, *choices.racks[index].T, *kept.T]
    first, of_row = alike(columns)
    order = np.lexsort([column[first] for column in reversed(columns)])
    first, of_row = first[order], np.argsort(order)[of_row]
    low, high, need = np.maximum(bounds.low - kept, 0), bounds.high - kept, ((held >= 0) & ~is_kept).sum(axis=1)
    rules = Rows.within(need[first], choices.kinds[kind[first]] == 0, low[first], high[first], rack=rack)
    rules = replace(rules, topic=demand.rules.topic[rule[first]])
    group = one_a_class(rules, np.bincount(of_row))
    return group, replace(free_choices(group), cell_low=choices.cell_low, cell_high=choices.cell_high), of_row


def _dealt_to_rows(goal: Goal, placed: Placed, of_row: Ints, named: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows of these classes and their brokers, by what each class gets; and rows for which none was found."""
    rules, racks = goal.demand.rules, goal.demand.rules.low.shape[1]
    rack = rules.rack[placed.broker]
    # One after the other in turns, rack by rack: so each row gets of a rack the whole number below or above the mean,
    # which the bounds allow.
    order = np.lexsort((placed.broker, rack, placed.row))
    group, rack, units = placed.row[order], rack[order], placed.units[order]
    slot_group, slot_rack = np.repeat(group, units), np.repeat(rack, units)
    size = np.bincount(of_row)
    turn = place_among_equals(slot_group)
    first = np.cumsum(size) - size
    row = np.argsort(of_row, kind="stable")[first[slot_group] + turn % size[slot_group]]
    reached, many = np.unique(row * racks + slot_rack, return_counts=True)
    row = reached // racks
    out = group * racks + rack, placed.broker[order], units
    return dealt(of_row[row] * racks + reached % racks, row, many, out, named)
