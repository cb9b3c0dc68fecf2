"""Whole placements: rounding what the relaxation took in parts, then single exchanges until the bands are kept."""

from collections.abc import Iterator

import numpy as np

from reconciler.planner.loaded.arrays import Bools, Floats, Ints
from reconciler.planner.loaded.bands import Bands
from reconciler.planner.loaded.exchanges import (
    Exchanges,
    Placement,
    closer,
    dearer,
    joined,
    leader_changes,
    leaders_back,
    outside,
    replica_exchanges,
    ways_back,
)
from reconciler.planner.loaded.relax import Goal, Relaxed
from reconciler.planner.loaded.task import Task
from reconciler.planner.loaded.trades import swap_leaders, swap_replicas

STEPS = 4000
HARDLY = 1e-9
PART = 1e-6


def rounded(task: Task, bands: Bands, relaxed: Relaxed, fallback: tuple[Bools, Ints]) -> Placement:
    """Return whole placements: what is taken whole, then the largest first of the rest whatever keeps the bands best.

    `fallback` has the members and leaders of rows of which nothing was taken.
    """
    members, leader = fallback
    placement = Placement(task, members, leader)
    options: dict[int, list[int]] = {}
    for number in np.flatnonzero(relaxed.taken > PART).tolist():
        options.setdefault(relaxed.columns[number].row, []).append(number)
    parted = []
    for row, numbers in sorted(options.items()):
        largest = max(numbers, key=lambda number: (round(float(relaxed.taken[number]), 6), -number))
        if relaxed.taken[largest] > 1 - PART:
            column = relaxed.columns[largest]
            placement.put(row, np.array(column.members, dtype=np.int64), column.leader)
        else:
            parted.append(row)
    parted.sort(key=lambda row: (-int(task.size[row]), -int(task.weights.replica[row].sum()), row))
    for row in parted:
        _put_best(placement, bands, relaxed, row, options[row])
    return placement


def _put_best(placement: Placement, bands: Bands, relaxed: Relaxed, row: int, numbers: list[int]) -> None:
    task = placement.task
    choices = [(0, relaxed.columns[number].members, relaxed.columns[number].leader) for number in numbers]
    if task.stays[row]:
        choices.insert(0, (0, tuple(np.flatnonzero(task.held[row]).tolist()), int(task.leader[row])))
    worth = []
    for _, members, leader in choices:
        placement.put(row, np.array(members, dtype=np.int64), leader)
        worth.append(float(outside(bands, placement.loads).sum()))
    best = worth.index(min(worth))
    placement.put(row, np.array(choices[best][1], dtype=np.int64), choices[best][2])


def repair(placement: Placement, bands: Bands, goal: Goal, *, kinds: tuple[bool, bool]) -> None:
    """Make single exchanges, each the cheapest for how much closer it brings the bands, until none brings any closer.

    `kinds`: whether replicas may go to other brokers, and whether leaders may change places.
    """
    stuck: set[tuple[int, int]] = set()
    for _ in range(STEPS):
        now = outside(bands, placement.loads)
        where = next((place for place in _worst_first(now) if place not in stuck), None)
        if where is None:
            return
        found = _candidates(placement, bands, *where, kinds=kinds)
        change = closer(placement, bands, found)
        cost = dearer(placement, goal, found)
        useful = np.flatnonzero(change < -HARDLY)
        if not len(useful):
            if (kinds[1] and swap_leaders(placement, bands, *where)) or (
                kinds[0] and swap_replicas(placement, bands, where[1])
            ):
                stuck.clear()
            else:
                stuck.add(where)
            continue
        floor = max(1.0, float(goal.copy.mean()) + goal.change) * 1e-3
        score = (cost[useful] + floor) / -change[useful]
        best = int(useful[score.argmin()])
        placement.exchange(int(found.row[best]), int(found.leaving[best]), int(found.arriving[best]))
        stuck.clear()


def spare(placement: Placement, bands: Bands, goal: Goal, *, copies: bool = True) -> None:
    """Take back what the bands do not need, the dearest first: changes of leader and, if asked to, copies."""
    for _ in range(STEPS):
        found = joined([ways_back(placement), leaders_back(placement)] if copies else [leaders_back(placement)])
        change, cost = closer(placement, bands, found), dearer(placement, goal, found)
        useful = np.flatnonzero((change <= 0) & (cost < 0))
        if not len(useful):
            return
        best = int(useful[cost[useful].argmin()])
        placement.exchange(int(found.row[best]), int(found.leaving[best]), int(found.arriving[best]))


def _worst_first(now: Floats) -> Iterator[tuple[int, int]]:
    order = np.argsort(-now.ravel(), kind="stable")
    for place in order.tolist():
        if now.ravel()[place] <= HARDLY:
            return
        yield divmod(place, now.shape[1])


def _candidates(
    placement: Placement, bands: Bands, measure: int, broker: int, *, kinds: tuple[bool, bool]
) -> Exchanges:
    """Return the exchanges that bring this broker's load of that measure towards its band."""
    task = placement.task
    is_above = bool(placement.loads[measure, broker] > bands.high[measure, broker])
    is_of_leaders = bool(task.weights.leader[:, measure].any())
    parts = []
    if kinds[0]:
        parts.append(replica_exchanges(placement, broker, is_above=is_above, leaders_only=is_of_leaders))
    if kinds[1] and is_of_leaders:
        parts.append(leader_changes(placement, broker, is_above=is_above))
    return joined(parts)
