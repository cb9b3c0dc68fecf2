"""Makes arcs of what rows may choose, and of a flow over them who holds what."""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.dealing import dealt
from reconciler.planner.goal import Goal
from reconciler.planner.row_flow import Arcs, Flow, solve_flow
from reconciler.planner.rows import Bools, Ints, room


@dataclass(frozen=True, slots=True)
class Given:
    """What a flow gives to rows; `failed` are rows to which a pool could not be dealt out."""

    row: Ints
    broker: Ints
    units: Ints
    failed: Ints
    flow: Flow


def flow_over(goal: Goal, active: Ints, still: Ints, is_pooled: Bools, *, is_relaxed: bool = False) -> Given:
    """Solve over the active rows alone; `still` [places] is what the others hold."""
    demand, brokers = goal.demand, goal.demand.rules.brokers
    arcs = _arcs(goal, active, is_pooled)
    bounds, count = bounds_of(demand, goal.choices, active), demand.count[active]
    flow = solve_flow(arcs, bounds, count, goal.sinks, rack=demand.rules.rack, elsewhere=still, is_relaxed=is_relaxed)
    out = arcs.out_pool, arcs.out_place % brokers, flow.out_units
    entry, slot, failed = dealt(arcs.to_pool, arcs.to_row, flow.to_units, out, demand.named[active])
    row = active[np.concatenate([arcs.row, entry])]
    units = np.concatenate([flow.units, np.ones_like(entry)])
    return Given(row, np.concatenate([arcs.place % brokers, slot]), units, active[failed], flow)


def _arcs(goal: Goal, active: Ints, is_pooled: Bools) -> Arcs:
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
    for seat in range(demand.named.shape[1]):
        there = demand.named[active[row], seat] == broker
        state[there] = choices.named[active[row[there]], seat]
    to_row, to_rack, to_room = _reached(goal, active, others[is_pooled])
    racks = demand.rules.low.shape[1]
    pools, to_pool = np.unique(choices.kind[active[to_row]] * racks + to_rack, return_inverse=True)
    kind = pools // racks
    out_pool, out = np.nonzero((choices.kinds[kind] == 0) & (rack == (pools % racks)[:, None]))
    kind = kind[out_pool]
    return Arcs(
        row=row,
        place=goal.place(active[row], broker),
        cost=goal.own(active[row], broker),
        is_forced=state > 0,
        to_row=to_row,
        to_rack=to_rack,
        to_pool=to_pool,
        to_cost=goal.cost.other[active[to_row]],
        to_room=to_room,
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
    place = np.arange(len(row)) + np.repeat(start[kind] - (np.cumsum(size) - size), size)
    found = broker[place]
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
