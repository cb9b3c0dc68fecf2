"""The bands: between what each broker must end for each measure, by its capacity, and how far loads are outside."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm

import numpy as np
from ortools.graph.python import min_cost_flow

from reconciler.model.desired import Balance, BalanceTarget, Even, Within
from reconciler.planner.load_balance.task import DISK, LEADERS, MEASURES, NETWORK_IN, NETWORK_OUT, REPLICAS, LoadTask
from reconciler.planner.rows import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class Bands:
    """What is asked for: `asked` [measures]; `low` and `high`, and the fair `share` itself, [measures, brokers]."""

    asked: Bools
    low: Ints
    high: Ints
    share: Floats

    def only(self, *measures: int) -> "Bands":
        """Return these bands with no others asked for."""
        asked = np.zeros_like(self.asked)
        asked[list(measures)] = self.asked[list(measures)]
        return Bands(asked, self.low, self.high, self.share)

    def narrowed(self, part: int) -> "Bands":
        """Return the bands of loads narrower by one such part of their width at each end; counts stay as they are."""
        room = (self.high - self.low) // part
        room[[REPLICAS, LEADERS]] = 0
        return Bands(self.asked, self.low + room, self.high - room, self.share)

    def as_wide_as(self, loads: Ints) -> "Bands":
        """Return the bands, wider where these loads [measures, brokers] are outside."""
        return Bands(self.asked, np.minimum(self.low, loads), np.maximum(self.high, loads), self.share)

    def excess(self, loads: Ints) -> Ints:
        """Return [measures, brokers] by how much loads are above (positive) or below (negative) what is asked for."""
        found: Ints = np.maximum(loads - self.high, 0) - np.maximum(self.low - loads, 0)
        found[~self.asked] = 0
        return found

    def are_kept(self, loads: Ints) -> bool:
        """Whether no load is outside."""
        return not self.excess(loads).any()


def targets_of(balance: Balance) -> Mapping[int, BalanceTarget]:
    """Return the target of each measure, by its number."""
    return {
        REPLICAS: balance.replicas,
        LEADERS: balance.leaders,
        DISK: balance.disk,
        NETWORK_IN: balance.network_in,
        NETWORK_OUT: balance.network_out,
    }


def bands_of(task: LoadTask, balance: Balance) -> Bands:
    """Return the bands of a balance; whole numbers next to a fair share of a count are always inside."""
    total = task.base.sum(axis=1) + (task.weights.replica * task.need[:, None] + task.weights.leader).sum(axis=0)
    capacity = [int(weight) for weight in task.eligible.capacity]
    shape = (len(MEASURES), task.brokers)
    low, high = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    asked = np.zeros(len(MEASURES), dtype=np.bool_)
    for measure, target in targets_of(balance).items():
        amount = int(total[measure])
        high[measure] = amount
        if isinstance(target, Within):
            asked[measure] = True
            is_count = measure in {REPLICAS, LEADERS}
            for broker, weight in enumerate(capacity):
                within = _band(amount, weight, sum(capacity), target)
                if is_count:
                    within = _next_whole(amount, weight, sum(capacity), within)
                low[measure, broker], high[measure, broker] = within
        elif isinstance(target, Even):
            asked[measure] = True
            low[measure], high[measure] = _even(task, measure, amount, capacity)
    share = np.array([[max(1.0, int(amount) * weight / sum(capacity)) for weight in capacity] for amount in total])
    return Bands(asked, low, high, share)


def _band(amount: int, weight: int, capacity: int, target: Within) -> tuple[int, int]:
    share, numerator, denominator = amount * weight, target.fraction.numerator, target.fraction.denominator
    least = -(-share * (denominator - numerator) // (capacity * denominator))
    return max(0, least), share * (denominator + numerator) // (capacity * denominator)


def _next_whole(amount: int, weight: int, capacity: int, within: tuple[int, int]) -> tuple[int, int]:
    share = amount * weight
    return min(within[0], share // capacity), max(within[1], -(-share // capacity))


def _even(task: LoadTask, measure: int, amount: int, capacity: list[int]) -> tuple[Ints, Ints]:
    """Return floor and ceiling of each fair share or, of replicas, the most even counts where rules force more."""
    shares = [(amount * weight, sum(capacity)) for weight in capacity]
    low = np.array([share // whole for share, whole in shares], dtype=np.int64)
    high = np.array([-(-share // whole) for share, whole in shares], dtype=np.int64)
    if measure != REPLICAS:
        return low, high
    counts = even_counts(task)
    if bool(((low <= counts) & (counts <= high)).all()):
        return low, high
    if task.stays.all():
        present = task.loads(task.held, task.leader)[REPLICAS]
        if unevenness(present, task.eligible.capacity) == unevenness(counts, task.eligible.capacity):
            counts = present
    return _like_peers(task, counts)


def _like_peers(task: LoadTask, counts: Ints) -> tuple[Ints, Ints]:
    """Return bounds in which brokers of one rack and capacity may trade places, where they differ by one at most."""
    low, high = counts.copy(), counts.copy()
    for broker in range(task.brokers):
        rack, capacity = task.eligible.rack, task.eligible.capacity
        peers = counts[(rack == rack[broker]) & (capacity == capacity[broker])]
        if int(peers.max() - peers.min()) <= 1:
            low[broker], high[broker] = peers.min(), peers.max()
    return low, high


WINDOW = 32


def even_counts(task: LoadTask) -> Ints:
    """Return [brokers] the counts with the least sum of count^2 / capacity that the rules allow."""
    base, capacity = task.base[REPLICAS], task.eligible.capacity
    total = int(base.sum() + task.need.sum())
    centre = np.maximum(base, total * capacity // int(capacity.sum()))
    width = WINDOW
    while True:
        counts, is_inside = _within(task, centre, width)
        if is_inside:
            return counts
        centre, width = counts, 4 * width


def unevenness(counts: Ints, capacity: Ints) -> int:
    """Return the sum of count^2 / capacity, times the capacities' least common multiple."""
    weights = [int(weight) for weight in capacity]
    return sum(count**2 * (lcm(*weights) // weight) for count, weight in zip(counts.tolist(), weights, strict=True))


def _within(task: LoadTask, centre: Ints, width: int) -> tuple[Ints, bool]:
    """Return the best counts with rising costs only within `width` of `centre`, and whether all of them lie there."""
    base, capacity = task.base[REPLICAS], [int(weight) for weight in task.eligible.capacity]
    common, flow = lcm(*capacity), min_cost_flow.SimpleMinCostFlow()
    total = int(task.need.sum())
    racks, brokers, classes = len(task.columns), task.brokers, _classes(task)
    sink, first_broker = 0, 1
    node = 1 + brokers
    arcs, bounds = [], []
    for broker in range(brokers):
        low = max(int(base[broker]), int(centre[broker]) - width)
        high = max(low, int(centre[broker]) + width)
        bounds.append((low, high))
        for before in range(int(base[broker]) if low == base[broker] else low, high):
            flow.add_arc_with_capacity_and_unit_cost(
                first_broker + broker, sink, 1, (2 * before + 1) * (common // capacity[broker])
            )
        far = (2 * high + 1) * (common // capacity[broker])
        flow.add_arc_with_capacity_and_unit_cost(first_broker + broker, sink, total, far)
        if low > base[broker]:
            near = (2 * low - 1) * (common // capacity[broker])
            flow.add_arc_with_capacity_and_unit_cost(first_broker + broker, sink, low - int(base[broker]), near)
        bounds[-1] = (low, high)
    for rows in classes:
        count, row = len(rows), int(rows[0])
        spare = node
        node += 1
        optional = count * (int(task.need[row]) - int(task.low[row].sum()))
        flow.set_node_supply(spare, optional)
        for rack in range(racks):
            columns = task.columns[rack][task.allowed[row, task.columns[rack]]]
            if not len(columns):
                continue
            flow.set_node_supply(node, count * int(task.low[row, rack]))
            room = count * int(task.high[row, rack] - task.low[row, rack])
            flow.add_arc_with_capacity_and_unit_cost(spare, node, room, 0)
            arcs += [
                (column, flow.add_arc_with_capacity_and_unit_cost(node, first_broker + column, count, 0))
                for column in columns.tolist()
            ]
            node += 1
    flow.set_node_supply(sink, -total)
    if flow.solve() != flow.OPTIMAL:
        raise AssertionError("rules that were checked leave no placement")
    counts = base.copy()
    for column, arc in arcs:
        counts[column] += flow.flow(arc)
    is_inside = all(
        (low <= count or low == start) and count <= high
        for (low, high), count, start in zip(bounds, counts.tolist(), base.tolist(), strict=True)
    )
    return counts, is_inside


def _classes(task: LoadTask) -> list[Ints]:
    """Return the rows of each class of partitions with the same choice, in the order of their first rows."""
    found: dict[bytes, list[int]] = {}
    for row in range(len(task.need)):
        key = task.allowed[row].tobytes() + task.low[row].tobytes() + task.high[row].tobytes()
        found.setdefault(key + bytes([int(task.need[row])]), []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in found.values()]
