"""Solves the flow of an objective over some rows: arcs of what they may choose, the network, and who then holds what.

    rows -> racks -> brokers, or what each topic has there -> sink

Brokers that are alike to a row cost it the same, so it reaches those of a rack through one node, the pool that rows of
its kind share; what a pool gives is dealt out afterwards. Every rule that a flow can keep is a bound on an arc.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.model.columns import Bools, Ints, counted
from reconciler.planner.cheapest_sets import Bounds, bounds_of
from reconciler.planner.flow import Network, minimise
from reconciler.planner.goal import Goal
from reconciler.planner.pieces import Pieces
from reconciler.planner.rows import Placed, room

PLENTY = np.iinfo(np.int32).max
Layer = tuple[Ints, Ints, Ints, Ints, Ints]
"""Arcs of one layer: tails, heads, least flow, most flow, cost of a unit."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a flow gives to rows, and its prices."""

    placed: Placed
    failed: Ints  # rows to which a pool could not be dealt out
    price: Ints  # [cells or brokers]: of one unit there
    broker_price: Ints  # [brokers]: the part of it that the broker's own sink asks for


def flow_over(goal: Goal, active: Ints, still: Ints, is_pooled: Bools, *, is_relaxed: bool = False) -> Given:
    """Return the flow of least cost over the active rows alone; `still` [places] is what the others hold.

    A relaxed flow only keeps as many units as it can within the sinks' bounds, whatever else that costs. Raises
    FlowInfeasibleError where not all can be, and the flow is not relaxed.
    """
    arcs, bounds = _arcs(goal, active, is_pooled), bounds_of(goal.demand, goal.choices, active)
    nodes = _Nodes.of(goal, arcs, bounds)
    layers = [*_racks(nodes, arcs, bounds, goal.demand.count[active])]
    first = sum(len(layer[0]) for layer in layers[:-2])
    layers += _sinks(goal, nodes, is_relaxed=is_relaxed)
    supply = np.zeros(nodes.sink + 1, dtype=np.int64)
    supply[: len(active)] = goal.demand.count[active] * bounds.need
    supply[nodes.first_place : nodes.first_place + len(still)] += still
    supply[nodes.sink] = -supply.sum()
    solution = minimise(Network.of(layers, supply))
    units, out_units = np.split(solution.flow[first : first + len(arcs.row) + len(arcs.out_pool)], [len(arcs.row)])
    of_pool = arcs.head < arcs.pools
    out = arcs.out_pool, arcs.out_place % goal.demand.rules.brokers, out_units
    entry, slot, failed = dealt(arcs.head[of_pool], arcs.row[of_pool], units[of_pool], out, goal.demand.named[active])
    row = active[np.concatenate([arcs.row[~of_pool], entry])]
    broker = np.concatenate([(arcs.head[~of_pool] - arcs.pools) % goal.demand.rules.brokers, slot])
    units = np.concatenate([units[~of_pool], np.ones_like(entry)])
    price = solution.price[nodes.sink] - solution.price
    placed = Placed.of(row, broker, units)
    places = price[nodes.first_place : nodes.first_place + len(still)]
    return Given(placed, active[failed], places, price[nodes.first_broker : nodes.sink])


@dataclass(frozen=True, slots=True)
class _Arcs:
    """What rows may choose: pools, and after them places (a broker, or topic * brokers + broker) by themselves."""

    row: Ints
    rack: Ints
    head: Ints  # a pool, or `pools` and a place
    lower: Ints
    upper: Ints
    cost: Ints
    pools: int
    out_pool: Ints  # [arcs out of pools]
    out_place: Ints
    out_cost: Ints


def _arcs(goal: Goal, active: Ints, is_pooled: Bools) -> _Arcs:
    """Return what these rows may choose: each broker that they name, others one by one or in pools."""
    choices, demand, rack = goal.choices, goal.demand, goal.demand.rules.rack
    row, at = np.nonzero(choices.named[active] >= 0)
    alone, others = [(row, demand.named[active[row], at])], np.arange(len(active))
    alone.append(_listed(goal, active, others[~is_pooled], choices.kinds >= 0))
    alone.append(_listed(goal, active, others[is_pooled], choices.kinds > 0))
    row, broker = (np.concatenate(columns) for columns in zip(*alone, strict=True))
    order = np.lexsort((broker, row))
    row, broker = row[order], broker[order]
    state = choices.kinds[choices.kind[active[row]], broker]
    for named, own in zip(demand.named.T, choices.named.T, strict=True):
        there = named[active[row]] == broker
        state[there] = own[active[row[there]]]
    to_row, to_rack, to_room = _reached(goal, active, others[is_pooled])
    racks = demand.rules.low.shape[1]
    pools, to_pool = np.unique(choices.kind[active[to_row]] * racks + to_rack, return_inverse=True)
    kind = pools // racks
    out_pool, out = np.nonzero((choices.kinds[kind] == 0) & (rack == (pools % racks)[:, None]))
    kind, count = kind[out_pool], demand.count[active[row]]
    return _Arcs(
        row=np.concatenate([row, to_row]),
        rack=np.concatenate([rack[broker], to_rack]),
        head=np.concatenate([len(pools) + goal.place(active[row], broker), to_pool]),
        lower=np.concatenate([np.where(state > 0, count, 0), np.zeros_like(to_row)]),
        upper=np.concatenate([count, to_room]),
        cost=np.concatenate([goal.own(active[row], broker), goal.cost.other[active[to_row]]]),
        pools=len(pools),
        out_pool=out_pool,
        out_place=goal.topic_of_kind[kind] * demand.rules.brokers + out if choices.has_cells else out,
        out_cost=np.zeros_like(out) if goal.turns is None else goal.turns[kind, out],
    )


def _listed(goal: Goal, active: Ints, some: Ints, mask: Bools) -> tuple[Ints, Ints]:
    """Return each of these rows beside each broker that the mask [kinds, brokers] marks and that it does not name."""
    of_kind, broker = np.nonzero(mask)
    start = np.searchsorted(of_kind, np.arange(len(mask) + 1))
    kind = goal.choices.kind[active[some]]
    size = start[kind + 1] - start[kind]
    row = np.repeat(some, size)
    found = broker[np.repeat(start[kind], size) + counted(size)]
    is_named = (goal.demand.named[active[row]] == found[:, None]).any(axis=1)
    return row[~is_named], found[~is_named]


def _reached(goal: Goal, active: Ints, some: Ints) -> tuple[Ints, Ints, Ints]:
    """Return each of these rows beside each rack that has free brokers which it does not name, and how many it may."""
    choices, demand, index = goal.choices, goal.demand, active[some]
    is_free = choices.kinds == 0
    kind, named = choices.kind[index], demand.named[index]
    left = room(is_free, demand.rules.rack, demand.rules.low.shape[1])[kind]
    for seat in range(named.shape[1]):
        row = np.flatnonzero((named[:, seat] >= 0) & is_free[kind, named[:, seat]])
        np.subtract.at(left, (row, demand.rules.rack[named[row, seat]]), 1)
    most = np.minimum(left, bounds_of(demand, choices, index).high)
    row, rack = np.nonzero(most > 0)
    return some[row], rack, most[row, rack]


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes after the rows: racks, pools, cells (or brokers), brokers, and the sink, which is last.

    A rack that no arc reaches has the number -1.
    """

    rack: Ints  # [rows, racks]
    first_pool: int
    first_place: int
    first_broker: int
    sink: int

    @classmethod
    def of(cls, goal: Goal, arcs: _Arcs, bounds: Bounds) -> "_Nodes":
        """Return the numbering; a single rack needs no node."""
        n, racks = bounds.low.shape
        is_used = np.zeros((n, racks), dtype=np.bool_)
        is_used[arcs.row, arcs.rack] = racks > 1
        rack = np.where(is_used, n + np.cumsum(is_used).reshape(is_used.shape) - 1, -1)
        first_pool = n + int(is_used.sum())
        first_place = first_pool + arcs.pools
        first_broker = first_place + len(goal.choices.cell_low)
        return cls(rack, first_pool, first_place, first_broker, first_broker + goal.demand.rules.brokers)


def _racks(nodes: _Nodes, arcs: _Arcs, bounds: Bounds, count: Ints) -> Iterator[Layer]:
    """Yield the arcs from rows to places: what each rack takes is bound."""
    if bounds.low.shape[1] > 1:
        row, rack = np.nonzero(nodes.rack >= 0)
        low, high = count[row] * bounds.low[row, rack], count[row] * bounds.high[row, rack]
        yield row, nodes.rack[row, rack], low, high, 0 * row
    at = nodes.rack[arcs.row, arcs.rack]
    yield np.where(at >= 0, at, arcs.row), nodes.first_pool + arcs.head, arcs.lower, arcs.upper, arcs.cost
    none = np.zeros_like(arcs.out_pool)
    tail, head = nodes.first_pool + arcs.out_pool, nodes.first_place + arcs.out_place
    yield tail, head, none, none + PLENTY, arcs.out_cost


def _sinks(goal: Goal, nodes: _Nodes, *, is_relaxed: bool) -> Iterator[Layer]:
    """Yield the arcs from cells to their brokers, and from brokers to the sink."""
    brokers, cells = goal.demand.rules.brokers, len(goal.choices.cell_low)
    if goal.sinks.cells:
        heads = nodes.first_broker + np.arange(cells) % brokers
        yield _sink(goal.sinks.cells, nodes.first_place, heads, is_relaxed=is_relaxed)
    yield _sink(goal.sinks.brokers, nodes.first_broker, np.full(brokers, nodes.sink), is_relaxed=is_relaxed)


def _sink(pieces: Pieces, first_node: int, heads: Ints, *, is_relaxed: bool) -> Layer:
    if not is_relaxed:
        return first_node + pieces.at, heads[pieces.at], pieces.lower, pieces.upper, pieces.cost
    # What must be filled gains one a unit, what overflows costs one: all else is as good.
    low, high = (np.maximum(each, 0) for each in pieces.bounds(len(heads)))
    none = np.zeros(len(heads), dtype=np.int64)
    tail, head = np.tile(first_node + np.arange(len(heads)), 3), np.tile(heads, 3)
    upper, cost = (low, high - low, none + PLENTY), (none - 1, none, none + 1)
    return tail, head, np.tile(none, 3), np.concatenate(upper), np.concatenate(cost)


def dealt(pool: Ints, row: Ints, units: Ints, out: tuple[Ints, Ints, Ints], named: Ints) -> tuple[Ints, Ints, Ints]:
    """Return rows and their brokers, and the rows for which no broker was found; of these, some may be missing.

    `units` of each `pool` go to each `row`; `out` are the pools that give, their brokers, and how many each gives.
    """
    entry_pool, entry = np.repeat(pool, units), np.repeat(row, units)
    order = np.lexsort((entry, counted(units), entry_pool))
    entry_pool, entry = entry_pool[order], entry[order]
    # Brokers in turns, so that neighbours, which are of one topic, go to different ones.
    from_pool, broker, quota = out
    order = np.lexsort((np.repeat(broker, quota), counted(quota), np.repeat(from_pool, quota)))
    slot = np.repeat(broker, quota)[order]
    wrong = np.flatnonzero(_clashes(entry, slot, named))
    failed = []
    for one in wrong.tolist():
        start, end = np.searchsorted(entry_pool, [entry_pool[one], entry_pool[one] + 1])
        if not _is_swapped(entry, slot, named, one, slice(start, end)):
            failed.append(entry[one])
    return entry, slot, np.unique(np.array(failed, dtype=np.int64))


def _clashes(entry: Ints, slot: Ints, named: Ints) -> Bools:
    """Return the entries whose row names their broker, or has it from an entry before."""
    found: Bools = (named[entry] == slot[:, None]).any(axis=1)
    order = np.lexsort((slot, entry))
    is_again = (np.diff(entry[order]) == 0) & (np.diff(slot[order]) == 0)
    found[order[1:][is_again]] = True
    return found


def _is_swapped(entry: Ints, slot: Ints, named: Ints, one: int, span: slice) -> bool:
    """Swap the brokers of this entry and the next one of its pool with which both are fine; return whether one is."""
    rows, brokers = entry[span], slot[span]
    mine = np.concatenate([named[entry[one]], slot[entry == entry[one]]])
    holding = entry[slot == slot[one]]
    is_fine = ~np.isin(brokers, mine) & ~np.isin(rows, holding) & ~(named[rows] == slot[one]).any(axis=1)
    if not is_fine.any():
        # Another swap may have mended it already.
        return int((slot[entry == entry[one]] == slot[one]).sum()) == 1 and slot[one] not in named[entry[one]]
    other = span.start + int(is_fine.argmax())
    slot[one], slot[other] = slot[other], slot[one]
    return True
