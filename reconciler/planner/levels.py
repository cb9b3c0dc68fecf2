"""One objective at a time: each returns the choices that its optimal solutions leave to the next."""

from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from reconciler.planner.network import Ints, Network, NumbersTooLarge, Solution, dual_value, minimise
from reconciler.planner.rows import Choices, Layout, Rows, build_network

WINDOW = 64


@dataclass(frozen=True, slots=True)
class Balanced:
    """What the best balance leaves to choose, and `prices` [brokers]: what one more replica there costs the balance."""

    choices: Choices
    prices: Ints


@dataclass(frozen=True, slots=True)
class Least:
    """The least value of a linear objective: `bound` is proven by `prices` [brokers], `placed` [n, brokers] has it."""

    choices: Choices
    placed: Ints
    value: int
    bound: int
    prices: Ints


def least_cost(rows: Rows, choices: Choices, cost: Ints) -> Least:
    """Minimise the sum of `cost` [n, brokers] over the replicas placed."""
    network, layout = build_network(rows, choices)
    arc_cost = np.zeros(len(network.tail), dtype=np.int64)
    arc_cost[layout.first_broker_arc : layout.first_sink_arc] = layout.spread(cost)
    solution = minimise(network, arc_cost)
    return Least(
        choices=_remaining(choices, network, layout, solution),
        placed=_placed(rows, layout, solution),
        value=int((arc_cost * solution.flow).sum()),
        bound=dual_value(network, solution),
        prices=_broker_prices(layout, solution),
    )


def is_open(rows: Rows, choices: Choices, cost: Ints) -> bool:
    """Whether the free choices can still differ in this cost."""
    free = rows.allowed & (choices.brokers == 0)
    largest = np.where(free, cost, np.iinfo(np.int64).min).max(axis=1)
    least = np.where(free, cost, np.iinfo(np.int64).max).min(axis=1)
    return bool((free.any(axis=1) & (largest > least)).any())


def least_squares(rows: Rows, choices: Choices, base: Ints, capacity: Ints) -> Balanced:
    """Minimise the sum over brokers of (base + placed)^2 / capacity.

    Unit arcs with rising cost stand only within a window round the fair share; the window moves until the solution is
    inside it, where it is exact.
    """
    weight = _weights(capacity, rows.total + int(base.sum()))
    centre = _fair_share(rows, choices, base, capacity)
    width = WINDOW
    while True:
        low = np.clip(centre - width, choices.low, choices.high)
        high = np.clip(centre + width, choices.low, choices.high)
        segments = _rising(choices, low, high, base, weight)
        network, layout = _with_segments(*build_network(rows, choices), segments)
        cost = np.zeros(len(network.tail), dtype=np.int64)
        cost[layout.first_sink_arc :] = segments.cost
        solution = minimise(network, cost)
        flow = solution.flow[layout.first_sink_arc :]
        placed = np.bincount(segments.broker, weights=flow, minlength=len(base)).astype(np.int64)
        is_inside = ((placed >= low) | (low == choices.low)) & ((placed < high) | (high == choices.high))
        if is_inside.all():
            narrowed = _narrowed(_remaining(choices, network, layout, solution), segments, solution, layout)
            return Balanced(narrowed, _broker_prices(layout, solution))
        centre, width = placed, 2 * width


def least_outside(rows: Rows, choices: Choices, base: Ints, low: Ints, high: Ints) -> Balanced:
    """Minimise the replicas by which brokers are below `low` or above `high` [brokers]."""
    floor = np.clip(low - base, choices.low, choices.high)
    roof = np.clip(high - base, choices.low, choices.high)
    brokers = np.arange(len(base))
    none = np.zeros_like(base)
    segments = _Segments(
        broker=np.concatenate([brokers, brokers, brokers]),
        lower=np.concatenate([choices.low, none, none]),
        upper=np.concatenate([floor, roof - floor, choices.high - roof]),
        cost=np.concatenate([none - 1, none, none + 1]),
        is_chunk=np.zeros(3 * len(base), dtype=np.bool_),
    )
    network, layout = _with_segments(*build_network(rows, choices), segments)
    cost = np.zeros(len(network.tail), dtype=np.int64)
    cost[layout.first_sink_arc :] = segments.cost
    solution = minimise(network, cost)
    narrowed = _narrowed(_remaining(choices, network, layout, solution), segments, solution, layout)
    return Balanced(narrowed, _broker_prices(layout, solution))


@dataclass(frozen=True, slots=True)
class _Segments:
    """A broker's arc to the sink in pieces of rising cost; a chunk stands for units below the window."""

    broker: Ints
    lower: Ints
    upper: Ints
    cost: Ints
    is_chunk: np.ndarray


def _weights(capacity: Ints, most: int) -> Ints:
    """Return whole numbers in the proportion of 1 / capacity, for counts up to `most`."""
    common = lcm(*(int(value) for value in capacity))
    if common * 2 * most > np.iinfo(np.int64).max:
        raise NumbersTooLarge("the brokers' capacities have no small common multiple: write smaller capacities")
    weights: Ints = common // capacity
    return weights


def _fair_share(rows: Rows, choices: Choices, base: Ints, capacity: Ints) -> Ints:
    level = (rows.total + int(base.sum())) / int(capacity.sum())
    share: Ints = np.rint(level * capacity).astype(np.int64)
    clipped: Ints = np.clip(share - base, choices.low, choices.high)
    return clipped


def _rising(choices: Choices, low: Ints, high: Ints, base: Ints, weight: Ints) -> _Segments:
    """Return, for each broker, what lies below the window, the window unit by unit, and what lies above."""
    brokers = np.arange(len(base))
    units = np.repeat(brokers, high - low)
    offset = np.arange(len(units)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
    number = low[units] + offset + 1

    def marginal(broker: Ints, unit: Ints) -> Ints:
        return (2 * (base[broker] + unit) - 1) * weight[broker]

    none, one = np.zeros_like(base), np.ones_like(units)
    return _Segments(
        broker=np.concatenate([brokers, units, brokers]),
        lower=np.concatenate([choices.low, 0 * units, none]),
        upper=np.concatenate([low, one, choices.high - high]),
        cost=np.concatenate([marginal(brokers, low), marginal(units, number), marginal(brokers, choices.high)]),
        is_chunk=np.concatenate([low > choices.low, np.zeros(len(units) + len(base), dtype=np.bool_)]),
    )


def _with_segments(network: Network, layout: Layout, segments: _Segments) -> tuple[Network, Layout]:
    """Return the network with each broker's arc to the sink replaced by its segments."""
    keep = layout.first_sink_arc
    sink = len(network.supply) - 1

    def joined(arcs: Ints, new: Ints) -> Ints:
        return np.concatenate([arcs[:keep], new])

    return replace(
        network,
        tail=joined(network.tail, layout.first_broker_node + segments.broker),
        head=joined(network.head, np.full(len(segments.broker), sink)),
        lower=joined(network.lower, segments.lower),
        upper=joined(network.upper, segments.upper),
        layers=(*network.layers[:3], keep + len(segments.broker)),
    ), layout


def _narrowed(choices: Choices, segments: _Segments, solution: Solution, layout: Layout) -> Choices:
    """Return the choices with each broker's bounds as the segments' reduced costs leave them."""
    reduced = solution.reduced_cost[layout.first_sink_arc :]
    must = np.where(reduced < 0, segments.upper, segments.lower)
    must = np.where(segments.is_chunk & (reduced == 0), segments.upper - 1, must)
    may = np.where(reduced > 0, segments.lower, segments.upper)
    size = len(choices.low)
    low = np.bincount(segments.broker, weights=must, minlength=size).astype(np.int64)
    high = np.bincount(segments.broker, weights=may, minlength=size).astype(np.int64)
    return replace(choices, low=low, high=high)


def _remaining(choices: Choices, network: Network, layout: Layout, solution: Solution) -> Choices:
    """Return the choices that the solution's prices leave free; broker bounds follow where they are single arcs."""
    sign = -np.sign(solution.reduced_cost)
    racks, brokers, leading = choices.racks.copy(), choices.brokers.copy(), choices.leading.copy()
    leading[layout.leading_row] = np.minimum(leading[layout.leading_row], sign[: len(layout.leading_row)])
    has_arc = layout.rack_arc >= 0
    _settle(racks, has_arc, sign[layout.rack_arc[has_arc]])
    place = np.zeros(choices.brokers.shape, dtype=np.bool_)
    place[layout.broker_row, layout.broker_column] = True
    _settle(brokers, place, sign[layout.first_broker_arc : layout.first_sink_arc])
    if len(network.tail) - layout.first_sink_arc != len(choices.low):
        return replace(choices, racks=racks, brokers=brokers, leading=leading)
    to_sink = sign[layout.first_sink_arc :]
    low = np.where(to_sink > 0, choices.high, choices.low)
    high = np.where(to_sink < 0, choices.low, choices.high)
    return Choices(racks, brokers, leading, low, high)


def _settle(state: Ints, mask: np.ndarray, sign: Ints) -> None:
    """Fix in place what is still free where an arc's reduced cost is not zero."""
    present = state[mask]
    state[mask] = np.where(present == 0, sign, present)


def _broker_prices(layout: Layout, solution: Solution) -> Ints:
    """Return what a unit through each broker costs beyond its own arcs."""
    nodes = solution.price[layout.first_broker_node :]
    prices: Ints = nodes[-1] - nodes[:-1]
    return prices


def _placed(rows: Rows, layout: Layout, solution: Solution) -> Ints:
    placed = np.zeros(rows.allowed.shape, dtype=np.int64)
    flow = solution.flow[layout.first_broker_arc : layout.first_sink_arc]
    placed[layout.broker_row, layout.broker_column] = flow
    return placed
