"""One objective at a time: each returns the choices that its optimal solutions leave to the next."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

import numpy as np

from reconciler.model.desired import Balance, BalanceTarget, Off, Within
from reconciler.planner.cheapest_sets import Classes
from reconciler.planner.costs import NO_COST
from reconciler.planner.flow import NumbersTooLarge, Pieces, Sinks, flat, flat_sinks, outside, rising
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Bools, Choices, Counts, Ints, Rows
from reconciler.planner.sparse_flow import Cost, Solved, solve

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


@dataclass(frozen=True, slots=True)
class Asked:
    """An objective by its name in the proof, and the counts that it wants even."""

    objective: str
    shares: Shares


def asked_of_replicas(task: PlacementTask, balance: Balance) -> Iterator[Asked]:
    """Yield what is asked of the replicas' counts: of brokers first, then of each topic over the brokers."""
    capacity = task.eligible.capacity
    if not isinstance(balance.replicas, Off):
        total = int(task.need.sum() + task.base.sum())
        yield Asked("replicas balance", _shares(task.base, capacity, total, balance.replicas))
    if not isinstance(balance.topics, Off):
        base = task.base_of_topic
        placed = np.bincount(task.topic, weights=task.need, minlength=len(task.topics)).astype(np.int64)
        yield Asked("topics balance", _cell_shares(task, base, placed + base.sum(axis=1), balance.topics))


def asked_of_leaders(task: PlacementTask, balance: Balance) -> Iterator[Asked]:
    """Yield what is asked of the preferred leaders' counts, in the same order."""
    capacity = task.eligible.capacity
    if not isinstance(balance.leaders, Off):
        total = len(task.partitions) + int(task.led.sum())
        yield Asked("leaders balance", _shares(task.led, capacity, total, balance.leaders))
    if not isinstance(balance.topics, Off):
        totals = np.bincount(task.topic, minlength=len(task.topics)).astype(np.int64)
        base = task.led_of_topic
        yield Asked("topic leaders balance", _cell_shares(task, base, totals + base.sum(axis=1), balance.topics))


def imbalance(shares: Shares, rows: Rows, placed: Counts) -> int:
    """Return how far the counts are from their shares: the squares over capacity, or the replicas outside the band."""
    topics = len(shares.base) // rows.brokers
    counts = shares.base + rows.units(placed, is_by_topic=shares.is_cells, topics=topics)
    if shares.low is None or shares.high is None:
        weight = weights(shares.capacity, int(counts.sum()))
        return sum(count * count * each for count, each in zip(counts.tolist(), weight.tolist(), strict=True))
    return int((np.maximum(shares.low - counts, 0) + np.maximum(counts - shares.high, 0)).sum())


def band(total: int, capacity: Ints, target: Within) -> tuple[Ints, Ints]:
    """Return the fewest and most [brokers] within the target of each fair share, the next whole numbers included."""
    whole = int(capacity.sum())
    low, high = [], []
    for weight in capacity.tolist():
        share = total * weight
        numerator, denominator = target.fraction.numerator, target.fraction.denominator
        least = -(-share * (denominator - numerator) // (whole * denominator))
        most = share * (denominator + numerator) // (whole * denominator)
        low.append(max(0, min(least, share // whole)))
        high.append(max(most, -(-share // whole)))
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)


def _shares(base: Ints, capacity: Ints, total: int, target: BalanceTarget) -> Shares:
    if isinstance(target, Within):
        low, high = band(total, capacity, target)
        return Shares(base, capacity, low=low, high=high)
    return Shares(base, capacity)


def _cell_shares(task: PlacementTask, base: Ints, totals: Ints, target: BalanceTarget) -> Shares:
    """Return the shares of each topic over the brokers that may hold it."""
    topics, brokers = base.shape
    capacity = np.tile(task.eligible.capacity, topics)
    if not isinstance(target, Within):
        return Shares(base.ravel(), capacity, is_cells=True)
    low, high = np.zeros((topics, brokers), dtype=np.int64), np.zeros((topics, brokers), dtype=np.int64)
    for number, may_hold in enumerate(eligible_by_topic(task)):
        some = np.flatnonzero(may_hold)
        if len(some):
            low[number, some], high[number, some] = band(int(totals[number]), task.eligible.capacity[some], target)
    return Shares(base.ravel(), capacity, is_cells=True, low=low.ravel(), high=high.ravel())


def eligible_by_topic(task: PlacementTask) -> Bools:
    """Return [topics, brokers] which brokers may hold a replica of a topic, or hold one that stays."""
    found: Bools = task.base_of_topic > 0
    for topic, kind in np.unique(np.stack([task.topic, task.kind], axis=1), axis=0):
        found[topic] |= task.kinds.rows.allowed[kind]
    return found
