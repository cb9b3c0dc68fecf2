"""Searches a face of optima for a table that fits the disks: an integer program, one objective after another."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from reconciler.model.columns import NONE, Bools, Ints, is_at
from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.costs import Cost
from reconciler.planner.integer import FOUND, solved
from reconciler.planner.objectives import CountTargets, weights
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.rows import Standing, marked, with_rows
from reconciler.planner.space.disks import Disks

STEPS, MOST_IN_STEPS = 4, 1_000
"""So many steps are told apart for tight disks, where there are no more choices than that; else one."""
EFFORT = 10.0
"""What one objective may take."""
MOST_FOR_FULLEST = 5_000
"""Choices of a search that also empties the fullest disk."""
PARTS = 1_000
"""How full a disk is, is counted in such parts of its size."""


class Found(NamedTuple):
    """A table, None where none was found, and whether it is proved that there is none, or no better one."""

    table: Ints | None
    is_exact: bool


class Excess(NamedTuple):
    """Bytes that disks are above the limit by, all together: in the end, and in all, with those on the way."""

    end: int = 0
    whole: int = 0


NO_EXCESS = Excess()


class OffSpread(NamedTuple):
    """The replicas that racks hold beyond the spread of the task, or short of it."""

    task: PlacementTask


Goal = Cost | CountTargets | OffSpread


class Search:
    """An integer program over some rows of a face; the others stay as the table has them."""

    def __init__(
        self,
        disks: Disks,
        face: Standing,
        free: Bools,
        table: Ints,
        *,
        hint: Ints | None = None,
        excess: Excess | None = NO_EXCESS,
    ) -> None:
        """Take the rules and counts of the face, and the disks.

        `hint`: a table to begin with. `excess`: what is allowed of it; None: any.
        """
        self._disks, self._face, self._table = disks, face, table
        self._rows, self._free = np.flatnonzero(free.any(axis=1)), free
        self._model = cp_model.CpModel()
        self._now = marked(table[face.number], free.shape[1])
        self._hint = self._now if hint is None else marked(hint[face.number], free.shape[1])
        pairs = zip(*(each.tolist() for each in np.nonzero(free)), strict=True)
        self._takes = {(row, column): self._model.new_bool_var("") for row, column in pairs}
        self._filled: list[tuple[cp_model.LinearExprT, int]] = []
        self._excess: list[tuple[cp_model.IntVar, cp_model.IntVar]] = []  # of each disk, as in Excess
        self.steps = 0
        if disks.is_tight.any():
            self.steps = STEPS if len(self._takes) <= MOST_IN_STEPS else 1
        self._keep_rules()
        self._keep_counts()
        self._keep_disks(has_excess=excess != NO_EXCESS)
        for all_disks, most in zip(zip(*self._excess, strict=True), excess or (), strict=False):
            self._model.add(sum(all_disks) <= most)

    def found(self, goals: Sequence[Goal]) -> Found:
        """Return the table that is best in these, one after another.

        Of several that are, it is the one whose fullest disk is emptiest, and then the nearest to the table given.
        """
        solver: cp_model.CpSolver | None = None
        is_exact = True
        last = [self._fullest, self._change] if len(self._takes) <= MOST_FOR_FULLEST else [self._change]
        # The first objective says whether anything fits; how full disks are would make that hard to see.
        objectives: list[Callable[[], cp_model.LinearExprT]]
        objectives = [*(partial(self._priced, goal) for goal in goals), *([] if goals else [self._change]), *last]
        for number, objective in enumerate(objectives):
            self._model.clear_hints()
            for (row, column), take in self._takes.items():
                hint = bool(self._hint[row, column]) if solver is None else solver.boolean_value(take)
                self._model.add_hint(take, hint)
            each = objective()
            self._model.minimize(each)
            status, found = solved(self._model, EFFORT)
            if status not in FOUND:
                is_exact &= status == cp_model.INFEASIBLE
                break
            solver, is_exact = found, is_exact and (status == cp_model.OPTIMAL or number >= len(goals))
            if goals or number:
                self._model.add(each <= round(found.objective_value))
        return Found(None if solver is None else self._chosen(solver), is_exact)

    def least_excess(self, bound: int) -> tuple[Excess | None, bool]:
        """Return the least excess, that of the end first, and whether that is proved; `bound` of the end is known.

        The end comes first, so that nothing is left to do for a plan that begins where this one ends.
        """
        for (row, column), take in self._takes.items():
            self._model.add_hint(take, bool(self._hint[row, column]))
        found, is_proved = list[int](), True
        # Without steps nothing is looked at but the end.
        for all_disks in [*zip(*self._excess, strict=True)][: 2 if self.steps else 1]:
            self._model.add(sum(all_disks) >= bound)
            self._model.minimize(sum(all_disks))
            # Presolve takes the variables of the excess out, and with them what bounds their sum.
            status, solver = solved(self._model, EFFORT, is_presolved=False)
            if status not in FOUND:
                return None, False
            is_proved &= status == cp_model.OPTIMAL
            found.append(round(solver.objective_value))
            self._model.add(sum(all_disks) <= found[-1])
        return (Excess(found[0], found[-1]) if found else NO_EXCESS), is_proved

    def _fullest(self) -> cp_model.LinearExprT:
        """Return how full the fullest disk is that takes anything in, at any moment."""
        most = self._model.new_int_var(0, 2 * PARTS, "")
        for held, total in self._filled:
            self._model.add(PARTS * held <= most * total)
        return most

    def _chosen(self, solver: cp_model.CpSolver) -> Ints:
        now = self._now.copy()
        for (row, column), take in self._takes.items():
            now[row, column] = solver.boolean_value(take)
        return with_rows(self._table, self._face.number[self._rows], now[self._rows])

    def _priced(self, goal: Goal) -> cp_model.LinearExprT:
        if isinstance(goal, CountTargets):
            return self._imbalance(goal)
        if isinstance(goal, OffSpread):
            return sum(self._off_spread(goal.task))
        number, terms = self._face.number, []
        for (row, column), take in self._takes.items():
            seat = np.flatnonzero(self._disks.task.replicas[number[row]] == column)
            price = int(goal.at[number[row], seat[0]] if len(seat) else goal.other[number[row]])
            terms.append(price * take)
        return sum(terms)

    def _imbalance(self, targets: CountTargets) -> cp_model.LinearExprT:
        """Return how far counts are from their shares: squares over capacity, or replicas outside the band."""
        base, some = targets.base + self._beside(are_cells=targets.is_cells), self._by_place(are_cells=targets.is_cells)
        most = int(base.sum()) + len(self._takes)
        weight = weights(targets.capacity, most).tolist()
        terms: list[cp_model.LinearExprT] = []
        for place, already in enumerate(base.tolist()):
            takes = some.get(place, [])
            count = already + sum(takes)
            if targets.band is None:
                square = self._model.new_int_var(0, (already + len(takes)) ** 2, "")
                number = self._model.new_int_var(already, already + len(takes), "")
                self._model.add(number == count)
                if self._excess:
                    for one in range(already, already + len(takes)):
                        self._model.add(square >= (2 * one + 1) * number - one * (one + 1))
                else:
                    self._model.add_multiplication_equality(square, [number, number])
                terms.append(weight[place] * square)
            else:
                beyond = self._model.new_int_var(0, most, "")
                low, high = (int(limit[place]) for limit in targets.band)
                self._model.add(beyond >= count - high)
                self._model.add(beyond >= low - count)
                terms.append(beyond)
        return sum(terms)

    def _off_spread(self, task: PlacementTask) -> Iterator[cp_model.IntVar]:
        """Yield by how many replicas each rack of each row is beyond its bounds."""
        rules, most = task.rule_classes.rows, int(task.need.max(initial=0))
        for row in self._rows.tolist():
            rule = task.rule_class[self._face.number[row]]
            for rack, (low, high) in enumerate(zip(rules.low[rule].tolist(), rules.high[rule].tolist(), strict=True)):
                in_rack = rules.rack == rack
                takes = [self._takes[row, column] for column in np.flatnonzero(in_rack & self._free[row]).tolist()]
                replicas = int((self._now[row] & ~self._free[row] & in_rack).sum()) + sum(takes)
                off = self._model.new_int_var(0, most, "")
                self._model.add(off >= replicas - high)
                self._model.add(off >= low - replicas)
                yield off

    def _change(self) -> cp_model.LinearExpr:
        return sum(1 - take for (row, column), take in self._takes.items() if self._now[row, column])

    def _keep_rules(self) -> None:
        """Each row has as many replicas as it needs, in the racks that may and must have them."""
        demand, choices = self._face.demand, self._face.choices
        bounds, racks = bounds_of(demand, choices, self._rows), demand.rules.rack
        for place, row in enumerate(self._rows.tolist()):
            takes = [(column, self._takes[row, column]) for column in np.flatnonzero(self._free[row]).tolist()]
            taken = np.bincount(racks[self._now[row] & ~self._free[row]], minlength=bounds.low.shape[1]).tolist()
            self._model.add(sum(take for _, take in takes) == int(bounds.need[place]) - sum(taken))
            for rack, already in enumerate(taken):
                some = [take for column, take in takes if racks[column] == rack]
                self._between(some, int(bounds.low[place, rack]) - already, int(bounds.high[place, rack]) - already)

    def _keep_counts(self) -> None:
        """Brokers, and topics' parts of them, have as many replicas as all optima give them."""
        choices = self._face.choices
        for are_cells in (False, True) if choices.has_cells else (False,):
            low, high = choices.bounds(are_cells=are_cells)
            beside = self._beside(are_cells=are_cells) - self._face.counts(are_cells=are_cells)[0]
            for place, some in self._by_place(are_cells=are_cells).items():
                self._between(some, int(low[place] - beside[place]), int(high[place] - beside[place]))

    def _beside(self, *, are_cells: bool) -> Ints:
        """Return how many replicas each broker, or topic on a broker, has whatever is taken."""
        number, table = self._face.number, self._table.copy()
        held = table[number]
        is_open = (held >= 0) & np.take_along_axis(self._free, np.maximum(held, 0), axis=1)
        table[number] = np.where(is_open, NONE, held)
        return self._disks.task.counts(table, are_cells=are_cells)

    def _by_place(self, *, are_cells: bool) -> Mapping[int, list[cp_model.IntVar]]:
        """Return what may be taken of each broker, or of each topic on a broker, in order."""
        found: dict[int, list[cp_model.IntVar]] = {}
        topic = self._disks.task.topic[self._face.number] * self._free.shape[1] if are_cells else None
        for (row, column), take in self._takes.items():
            found.setdefault(column + (int(topic[row]) if topic is not None else 0), []).append(take)
        return {place: found[place] for place in sorted(found)}

    def _keep_disks(self, *, has_excess: bool) -> None:
        """No disk has more than it may, in the end or, of tight ones, in each step; with `has_excess` it is counted."""
        disks = self._disks
        inside = [*self._inside()]
        comes = [*self._coming(), *(arrival for arrival, _ in inside)]
        goes = [*self._going(), *(departure for _, departure in inside)]
        steps = self.steps or 1
        rows = sorted({row for _, row, *_ in (*comes, *goes)}) if steps > 1 else []
        ended = {row: [self._model.new_bool_var("") for _ in range(steps - 1)] for row in rows}
        for marks in ended.values():
            for earlier, later in pairwise(marks):
                self._model.add_implication(earlier, later)

        def by(row: int, step: int) -> cp_model.IntVar | int:
            return int(step >= steps) if not 1 <= step < steps else ended[row][step - 1]

        arriving, leaving = _by_disk(comes, len(disks.used)), _by_disk(goes, len(disks.used))
        columns = (disks.used.tolist(), disks.allowed.tolist(), disks.deleted.tolist())
        for disk, (used, allowed, deleted) in enumerate(zip(*columns, strict=True)):
            # A disk that is above its share has to be relieved, whether or not anything may come to it.
            if not arriving[disk] and used - deleted <= allowed:
                continue
            fullest = used + sum(size for _, _, size, _ in arriving[disk])
            over = self._over(fullest) if has_excess else (0, 0)
            for step in (*(range(1, steps + 1) if disks.is_tight[disk] else ()), steps + 1):
                most = allowed + over[step <= steps]
                if step <= steps and used > allowed:
                    # Above its share from the begin, a disk takes nothing in before it is below it.
                    begins = self._model.new_bool_var("")
                    for _, row, _, take in arriving[disk]:
                        self._model.add(begins >= take + by(row, step) - by(row, step - 1) - 1)
                    most += fullest * (1 - begins)
                added = [size * self._both(take, by(row, step)) for _, row, size, take in arriving[disk]]
                freed = [size * self._both(take, by(row, step - 1)) for _, row, size, take in leaving[disk]]
                held = used + sum(added) - sum(freed) - (deleted if step > steps else 0)
                self._model.add(held <= most)
                self._filled += [(held, int(disks.total[disk]))] if arriving[disk] else []

    def _over(self, most: int) -> tuple[cp_model.IntVar, cp_model.IntVar]:
        """Return by how much a disk is above the limit, in the end and in all; at the most by so many bytes."""
        end, whole = (self._model.new_int_var(0, max(0, most), "") for _ in range(2))
        self._model.add(whole >= end)
        self._excess.append((end, whole))
        return end, whole

    def _both(self, one: cp_model.IntVar | int, other: cp_model.IntVar | int) -> cp_model.IntVar | int:
        """Return what is one where both are."""
        if isinstance(one, int) or isinstance(other, int):
            return (other if one else 0) if isinstance(one, int) else (one if other else 0)
        both = self._model.new_bool_var("")
        self._model.add_multiplication_equality(both, [one, other])
        return both

    def _coming(self) -> "Iterator[_Part]":
        """Yield the disk, row and bytes of each new replica that there is or may be, and whether; where it fits."""
        disks = self._disks
        places = [np.flatnonzero((disks.broker == one) & disks.is_open).tolist() for one in range(self._free.shape[1])]
        for row, column, take in self._everyone():
            size, some = int(disks.task.size[row]), places[column]
            if (disks.task.replicas[row] == column).any():
                continue
            # Where no disk is open, not even an empty replica may come.
            if not some and column in disks.broker and not isinstance(take, int):
                self._model.add(take == 0)
            if not some or not size:
                continue
            parts = [take] if len(some) == 1 else [self._model.new_bool_var("") for _ in some]
            if len(some) > 1:
                self._model.add(sum(parts) == take)
            for disk, part in zip(some, parts, strict=True):
                yield disk, row, size, part

    def _going(self) -> "Iterator[_Part]":
        """Yield the disk, row and bytes of each present replica that goes or may go, and whether."""
        disks, searched = self._disks, self._searched
        table = np.concatenate([self._table, disks.task.fixed], axis=1)
        is_kept = is_at(disks.task.replicas, table)
        for row, seat in zip(*(each.tolist() for each in np.nonzero(disks.lies >= 0)), strict=True):
            take = searched.get((row, int(disks.task.replicas[row, seat])))
            if take is not None or not is_kept[row, seat]:
                yield int(disks.lies[row, seat]), row, int(disks.own[row, seat]), 1 if take is None else take.negated()

    def _inside(self) -> "Iterator[tuple[_Part, _Part]]":
        """Yield each move of a present replica to another log dir of its broker: what arrives, and what leaves."""
        disks, table = self._disks, np.concatenate([self._table, self._disks.task.fixed], axis=1)
        is_kept, searched = is_at(disks.task.replicas, table), self._searched
        for row, seat in zip(*(column.tolist() for column in np.nonzero(disks.lies >= 0)), strict=True):
            disk, size = int(disks.lies[row, seat]), int(disks.own[row, seat])
            stays = searched.get((row, int(disks.task.replicas[row, seat])), int(is_kept[row, seat]))
            is_target = (disks.broker == disks.broker[disk]) & disks.is_open & disks.is_inside
            targets = [target for target in np.flatnonzero(is_target).tolist() if target != disk and size]
            moves = {target: self._model.new_bool_var("") for target in targets}
            if moves:
                self._model.add(sum(moves.values()) <= stays)
            for target, is_moved in moves.items():
                yield (target, row, size, is_moved), (disk, row, size, is_moved)

    @property
    def _searched(self) -> dict[tuple[int, int], cp_model.IntVar]:
        return {(int(self._face.number[row]), column): take for (row, column), take in self._takes.items()}

    def _everyone(self) -> Iterator[tuple[int, int, cp_model.IntVar | int]]:
        """Yield the row and broker of each replica that there is or may be, and whether."""
        searched = self._searched
        for (row, column), take in searched.items():
            yield row, column, take
        table = np.concatenate([self._table, self._disks.task.fixed], axis=1)
        held, seat = np.nonzero(table >= 0)
        for one, where in zip(held.tolist(), table[held, seat].tolist(), strict=True):
            if (one, where) not in searched:
                yield one, where, 1

    def _between(self, some: Sequence[cp_model.IntVar], low: int, high: int) -> None:
        if low > 0 or high < len(some):
            self._model.add_linear_constraint(sum(some), low, high)


_Part = tuple[int, int, int, cp_model.IntVar | int]
"""A disk, a row, bytes that come there or leave it, and whether."""


def _by_disk(parts: Sequence[_Part], disks: int) -> list[list[_Part]]:
    found: list[list[_Part]] = [[] for _ in range(disks)]
    for part in parts:
        found[part[0]].append(part)
    return found
