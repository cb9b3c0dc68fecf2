"""Solves minimum-cost flows (OR-tools) over networks in arrays, and finds the dual prices of their nodes.

Arcs stand in layers, from the rows to the sink; the prices are found by sweeping the layers.
"""

from dataclasses import dataclass

import numpy as np
from ortools.graph.python import min_cost_flow

from reconciler.model.problem import ReconcilerError
from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.rows import Bools, Choices, Ints, Rows


@dataclass(frozen=True, slots=True)
class Network:
    """Arcs (`tail`, `head`, bounds `lower` <= flow <= `upper`, `cost` a unit) in layers, and each node's supply.

    `layers` holds the end of each layer of arcs; arcs of one layer never follow one another on a path.
    """

    tail: Ints
    head: Ints
    lower: Ints
    upper: Ints
    cost: Ints
    supply: Ints
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Solution:
    """An optimal flow and each node's price."""

    flow: Ints
    price: Ints


class NumbersTooLarge(ReconcilerError):
    """Costs are beyond what 64-bit integers can add up exactly; nothing is rounded instead."""

    code = "KR306"

    @classmethod
    def of(cls, largest: int) -> "NumbersTooLarge":
        """Return the refusal of costs as large as this."""
        return cls(
            f"costs up to {largest} are too large to plan exactly: "
            "plan fewer topics at once with --only, or write smaller capacities"
        )


class FlowInfeasibleError(Exception):
    """No flow keeps the bounds; the callers check the rules first, so this is a defect of theirs."""


def minimise(network: Network) -> Solution:
    """Return a flow of least cost with prices that prove it."""
    cost = network.cost
    flow = _least_cost_flow(network, cost)
    return Solution(flow, _prices(network, flow, cost))


def _least_cost_flow(network: Network, cost: Ints) -> Ints:
    # The solver knows no lower bounds: what must flow is taken out of the supplies first, and added again at the end.
    free = np.flatnonzero(network.upper > network.lower)
    supply = network.supply.copy()
    np.subtract.at(supply, network.tail, network.lower)
    np.add.at(supply, network.head, network.lower)
    flow = network.lower.copy()
    if len(free):
        solver = min_cost_flow.SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(
            network.tail[free].astype(np.int32),
            network.head[free].astype(np.int32),
            network.upper[free] - network.lower[free],
            cost[free],
        )
        solver.set_nodes_supplies(np.arange(len(supply), dtype=np.int32), supply)
        status = solver.solve()
        if status in {solver.BAD_COST_RANGE, solver.BAD_CAPACITY_RANGE}:
            raise NumbersTooLarge.of(int(np.abs(cost).max()))
        if status != solver.OPTIMAL:
            raise FlowInfeasibleError
        flow[free] += solver.flows(arcs)
    elif supply.any():
        raise FlowInfeasibleError
    return flow


def _prices(network: Network, flow: Ints, cost: Ints) -> Ints:
    """Return shortest distances in the residual network: Bellman-Ford, one sweep over the layers a round."""
    # All start at 0, as if a node before all others reached each at no cost: distances exist without a source.
    sweeps = list(_residual_layers(network, flow, cost))
    price = np.zeros(len(network.supply), dtype=np.int64)
    # OR-tools gives no prices. An optimal flow leaves no negative cycle in the residual network, so distances exist;
    # at them no arc with room has a reduced cost below 0, which is what dual prices are.
    while True:
        before = price.copy()
        for tail, head, length in sweeps:
            np.minimum.at(price, head, price[tail] + length)
        if np.array_equal(before, price):
            return price


def _residual_layers(network: Network, flow: Ints, cost: Ints) -> list[tuple[Ints, Ints, Ints]]:
    """Return residual arcs, sink to rows first (undoing flow), then rows to sink (adding flow)."""
    spans = list(zip((0, *network.layers), network.layers, strict=False))
    back, forth = [], []
    for start, end in spans:
        span = np.arange(start, end)
        used = span[flow[span] > network.lower[span]]
        spare = span[flow[span] < network.upper[span]]
        back.append((network.head[used], network.tail[used], -cost[used]))
        forth.append((network.tail[spare], network.head[spare], cost[spare]))
    return [*reversed(back), *forth]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Rising costs in pieces: each takes from `lower` to `upper` units of place `at`, at `cost` a unit.

    A chunk stands for several units whose own costs rise; its cost is that of the unit at its edge. Only that unit is
    priced right, so the window of single units moves until no count lies in a chunk.
    """

    at: Ints
    lower: Ints
    upper: Ints
    cost: Ints
    is_chunk: np.ndarray

    def bound(self, price: Ints) -> int:
        """Return the least that the pieces cost, less the price [places] of each unit."""
        reduced = self.cost - price[self.at]
        at_bound = np.where(reduced > 0, self.lower, self.upper)
        return sum((reduced * at_bound).tolist())

    def narrowed(self, price: Ints) -> tuple[Ints, Ints]:
        """Return the fewest and most units [places] of the cheapest fillings at these prices."""
        reduced = self.cost - price[self.at]
        must = np.where(reduced < 0, self.upper, self.lower)
        # At a price that equals a chunk's, its last unit alone costs as much: the others cost less and must be filled.
        must = np.where(self.is_chunk & (reduced == 0), np.maximum(self.upper - 1, self.lower), must)
        may = np.where(reduced > 0, self.lower, self.upper)
        return self._summed(must, len(price)), self._summed(may, len(price))

    def filled(self, units: Ints) -> int:
        """Return what so many units [places] cost, each place filled in the order of its pieces."""
        order = np.lexsort((self.cost, self.at))
        before = np.concatenate([[0], np.cumsum(self.upper[order])[:-1]])
        first = np.searchsorted(self.at[order], np.arange(len(units)))
        before -= before[first][self.at[order]]
        inside = np.clip(units[self.at[order]] - before, 0, self.upper[order])
        return sum((inside * self.cost[order]).tolist())

    def wanted(self, units: Ints) -> Ints:
        """Return the cheapest filling [places] for the same total; among equals, the one nearest to `units`."""
        order = np.lexsort((self.cost, self.at))
        at, upper = self.at[order], self.upper[order]
        before = np.cumsum(upper) - upper
        before -= before[np.searchsorted(at, np.arange(len(units)))][at]
        # Each piece falls in three: what must be filled comes before all else, then of equal costs what is filled now,
        # then the rest. Taken in that order up to the total, the filling costs least and moves fewest.
        there = np.clip(units[at] - before, self.lower[order], upper)
        parts = np.concatenate([self.lower[order], there - self.lower[order], upper - there])
        rank = np.repeat([0, 1, 2], len(at))
        cost = np.where(rank == 0, np.iinfo(np.int64).min, np.tile(self.cost[order], 3))
        queue = np.lexsort((np.tile(at, 3), rank, cost))
        after = np.cumsum(parts[queue])
        taken = np.clip(int(units.sum()) - (after - parts[queue]), 0, parts[queue])
        return self._summed_at(np.tile(at, 3)[queue], taken, len(units))

    def _summed(self, units: Ints, places: int) -> Ints:
        return self._summed_at(self.at, units, places)

    @staticmethod
    def _summed_at(at: Ints, units: Ints, places: int) -> Ints:
        summed: Ints = np.zeros(places, dtype=np.int64)
        np.add.at(summed, at, units)
        return summed


@dataclass(frozen=True, slots=True)
class Sinks:
    """The pieces of the brokers and, where topics are balanced, of the cells (topic * brokers + broker)."""

    brokers: Pieces
    cells: Pieces | None = None


def flat(low: Ints, high: Ints) -> Pieces:
    """Return one piece a place, between these bounds, that costs nothing."""
    places = np.arange(len(low))
    return Pieces(places, low, high, np.zeros_like(low), np.zeros(len(low), dtype=np.bool_))


def flat_sinks(choices: Choices) -> Sinks:
    """Return sinks that cost nothing, within the bounds that are left."""
    cells = flat(choices.cell_low, choices.cell_high) if choices.has_cells else None
    return Sinks(flat(choices.low, choices.high), cells)


def rising(low: Ints, high: Ints, window: tuple[Ints, Ints], base: Ints, weight: Ints) -> Pieces:
    """Return pieces of (base + units)^2 * weight, unit by unit within the window, in one chunk below and one above."""
    first, last = window
    places = np.arange(len(base))
    wide = last - first
    unit = np.repeat(places, wide)
    offset = np.arange(len(unit)) - np.repeat(np.cumsum(wide) - wide, wide)
    number = first[unit] + offset + 1

    def marginal(place: Ints, units: Ints) -> Ints:
        # The cost of the unit that makes it so many: n^2 - (n - 1)^2 = 2n - 1.
        return (2 * (base[place] + units) - 1) * weight[place]

    none, one = np.zeros_like(base), np.ones_like(unit)
    return Pieces(
        at=np.concatenate([places, unit, places]),
        lower=np.concatenate([low, 0 * unit, none]),
        upper=np.concatenate([first, one, high - last]),
        cost=np.concatenate([marginal(places, first), marginal(unit, number), marginal(places, last + 1)]),
        is_chunk=np.concatenate([first > low, np.zeros(len(unit) + len(base), dtype=np.bool_)]),
    )


def outside(low: Ints, high: Ints, floor: Ints, roof: Ints) -> Pieces:
    """Return pieces that gain one for each unit up to `floor`, and cost one for each above `roof`."""
    places = np.arange(len(low))
    none = np.zeros_like(low)
    return Pieces(
        at=np.concatenate([places, places, places]),
        lower=np.concatenate([low, none, none]),
        upper=np.concatenate([floor, roof - floor, high - roof]),
        cost=np.concatenate([none - 1, none, none + 1]),
        is_chunk=np.zeros(3 * len(low), dtype=np.bool_),
    )


@dataclass(frozen=True, slots=True)
class Flow:
    """An optimal flow over these rows: `placed` [n, seats], and the price [cells or brokers] of one unit there.

    `broker_price` [brokers] is the part of it that the broker's own sink asks for. `penalised` counts the units outside
    the sinks' bounds.
    """

    placed: Ints
    price: Ints
    broker_price: Ints
    penalised: int


def solve_flow(
    rows: Rows, choices: Choices, arcs: Bools, arc_cost: Ints, sinks: Sinks, *, placed_elsewhere: Ints, penalty: int
) -> Flow:
    """Return the flow of least cost over `arcs` [n, seats], at `arc_cost` [arcs] in their order.

    `placed_elsewhere` [cells or brokers] counts the units that other rows have placed already.
    """
    parts = _Parts()
    n, racks = rows.low.shape
    nodes = _Nodes.of(rows, arcs, sinks)
    row, seat = np.nonzero(arcs)
    # Row -> (group of leading racks ->) rack -> place (cell -> broker) -> sink. Every rule that a flow can keep is a
    # bound on one of these arcs; what is left out of `arcs` cannot be used at all.
    tail = row
    if racks > 1:
        _add_racks(parts, rows, choices, nodes)
        tail = nodes.rack[row, rows.rack[seat]]
    forced = choices.brokers[row, seat] > 0
    one = rows.count[row]
    place = rows.broker(row, seat)
    if sinks.cells:
        place = rows.topic[row] * rows.brokers + place
    first_broker_arc = parts.size
    parts.add(tail, nodes.first_place + place, np.where(forced, one, 0), one, arc_cost)
    first_sink_arcs = []
    if sinks.cells:
        first_sink_arcs.append(parts.size)
        _add_pieces(parts, sinks.cells, nodes.first_place, nodes.first_broker + sinks.cells.at % rows.brokers, penalty)
    first_sink_arcs.append(parts.size)
    _add_pieces(parts, sinks.brokers, nodes.first_broker, np.full(len(sinks.brokers.at), nodes.sink), penalty)
    supply = np.zeros(nodes.sink + 1, dtype=np.int64)
    supply[:n] = rows.count * rows.need
    supply[nodes.first_place : nodes.first_place + len(placed_elsewhere)] += placed_elsewhere
    supply[nodes.sink] = -supply.sum()
    solution = minimise(parts.network(supply))
    placed = np.zeros(arcs.shape, dtype=np.int64)
    placed[row, seat] = solution.flow[first_broker_arc : first_broker_arc + len(row)]
    end = solution.price[nodes.sink]
    return Flow(
        placed,
        end - solution.price[nodes.first_place : nodes.first_place + len(placed_elsewhere)],
        end - solution.price[nodes.first_broker : nodes.sink],
        _penalised(solution, sinks, first_sink_arcs),
    )


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes after the rows: `group` [n] of leading racks, `rack` [n, racks], cells (or brokers), brokers, sink.

    A row without leading racks, and a rack that no arc reaches, has the number -1.
    """

    group: Ints
    rack: Ints
    first_place: int
    first_broker: int
    sink: int

    @classmethod
    def of(cls, rows: Rows, arcs: Bools, sinks: Sinks) -> "_Nodes":
        """Return the numbering for these rows; a single rack needs no node."""
        n, racks = rows.low.shape
        has_group = rows.leading.any(axis=1) & (racks > 1)
        group = _numbered(has_group, n)
        is_used = np.stack([arcs[:, rows.rack == rack].any(axis=1) for rack in range(racks)], axis=1) & (racks > 1)
        first_rack = n + int(has_group.sum())
        rack = _numbered(is_used.ravel(), first_rack).reshape(is_used.shape)
        first_place = first_rack + int(is_used.sum())
        cells = int(sinks.cells.at.max(initial=-1)) + 1 if sinks.cells else 0
        first_broker = first_place + cells
        return cls(group, rack, first_place, first_broker, first_broker + rows.brokers)


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
        tail, head, lower, upper, cost = (
            np.concatenate(arrays).astype(np.int64) for arrays in zip(*self._columns, strict=True)
        )
        return Network(tail, head, lower, upper, cost, supply, tuple(self._ends))


def _add_racks(parts: _Parts, rows: Rows, choices: Choices, nodes: _Nodes) -> None:
    bounds = bounds_of(rows, choices)
    led = np.flatnonzero(nodes.group >= 0)
    least, most = bounds.least_leading[led], bounds.most_leading[led]
    parts.add(led, nodes.group[led], rows.count[led] * least, rows.count[led] * most, 0 * led)
    row, rack = np.nonzero(nodes.rack >= 0)
    tail = np.where(rows.leading[row, rack], nodes.group[row], row)
    count = rows.count[row]
    parts.add(tail, nodes.rack[row, rack], count * bounds.low[row, rack], count * bounds.high[row, rack], 0 * row)


def _add_pieces(parts: _Parts, pieces: Pieces, first_node: int, heads: Ints, penalty: int) -> None:
    """Add each piece as what must be filled, at a gain, and what may be; and for each place an overflow at a loss."""
    tail = first_node + pieces.at
    none = np.zeros_like(tail)
    place, first = np.unique(pieces.at, return_index=True)
    # The overflow keeps the network feasible, so that there are prices even where the bounds cannot be kept yet.
    spill = np.zeros_like(place)
    everything = spill + np.iinfo(np.int32).max
    parts.add(
        np.concatenate([tail, tail, first_node + place]),
        np.concatenate([heads, heads, heads[first]]),
        np.concatenate([none, none, spill]),
        np.concatenate([pieces.lower, pieces.upper - pieces.lower, everything]),
        np.concatenate([pieces.cost - penalty, pieces.cost, spill + penalty]),
    )


def _penalised(solution: Solution, sinks: Sinks, starts: list[int]) -> int:
    """Return how many units are missing to the sinks' lower bounds or above their upper ones."""
    wrong = 0
    for start, pieces in zip(starts, filter(None, (sinks.cells, sinks.brokers)), strict=False):
        size = len(pieces.at)
        filled = solution.flow[start : start + size]
        spilled = solution.flow[start + 2 * size : start + 2 * size + len(np.unique(pieces.at))]
        wrong += int((pieces.lower - filled).sum() + spilled.sum())
    return wrong
