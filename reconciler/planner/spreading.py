"""Spreads replicas to be found over brokers that are alike to their rows, so that the counts come near what is asked.

Rows that keep as many of their brokers in each rack may choose alike: only how many of them each broker gets matters,
which is one small flow for all of them.
"""

from dataclasses import replace

import numpy as np

from reconciler.planner.arcs import flow_over
from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.costs import is_at, no_cost
from reconciler.planner.dealing import dealt
from reconciler.planner.goal import Goal
from reconciler.planner.rows import (
    Bools,
    Choices,
    Demand,
    Ints,
    Placed,
    Rows,
    distinct,
    free_choices,
    one_a_class,
    room,
)


def spread(goal: Goal, table: Ints, index: Ints) -> None:
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
    row, broker, failed = _dealt(inner, Placed.of(given.row, given.broker, given.units), of_row, demand.named[index])
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
    led = np.where(bounds.leading, kept, 0).sum(axis=1)
    is_led = bounds.leading & (led > 0)[:, None]
    high = np.where(is_led & (led >= bounds.most_leading)[:, None], 0, bounds.high - kept)
    kind, rule = choices.kind[index], demand.rule[index]
    key = np.column_stack([kind, rule, choices.leading[index], choices.racks[index], kept]).astype(np.int32)
    first, of_row = distinct(np.ascontiguousarray(key).view(np.uint8))
    allowed = choices.kinds[kind[first]] == 0
    rules = Rows(
        need=((held >= 0) & ~is_kept).sum(axis=1)[first],
        allowed=allowed,
        low=np.maximum(bounds.low - kept, 0)[first],
        high=np.minimum(high[first], room(allowed, rack, kept.shape[1])),
        rack=rack,
        leading=(bounds.leading & ~is_led)[first],
        topic=demand.rules.topic[rule[first]],
    )
    group = one_a_class(rules, np.bincount(of_row))
    left = replace(free_choices(group), cell_low=choices.cell_low, cell_high=choices.cell_high)
    return group, replace(left, leading=choices.leading[index[first]]), of_row


def _dealt(goal: Goal, placed: Placed, of_row: Ints, named: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows of these classes and their brokers, by what each class gets; and rows for which none was found."""
    rules, racks = goal.demand.rules, goal.demand.rules.low.shape[1]
    rack = rules.rack[placed.broker]
    # One after the other in turns, rack by rack, those that must lead first: so each row gets of a rack, and of those
    # that lead, the whole number below or above the mean, which the bounds allow.
    order = np.lexsort((placed.broker, rack, ~rules.leading[placed.row, rack], placed.row))
    group, rack, units = placed.row[order], rack[order], placed.units[order]
    slot_group, slot_rack = np.repeat(group, units), np.repeat(rack, units)
    size = np.bincount(of_row)
    turn = np.arange(len(slot_group)) - np.searchsorted(slot_group, slot_group)
    first = np.cumsum(size) - size
    row = np.argsort(of_row, kind="stable")[first[slot_group] + turn % size[slot_group]]
    reached, many = np.unique(row * racks + slot_rack, return_counts=True)
    row = reached // racks
    out = group * racks + rack, placed.broker[order], units
    return dealt(of_row[row] * racks + reached % racks, row, many, out, named)
