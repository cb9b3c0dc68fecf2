"""Column generation: the least cost of any placement with the bands kept, placements taken in parts; and its prices."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.planner.loaded.arrays import Bools, Floats, Ints
from reconciler.planner.loaded.bands import Bands
from reconciler.planner.loaded.cheapest import Costs, Picked, cheapest, cost_of
from reconciler.planner.loaded.master import Column, Master, Solved, members_of
from reconciler.planner.loaded.task import DISK, LEADERS, MEASURES, NETWORK_OUT, REPLICAS, Task

ROUNDS = 200
COLUMNS_A_ROUND = 2500
MOST_COLUMNS = 80_000
FULL = 16_000
KEPT_COLUMNS = 9_000
ENOUGH = 0.0005
ENOUGH_OF_MANY = 0.004
MANY_COLUMNS = 15_000
"""At such a gap between the optimum over the columns and the bound, as a part of it, no more columns are looked for."""
STEEPER = 4.0
STEEPEST = 1e6
HARDLY = 1e-7
PART = 1e-6
DIVES = 60
DIVES_OF_MANY = 24
ROUNDS_A_DIVE = 3


@dataclass(frozen=True, slots=True)
class Goal:
    """What is minimised: `copy` [rows] a new replica, `change` a new leader; whole numbers."""

    copy: Ints
    change: int

    def costs(self, prices: Ints, shift: int) -> Costs:
        """Return the costs at prices in 2^-shift of the goal's unit."""
        return Costs(prices, self.copy << shift, self.change << shift)


@dataclass(frozen=True, slots=True)
class Relaxed:
    """What the relaxation leaves: integer prices a unit, in 2^-shift of the cost's unit, and the best columns found.

    `taken` is how much of each column; what is left of a partition that may stay stays.
    """

    prices: Ints
    shift: int
    columns: Sequence[Column]
    taken: Floats


class Relaxation:
    """A master that grows by the columns that pay at its prices, and the best prices seen."""

    def __init__(self, task: Task, bands: Bands, goal: Goal) -> None:
        self._task, self._bands, self._goal = task, bands, goal
        self._shift = _shift(task, goal)
        self._unit = max(1.0, float(goal.copy.mean()) + goal.change)
        self._penalty = _first_penalty(task, bands, goal)
        self._master = Master(task, bands, self._unit, self._penalty)
        self._added = 0
        self._is_diving = False
        self._best = max(_start_prices(task, bands, self._shift), key=self._bound_at)
        self._best_bound = self._bound_at(self._best)
        picked = cheapest(task, goal.costs(self._best, self._shift))
        self._add(picked, np.flatnonzero(~task.stays))

    def relaxed(self) -> Relaxed:
        """Return the relaxation's solution within bounds of work; its prices prove a bound whatever they are."""
        solved = self._generated(ROUNDS)
        return Relaxed(self._best, self._shift, tuple(self._master.columns), solved.taken)

    def dived(self) -> Relaxed:
        """Return a solution that takes nearly all columns whole: the largest parted partitions are settled, in turn."""
        solved = self._master.solve()
        self._is_diving = True
        is_many = self._added >= MANY_COLUMNS // 3
        if len(self._master.columns) > KEPT_COLUMNS:
            self._forget(solved)
            solved = self._master.solve()
        for _ in range(DIVES_OF_MANY if is_many else DIVES):
            parted = _parted(self._task, self._master.columns, solved.taken)
            if not parted:
                break
            for row, number in parted[: max(1, len(parted) // 4)]:
                self._master.settle(row, number)
            solved = self._generated(1 if is_many else ROUNDS_A_DIVE)
        return Relaxed(self._best, self._shift, tuple(self._master.columns), solved.taken)

    def _generated(self, rounds: int) -> Solved:
        solved = self._master.solve()
        for left in reversed(range(rounds)):
            if len(self._master.columns) > FULL and not self._is_diving:
                self._forget(solved)
                solved = self._master.solve()
            prices = _whole(solved.prices, self._task, self._shift)
            costs = self._goal.costs(prices, self._shift)
            picked = cheapest(self._task, costs)
            bound = bound_of(self._task, self._bands, costs, picked)
            if bound > self._best_bound:
                self._best, self._best_bound = prices, bound
            if not left or self._is_done(solved, bound):
                break
            reduced = _reduced(self._task, costs, picked, solved, self._shift)
            paying = np.flatnonzero(reduced < -HARDLY * self._unit)
            paying = paying[np.argsort(reduced[paying], kind="stable")][:COLUMNS_A_ROUND]
            has_room = self._added < MOST_COLUMNS
            if not (has_room and self._add(picked, paying)) and not self._steeper(solved, has_room=has_room):
                break
            solved = self._master.solve()
        return solved

    def _is_done(self, solved: Solved, bound: int) -> bool:
        enough = ENOUGH if self._added < MANY_COLUMNS else ENOUGH_OF_MANY
        gap = solved.cost - max(bound, self._best_bound) / 2**self._shift
        is_kept = not (solved.slack > HARDLY).any()
        return is_kept and gap <= enough * abs(solved.cost) + HARDLY * self._unit

    def _steeper(self, solved: Solved, *, has_room: bool) -> bool:
        """Raise the penalty where something is left outside; false where nothing is, or it is high enough."""
        left: Bools = np.any(solved.slack > HARDLY, axis=1)
        if not left.any() or not has_room or self._penalty.max() > STEEPEST * self._unit * self._task.brokers:
            return False
        self._penalty = np.where(left[:, None], STEEPER * self._penalty, self._penalty)
        self._master.set_penalty(self._penalty)
        return True

    def _bound_at(self, prices: Ints) -> int:
        return lower_bound(self._task, self._bands, self._goal.costs(prices, self._shift))

    def _add(self, picked: Picked, rows: Ints) -> int:
        none = np.zeros((len(MEASURES), self._task.brokers), dtype=np.int64)
        cost = cost_of(self._task, self._goal.costs(none, 0), picked.members, picked.leader)
        added = sum(
            self._master.add(Column(row, members_of(picked.members[row]), int(picked.leader[row]), int(cost[row])))
            for row in rows.tolist()
        )
        self._added += added
        return added

    def _forget(self, solved: Solved) -> None:
        """Go on with the columns that are taken and those next to be: a smaller program is solved faster."""
        columns = self._master.columns
        order = np.lexsort((np.arange(len(columns)), solved.dearer, solved.taken <= PART))
        taken = int((solved.taken > PART).sum())
        kept = set(order[: max(KEPT_COLUMNS, taken)].tolist())
        kept |= {number for number, column in enumerate(columns) if not self._task.stays[column.row]}
        self._master = Master(self._task, self._bands, self._unit, self._penalty)
        for number in sorted(kept):
            self._master.add(columns[number])


def _parted(task: Task, columns: Sequence[Column], taken: Floats) -> list[tuple[int, int]]:
    """Return each row that is not taken whole, with the column taken most, -1 for staying; the largest first."""
    most: dict[int, int] = {}
    left: dict[int, float] = {}
    for number in np.flatnonzero(taken > PART).tolist():
        row, part = columns[number].row, round(float(taken[number]), 6)
        left[row] = left.get(row, 1.0) - part
        if row not in most or part > round(float(taken[most[row]]), 6):
            most[row] = number
    rows = [row for row, number in most.items() if taken[number] < 1 - PART]
    rows.sort(key=lambda row: (-int(task.size[row]), -int(task.weights.leader[row].sum()), row))
    return [(row, -1 if task.stays[row] and left[row] >= taken[most[row]] else most[row]) for row in rows]


def lower_bound(task: Task, bands: Bands, costs: Costs) -> int:
    """Return a bound on the cost of any legal placement within the bands, in the costs' own unit.

    Every partition takes its cheapest placement at these prices; what the bands could pay back at most is taken off.
    """
    return bound_of(task, bands, costs, cheapest(task, costs))


def bound_of(task: Task, bands: Bands, costs: Costs, picked: Picked) -> int:
    """Return the same where the cheapest placements are known."""
    bound: int = sum(picked.cost.tolist())
    for measure in np.flatnonzero(bands.asked).tolist():
        prices = costs.prices[measure].tolist()
        for broker, price in enumerate(prices):
            low, high = int(bands.low[measure, broker]), int(bands.high[measure, broker])
            bound += price * int(task.base[measure, broker]) - max(price * low, price * high)
    return bound


def _shift(task: Task, goal: Goal) -> int:
    """Return how many bits below the cost's unit prices may tell, so that no placement's cost leaves 64 bits."""
    dearest = max(int(goal.copy.max(initial=0)), int(task.weights.replica[:, DISK].max(initial=0)))
    most = dearest * int(task.need.max(initial=1)) + goal.change
    return max(0, min(20, 54 - most.bit_length()))


def _first_penalty(task: Task, bands: Bands, goal: Goal) -> Floats:
    """Return what a fair share outside a band costs at first: about what it costs to copy that much.

    Prices begin small where they end small: counts and rates are evened with little data.
    """
    whole = float((goal.copy * task.need).sum()) / task.brokers
    part = np.full(len(MEASURES), 0.4)
    part[DISK] = 1.2
    part[REPLICAS] = 0.08
    if not goal.copy.any():
        whole = float(goal.change * len(task.need)) / task.brokers
        part[[LEADERS, NETWORK_OUT]] = 1.2
    return np.repeat(part[:, None] * max(1.0, whole), task.brokers, axis=1) * bands.asked[:, None]


def _start_prices(task: Task, bands: Bands, shift: int) -> Iterator[Ints]:
    """Yield prices to begin with: none; and a byte on disk too much, or too little, at what a byte copied costs."""
    none = np.zeros((len(MEASURES), task.brokers), dtype=np.int64)
    yield none
    if bands.asked[DISK] and task.stays.any():
        excess = bands.excess(task.loads(task.held & task.stays[:, None], np.maximum(task.leader, 0), task.stays))[DISK]
        for above, below in ((1, 0), (0, 1)):
            prices = none.copy()
            prices[DISK] = np.where(excess > 0, above << shift, np.where(excess < 0, -(below << shift), 0))
            yield prices


def _whole(prices: Floats, task: Task, shift: int) -> Ints:
    """Return the prices as whole numbers, so small that no cost leaves 64 bits."""
    most = np.maximum(task.weights.replica.max(axis=0), task.weights.leader.max(axis=0)).astype(np.float64)
    limit = 2.0**54 / np.maximum(1.0, most) / max(1, int(task.need.max()))
    scaled = np.clip(prices * 2.0**shift, -limit[:, None], limit[:, None])
    whole: Ints = np.rint(scaled).astype(np.int64)
    return whole


def _reduced(task: Task, costs: Costs, picked: Picked, solved: Solved, shift: int) -> Floats:
    """Return [rows] by how much the picked placement is cheaper (negative) than what the columns hold."""
    now = cost_of(task, costs, task.held, np.maximum(task.leader, 0))
    standing = np.where(task.stays, now, 0) / 2.0**shift
    reduced: Floats = picked.cost / 2.0**shift - standing - solved.worth
    return reduced
