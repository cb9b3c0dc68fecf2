"""The most even replica counts that the rules allow: a minimum-cost flow over classes of like partitions."""

from math import lcm

import numpy as np
from ortools.graph.python import min_cost_flow

from reconciler.planner.loaded.arrays import Ints
from reconciler.planner.loaded.task import REPLICAS, Task

WINDOW = 32


def even_counts(task: Task) -> Ints:
    """Return [brokers] the counts with the least sum of count^2 / capacity that the rules allow."""
    base, capacity = task.base[REPLICAS], task.bench.capacity
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


def _within(task: Task, centre: Ints, width: int) -> tuple[Ints, bool]:
    """Return the best counts with rising costs only within `width` of `centre`, and whether all of them lie there."""
    base, capacity = task.base[REPLICAS], [int(weight) for weight in task.bench.capacity]
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


def _classes(task: Task) -> list[Ints]:
    """Return the rows of each class of partitions with the same choice, in the order of their first rows."""
    found: dict[bytes, list[int]] = {}
    for row in range(len(task.need)):
        key = task.allowed[row].tobytes() + task.low[row].tobytes() + task.high[row].tobytes()
        found.setdefault(key + bytes([int(task.need[row])]), []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in found.values()]
