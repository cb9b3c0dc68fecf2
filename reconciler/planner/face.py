"""Tells what the prices of an optimal flow prove, and what all optimal solutions have in common.

That is decided for the objectives after this one (complementary slackness): a broker whose reduced cost is not zero is
taken, or left, by every optimum.
"""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Bools, Ints, alike
from reconciler.planner.goal import Goal
from reconciler.planner.pieces import exact_dot
from reconciler.planner.row_flow import Given
from reconciler.planner.rows import Choices, Placed, Standing, States


@dataclass(frozen=True, slots=True)
class Solved:
    """The least value of an objective, and what its prices prove: `bound`."""

    left: Standing  # what the optimal solutions leave to the next objective
    price: Ints  # [cells or brokers]: what one more replica there costs beyond the row's own cost
    broker_price: Ints  # [brokers]: the broker's part of it
    value: int  # what rows that had a choice pay, beside what the sinks ask
    bound: int

    def of_topics(self, group: Ints) -> "Solved":
        """Return the same with the prices of each topic [topics], which are those of the topics alike to it."""
        brokers = len(self.broker_price)
        if len(self.price) != brokers * (int(group.max()) + 1):
            return self
        return replace(self, price=self.price.reshape(-1, brokers)[group].ravel())


def solved(standing: Standing, goal: Goal, flow: Given) -> Solved:
    """Return the solution with its value, what its prices prove, and the choices that they leave."""
    brokers, cells = goal.sinks.brokers, goal.sinks.cells
    choices, is_closed, bound = _left(goal, flow.placed, goal.asked(flow.price))
    low, high = brokers.narrowed(flow.broker_price)
    choices = replace(choices, low=low, high=high)
    bound += brokers.bound(flow.broker_price)
    # Cells that say nothing are no part of the flow.
    cell_low, cell_high = standing.choices.cell_low, standing.choices.cell_high
    if cells is not None:
        cell_price = flow.price - np.tile(flow.broker_price, len(flow.price) // len(flow.broker_price))
        bound += cells.bound(cell_price)
        cell_low, cell_high = cells.narrowed(cell_price)
    choices = replace(choices, cell_low=cell_low, cell_high=cell_high)
    placed = flow.placed
    value = exact_dot(goal.own(placed.row, placed.broker), placed.units)
    left = standing.narrowed(choices, placed, is_closed)
    return Solved(left, flow.price, flow.broker_price, value, bound)


def _left(goal: Goal, placed: Placed, asked: Ints) -> tuple[Choices, Bools, int]:
    """Return the choices that the prices leave, which rows have none any more, and what their cheapest sets cost."""
    states, demand, racks = goal.choices, goal.demand, goal.demand.rules.rack
    is_single = not demand.is_by_class
    named, of_racks = states.named.copy(order="K"), states.racks.copy()
    is_closed = np.zeros(len(demand.rule), dtype=np.bool_)
    bound, rest = 0, np.arange(len(demand.rule))
    tied, limits = [rest[:0]], [np.zeros((0, of_racks.shape[1]), dtype=np.int64)]
    if is_single:
        table = placed.table(len(demand.rule), goal.most)
        dearest, cheapest_other = goal.margins(asked, table)
        is_closed, is_even = dearest < cheapest_other, (dearest == cheapest_other) & (of_racks.shape[1] == 1)
        content = rest[is_closed | is_even]
        bound += int(goal.paid(asked, content, table[content]).sum())
        # Where racks have no say, what is dearer than the dearest broker held is left, and what is cheaper is taken:
        # the rest is as good, and any legal set of it.
        even = rest[is_even]
        weight = goal.cost.at[even] + asked[states.kind[even][:, None], demand.named[even]]
        _fix_where_free(named, even, np.sign(dearest[even][:, None] - weight))
        tied.append(even)
        limits.append(np.repeat((dearest - goal.cost.other)[even][:, None], of_racks.shape[1], axis=1))
        rest = rest[~is_closed & ~is_even]
    for some, seats, cheapest in goal.cheapest(asked, rest):
        bound += exact_dot(np.where(cheapest.held, seats.weight, 0).sum(axis=1), demand.count[some])
        _fix_where_free(of_racks, some, np.sign(cheapest.price[:, None] - cheapest.rack_price))
        is_tied = ~cheapest.is_only | (not is_single)
        is_closed[some[~is_tied]] = True
        row, price = some[is_tied], cheapest.rack_price[is_tied]
        at = demand.named[row]
        weight = goal.cost.at[row] + asked[states.kind[row][:, None], at]
        reduced = np.take_along_axis(price, np.where(at >= 0, racks[at], 0), axis=1) - weight if at.size else weight
        _fix_where_free(named, row, np.sign(reduced))
        tied.append(row)
        limits.append(price - goal.cost.other[row][:, None])
    left = replace(states, named=named, racks=of_racks)
    left = _refined(goal, left, asked, np.concatenate(tied), np.concatenate(limits), is_single=is_single)
    if is_single:
        is_closed |= left.many(demand, 0) == demand.need - left.many(demand, 1)
    return left, is_closed, bound


def _refined(goal: Goal, choices: Choices, asked: Ints, tied: Ints, limits: Ints, *, is_single: bool) -> Choices:
    """Return finer kinds of these rows: alike are those of one kind before to whom the same brokers remain.

    `limits` [tied, racks] is what a broker that the row does not name may ask for and still be in a cheapest set.
    """
    is_open = (choices.kinds == 0).any(axis=1)[choices.kind[tied]]
    tied, limits = tied[is_open], limits[is_open]
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
    picked, same = alike([goal.topic_of_kind[of_kind], *kinds.T])
    everyone = choices.kind.copy()
    everyone[tied] = len(choices.kinds) + same[number]
    used, of_row = np.unique(everyone, return_inverse=True)
    return replace(choices, kind=of_row, kinds=np.concatenate([choices.kinds, kinds[picked]])[used])


def _fix_where_free(state: States, index: Ints, sign: Ints) -> None:
    """Decide in place what is still free where a reduced cost is not zero."""
    present = state[index]
    state[index] = np.where(present == 0, sign, present)
