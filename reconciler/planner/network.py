"""A flow network in arrays, its minimum-cost flow (OR-tools), and the dual prices of its nodes.

Arcs stand in layers, from the rows to the sink; the prices are found by sweeping the layers.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.graph.python import min_cost_flow

from reconciler.model.problem import ReconcilerError

Ints = NDArray[np.int64]


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
    sweeps = list(_residual_layers(network, flow, cost))
    price = np.zeros(len(network.supply), dtype=np.int64)
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
