"""Tries all whole placements of a small cluster at once, where single exchanges stop short of the bands.

Row by row every legal set is added to every placement so far; what can no longer end within the bands goes. Of what is
left so many go on (`WIDTH`): with few partitions all of them, and the result is then the least that there is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.column_generation import Goal
from reconciler.planner.load_balance.exchanges import Placement
from reconciler.planner.load_balance.task import LoadTask

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
    heaviest_first = sorted(ways, key=lambda row: (-float((task.weights.replica[row, asked] / share).max()), row))
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
    parents: list[tuple[int, Ints, Ints]] = []
    to_come = _to_come(task, order, asked)
    for (row, ways), coming in zip(order, to_come, strict=True):
        added = task.weights.replica[row, asked][None, :, None] * ways.members[:, None, :]
        grown = loads[:, None] + added[None]
        fine = ((grown <= high) & (grown + coming >= low)).all(axis=(2, 3))
        before, way = np.nonzero(fine)
        if not len(before):
            return None
        costs = cost[before] + ways.cost[way]
        kept = np.argsort(costs, kind="stable")[:WIDTH]
        before, way = before[kept], way[kept]
        loads, cost = grown[before, way], costs[kept]
        parents.append((row, before, way))
    return list(_traced(parents))


def _to_come(task: LoadTask, order: list[tuple[int, _Ways]], asked: Ints) -> list[Ints]:
    """Return, for each row, the most that the rows after it can add: [measures, brokers]."""
    total = np.zeros((len(asked), task.brokers), dtype=np.int64)
    found = []
    for row, ways in reversed(order):
        found.append(total.copy())
        total += task.weights.replica[row, asked][:, None] * ways.members.any(axis=0)
    return found[::-1]


def _traced(parents: list[tuple[int, Ints, Ints]]) -> Iterator[tuple[int, int]]:
    """Yield the ways of the first placement, which costs least, from the last row back."""
    at = 0
    for row, before, way in reversed(parents):
        yield row, int(way[at])
        at = int(before[at])


def _ways(task: LoadTask, goal: Goal, row: int) -> _Ways:
    """Return the legal sets of that row, the present leader first where it may stay."""
    present, copy = int(task.leader[row]), int(goal.copy[row])
    members, leaders, costs = [], [], []
    for columns in combinations(np.flatnonzero(task.allowed[row]).tolist(), int(task.need[row])):
        one = np.zeros(task.brokers, dtype=np.bool_)
        one[list(columns)] = True
        leader = _leader(task, row, one, present)
        if leader is None or (task.forced[row] & ~one).any() or not _keeps_racks(task, row, one):
            continue
        members.append(one)
        leaders.append(leader)
        copies = 0 if task.is_new[row] else int((one & ~task.held[row]).sum())
        costs.append(copies * copy + (goal.change if leader != present else 0))
    shape = (len(members), task.brokers)
    return _Ways(np.array(members, dtype=np.bool_).reshape(shape), np.array(leaders, dtype=np.int64), np.array(costs))


def _leader(task: LoadTask, row: int, members: Bools, present: int) -> int | None:
    for tier in (task.leading[row], task.leading_at_need[row]):
        able = np.flatnonzero(members & tier).tolist()
        if able:
            return present if present in able else int(able[0])
    return None


def _keeps_racks(task: LoadTask, row: int, members: Bools) -> bool:
    count = task.by_rack(members[None])
    return bool(((task.low[row] <= count) & (count <= task.high[row])).all())
