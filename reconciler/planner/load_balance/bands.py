"""Computes the bands: the least and the most of each measure that a broker may end with, by its capacity.

A band of loads is the fair share times (1 ± X). Counts are whole: the numbers next to a fair share are always inside,
and where the rules allow no such counts, the band is what the most even counts leave.
"""

from dataclasses import dataclass
from math import lcm

import numpy as np
from ortools.graph.python import min_cost_flow

from reconciler.model.columns import Bools, Ints
from reconciler.model.desired import Balance, BalanceTarget, Even, Within
from reconciler.planner.load_balance.task import (
    COUNTS,
    DISK,
    LEADERS,
    MEASURES,
    NETWORK_IN,
    NETWORK_OUT,
    REPLICAS,
    LoadTask,
)
from reconciler.planner.objectives import NEXT_WHOLE, band
from reconciler.planner.rows import Floats

WINDOW = 32
"""Counts are looked for so far from where they are expected; wider only where the best lie at the window's edge."""


@dataclass(frozen=True, slots=True)
class Bands:
    """What is asked for, of each measure and broker."""

    asked: Bools  # [measures]: the others have bands that say nothing
    low: Ints  # [measures, brokers]
    high: Ints  # [measures, brokers]
    share: Floats  # [measures, brokers]: fair shares, at least 1; for weighing only, never to decide what is inside

    def only(self, *measures: int) -> "Bands":
        """Return these bands with no others asked for."""
        asked = np.zeros_like(self.asked)
        asked[list(measures)] = self.asked[list(measures)]
        return Bands(asked, self.low, self.high, self.share)

    def narrowed(self, part: int) -> "Bands":
        """Return the bands of loads narrower by one such part of their width at each end; counts stay as they are."""
        margin = (self.high - self.low) // part
        margin[list(COUNTS)] = 0
        return Bands(self.asked, self.low + margin, self.high - margin, self.share)

    def as_wide_as(self, loads: Ints) -> "Bands":
        """Return the bands, wider where these loads [measures, brokers] are outside."""
        return Bands(self.asked, np.minimum(self.low, loads), np.maximum(self.high, loads), self.share)

    def excess(self, loads: Ints) -> Ints:
        """Return [measures, brokers] by how much loads are above (positive) or below (negative) what is asked for."""
        found: Ints = np.maximum(loads - self.high, 0) - np.maximum(self.low - loads, 0)
        found[~self.asked] = 0
        return found

    def outside(self, loads: Ints) -> Floats:
        """Return [measures, brokers]: what is outside the bands, in parts of the fair share."""
        found: Floats = np.abs(self.excess(loads)) / self.share
        return found

    def are_kept(self, loads: Ints) -> bool:
        """Whether no load is outside."""
        return not self.excess(loads).any()


def bands_of(task: LoadTask, balance: Balance) -> Bands:
    """Return the bands of a balance."""
    total = task.base.sum(axis=1) + (task.weights.replica * task.need[:, None] + task.weights.leader).sum(axis=0)
    capacity, shape = task.eligible.capacity, (len(MEASURES), task.brokers)
    low, high = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    asked = np.zeros(len(MEASURES), dtype=np.bool_)
    targets: dict[int, BalanceTarget] = {
        REPLICAS: balance.replicas,
        LEADERS: balance.leaders,
        DISK: balance.disk,
        NETWORK_IN: balance.network_in,
        NETWORK_OUT: balance.network_out,
    }
    for measure, target in targets.items():
        amount = int(total[measure])
        high[measure] = amount
        asked[measure] = isinstance(target, Within | Even)
        if isinstance(target, Within):
            low[measure], high[measure] = band(amount, capacity, target, is_count=measure in COUNTS)
        elif isinstance(target, Even):
            low[measure], high[measure] = _even(task, measure, amount)
    weights = capacity.tolist()
    share = np.array([[max(1.0, int(amount) * weight / sum(weights)) for weight in weights] for amount in total])
    return Bands(asked, low, high, share)


def _even(task: LoadTask, measure: int, amount: int) -> tuple[Ints, Ints]:
    """Return the whole numbers next to each fair share or, of replicas, the most even counts where rules force more."""
    low, high = band(amount, task.eligible.capacity, NEXT_WHOLE)
    if measure != REPLICAS:
        return low, high
    counts = even_counts(task)
    if bool(((low <= counts) & (counts <= high)).all()):
        return low, high
    # Other counts may be just as even. Those of today then stand, so that a plan's end is a plan's fixed point.
    if task.stays.all():
        present = task.loads(task.held, task.leader)[REPLICAS]
        if _unevenness(present, task.eligible.capacity) == _unevenness(counts, task.eligible.capacity):
            counts = present
    return _like_peers(task, counts)


def _like_peers(task: LoadTask, counts: Ints) -> tuple[Ints, Ints]:
    """Return bounds in which brokers of one rack and capacity may trade places, where they differ by one at most."""
    low, high = counts.copy(), counts.copy()
    rack, capacity = task.eligible.rack, task.eligible.capacity
    for broker in range(task.brokers):
        peers = counts[(rack == rack[broker]) & (capacity == capacity[broker])]
        if int(peers.max() - peers.min()) <= 1:
            low[broker], high[broker] = peers.min(), peers.max()
    return low, high


def even_counts(task: LoadTask) -> Ints:
    """Return [brokers] the replica counts with the least sum of count^2 / capacity that the rules allow."""
    base, capacity = task.base[REPLICAS], task.eligible.capacity
    total = int(base.sum() + task.need.sum())
    centre, width = np.maximum(base, total * capacity // int(capacity.sum())), WINDOW
    while True:
        low = np.maximum(base, centre - width)
        high = np.maximum(low, centre + width)
        counts = _within(task, low, high)
        if bool((((low <= counts) | (low == base)) & (counts <= high)).all()):
            return counts
        centre, width = counts, 4 * width


def _unevenness(counts: Ints, capacity: Ints) -> int:
    """Return the sum of count^2 / capacity, times the capacities' least common multiple."""
    weights = capacity.tolist()
    return sum(count**2 * (lcm(*weights) // weight) for count, weight in zip(counts.tolist(), weights, strict=True))


def _within(task: LoadTask, low: Ints, high: Ints) -> Ints:
    """Return the most even counts, as a flow: class of partitions -> rack -> broker -> sink.

    Each unit from a broker to the sink costs what it adds to the squares, one arc a unit between `low` and `high`; all
    units below, and all above, have one arc, at the cost of the unit at its edge.
    """
    base, weights = task.base[REPLICAS].tolist(), task.eligible.capacity.tolist()
    flow, total, sink, first_broker = min_cost_flow.SimpleMinCostFlow(), int(task.need.sum()), 0, 1
    for broker, (start, least, most) in enumerate(zip(base, low.tolist(), high.tolist(), strict=True)):
        node, weight = first_broker + broker, lcm(*weights) // weights[broker]
        for before in range(least, most):
            flow.add_arc_with_capacity_and_unit_cost(node, sink, 1, (2 * before + 1) * weight)
        flow.add_arc_with_capacity_and_unit_cost(node, sink, total, (2 * most + 1) * weight)
        if least > start:
            flow.add_arc_with_capacity_and_unit_cost(node, sink, least - start, (2 * least - 1) * weight)
    node, arcs = first_broker + task.brokers, []
    for row, count in _classes(task):
        spare, node = node, node + 1
        flow.set_node_supply(spare, count * int(task.need[row] - task.low[row].sum()))
        for rack, members in enumerate(task.rack_brokers):
            columns = members[task.allowed[row, members]].tolist()
            if columns:
                flow.set_node_supply(node, count * int(task.low[row, rack]))
                optional = count * int(task.high[row, rack] - task.low[row, rack])
                flow.add_arc_with_capacity_and_unit_cost(spare, node, optional, 0)
                for column in columns:
                    arc = flow.add_arc_with_capacity_and_unit_cost(node, first_broker + column, count, 0)
                    arcs.append((column, arc))
                node += 1
    flow.set_node_supply(sink, -total)
    if flow.solve() != flow.OPTIMAL:
        raise AssertionError("rules that were checked leave no placement")
    counts: Ints = task.base[REPLICAS].copy()
    for column, arc in arcs:
        counts[column] += flow.flow(arc)
    return counts


def _classes(task: LoadTask) -> list[tuple[int, int]]:
    """Return the first row of each class of partitions with the same choice, and how many they are."""
    found: dict[bytes, list[int]] = {}
    for row in range(len(task.need)):
        choice = (task.allowed[row], task.low[row], task.high[row], task.need[row])
        found.setdefault(b"".join(each.tobytes() for each in choice), []).append(row)
    return [(rows[0], len(rows)) for rows in found.values()]
