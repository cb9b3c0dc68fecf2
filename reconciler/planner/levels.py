"""One objective at a time: each returns the choices that its optimal solutions leave to the next."""

from dataclasses import dataclass
from math import lcm

import numpy as np

from reconciler.planner.costs import NO_COST
from reconciler.planner.network import NumbersTooLarge
from reconciler.planner.rows import Choices, Ints, Rows
from reconciler.planner.shortlist import Classes
from reconciler.planner.sift import Cost, Solved, solve
from reconciler.planner.sinks import Pieces, Sinks, flat, flat_sinks, outside, rising

BROKER_WINDOW, CELL_WINDOW = 64, 2


@dataclass(frozen=True, slots=True)
class Shares:
    """The counts to be kept even: of brokers, or of each topic's part of them (`is_cells`), all arrays by place.

    `base` counts the replicas that stay, `capacity` is the weight of the place; `low` and `high` are the counts within
    which nothing is asked for, None where the counts are to be as even as can be.
    """

    base: Ints
    capacity: Ints
    is_cells: bool = False
    low: Ints | None = None
    high: Ints | None = None


def least_cost(rows: Rows, choices: Choices, cost: Cost, classes: Classes | None = None) -> Solved:
    """Minimise the sum of the costs of the replicas placed."""
    return solve(rows, choices, cost, flat_sinks(choices), classes=classes)


def evened(rows: Rows, choices: Choices, shares: Shares, near: Cost = NO_COST) -> Solved:
    """Bring the counts as near to their shares as the choices allow; the search starts from what costs least `near`."""
    if shares.low is None or shares.high is None:
        return _least_squares(rows, choices, shares, near)
    bounds = (choices.cell_low, choices.cell_high) if shares.is_cells else (choices.low, choices.high)
    floor, roof = (np.clip(limit - shares.base, *bounds) for limit in (shares.low, shares.high))
    return solve(rows, choices, NO_COST, _sinks(choices, shares, outside(*bounds, floor, roof)), near=near)


def is_open(rows: Rows, choices: Choices) -> bool:
    """Whether anything is left to choose."""
    return bool(choices.free(rows).any())


def weights(capacity: Ints, most: int) -> Ints:
    """Return whole numbers in the proportion of 1 / capacity, for counts up to `most`."""
    common = lcm(*set(capacity.tolist()))
    if common * 2 * most > np.iinfo(np.int64).max:
        raise NumbersTooLarge("the brokers' capacities have no small common multiple: write smaller capacities")
    weighed: Ints = common // capacity
    return weighed


def _least_squares(rows: Rows, choices: Choices, shares: Shares, near: Cost) -> Solved:
    """Minimise the sum over places of (base + placed)^2 / capacity.

    Units with rising cost stand only within a window round the fair share; the window moves until the solution is
    inside it, where it is exact.
    """
    low, high = (choices.cell_low, choices.cell_high) if shares.is_cells else (choices.low, choices.high)
    weight = weights(shares.capacity, rows.total + int(shares.base.sum()))
    centre = np.clip(_fair_share(rows, shares) - shares.base, low, high)
    width = CELL_WINDOW if shares.is_cells else BROKER_WINDOW
    while True:
        window = np.clip(centre - width, low, high), np.clip(centre + width, low, high)
        pieces = rising(low, high, window, shares.base, weight)
        solved = solve(rows, choices, NO_COST, _sinks(choices, shares, pieces), near=near)
        placed = rows.units(solved.placed, is_by_topic=shares.is_cells, topics=len(low) // rows.brokers)
        is_inside = ((placed >= window[0]) | (window[0] == low)) & ((placed < window[1]) | (window[1] == high))
        if is_inside.all():
            return solved
        centre, width = placed, 2 * width


def _sinks(choices: Choices, shares: Shares, pieces: Pieces) -> Sinks:
    if shares.is_cells:
        return Sinks(flat(choices.low, choices.high), pieces)
    return Sinks(pieces, flat(choices.cell_low, choices.cell_high) if choices.has_cells else None)


def _fair_share(rows: Rows, shares: Shares) -> Ints:
    """Return the share of each place by its capacity: of all replicas, or of its topic's."""
    groups = shares.capacity.reshape(-1, rows.brokers)
    total = np.full(1, rows.total)
    if shares.is_cells:
        total = np.zeros(len(groups), dtype=np.int64)
        np.add.at(total, rows.topic, rows.count * rows.need)
    held = total + shares.base.reshape(-1, rows.brokers).sum(axis=1)
    share: Ints = np.rint(held[:, None] / groups.sum(axis=1, keepdims=True) * groups).astype(np.int64).ravel()
    return share
