"""Tries all whole placements of a small cluster at once, where single exchanges stop short of the bands.

Row by row every legal set is added to every placement so far; what can no longer end within the bands goes. Of what is
left so many go on (`WIDTH`): with few partitions all of them, and the result is then the least that there is.

Under caps, and where brokers weigh differently, the best is found by an integer program over the same sets (`closest`).
"""

from collections.abc import Mapping
from itertools import combinations
from math import comb

import numpy as np
from ortools.sat.python import cp_model

from reconciler.model.columns import Ints
from reconciler.planner.integer import FOUND, solved
from reconciler.planner.load_balance.bands import NO_CAP, Bands
from reconciler.planner.load_balance.column_generation import Goal
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.load_balance.pricing import Picked
from reconciler.planner.load_balance.task import LAST, LoadTask

ROWS, SETS, WIDTH = 40, 60, 30_000
"""At most so many rows, sets a row, and open placements: 1.8 million placements are looked at for each row."""

STEPS = 1.0
"""What the solver of the integer program may spend on one objective, in its own unit: about a second."""
PRECISION = 1e14
"""A fair share outside is so much of the objective's unit: in 64 bits there is room for some thousand shares."""


def within_bands(task: LoadTask, bands: Bands, goal: Goal) -> Placement | None:
    """Return a placement that keeps the bands of replicas' own loads, the cheapest found; None where none is found.

    Large tasks are not tried. No measure of leaders may be asked for.
    """
    ways = _all_ways(task, goal)
    if ways is None:
        return None
    asked = np.flatnonzero(bands.asked)
    share = bands.share[asked].max(axis=1)
    heaviest_first = sorted(ways, key=lambda row: (-float((task.replica_weight(row)[asked] / share).max()), row))
    chosen = _chosen(task, bands, [(row, ways[row]) for row in heaviest_first], asked)
    if chosen is None:
        return None
    members, leader = task.held.copy(), task.leader.copy()
    for row, way in chosen:
        members[row], leader[row] = ways[row].members[way], ways[row].leader[way]
    return Placement(task, members, leader)


def closest(end: Placement, bands: Bands, goal: Goal) -> Placement:
    """Return the placement that is least above caps, then least outside bands, then cheapest; large tasks' as it is.

    Work is bounded by the solver's own count of steps: where that ends before the least is proved, what was found is
    returned if it is closer.
    """
    task, ways = end.task, _all_ways(end.task, goal)
    if ways is None:
        return end
    # The way that has these members is known; the first where none has.
    known = {row: int((own.members == end.members[row]).all(axis=1).argmax()) for row, own in ways.items()}
    chosen = _Program(task, bands, ways).solved(known)
    if chosen is None:
        return end
    found = Placement(task, end.members, end.leader)
    for row, way in chosen.items():
        found.put(row, np.flatnonzero(ways[row].members[way]), int(ways[row].leader[way]))
    return found if bands.distance(found.loads) <= bands.distance(end.loads) else end


class _Program:
    """The integer program: one way is taken of each row; objectives are minimised one after another."""

    def __init__(self, task: LoadTask, bands: Bands, ways: Mapping[int, Picked]) -> None:
        self._model = cp_model.CpModel()
        self._taken = {row: [self._model.new_bool_var("") for _ in each.leader] for row, each in ways.items()}
        for each in self._taken.values():
            self._model.add_exactly_one(each)
        weights = np.array([task.replica_weight(row) for row in range(len(task.need))])
        above, outside = [], []
        for measure in np.flatnonzero(bands.asked).tolist():
            for broker in range(task.brokers):
                load = int(task.base[measure, broker]) + sum(
                    int(weights[row, measure]) * taken
                    for row, each in ways.items()
                    for taken in (self._taken[row][way] for way in np.flatnonzero(each.members[:, broker]).tolist())
                )
                weight = max(1, int(PRECISION / bands.share[measure, broker]))
                low, high = int(bands.low[measure, broker]), int(bands.high[measure, broker])
                most = max(low, int((task.base[measure] + weights[:, measure].sum())[broker]))
                outside.append(weight * self._excess(most, load - high, low - load))
                if bands.cap is not None and bands.cap[measure, broker] < NO_CAP:
                    above.append(weight * self._excess(most, load - int(bands.cap[measure, broker])))
        cost = [int(each.cost[way]) * taken for row, each in ways.items() for way, taken in enumerate(self._taken[row])]
        self._objectives = [sum(above)] if above else []
        self._objectives += [sum(outside), sum(cost)]

    def _excess(self, most: int, *amounts: cp_model.LinearExprT) -> cp_model.IntVar:
        """Return a variable that is at least each of these, and 0; none is more than `most`."""
        found = self._model.new_int_var(0, most, "")
        for amount in amounts:
            self._model.add(found >= amount)
        return found

    def solved(self, hint: Mapping[int, int]) -> Mapping[int, int] | None:
        """Return the way of each row, those of `hint` being known; None where none is found in time."""
        found = None
        for objective in self._objectives:
            self._model.clear_hints()
            for row, way in (found or hint).items():
                for number, taken in enumerate(self._taken[row]):
                    self._model.add_hint(taken, number == way)
            self._model.minimize(objective)
            status, solver = solved(self._model, STEPS)
            if status not in FOUND:
                break
            found = {
                row: next(number for number, taken in enumerate(each) if solver.value(taken))
                for row, each in self._taken.items()
            }
            if status != cp_model.OPTIMAL:
                break
            self._model.add(objective <= round(solver.objective_value))
        return found


def _chosen(task: LoadTask, bands: Bands, order: list[tuple[int, Picked]], asked: Ints) -> list[tuple[int, int]] | None:
    """Return the way taken of each row; None where no placement is left."""
    low, high = bands.low[asked], bands.high[asked]
    loads, cost = task.base[asked][None], np.zeros(1, dtype=np.int64)
    carried = [task.replica_weight(row)[asked][:, None] for row, _ in order]
    most = np.array([each * ways.members.any(axis=0) for each, (_, ways) in zip(carried, order, strict=True)])
    # What the rows after each one can add at the most: [rows, measures, brokers].
    to_come = most.sum(axis=0) - most.cumsum(axis=0)
    taken: list[tuple[Ints, Ints]] = []
    for (_, ways), each, coming in zip(order, carried, to_come, strict=True):
        grown = loads[:, None] + (each * ways.members[:, None, :])[None]
        fine = ((grown <= high) & (grown + coming >= low)).all(axis=(2, 3))
        before, way = np.nonzero(fine)
        if not len(before):
            return None
        costs = cost[before] + ways.cost[way]
        kept = np.argsort(costs, kind="stable")[:WIDTH]
        before, way = before[kept], way[kept]
        loads, cost = grown[before, way], costs[kept]
        taken.append((before, way))
    found, at = [], 0
    # The first placement costs least; its way is followed from the last row back.
    for (row, _), (before, way) in zip(reversed(order), reversed(taken), strict=True):
        found.append((row, int(way[at])))
        at = int(before[at])
    return found


def _all_ways(task: LoadTask, goal: Goal) -> Mapping[int, Picked] | None:
    """Return the legal sets of each row; None where there are too many to try, or a row has none."""
    most = max((comb(task.brokers, int(need)) for need in task.need), default=0)
    if len(task.need) > ROWS or most > SETS:
        return None
    ways = {row: _ways(task, goal, row) for row in range(len(task.need))}
    return ways if all(len(found.leader) for found in ways.values()) else None


def _ways(task: LoadTask, goal: Goal, row: int) -> Picked:
    """Return the legal sets of that row, each led by the present leader where it may be."""
    columns = np.array([*combinations(range(task.brokers), int(task.need[row]))], dtype=np.int64)
    members = np.zeros((len(columns), task.brokers), dtype=np.bool_)
    np.put_along_axis(members, columns, values=True, axis=1)
    count, present = task.by_rack(members), int(task.leader[row])
    rank = np.where(members, task.rank[row], LAST)
    able = members & (rank == rank.min(axis=1, keepdims=True))
    fine = ((task.low[row] <= count) & (count <= task.high[row])).all(axis=1) & able.any(axis=1)
    fine &= ~((members & ~task.allowed[row]) | (task.forced[row] & ~members)).any(axis=1)
    members, able = members[fine], able[fine]
    leader = able.argmax(axis=1)
    if present >= 0:
        leader[able[:, present]] = present
    copies = (members & ~task.held[row] & ~task.is_new[row]).sum(axis=1)
    return Picked(copies * int(goal.copy[row]) + np.where(leader != present, goal.change, 0), members, leader)
