"""Rows and sinks as a flow network: row (-> leading racks) -> rack -> broker or cell -> broker -> sink.

Where all brokers form one rack the row reaches them directly. A bound of a sink is kept by a penalty, so that a network
over a few of the arcs always has a flow; a penalty paid shows where the arcs do not suffice.
"""

from dataclasses import dataclass

import numpy as np

from reconciler.planner.cheapest import bounds_of
from reconciler.planner.network import Network, Solution, minimise
from reconciler.planner.rows import Bools, Choices, Ints, Rows
from reconciler.planner.sinks import Pieces, Sinks


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
    rows: Rows, choices: Choices, arcs: Bools, arc_cost: Ints, sinks: Sinks, *, settled: Ints, penalty: int
) -> Flow:
    """Return the flow of least cost over `arcs` [n, seats], at `arc_cost` [arcs] in their order.

    `settled` [cells or brokers] counts the units that other rows have placed already.
    """
    parts = _Parts()
    n, racks = rows.low.shape
    nodes = _Nodes.of(rows, arcs, sinks)
    row, seat = np.nonzero(arcs)
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
    supply[nodes.first_place : nodes.first_place + len(settled)] += settled
    supply[nodes.sink] = -supply.sum()
    solution = minimise(parts.network(supply))
    placed = np.zeros(arcs.shape, dtype=np.int64)
    placed[row, seat] = solution.flow[first_broker_arc : first_broker_arc + len(row)]
    end = solution.price[nodes.sink]
    return Flow(
        placed,
        end - solution.price[nodes.first_place : nodes.first_place + len(settled)],
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
