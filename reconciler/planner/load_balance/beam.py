"""Tries all whole placements of a small cluster at once, where single exchanges stop short of the bands.

Row by row every legal set is added to every placement so far; what can no longer end within the bands goes. Of what is
left so many go on (`WIDTH`): with few partitions all of them, and the result is then the least that there is.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.column_generation import Goal
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.load_balance.task import LAST, LoadTask

ROWS, SETS, WIDTH = 40, 60, 30_000
"""At most so many rows, sets a row, and open placements: 1.8 million placements are looked at for each row."""


@dataclass(frozen=True, slots=True)
class _Ways:
    """The legal sets of one row: `members` [ways, brokers], `leader` and what each costs [ways]."""

    members: Bools
    leader: Ints
    cost: Ints


def within_bands(task: LoadTask, bands: Bands, goal: Goal) -> Placement | None:
    """Return a placement that keeps the bands of replicas' own loads, the cheapest found; None where none is found.

    Large tasks are not tried. No measure of leaders may be asked for.
    """
    most = max((comb(task.brokers, int(need)) for need in task.need), default=0)
    if len(task.need) > ROWS or most > SETS:
        return None
    ways = {row: _ways(task, goal, row) for row in range(len(task.need))}
    if not all(len(found.leader) for found in ways.values()):
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


def _chosen(task: LoadTask, bands: Bands, order: list[tuple[int, _Ways]], asked: Ints) -> list[tuple[int, int]] | None:
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


def _ways(task: LoadTask, goal: Goal, row: int) -> _Ways:
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
    return _Ways(members, leader, copies * int(goal.copy[row]) + np.where(leader != present, goal.change, 0))
