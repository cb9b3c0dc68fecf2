"""Tells what the prices of an optimal flow prove, and what all optimal solutions have in common.

That is decided for the objectives after this one (complementary slackness): a broker whose reduced cost is not zero is
taken, or left, by every optimum.
"""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.goal import Goal
from reconciler.planner.pieces import exact_dot
from reconciler.planner.row_flow import Flow
from reconciler.planner.rows import Bools, Choices, Ints, Placed, States, distinct


@dataclass(frozen=True, slots=True)
class Solved:
    """The least value of an objective.

    `price` [cells or brokers] is what one more replica there costs beyond the row's own cost, `broker_price` [brokers]
    the broker's part of it. `choices` are what the optimal solutions leave to the next objective, `bound` is what the
    prices prove.
    """

    placed: Placed
    price: Ints
    broker_price: Ints
    choices: Choices
    value: int
    bound: int


def solved(goal: Goal, placed: Placed, flow: Flow) -> Solved:
    """Return the solution with its value, what its prices prove, and the choices that they leave."""
    each = goal.own(placed.row, placed.broker)
    value = exact_dot(each, placed.units)
    is_open = np.zeros(len(goal.demand.rule), dtype=np.bool_)
    is_open[goal.open_rows] = True
    # Rows that are decided have no choice left: what they pay is part of the bound as it is.
    is_still = ~is_open[placed.row]
    paid = (each + flow.price[goal.place(placed.row, placed.broker)])[is_still]
    bound = exact_dot(paid, placed.units[is_still])
    left, more = _left(goal, placed, goal.asked(flow.price))
    bound += more
    low, high = goal.sinks.brokers.narrowed(flow.broker_price)
    left = replace(left, low=low, high=high)
    brokers, topic = goal.demand.rules.brokers, goal.demand.rules.topic[goal.demand.rule]
    value += goal.sinks.brokers.filled(placed.counts(brokers))
    bound += goal.sinks.brokers.bound(flow.broker_price)
    if goal.sinks.cells is not None:
        cell_price = flow.price - np.tile(flow.broker_price, goal.places // brokers)
        value += goal.sinks.cells.filled(placed.counts(goal.places, topic, brokers))
        bound += goal.sinks.cells.bound(cell_price)
        cell_low, cell_high = goal.sinks.cells.narrowed(cell_price)
        left = replace(left, cell_low=cell_low, cell_high=cell_high)
    return Solved(placed, flow.price, flow.broker_price, left, value, bound)


def _left(goal: Goal, placed: Placed, asked: Ints) -> tuple[Choices, int]:
    """Return the choices of the rows that the prices leave, and what their cheapest sets cost."""
    states, demand, racks = goal.choices, goal.demand, goal.demand.rules.rack
    is_single = not demand.is_by_class
    named, of_racks, leading = states.named.copy(), states.racks.copy(), states.leading.copy()
    is_closed = np.zeros(len(demand.rule), dtype=np.bool_)
    bound, rest = 0, goal.open_rows
    if is_single:
        table = placed.table(len(demand.rule), goal.most)[rest]
        only = goal.content(asked, rest, table)[1]
        bound += int(goal.paid(asked, rest[only], table[only]).sum())
        is_closed[rest[only]] = True
        rest = rest[~only]
    tied, limits = [np.zeros(0, dtype=np.int64)], [np.zeros((0, of_racks.shape[1]), dtype=np.int64)]
    for some, seats, cheapest in goal.cheapest(asked, rest):
        bound += exact_dot(np.where(cheapest.held, seats.weight, 0).sum(axis=1), demand.count[some])
        is_led = demand.rules.leading[demand.rule[some]]
        above = np.where(is_led, cheapest.group_price[:, None], cheapest.price[:, None])
        _fix_where_free(of_racks, some, np.sign(above - cheapest.rack_price))
        _fix_where_free(leading, some, np.where(cheapest.group_price != cheapest.price, -1, 0))
        is_tied = ~cheapest.is_only | (not is_single)
        is_closed[some[~is_tied]] = True
        row, price = some[is_tied], cheapest.rack_price[is_tied]
        at = demand.named[row]
        weight = goal.cost.at[row] + asked[states.kind[row][:, None], at]
        reduced = np.take_along_axis(price, np.where(at >= 0, racks[at], 0), axis=1) - weight if at.size else weight
        _fix_where_free(named, row, np.sign(reduced))
        tied.append(row)
        limits.append(price - goal.cost.other[row][:, None])
    left = replace(states, named=named, racks=of_racks, leading=leading)
    left = _refined(goal, left, asked, np.concatenate(tied), np.concatenate(limits), is_single=is_single)
    if is_single:
        is_closed |= left.many(demand, 0) == demand.need - left.many(demand, 1)
        left = _closed(left, is_closed)
    return left, bound


def _refined(goal: Goal, choices: Choices, asked: Ints, tied: Ints, limits: Ints, *, is_single: bool) -> Choices:
    """Return finer kinds of these rows: alike are those of one kind before to whom the same brokers remain.

    `limits` [tied, racks] is what a broker that the row does not name may ask for and still be in a cheapest set.
    """
    if not len(tied):
        return choices
    rack, kind, rule = goal.demand.rules.rack, choices.kind[tied], goal.demand.rule[tied]
    key = kind * len(goal.demand.rules.need) + rule
    for number, column in enumerate(limits.T):
        # Below all brokers of the rack, or above all, is one answer.
        prices = asked[:, rack == number]
        low, high = prices.min(axis=1, initial=0) - 1, prices.max(axis=1, initial=0) + 1
        _, one = np.unique(np.clip(column, low[kind], high[kind]), return_inverse=True)
        _, key = np.unique(key * (len(one) + 1) + one, return_inverse=True)
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    of_kind = kind[first]
    kinds = choices.kinds[of_kind]
    _fix_where_free(kinds, np.arange(len(kinds)), np.sign(limits[first][:, rack] - asked[of_kind]))
    if not is_single:
        need = goal.demand.rules.need[rule[first]]
        is_rest = (kinds == 0).sum(axis=1) == need - (kinds > 0).sum(axis=1)
        kinds[(kinds == 0) & is_rest[:, None]] = 1
    # Rows of different topics stay apart, as their prices may differ.
    topic = goal.topic_of_kind[of_kind].astype(np.int32).reshape(-1, 1).view(np.uint8).reshape(len(kinds), -1)
    picked, alike = distinct(np.concatenate([kinds.view(np.uint8), topic], axis=1))
    everyone = choices.kind.copy()
    everyone[tied] = len(choices.kinds) + alike[number]
    used, of_row = np.unique(everyone, return_inverse=True)
    return replace(choices, kind=of_row, kinds=np.concatenate([choices.kinds, kinds[picked]])[used])


def _closed(choices: Choices, is_closed: Bools) -> Choices:
    """Return the choices without any for these rows: they keep what they hold."""
    kind, named = choices.kind.copy(), choices.named.copy()
    kind[is_closed], named[is_closed] = len(choices.kinds), -1
    nobody = np.full((1, choices.kinds.shape[1]), -1, dtype=np.int8)
    used, of_row = np.unique(kind, return_inverse=True)
    return replace(choices, kind=of_row, kinds=np.concatenate([choices.kinds, nobody])[used], named=named)


def _fix_where_free(state: States, index: Ints, sign: Ints) -> None:
    """Decide in place what is still free where a reduced cost is not zero."""
    present = state[index]
    state[index] = np.where(present == 0, sign, present)
