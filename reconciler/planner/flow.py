"""Solves minimum-cost flows (OR-tools) over networks in arrays, and finds the dual prices of their nodes.

Arcs stand in layers, from the rows to the sink; the prices are found by sweeping the layers. Costs are those of the
objective alone, whatever their size: what the solver cannot hold is solved by its leading digits first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
from ortools.graph.python import min_cost_flow

from reconciler.model.columns import Ints

LARGEST = 1 << 61
"""Sums of two prices and a cost are exact in 64 bits while each is within it."""


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

    @classmethod
    def of(cls, layers: Sequence[tuple[Ints, ...]], supply: Ints) -> "Network":
        """Return the network of these layers, arcs as tails, heads, lower and upper bounds, and costs."""
        tail, head, lower, upper, cost = (np.concatenate(arrays) for arrays in zip(*layers, strict=True))
        return cls(tail, head, lower, upper, cost, supply, tuple(accumulate(len(layer[0]) for layer in layers)))


@dataclass(frozen=True, slots=True)
class Solution:
    """An optimal flow and each node's price."""

    flow: Ints
    price: Ints


class FlowInfeasibleError(Exception):
    """No flow keeps the bounds."""


def minimise(network: Network) -> Solution:
    """Return a flow of least cost with prices that prove it; raise FlowInfeasibleError where there is none."""
    flow, shift = None, 0
    while flow is None:
        flow = _solved(network, network.cost >> shift)
        shift += 0 if flow is not None else 8
    # Digits that were left out are added again, as many as the solver holds, until none is missing.
    while shift:
        flow, shift = _refined(network, flow, shift)
    return Solution(flow, _prices(network, flow, network.cost))


def _refined(network: Network, flow: Ints, shift: int) -> tuple[Ints, int]:
    """Return a flow of least cost with more digits of the costs, from the one without `shift` bits; and what is left.

    Beside the prices of the old flow each residual arc costs more than -2^bits, so a cycle through an arc that costs
    nodes * 2^bits only loses: such arcs keep their flow in every optimum. What is left has costs within that limit.
    """
    wide = network.cost.astype(object)
    price = _prices(network, flow, wide >> shift)
    for bits in range(shift, 0, -1):
        reduced = (wide >> (shift - bits)) + ((price[network.tail] - price[network.head]) << bits)
        is_fixed = np.abs(reduced) > len(price) << bits
        lower, upper = (np.where(is_fixed, flow, bound) for bound in (network.lower, network.upper))
        finer = _solved(replace(network, lower=lower, upper=upper), np.where(is_fixed, 0, reduced))
        if finer is not None:
            return finer, shift - bits
    raise AssertionError("one more bit a node is within the solver's range")


def _solved(network: Network, cost: Ints) -> Ints | None:
    """Return a flow of least cost, or None where the solver cannot hold the costs."""
    if max(int(cost.max(initial=0)), -int(cost.min(initial=0))) * (len(network.supply) + 1) > LARGEST:
        return None
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
            cost[free].astype(np.int64),
        )
        solver.set_nodes_supplies(np.arange(len(supply), dtype=np.int32), supply)
        status = solver.solve()
        if status == solver.BAD_COST_RANGE:
            return None
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
    price = np.zeros(len(network.supply), dtype=cost.dtype)
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
