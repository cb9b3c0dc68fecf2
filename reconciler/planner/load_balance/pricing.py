"""Finds the cheapest legal ordered placement of each partition at given prices: one pass over whole numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.task import DISK, LEADER_IN, LEADERS, NETWORK_IN, NETWORK_OUT, REPLICAS, LoadTask

CHUNK = 4096
"""Rows priced at a time: a few arrays of rows by brokers, some megabytes for 100 brokers."""
FAR = 1 << 58
"""More than any placement costs; a set that holds a replica it must not, or lacks one that it must, costs as much."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What a choice costs: `prices` [measures, brokers] a unit, `copy` [rows] a new replica, `change` a new leader."""

    prices: Ints
    copy: Ints
    change: int


@dataclass(frozen=True, slots=True)
class Picked:
    """A placement of each row, or those of one row: costs, members [placements, brokers] and their leaders' columns."""

    cost: Ints
    members: Bools
    leader: Ints


def cheapest(task: LoadTask, costs: Costs) -> Picked:
    """Return the cheapest legal placement of every row; the present one where none is cheaper."""
    shape = task.allowed.shape
    found = Picked(np.full(shape[0], FAR), np.zeros(shape, dtype=np.bool_), np.zeros(shape[0], dtype=np.int64))
    for rows in _chunks(task):
        _choose(task, rows, found, (replica_costs(task, costs, rows), leader_costs(task, costs, rows)))
    return found


def lower_bound(task: LoadTask, bands: Bands, costs: Costs) -> int:
    """Return a bound on the cost of any legal placement within the bands, in the costs' own unit.

    Every partition takes its cheapest placement at these prices; what the bands could pay back at most is taken off.
    """
    return bound_of(task, bands, costs, cheapest(task, costs))


def bound_of(task: LoadTask, bands: Bands, costs: Costs, picked: Picked) -> int:
    """Return the same where the cheapest placements are known."""
    bound: int = sum(picked.cost.tolist())
    for measure in np.flatnonzero(bands.asked).tolist():
        prices = costs.prices[measure].tolist()
        for broker, price in enumerate(prices):
            low, high = int(bands.low[measure, broker]), int(bands.high[measure, broker])
            bound += price * int(task.base[measure, broker]) - max(price * low, price * high)
    return bound


def cost_of(task: LoadTask, costs: Costs, members: Bools, leader: Ints) -> Ints:
    """Return [rows] what these placements cost."""
    found = np.zeros(len(task.need), dtype=np.int64)
    for rows in _chunks(task):
        replicas = np.where(members[rows], replica_costs(task, costs, rows), 0).sum(axis=1)
        found[rows] = replicas + leader_costs(task, costs, rows)[np.arange(len(rows)), leader[rows]]
    return found


def replica_costs(task: LoadTask, costs: Costs, rows: Ints) -> Ints:
    """Return [rows, brokers]: what a replica costs there."""
    prices, weight = costs.prices, task.weights.replica[rows]
    cost: Ints = np.where(task.held[rows] | task.is_new[rows, None], 0, costs.copy[rows, None])
    cost += prices[REPLICAS]
    for measure in (DISK, NETWORK_IN):
        if prices[measure].any():
            cost += weight[:, measure, None] * prices[measure]
    return cost + prices[task.of_topic(rows)] if task.topics else cost


def leader_costs(task: LoadTask, costs: Costs, rows: Ints) -> Ints:
    """Return [rows, brokers]: what leading costs there, beyond holding a replica."""
    prices = costs.prices
    cost = np.where(task.is_new[rows, None], 0, np.full((len(rows), task.brokers), costs.change))
    there = np.flatnonzero(task.leader[rows] >= 0)
    cost[there, task.leader[rows][there]] = 0
    cost += prices[LEADERS]
    for measure in (NETWORK_OUT, LEADER_IN):
        if prices[measure].any():
            cost += task.weights.leader[rows, measure, None] * prices[measure]
    return cost + prices[task.of_topic(rows, leads=True)] if task.topics else cost


def _chunks(task: LoadTask) -> Iterator[Ints]:
    """Yield rows that share need and rack limits, not too many at a time."""
    for alike in task.alike:
        for start in range(0, len(alike), CHUNK):
            yield alike[start : start + CHUNK]


def _choose(task: LoadTask, rows: Ints, found: Picked, priced: tuple[Ints, Ints]) -> None:
    """Write the cheapest placement of these rows to `found`; `priced`: what holding and leading cost."""
    best = _best(task, rows, task.allowed[rows], task.leading[rows], priced)
    for first in (1, 2):
        without = task.allowed[rows] & (task.rank[rows] >= first)
        # As far as the number of brokers tells, these alone may be a set.
        is_enough = (without.sum(axis=1) >= task.need[rows]) & ~(task.forced[rows] & ~without).any(axis=1)
        others = np.flatnonzero(task.may_lead_second[rows] & is_enough)
        if not len(others):
            break
        second = without[others] & (task.rank[rows[others]] == first)
        worth = _best(task, rows[others], without[others], second, (priced[0][others], priced[1][others]))
        is_better = worth.cost < best.cost[others]
        better = others[is_better]
        best.cost[better], best.leader[better] = worth.cost[is_better], worth.leader[is_better]
        best.members[better] = worth.members[is_better]
    _stay_where_equal(task, rows, priced, best)
    found.cost[rows], found.members[rows], found.leader[rows] = best.cost, best.members, best.leader


def _best(task: LoadTask, rows: Ints, inside: Bools, leading: Bools, priced: tuple[Ints, Ints]) -> Picked:
    """Return the cheapest placement of these rows by who may hold (`inside`) and lead them [rows, brokers]."""
    (replica, leader), forced = priced, task.forced[rows]
    ranked = np.where(inside, replica, FAR)
    if forced.any():
        ranked = np.where(forced, replica - FAR, ranked)
    members, removable = _cheapest_set(task, rows, ranked)
    base = np.where(members, ranked, 0).sum(axis=1) + FAR * forced.sum(axis=1)
    entry = np.where(members, 0, ranked - removable)
    entry = np.where(leading, entry + leader, FAR)
    lead = entry.argmin(axis=1)
    at = np.arange(len(rows))
    cost = base + entry[at, lead]
    for place in np.flatnonzero(~members[at, lead] & (cost < FAR // 2)).tolist():
        _swap_in(task, int(rows[place]), members[place], ranked[place], int(lead[place]))
    return Picked(cost, members, lead)


def _cheapest_set(task: LoadTask, rows: Ints, ranked: Ints) -> tuple[Bools, Ints]:
    """Return the cheapest sets, and [rows, brokers] the dearest member that each other broker could take the place of.

    The legal sets are the bases of a matroid: in each rack its fewest cheapest, then the cheapest of all up to each
    rack's most; and the cheapest base with a given broker differs from the cheapest of all by one exchange.
    """
    low, high, need = task.low[rows[0]], task.high[rows[0]], int(task.need[rows[0]])
    place = np.zeros(ranked.shape, dtype=np.int64)
    for there in task.rack_brokers:
        order = ranked[:, there].argsort(axis=1, kind="stable")
        np.put_along_axis(place, there[order], np.arange(len(there))[None, :], axis=1)
    members = place < low[task.eligible.rack]
    optional = ~members & (place < high[task.eligible.rack])
    left = need - int(low.sum())
    if left > 0:
        order = np.where(optional, ranked, 2 * FAR).argsort(axis=1, kind="stable")
        np.put_along_axis(members, order[:, :left], values=True, axis=1)
    optional &= members
    chosen = np.where(members, ranked, -4 * FAR)
    spare = np.where(optional, ranked, -4 * FAR).max(axis=1)
    removable = np.empty_like(ranked)
    for rack, there in enumerate(task.rack_brokers):
        own = chosen[:, there].max(axis=1, initial=-4 * FAR)
        has_room = members[:, there].sum(axis=1) < high[rack]
        removable[:, there] = np.where(has_room, np.maximum(own, spare), own)[:, None]
    return members, removable


def _swap_in(task: LoadTask, row: int, members: Bools, ranked: Ints, leader: int) -> None:
    """Let the leader of one row take the place of the dearest member that may go."""
    rack, low, high = task.eligible.rack, task.low[row], task.high[row]
    count = np.bincount(rack[members], minlength=len(low))
    may_go = (count > low) & (count[rack[leader]] < high[rack[leader]])
    may_go[rack[leader]] = True
    candidates = np.flatnonzero(members & may_go[rack])
    leaving = candidates[ranked[candidates].argmax()]
    members[leaving], members[leader] = False, True


def _stay_where_equal(task: LoadTask, rows: Ints, priced: tuple[Ints, Ints], best: Picked) -> None:
    held, present = task.held[rows], task.leader[rows]
    now = np.where(held, priced[0], 0).sum(axis=1)
    now += priced[1][np.arange(len(rows)), present]
    same = task.stays[rows] & (now <= best.cost)
    best.cost[same], best.members[same], best.leader[same] = now[same], held[same], present[same]
