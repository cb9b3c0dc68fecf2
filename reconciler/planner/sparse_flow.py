"""Solves one objective over all rows: a flow over the few arcs that matter, then a price check over all others.

A flow over every row and every broker would be exact, and far too large: nearly all partitions stay where they are. So
the flow is solved over the rows that are likely to change and a few brokers for each. Its prices then say, row by row,
whether any legal set would have been cheaper; where one would, it is let in, and the flow is solved again. When none
would, the prices prove the solution least among all (Dantzig-Wolfe column generation; the linear programs are
integral, because they are flows). Where few arcs are undecided, or rows stand for whole classes, one flow has them all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.cheapest_sets import FAR, Cheapest, Classes, Shortlist, cheapest_sets
from reconciler.planner.costs import Cost, HeldCost
from reconciler.planner.flow import Flow, FlowInfeasibleError, NumbersTooLarge, Pieces, Sinks, solve_flow
from reconciler.planner.rows import Bools, Choices, Counts, Ints, Rows, States

FEW_ARCS = 300_000
"""So many arcs are solved at once: the solver takes some tenth of a second (decision 2 has 0.45 s for 1.2 million)."""
MANY_ARCS = 2_000_000
"""The first flow has so many arcs at the most, about a second of the solver. Price checks may add to them."""
CHUNK = 1 << 14
"""Rows priced at a time: their arrays of seats take some megabytes, however many rows there are."""
SPARE_ROWS = 64
"""Rows a broker that may move beside those needed, so that the first prices are seldom far from the last."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The least value of an objective.

    `placed` [n, seats] counts the replicas of each row. `price` [cells or brokers] is what one more replica there
    costs beyond the row's own cost, `broker_price` [brokers] the broker's part of it. `choices` are what the optimal
    solutions leave to the next objective, `bound` is what the prices prove.
    """

    placed: Counts
    price: Ints
    broker_price: Ints
    choices: Choices
    value: int
    bound: int


def solve(
    rows: Rows,
    choices: Choices,
    cost: Cost,
    sinks: Sinks,
    *,
    near: Cost | None = None,
    classes: Classes | None = None,
) -> Solved:
    """Minimise the cost of the replicas placed and of the sinks they fill.

    Starts from each row's cheapest set by the cost `near`. Given `classes`, prices only a shortlist of brokers a row.
    """
    free = choices.free(rows)
    placed = np.zeros(free.shape, dtype=np.int32)
    row, seat = np.nonzero(rows.allowed & (choices.brokers > 0))
    placed[row, seat] = rows.count[row]
    goal = _Objective(rows, choices, cost, sinks, free, np.flatnonzero(free.any(axis=1)), near or cost, classes)
    # A unit outside the bounds must cost more than any single detour that avoids it. Longer detours may still be
    # dearer: where units stay outside, the penalty is raised, up to the longest chain there can be.
    penalty = 2 * (_largest(goal) + 1)
    while True:
        placed, flow = _solve_sparse(goal, placed, penalty)
        if not flow.penalised:
            return _solved(goal, placed, flow)
        penalty = _raised(penalty, goal)


@dataclass(frozen=True, slots=True)
class _Objective:
    """What `solve` was asked for; `free` [n, seats]: undecided arcs; `open_rows`: rows with at least one."""

    rows: Rows
    choices: Choices
    cost: Cost
    sinks: Sinks
    free: Bools
    open_rows: Ints
    near: Cost
    classes: Classes | None

    @property
    def pieces(self) -> Pieces:
        """The pieces of the places where replicas end."""
        return self.sinks.cells or self.sinks.brokers

    @property
    def places(self) -> int:
        """How many places replicas may end in: the brokers, or the cells."""
        return len(self.choices.cell_low) or self.rows.brokers

    def place(self, row: Ints, seat: Ints) -> Ints:
        """Return the place where a replica on a row's seat ends."""
        broker = self.rows.broker(row, seat)
        return self.rows.topic[row] * self.rows.brokers + broker if self.choices.has_cells else broker

    def count(self, placed: Counts) -> Ints:
        """Return how many replicas are in each place."""
        topics = self.places // self.rows.brokers
        return self.rows.units(placed, is_by_topic=self.choices.has_cells, topics=topics)

    def weight(self, index: Ints, rows: Rows, cost: Cost, price: Ints) -> Ints:
        """Return the cost and the price [index, seats] of each choice."""
        own = cost.of(index, rows.column)
        if not self.choices.has_cells:
            return own + price[rows.column]
        by_topic = price.reshape(-1, rows.brokers)
        return own + by_topic[rows.topic[:, None], rows.column]

    def cheapest(self, cost: Cost, price: Ints) -> Iterator[tuple[Ints, Rows, Cheapest, Ints]]:
        """Yield the cheapest sets of the open rows, a chunk at a time, with the rows over the seats they chose from.

        The last is the weight of each seat.
        """
        short = None
        if self.classes is not None and isinstance(cost, HeldCost):
            short = Shortlist.at(self.classes, cost, price)
        index = self.open_rows
        for start in range(0, len(index), CHUNK):
            some = index[start : start + CHUNK]
            rows, choices = self.rows.take(some), self.choices.take(some)
            if short is not None:
                rows, choices, weight = short.of(rows, choices, some)
            else:
                weight = self.weight(some, rows, cost, price)
            yield some, rows, cheapest_sets(rows, choices, weight), weight


def _largest(goal: _Objective) -> int:
    """Return the largest cost of one unit."""
    pieces = [piece for piece in (goal.sinks.brokers, goal.sinks.cells) if piece is not None]
    return goal.cost.largest + sum(int(np.abs(piece.cost).max(initial=0)) for piece in pieces)


def _raised(penalty: int, goal: _Objective) -> int:
    """Return a penalty that weighs more; no chain of exchanges costs more than one a broker."""
    if penalty > 4 * goal.rows.brokers * (_largest(goal) + 1):
        raise FlowInfeasibleError
    if penalty * 16 > FAR:
        raise NumbersTooLarge.of(penalty)
    return 8 * penalty


def _solve_sparse(goal: _Objective, placed: Counts, penalty: int) -> tuple[Counts, Flow]:
    """Return the replicas placed [n, seats] at the least cost, and the flow whose prices prove it."""
    # Few arcs are solved at once: no sieve is needed. Nor can it be used where a row stands for several partitions, of
    # which some may move and others stay: it lets in one set a row.
    if np.count_nonzero(goal.free) <= FEW_ARCS or goal.rows.count.max(initial=0) > 1:
        arcs = goal.free | (goal.rows.allowed & (goal.choices.brokers > 0))
        return placed, _flow(goal, goal.open_rows, placed, arcs, penalty)
    # Every row takes its cheapest set; the first flow then holds the rows that are cheapest to move off overfull
    # brokers.
    arcs = _start(goal, placed)
    active = _likely(goal, placed, arcs)
    while True:
        flow = _flow(goal, active, placed, arcs, penalty)
        more = _add_cheaper_sets(goal, placed, flow.price, arcs)
        # No row has a cheaper set at these prices: they prove the flow least over all arcs, those left out included.
        if not len(more):
            return placed, flow
        active = np.union1d(active, more)


def _flow(goal: _Objective, active: Ints, placed: Counts, arcs: Bools, penalty: int) -> Flow:
    """Solve over the active rows alone, and set what they place."""
    placed[active] = 0
    rows, chosen = goal.rows.take(active), arcs[active]
    row, seat = np.nonzero(chosen)
    flow = solve_flow(
        rows,
        goal.choices.take(active),
        chosen,
        goal.cost.on(active[row], rows.broker(row, seat)),
        goal.sinks,
        placed_elsewhere=goal.count(placed),
        penalty=penalty,
    )
    placed[active] = flow.placed
    return flow


def _start(goal: _Objective, placed: Counts) -> Bools:
    """Set each open row to its cheapest set, whatever the brokers get, and return the arcs of these sets."""
    # Without prices every row is on its own. What that costs is a lower bound already; the flow then only mends the
    # counts.
    nothing = np.zeros(goal.places, dtype=np.int64)
    for some, rows, cheapest, _ in goal.cheapest(goal.near, nothing):
        placed[some] = 0
        _put(goal, placed, some, rows, cheapest.held)
    arcs: Bools = placed > 0
    return arcs


def _put(goal: _Objective, seats: Counts | Bools, some: Ints, rows: Rows, held: Bools) -> None:
    """Mark the chosen seats of these rows, which may have been chosen from fewer."""
    row, seat = np.nonzero(held)
    is_short = goal.rows.column.ndim == 1 and rows.column.ndim > 1
    seats[some[row], rows.column[row, seat] if is_short else seat] = 1


def _likely(goal: _Objective, placed: Counts, arcs: Bools) -> Ints:
    """Return the rows that are cheapest to move from places with too much, with arcs to places with too little."""
    count = goal.count(placed)
    wanted = goal.pieces.wanted(count)
    lacking = (wanted > count).reshape(-1, goal.rows.brokers)
    entries = [_entries(goal, some, placed, lacking) for some in _chunks(goal.open_rows)]
    row, place, regret = (np.concatenate(column) for column in zip(*entries, strict=True))
    # Each place offers its cheapest replicas first. Twice as many as must go, as a row may be wanted at several places.
    order = np.lexsort((row, regret, place))
    rank = np.arange(len(order)) - np.searchsorted(place[order], place[order])
    spare = -(-SPARE_ROWS * goal.rows.brokers // goal.places)
    few = np.where(count > wanted, 2 * (count - wanted) + spare, 0)
    likely = np.unique(row[order[rank < few[place[order]]]])
    arcs[likely] |= goal.free[likely] & _nearest(goal, wanted - count, likely)
    return likely


def _chunks(index: Ints) -> Iterator[Ints]:
    for start in range(0, len(index), CHUNK):
        yield index[start : start + CHUNK]


def _entries(goal: _Objective, some: Ints, placed: Counts, lacking: Bools) -> tuple[Ints, Ints, Ints]:
    """Return each replica placed of these rows: its row, its place, what it costs to put it where something lacks."""
    rows, free = goal.rows.take(some), goal.free[some]
    seats = np.arange(free.shape[1])
    if rows.column.ndim == 1:
        lacks_anywhere: Bools = np.logical_or.reduce(lacking, axis=0)
        seats = np.flatnonzero(lacks_anywhere[rows.column])
    column = rows.column[..., seats]
    lacks = lacking[rows.topic[:, None], column] if goal.choices.has_cells else lacking[0][column]
    can = free[:, seats] & (placed[some][:, seats] == 0) & lacks
    elsewhere = np.where(can, goal.cost.of(some, column), FAR).min(axis=1, initial=FAR)
    number, seat = np.nonzero((placed[some] > 0) & free & (elsewhere < FAR)[:, None])
    row = some[number]
    return row, goal.place(row, seat), elsewhere[number] - goal.cost.on(row, goal.rows.broker(row, seat))


def _nearest(goal: _Objective, lack: Ints, index: Ints) -> Bools:
    """Return [index, seats] the brokers that lack most, of each rack so many that the arcs of these rows stay few."""
    most = lack.reshape(-1, goal.rows.brokers).max(axis=0)
    rows = goal.rows
    if rows.column.ndim > 1:
        lacks: Bools = most[rows.column[index]] > 0
        return lacks
    # Per rack, and two at least: rack rules may forbid all of the others.
    per_rack = max(2, MANY_ARCS // max(1, len(index) * rows.low.shape[1]))
    chosen = np.zeros(rows.brokers, dtype=np.bool_)
    for rack in np.unique(rows.rack):
        members = np.flatnonzero((rows.rack == rack) & (most > 0))
        chosen[members[np.argsort(-most[members], kind="stable")[:per_rack]]] = True
    return np.broadcast_to(chosen, (len(index), rows.brokers))


def _add_cheaper_sets(goal: _Objective, placed: Counts, price: Ints, arcs: Bools) -> Ints:
    """Let in the sets that are cheaper at these prices than what is placed, and return their rows."""
    found = []
    for some, rows, cheapest, weight in goal.cheapest(goal.cost, price):
        number, seat = np.nonzero(placed[some])
        paid = goal.cost.on(some[number], goal.rows.broker(some[number], seat)) + price[goal.place(some[number], seat)]
        gain = np.zeros(len(some), dtype=np.int64)
        np.add.at(gain, number, paid)
        gain -= (weight * cheapest.held).sum(axis=1)
        # Equal is not better: a tie changes no value, and letting ties in would bring in nearly all rows.
        better = np.flatnonzero(gain > 0)
        _put(goal, arcs, some[better], rows.take(better), cheapest.held[better])
        found.append(some[better])
    return np.concatenate(found)


def _solved(goal: _Objective, placed: Counts, flow: Flow) -> Solved:
    """Return the solution with its value, what its prices prove, and the choices that they leave."""
    states = goal.choices
    racks, brokers, leading = states.racks.copy(), states.brokers.copy(), states.leading.copy()
    number, seat = np.nonzero(placed)
    each = goal.cost.on(number, goal.rows.broker(number, seat))
    value = _exact_sum(each * placed[number, seat])
    is_open = np.isin(np.arange(len(goal.rows.count)), goal.open_rows)
    price = flow.price[goal.place(number, seat)]
    # Rows that are decided have no choice left: what they pay is part of the bound as it is.
    bound = _exact_sum(((each + price) * placed[number, seat])[~is_open[number]])
    for some, rows, cheapest, weight in goal.cheapest(goal.cost, flow.price):
        bound += _exact_sum((weight * cheapest.held).sum(axis=1) * rows.count)
        above = np.where(rows.leading, cheapest.group_price[:, None], cheapest.price[:, None])
        _fix_where_free(racks, some, np.sign(above - cheapest.rack_price))
        _fix_where_free(leading, some, np.where(cheapest.group_price != cheapest.price, -1, 0))
        # What every optimum has in common is decided for the objectives after this one (complementary slackness): a
        # seat whose reduced cost is not zero is taken, or left, by all of them.
        only, tied = some[cheapest.is_only], some[~cheapest.is_only]
        brokers[only] = np.where(placed[only] > 0, np.int8(1), np.int8(-1))
        whole = goal.rows.take(tied)
        ask = goal.weight(tied, whole, goal.cost, flow.price)
        reduced = np.sign(cheapest.rack_price[~cheapest.is_only][:, goal.rows.rack] - ask)
        _fix_where_free(brokers, tied, reduced * whole.allowed)
        brokers[tied] = _decided(whole, brokers[tied])
    low, high = goal.sinks.brokers.narrowed(flow.broker_price)
    units = goal.count(placed)
    value += goal.sinks.brokers.filled(units.reshape(-1, goal.rows.brokers).sum(axis=0))
    bound += goal.sinks.brokers.bound(flow.broker_price)
    narrowed = Choices(racks, brokers, leading, low, high, states.cell_low, states.cell_high)
    if goal.sinks.cells is not None:
        cell_price = flow.price - np.tile(flow.broker_price, goal.places // goal.rows.brokers)
        value += goal.sinks.cells.filled(units)
        bound += goal.sinks.cells.bound(cell_price)
        cell_low, cell_high = goal.sinks.cells.narrowed(cell_price)
        narrowed = replace(narrowed, cell_low=cell_low, cell_high=cell_high)
    return Solved(placed, flow.price, flow.broker_price, narrowed, value, bound)


def _exact_sum(values: Ints) -> int:
    """Return the sum without an overflow."""
    return sum(values.tolist())


def _decided(rows: Rows, state: States) -> States:
    """Return the states [rows, seats] with seats marked taken where the row has no other free seat."""
    is_free = rows.allowed & (state == 0)
    taken = (rows.allowed & (state > 0)).sum(axis=1)
    has_no_other = is_free.sum(axis=1) == rows.need - taken
    return np.where(is_free & has_no_other[:, None], np.int8(1), state)


def _fix_where_free(state: States, index: Ints, sign: Ints) -> None:
    """Decide in place what is still free where a reduced cost is not zero."""
    present = state[index]
    state[index] = np.where(present == 0, sign, present)
