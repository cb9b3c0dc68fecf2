"""The linear program over the placements found so far: how much of each to take, and what each band is worth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from ortools.linear_solver import pywraplp

from reconciler.model.problem import ReconcilerError
from reconciler.planner.loaded.arrays import Bools, Floats
from reconciler.planner.loaded.bands import Bands
from reconciler.planner.loaded.task import Task

PARAMETERS = "use_preprocessing: false use_dual_simplex: false"
"""Without preprocessing the simplex goes on from the basis before, as columns are added."""


class NoSolution(ReconcilerError):
    """The linear program was given up by its solver; with slack in every row it always has a solution."""

    code = "KR340"


@dataclass(frozen=True, slots=True)
class Column:
    """A placement of one row: its members' columns, ascending, its leader's, and what it costs."""

    row: int
    members: tuple[int, ...]
    leader: int
    cost: int


class Master:
    """Grows by columns; rows are the bands asked for, each with slack at a penalty, and one for each partition.

    What does not move is no column: loads are counted from where the partitions stand that may stay. Costs are told in
    units of `unit`, loads as parts of the fair share.
    """

    def __init__(self, task: Task, bands: Bands, unit: float, penalty: Floats) -> None:
        self._task, self._bands, self._unit = task, bands, unit
        self._solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self._solver.SetSolverSpecificParametersAsString(PARAMETERS)
        self._goal = self._solver.Objective()
        self._goal.SetMinimization()
        self._rows: dict[tuple[int, int], Any] = {}
        self._slack: list[tuple[int, int, Any]] = []
        self._partition: dict[int, Any] = {}
        self._known: set[tuple[int, tuple[int, ...], int]] = set()
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
        row = self._solver.Constraint(low / share, high / share)
        self._rows[measure, broker] = row
        for sign in (1.0, -1.0):
            slack = self._solver.NumVar(0.0, self._solver.infinity(), "")
            row.SetCoefficient(slack, sign)
            self._slack.append((measure, broker, slack))

    def set_penalty(self, penalty: Floats) -> None:
        """Let a fair share's worth outside a band cost this [measures, brokers], in the columns' own cost."""
        for measure, broker, slack in self._slack:
            self._goal.SetCoefficient(slack, float(penalty[measure, broker]) / self._unit)

    def add(self, column: Column) -> bool:
        """Add a placement; false where it is there already."""
        key = (column.row, column.members, column.leader)
        if key in self._known:
            return False
        self._known.add(key)
        stays = bool(self._task.stays[column.row])
        if column.row not in self._partition:
            self._partition[column.row] = self._solver.Constraint(0.0 if stays else 1.0, 1.0)
        taken = self._solver.NumVar(0.0, self._solver.infinity(), "")
        self._partition[column.row].SetCoefficient(taken, 1.0)
        self._goal.SetCoefficient(taken, column.cost / self._unit)
        for (measure, broker), change in self._changes(column, stays=stays).items():
            row = self._rows.get((measure, broker))
            if row is not None and change:
                row.SetCoefficient(taken, change / float(self._bands.share[measure, broker]))
        self.columns.append(column)
        self._taken.append(taken)
        return True

    def settle(self, row: int, number: int) -> None:
        """Take that column of the row whole from now on, or none of its columns for -1."""
        if number < 0:
            self._partition[row].SetBounds(0.0, 0.0)
        else:
            self._taken[number].SetBounds(1.0, 1.0)

    def _changes(self, column: Column, *, stays: bool) -> dict[tuple[int, int], int]:
        task, row = self._task, column.row
        changes: dict[tuple[int, int], int] = {}
        before = set(np.flatnonzero(task.held[row]).tolist()) if stays else set()
        after = set(column.members)
        for measure, weight in enumerate(task.weights.replica[row].tolist()):
            if weight:
                changes.update({(measure, broker): weight for broker in sorted(after - before)})
                changes.update({(measure, broker): -weight for broker in sorted(before - after)})
        leader = int(task.leader[row]) if stays else -1
        if leader != column.leader:
            for measure, weight in enumerate(task.weights.leader[row].tolist()):
                if weight:
                    changes[measure, column.leader] = weight
                    if leader >= 0:
                        changes[measure, leader] = -weight
        return changes

    def solve(self) -> "Solved":
        """Return the optimum over the columns there are."""
        if self._solver.Solve() != pywraplp.Solver.OPTIMAL:
            raise NoSolution("the balance's linear program was given up: widen balance, or report this cluster")
        shape = self._bands.share.shape
        prices, slack = np.zeros(shape), np.zeros(shape)
        for (measure, broker), row in self._rows.items():
            prices[measure, broker] = -row.dual_value() * self._unit / float(self._bands.share[measure, broker])
        for measure, broker, variable in self._slack:
            slack[measure, broker] += variable.solution_value()
        worth = np.zeros(len(self._task.need))
        for number, row in self._partition.items():
            worth[number] = row.dual_value() * self._unit
        taken = np.array([variable.solution_value() for variable in self._taken])
        dearer = np.array([variable.reduced_cost() for variable in self._taken])
        return Solved(self._goal.Value() * self._unit, prices, worth, slack, taken, dearer)


@dataclass(frozen=True, slots=True)
class Solved:
    """The optimum of a master: its cost, slack included; what a unit costs in each band [measures, brokers].

    `worth` [rows]: what a partition's own row adds to its cheapest column. `slack` [measures, brokers]: parts of fair
    shares left outside. `taken`: how much of each column; `dearer`: by
    how much each is too dear to be taken, in the master's unit.
    """

    cost: float
    prices: Floats
    worth: Floats
    slack: Floats
    taken: Floats
    dearer: Floats


def members_of(held: Bools) -> tuple[int, ...]:
    """Return the columns of one row's members."""
    return tuple(np.flatnonzero(held).tolist())
