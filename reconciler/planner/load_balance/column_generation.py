"""Solves the linear program over the placements found so far: how much of each to take, what each band is worth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.linear_solver import pywraplp

from reconciler.model.columns import Bools, Ints
from reconciler.model.problem import ReconcilerError
from reconciler.planner.load_balance.bands import Bands
from reconciler.planner.load_balance.pricing import Costs, Picked, bound_of, cheapest, cost_of, lower_bound
from reconciler.planner.load_balance.task import DISK, REPLICAS, TOPICS, LoadTask
from reconciler.planner.rows import Floats

PARAMETERS = "use_preprocessing: false use_dual_simplex: false"
"""Without preprocessing the simplex goes on from the basis before, as columns are added."""


ABOVE_CAP = 100.0
"""What is above a cap costs so many times what is outside a band: more would be beyond what the simplex tells apart."""


class NoSolution(ReconcilerError):
    """The linear program was given up by its solver; with slack in every row it always has a solution."""

    code = "KR340"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the master problem: one whole placement of a row, and what it costs.

    `members` are places of brokers in the arrays, ascending; `leader` is one of them.
    """

    row: int
    members: tuple[int, ...]
    leader: int
    cost: int


class MasterProblem:
    """The linear program over the columns found so far.

    Rows are the bands asked for, each with slack at a penalty, and one for each partition.

    What does not move is no column: loads are counted from where the partitions stand that may stay. Costs are told in
    units of `unit`, loads as parts of the fair share.
    """

    def __init__(self, task: LoadTask, bands: Bands, unit: float, penalty: Floats) -> None:
        self._task, self._bands, self._unit = task, bands, unit
        self._solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.SetSolverSpecificParametersAsString(PARAMETERS)
        self._goal = self._solver.Objective()
        self._goal.SetMinimization()
        self._rows: dict[tuple[int, int], Any] = {}
        self._slack: list[tuple[int, int, float, Any]] = []
        self._partition: dict[int, Any] = {}
        self._known: set[Column] = set()
        self.columns: list[Column] = []
        self._taken: list[Any] = []
        standing = task.loads(task.held & task.stays[:, None], np.where(task.stays, task.leader, 0), task.stays)
        for measure in np.flatnonzero(bands.asked).tolist():
            for broker in range(task.brokers):
                self._add_band(measure, broker, int(standing[measure, broker]))
        self.set_penalty(penalty)

    def _add_band(self, measure: int, broker: int, standing: int) -> None:
        bands, share = self._bands, float(self._bands.share[measure, broker])
        low, high = int(bands.low[measure, broker]) - standing, int(bands.high[measure, broker]) - standing
        # In parts of the fair share, bytes and counts are of one size: the simplex works with floats.
        row = self._solver.Constraint(low / share, high / share)
        self._rows[measure, broker] = row
        most = self._solver.infinity()
        if bands.cap is not None:
            most = (int(bands.cap[measure, broker]) - int(bands.high[measure, broker])) / share
            self._add_slack(measure, broker, -1.0, ABOVE_CAP, self._solver.infinity())
        self._add_slack(measure, broker, 1.0, 1.0, self._solver.infinity())
        self._add_slack(measure, broker, -1.0, 1.0, most)

    def _add_slack(self, measure: int, broker: int, sign: float, times: float, most: float) -> None:
        slack = self._solver.NumVar(0.0, most, "")
        self._rows[measure, broker].SetCoefficient(slack, sign)
        self._slack.append((measure, broker, times, slack))

    def set_penalty(self, penalty: Floats) -> None:
        """Let a fair share's worth outside a band cost this [measures, brokers], in the columns' own cost.

        Above a cap it costs many times as much.
        """
        for measure, broker, times, slack in self._slack:
            self._goal.SetCoefficient(slack, times * float(penalty[measure, broker]) / self._unit)

    def add(self, column: Column) -> bool:
        """Add a placement; false where it is there already."""
        if column in self._known:
            return False
        self._known.add(column)
        task, stays = self._task, bool(self._task.stays[column.row])
        if column.row not in self._partition:
            # What may stay need not take a column: the part that takes none stays.
            self._partition[column.row] = self._solver.Constraint(0.0 if stays else 1.0, 1.0)
        taken = self._solver.NumVar(0.0, self._solver.infinity(), "")
        self._partition[column.row].SetCoefficient(taken, 1.0)
        self._goal.SetCoefficient(taken, column.cost / self._unit)
        change = task.carried(column.row, np.array(column.members), column.leader)
        if stays:
            change -= task.carried(column.row, task.held[column.row], int(task.leader[column.row]))
        change[~self._bands.asked] = 0
        for measure, broker in zip(*(each.tolist() for each in np.nonzero(change)), strict=True):
            part = int(change[measure, broker]) / float(self._bands.share[measure, broker])
            self._rows[measure, broker].SetCoefficient(taken, part)
        self.columns.append(column)
        self._taken.append(taken)
        return True

    def hold(self, row: int, number: int, *, is_fixed: bool) -> None:
        """Take that column of the row whole from now on, or none of its columns for -1; or let it be free again."""
        if number < 0:
            self._partition[row].SetBounds(0.0, 0.0 if is_fixed else 1.0)
        else:
            self._taken[number].SetBounds(*((1.0, 1.0) if is_fixed else (0.0, self._solver.infinity())))

    def solve(self) -> "Solved":
        """Return the optimum over the columns there are."""
        if self._solver.Solve() != pywraplp.Solver.OPTIMAL and not self._is_solved_anew():
            raise NoSolution("the balance's linear program was given up: widen balance, or report this cluster")
        shape = self._bands.share.shape
        prices, slack = np.zeros(shape), np.zeros(shape)
        for (measure, broker), row in self._rows.items():
            prices[measure, broker] = -row.dual_value() * self._unit / float(self._bands.share[measure, broker])
        for measure, broker, _, variable in self._slack:
            slack[measure, broker] += variable.solution_value()
        worth = np.zeros(len(self._task.need))
        for number, row in self._partition.items():
            worth[number] = row.dual_value() * self._unit
        taken = np.array([variable.solution_value() for variable in self._taken])
        dearer = np.array([variable.reduced_cost() for variable in self._taken])
        return Solved((*self.columns,), self._goal.Value() * self._unit, prices, worth, slack, taken, dearer)

    def _is_solved_anew(self) -> bool:
        """Whether the simplex ends well from a basis of its own: from the basis before it may lose its way."""
        self._solver.SetSolverSpecificParametersAsString("")
        is_solved: bool = self._solver.Solve() == pywraplp.Solver.OPTIMAL
        self._solver.SetSolverSpecificParametersAsString(PARAMETERS)
        return is_solved


@dataclass(frozen=True, slots=True)
class Solved:
    """The optimum of a master over these columns: its cost, slack included; what a unit costs in each band.

    `prices` [measures, brokers]. `worth` [rows]: what a partition's own row adds to its cheapest column. `slack`
    [measures, brokers]: parts of fair shares left outside. `taken`: how much of each column; what is left of a
    partition that may stay stays. `dearer`: by how much each column is too dear to be taken, in the master's unit.
    """

    columns: Sequence[Column]
    cost: float
    prices: Floats
    worth: Floats
    slack: Floats
    taken: Floats
    dearer: Floats


ROUNDS = 200
"""Rounds of pricing at the most: counts bound the work, never time, so that every machine makes the same plan."""
COLUMNS_A_ROUND = 2500
"""The most paying columns join, which are those of large partitions; all of them would only slow each solve."""
MOST_COLUMNS = 80_000
"""So many columns are added in all; what they prove until then stands as the bound."""
FULL, KEPT_COLUMNS = 16_000, 9_000
"""Beyond the first number of columns the best are kept, so many: a smaller program is solved faster."""
ENOUGH, ENOUGH_OF_MANY, ENOUGH_OF_PART, MANY_COLUMNS = 0.0005, 0.001, 0.004, 15_000
"""At such a gap between the optimum over the columns and the bound, as a part of it, no more columns are looked for;
the second is that of a program that has become large. Of a part of a fleet the third will do: more cannot be proved."""
STEEPER, STEEPEST = 4.0, 1e6
"""The penalty of what stays outside starts near what copying costs, so that early prices are sensible; it rises by such
a factor, to such a multiple of a mean copy, where a band is still not kept."""
DEAR = 5e-4
"""Settling some partitions whole is dear where the optimum rises by more than such a part of it: then other ways to
settle them are tried. Half a percent is lost on 60 brokers where the larger part of a partition of 70 GB is taken."""
HARDLY = 1e-7
"""Less than the simplex tells apart, in units of a mean copy or parts of a fair share."""
PART = 1e-6
"""A part of a column that is no more than rounding."""
DIVES, DIVES_OF_MANY, ROUNDS_A_DIVE = 60, 24, 3
"""Each dive fixes a quarter of what is parted, so 24 leave less than a thousandth; few rounds replace its columns."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What is minimised: `copy` [rows] a new replica, `change` a new leader; whole numbers."""

    copy: Ints
    change: int

    def costs(self, prices: Ints, shift: int) -> Costs:
        """Return the costs at prices in 2^-shift of the goal's unit."""
        return Costs(prices, self.copy << shift, self.change << shift)


@dataclass(frozen=True, slots=True)
class Start:
    """A placement to begin with: `members` [rows, brokers]; its prices [measures, brokers], in 2^finer of the unit."""

    members: Bools
    prices: Floats
    finer: int


class Relaxation:
    """A master that grows by the columns that pay at its prices.

    `prices`: the best seen, whole numbers in 2^-`shift` of the goal's unit; they prove a bound whatever they are.
    """

    def __init__(
        self, task: LoadTask, bands: Bands, goal: Goal, start: "Start | None" = None, *, is_part: bool = False
    ) -> None:
        self._task, self._bands, self._goal, self._is_part = task, bands, goal, is_part
        self.shift = shift_of(task, goal)
        self._unit = max(1.0, float(goal.copy.mean()) + goal.change)
        self._penalty = _first_penalty(task, bands, goal)
        self._master = MasterProblem(task, bands, self._unit, self._penalty)
        self._added = 0
        self._is_diving = False
        self._dear = 0.0  # what settling some partitions whole may add to the optimum before other ways are tried
        # What is not asked for pays nothing back: its prices would prove too much.
        known = (
            [] if start is None else [_whole(start.prices * 2.0**start.finer, task, self.shift) * bands.asked[:, None]]
        )
        self.prices = max((*start_prices(task, bands, self.shift), *known), key=self._bound_at)
        self._bound = self._bound_at(self.prices)
        picked = cheapest(task, goal.costs(self.prices, self.shift))
        self._add(picked, np.flatnonzero(~task.stays))
        if start is not None:
            members, leader = start.members, task.leaders_of(start.members)
            self._add(Picked(picked.cost, members, leader), np.flatnonzero((members != task.held).any(axis=1)))

    def dived(self) -> Solved:
        """Return a solution that takes nearly all columns whole: the largest parted partitions are settled, in turn."""
        solved = self._master.solve()
        self._is_diving = True
        is_many = self._is_part or self._added >= MANY_COLUMNS // 3
        if len(self._master.columns) > KEPT_COLUMNS:
            self._forget(solved)
            solved = self._master.solve()
        # Where much is unproven for want of columns, exact settling gains little, and each try solves a large program.
        unproven = solved.cost - self._bound / 2**self.shift
        self._dear = max((ENOUGH_OF_PART if self._is_part else DEAR) * abs(solved.cost), unproven / 4)
        for _ in range(DIVES_OF_MANY if is_many else DIVES):
            parted = _parted(self._task, self._master.columns, solved.taken)
            if not parted:
                break
            self._settle(parted[: max(1, len(parted) // 4)], solved)
            solved = self.generated(1 if is_many else ROUNDS_A_DIVE)
        return solved

    def _settle(self, parted: Sequence[tuple[int, int]], solved: Solved) -> Solved:
        """Take the larger part of each row whole; where that is dear, find the rows at fault and try their others."""
        for row, number in parted:
            self._master.hold(row, number, is_fixed=True)
        now = self._master.solve()
        if now.cost <= solved.cost + self._dear:
            return now
        for row, number in parted:
            self._master.hold(row, number, is_fixed=False)
        if len(parted) > 1:
            half = len(parted) // 2
            return self._settle(parted[half:], self._settle(parted[:half], solved))
        ((row, number),) = parted
        costs = {number: now.cost}
        for other in self._others(row, number, solved):
            self._master.hold(row, other, is_fixed=True)
            costs[other] = self._master.solve().cost
            self._master.hold(row, other, is_fixed=False)
        self._master.hold(row, min(costs, key=lambda each: costs[each]), is_fixed=True)
        return self._master.solve()

    def _others(self, row: int, but: int, solved: Solved) -> list[int]:
        """Return the other columns of the row that are taken in part, and -1 for staying where it may."""
        columns = self._master.columns
        numbers = [each for each in np.flatnonzero(solved.taken > PART).tolist() if columns[each].row == row]
        return [each for each in (*numbers, *([-1] if self._task.stays[row] else [])) if each != but]

    def generated(self, rounds: int = ROUNDS) -> Solved:
        """Return the optimum once no column pays, or so many rounds of pricing have been made."""
        solved = self._master.solve()
        for left in reversed(range(rounds)):
            if len(self._master.columns) > FULL and not self._is_diving:
                self._forget(solved)
                solved = self._master.solve()
            prices = _whole(solved.prices, self._task, self.shift)
            costs = self._goal.costs(prices, self.shift)
            picked = cheapest(self._task, costs)
            bound = bound_of(self._task, self._bands, costs, picked)
            if bound > self._bound:
                self.prices, self._bound = prices, bound
            if not left or self._is_done(solved, bound):
                break
            reduced = _reduced(self._task, costs, picked, solved, self.shift)
            paying = np.flatnonzero(reduced < -HARDLY * self._unit)
            paying = paying[np.argsort(reduced[paying], kind="stable")][:COLUMNS_A_ROUND]
            has_room = self._added < MOST_COLUMNS
            if not (has_room and self._add(picked, paying)) and not self._steeper(solved, has_room=has_room):
                break
            solved = self._master.solve()
        return solved

    def _is_done(self, solved: Solved, bound: int) -> bool:
        enough = ENOUGH if self._added < MANY_COLUMNS else ENOUGH_OF_MANY
        enough = ENOUGH_OF_PART if self._is_part else enough
        gap = solved.cost - max(bound, self._bound) / 2**self.shift
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
        return lower_bound(self._task, self._bands, self._goal.costs(prices, self.shift))

    def _add(self, picked: Picked, rows: Ints) -> int:
        none = np.zeros_like(self._task.base)
        cost = cost_of(self._task, self._goal.costs(none, 0), picked.members, picked.leader)
        added = 0
        for row in rows.tolist():
            members = tuple(np.flatnonzero(picked.members[row]).tolist())
            added += self._master.add(Column(row, members, int(picked.leader[row]), int(cost[row])))
        self._added += added
        return added

    def _forget(self, solved: Solved) -> None:
        """Go on with the columns that are taken and those next to be: a smaller program is solved faster."""
        columns = self._master.columns
        order = np.lexsort((np.arange(len(columns)), solved.dearer, solved.taken <= PART))
        taken = int((solved.taken > PART).sum())
        kept = set(order[: max(KEPT_COLUMNS, taken)].tolist())
        kept |= {number for number, column in enumerate(columns) if not self._task.stays[column.row]}
        self._master = MasterProblem(self._task, self._bands, self._unit, self._penalty)
        for number in sorted(kept):
            self._master.add(columns[number])


def _parted(task: LoadTask, columns: Sequence[Column], taken: Floats) -> list[tuple[int, int]]:
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


def shift_of(task: LoadTask, goal: Goal) -> int:
    """Return how many bits below the cost's unit prices may tell, so that no placement's cost leaves 64 bits."""
    dearest = max(int(goal.copy.max(initial=0)), int(task.weights.replica[:, DISK].max(initial=0)))
    most = dearest * int(task.need.max(initial=1)) + goal.change
    return max(0, min(20, 54 - most.bit_length()))


def _first_penalty(task: LoadTask, bands: Bands, goal: Goal) -> Floats:
    """Return what a fair share outside a band costs at first: about what it costs to copy that much.

    Prices begin small where they end small: counts and rates are evened with little data.
    """
    whole = float((goal.copy * task.need).sum()) / task.brokers
    part = np.full(len(task.base), 0.4)
    part[DISK] = 1.2
    part[REPLICAS] = 0.08
    if not goal.copy.any():
        whole = float(goal.change * len(task.need)) / task.brokers
        part[list(task.of_leaders)] = 1.2
    return np.repeat(part[:, None] * max(1.0, whole), task.brokers, axis=1) * bands.asked[:, None]


def start_prices(task: LoadTask, bands: Bands, shift: int) -> Iterator[Ints]:
    """Yield prices to begin with: none; and a byte on disk too much, or too little, at what a byte copied costs."""
    none = np.zeros_like(task.base)
    yield none
    if bands.asked[DISK] and task.stays.any():
        excess = bands.excess(task.loads(task.held & task.stays[:, None], np.maximum(task.leader, 0), task.stays))[DISK]
        for above, below in ((1, 0), (0, 1)):
            prices = none.copy()
            prices[DISK] = np.where(excess > 0, above << shift, np.where(excess < 0, -(below << shift), 0))
            yield prices


def _whole(prices: Floats, task: LoadTask, shift: int) -> Ints:
    """Return the prices as whole numbers, so small that no cost leaves 64 bits."""
    most = np.ones(len(prices))
    most[:TOPICS] = np.maximum(task.weights.replica.max(axis=0), task.weights.leader.max(axis=0))
    limit = 2.0**54 / np.maximum(1.0, most) / max(1, int(task.need.max()))
    scaled = np.clip(prices * 2.0**shift, -limit[:, None], limit[:, None])
    whole: Ints = np.rint(scaled).astype(np.int64)
    return whole


def _reduced(task: LoadTask, costs: Costs, picked: Picked, solved: Solved, shift: int) -> Floats:
    """Return the reduced cost [rows] of the picked placement; where it is negative it pays to add it as a column."""
    now = cost_of(task, costs, task.held, np.maximum(task.leader, 0))
    standing = np.where(task.stays, now, 0) / 2.0**shift
    reduced: Floats = picked.cost / 2.0**shift - standing - solved.worth
    return reduced
