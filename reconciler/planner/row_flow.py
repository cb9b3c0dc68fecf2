"""Builds the flow of an objective: rows -> (leading racks ->) racks -> brokers, or what each topic has there -> sink.

Brokers that are alike to a row cost it the same, so it reaches those of a rack through one node, the pool that rows of
its kind share. Every rule that a flow can keep is a bound on an arc.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.cheapest_sets import Bounds
from reconciler.planner.flow import Network, minimise
from reconciler.planner.pieces import Pieces, Sinks
from reconciler.planner.rows import Bools, Ints

PLENTY = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Arcs:
    """What rows may choose: places alone (a broker, or topic * brokers + broker), and pools of places.

    `row`, `place`, `cost`, `is_forced` [arcs] are of places alone; `to_row`, `to_rack`, `to_pool`, `to_cost`, `to_room`
    of rows to pools, `out_pool`, `out_place`, `out_cost` of pools to their places.
    """

    row: Ints
    place: Ints
    cost: Ints
    is_forced: Bools
    to_row: Ints
    to_rack: Ints
    to_pool: Ints
    to_cost: Ints
    to_room: Ints
    out_pool: Ints
    out_place: Ints
    out_cost: Ints


@dataclass(frozen=True, slots=True)
class Flow:
    """An optimal flow: units on the arcs to places alone, to pools and out of pools.

    `price` [cells or brokers] is that of one unit there, `broker_price` [brokers] the part of it that the broker's own
    sink asks for.
    """

    units: Ints
    to_units: Ints
    out_units: Ints
    price: Ints
    broker_price: Ints


def solve_flow(
    arcs: Arcs, bounds: Bounds, count: Ints, sinks: Sinks, *, rack: Ints, elsewhere: Ints, is_relaxed: bool = False
) -> Flow:
    """Return the flow of least cost; `elsewhere` [cells or brokers] counts the units that other rows have placed.

    A relaxed flow only keeps as many units as it can within the sinks' bounds, whatever else that costs. Raises
    FlowInfeasibleError where not all can be, and the flow is not relaxed.
    """
    parts, (n, racks), brokers = _Parts(), bounds.low.shape, len(rack)
    nodes = _Nodes.of(arcs, bounds, rack, len(elsewhere) if sinks.cells else 0)
    tail, to_tail = arcs.row, arcs.to_row
    if racks > 1:
        _add_racks(parts, bounds, count, nodes)
        tail, to_tail = nodes.rack[tail, rack[arcs.place % brokers]], nodes.rack[to_tail, arcs.to_rack]
    one, out_nothing = count[arcs.row], np.zeros_like(arcs.out_pool)
    first = parts.size
    parts.add(
        np.concatenate([tail, to_tail]),
        np.concatenate([nodes.first_place + arcs.place, nodes.first_pool + arcs.to_pool]),
        np.concatenate([np.where(arcs.is_forced, one, 0), np.zeros_like(to_tail)]),
        np.concatenate([one, arcs.to_room]),
        np.concatenate([arcs.cost, arcs.to_cost]),
    )
    parts.add(
        nodes.first_pool + arcs.out_pool,
        nodes.first_place + arcs.out_place,
        out_nothing,
        out_nothing + PLENTY,
        arcs.out_cost,
    )
    if sinks.cells:
        heads = nodes.first_broker + np.arange(len(elsewhere)) % brokers
        _add_sinks(parts, sinks.cells, nodes.first_place, heads, is_relaxed=is_relaxed)
    _add_sinks(parts, sinks.brokers, nodes.first_broker, np.full(brokers, nodes.sink), is_relaxed=is_relaxed)
    supply = np.zeros(nodes.sink + 1, dtype=np.int64)
    supply[:n] = count * bounds.need
    supply[nodes.first_place : nodes.first_place + len(elsewhere)] += elsewhere
    supply[nodes.sink] = -supply.sum()
    solution = minimise(parts.network(supply))
    ends = first + np.cumsum([len(arcs.row), len(arcs.to_row), len(arcs.out_pool)])
    units, to_units, out_units = np.split(solution.flow[first : ends[-1]], ends[:-1] - first)
    end = solution.price[nodes.sink]
    return Flow(
        units,
        to_units,
        out_units,
        end - solution.price[nodes.first_place : nodes.first_place + len(elsewhere)],
        end - solution.price[nodes.first_broker : nodes.sink],
    )


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes after the rows: `group` [n] of leading racks, `rack` [n, racks], pools, cells (or brokers), brokers.

    A row without leading racks, and a rack that no arc reaches, has the number -1. The sink is last.
    """

    group: Ints
    rack: Ints
    first_pool: int
    first_place: int
    first_broker: int
    sink: int

    @classmethod
    def of(cls, arcs: Arcs, bounds: Bounds, rack: Ints, cells: int) -> "_Nodes":
        """Return the numbering; a single rack needs no node."""
        n, racks = bounds.low.shape
        has_group = bounds.leading.any(axis=1) & (racks > 1)
        is_used = np.zeros((n, racks), dtype=np.bool_)
        if racks > 1:
            is_used[arcs.row, rack[arcs.place % len(rack)]] = True
            is_used[arcs.to_row, arcs.to_rack] = True
        first_rack = n + int(has_group.sum())
        first_pool = first_rack + int(is_used.sum())
        first_place = first_pool + int(arcs.to_pool.max(initial=-1)) + 1
        first_broker = first_place + cells
        racked = _numbered(is_used.ravel(), first_rack).reshape(is_used.shape)
        return cls(_numbered(has_group, n), racked, first_pool, first_place, first_broker, first_broker + len(rack))


def _numbered(mask: Bools, first: int) -> Ints:
    """Return numbers from `first` on for what is in the mask, -1 for the rest."""
    return np.where(mask, first + np.cumsum(mask) - 1, -1)


class _Parts:
    """Arcs as they are added, one layer at a time."""

    def __init__(self) -> None:
        self._columns: list[tuple[Ints, ...]] = []
        self._ends: list[int] = []
        self.size = 0

    def add(self, tail: Ints, head: Ints, lower: Ints, upper: Ints, cost: Ints) -> None:
        """Add a layer."""
        self._columns.append((tail, head, lower, upper, cost))
        self.size += len(tail)
        self._ends.append(self.size)

    def network(self, supply: Ints) -> Network:
        """Return all of it as a network."""
        tail, head, lower, upper, cost = (np.concatenate(arrays) for arrays in zip(*self._columns, strict=True))
        return Network(tail, head, lower, upper, cost, supply, tuple(self._ends))


def _add_racks(parts: _Parts, bounds: Bounds, count: Ints, nodes: _Nodes) -> None:
    led = np.flatnonzero(nodes.group >= 0)
    least, most = bounds.least_leading[led], bounds.most_leading[led]
    parts.add(led, nodes.group[led], count[led] * least, count[led] * most, 0 * led)
    row, rack = np.nonzero(nodes.rack >= 0)
    tail = np.where(bounds.leading[row, rack], nodes.group[row], row)
    low, high = count[row] * bounds.low[row, rack], count[row] * bounds.high[row, rack]
    parts.add(tail, nodes.rack[row, rack], low, high, 0 * row)


def _add_sinks(parts: _Parts, pieces: Pieces, first_node: int, heads: Ints, *, is_relaxed: bool) -> None:
    if not is_relaxed:
        parts.add(first_node + pieces.at, heads[pieces.at], pieces.lower, pieces.upper, pieces.cost)
        return
    # What must be filled gains one a unit, what overflows costs one: all else is as good.
    low, high = (np.maximum(each, 0) for each in pieces.bounds(len(heads)))
    tail, none = first_node + np.arange(len(heads)), np.zeros(len(heads), dtype=np.int64)
    parts.add(
        np.tile(tail, 3),
        np.tile(heads, 3),
        np.tile(none, 3),
        np.concatenate([low, high - low, none + PLENTY]),
        np.concatenate([none - 1, none, none + 1]),
    )
