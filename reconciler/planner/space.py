"""Finds room on disks: other placements, where the one chosen would fill a disk too far.

`limits.diskUse` makes each disk a knapsack, which no flow can keep. But the flow leaves all its optima (`Choices`), and
among these an integer program (CP-SAT) looks for one within the disks, as near to the flow's as can be. What it finds
is proved by the flow's own prices. Where no optimum fits, it looks for the fewest bytes among all that are as balanced:
the flow's bound holds for these too, and the gap between the two is told.

Disks count from step to step, as stages do: a copy takes its bytes from the begin of its step, and what a partition
leaves is free once its step has ended.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from ortools.sat.python import cp_model

from reconciler.model.cluster import Broker, Cluster
from reconciler.model.columns import NONE, Bools, Ints
from reconciler.model.desired import Balance, DesiredCluster, Off
from reconciler.model.disk_space import NO_SPACE, Space, bytes_held
from reconciler.model.plan import BYTES
from reconciler.model.problem import Problem, Severity
from reconciler.model.table_maker import table_of
from reconciler.model.words import size
from reconciler.planner.cheapest_sets import LARGEST, bounds_of
from reconciler.planner.costs import Cost, is_at
from reconciler.planner.objectives import CountTargets, asked_of_replicas, weights
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.replicas import ReplicaSets, copied, place_replicas
from reconciler.planner.rows import Standing

MOST_CHOICES = 40_000
"""Choices of one search: where there are more, the rows that matter to crowded disks are looked at alone."""
MOST_CELLS = 3_000_000
"""Partitions times brokers: up to so many, `load_balance` searches where no flow is near."""
STEPS, MOST_IN_STEPS = 4, 1_000
"""So many steps are told apart for tight disks, where there are no more choices than that; else one."""
EFFORT = 10.0
"""CP-SAT's deterministic time, which is counted in steps: about as many seconds."""


@dataclass(frozen=True, slots=True)
class Disks:
    """The disks whose size is known, a broker's log dirs each or all in one, and what partitions take of them.

    Tables of who holds a partition are columns of brokers, -1 for none, without the replicas that are `fixed`.
    """

    broker: Ints  # [disks]: the broker's column
    used: Ints  # [disks]: bytes
    allowed: Ints  # [disks]: bytes
    is_open: Bools  # [disks]: whether new replicas may go there
    is_tight: Bools  # [disks]: whether they are looked at in each step, and not in the end alone
    is_spared: Bools  # [disks]: whether they may stay as full as they are; then nothing comes
    topic: Ints  # [partitions]
    present: Ints  # [partitions, width]: the columns of the present replicas
    fixed: Ints  # [partitions, some]: those that are decided
    arriving: Ints  # [partitions]: the bytes of a new replica
    own: Ints  # [partitions, width]: the bytes of each present replica
    lies: Ints  # [partitions, width]: its disk, -1 where none is watched

    def crowded(self, held: Ints) -> Ints:
        """Return the brokers that a table fills too far in the end.

        Of a broker with several disks, those that its new replicas, the largest first to where most is free, overfill.
        """
        table = np.concatenate([held, self.fixed], axis=1)
        is_left = ~is_at(self.present, table) & (self.lies >= 0)
        free = self.allowed - self.used
        np.add.at(free, self.lies[is_left], self.own[is_left])
        row, seat = np.nonzero((table >= 0) & ~is_at(table, self.present))
        columns = table[row, seat]
        found = {*self.broker[(free < 0) & ~self.is_spared].tolist()}
        for column in np.unique(columns).tolist():
            left = free[(self.broker == column) & self.is_open].tolist()
            sizes = np.sort(self.arriving[row[columns == column]])[::-1].tolist()
            for each in sizes if left else ():
                emptiest = left.index(max(left))
                left[emptiest] -= each
            if min(left, default=-1) < 0 and column in self.broker:
                found.add(column)
        return np.array(sorted(found), dtype=np.int64)

    def left(self, held: Ints) -> Ints:
        """Return the bytes that are left [brokers] once a table holds; where no disk is watched, without end."""
        table = np.concatenate([held, self.fixed], axis=1)
        brokers = 1 + int(max(table.max(initial=0), self.present.max(initial=0), self.broker.max(initial=0)))
        left = np.full(brokers, LARGEST)
        left[self.broker] = 0
        np.add.at(left, self.broker, self.allowed - self.used)
        is_left = ~is_at(self.present, table) & (self.lies >= 0)
        np.add.at(left, self.broker[self.lies[is_left]], self.own[is_left])
        row, seat = np.nonzero((table >= 0) & ~is_at(table, self.present))
        np.subtract.at(left, table[row, seat], self.arriving[row])
        return left


def disks_of(task: PlacementTask, observed: Cluster, space: Space) -> Disks:
    """Return the disks of the brokers that take part."""
    held, eligible = bytes_held(observed), task.eligible
    found = [
        (column, path, used, int(total * space.share), is_open, broker_id in space.tight)
        for column, broker_id in enumerate(eligible.ids)
        for path, used, total, is_open in _disks(observed.brokers[broker_id], held.get(broker_id))
    ]
    broker, used, allowed = (np.array([each[part] for each in found], dtype=np.int64) for part in (0, 2, 3))
    is_open, is_tight = (np.array([each[part] for each in found], dtype=np.bool_) for part in (4, 5))
    is_spared = (used > allowed) & space.is_sparing
    own, lies = _lying(task, observed, {each[:2]: place for place, each in enumerate(found)})
    is_open &= ~is_spared
    return Disks(
        broker, used, allowed, is_open, is_tight, is_spared, task.topic, task.replicas, task.fixed, task.size, own, lies
    )


def _lying(task: PlacementTask, observed: Cluster, disk_of: Mapping[tuple[int, str | None], int]) -> tuple[Ints, Ints]:
    """Return the bytes of each present replica, and its disk; -1 where none is known."""
    table, there = table_of(observed), np.flatnonzero(~task.is_new)
    at = table.rows_of([*task.partitions.keys(there)])
    own, lies = np.zeros_like(task.replicas), np.full_like(task.replicas, NONE)
    paths = np.full((len(task.eligible.ids), len(table.paths) + 1), NONE)
    for (column, path), place in disk_of.items():
        # The last one is for a dir that is not told, and for all in one.
        if path is None or path in table.paths:
            paths[column, slice(None) if path is None else table.paths.index(path)] = place
    for seat, ids in enumerate(task.partitions.replicas[there].T):
        for place, brokers in enumerate(table.replicas[at].T):
            rows = there[(ids == brokers) & (task.replicas[there, seat] >= 0)]
            source = at[(ids == brokers) & (task.replicas[there, seat] >= 0)]
            size = table.sizes[source, place]
            own[rows, seat] = np.where(size >= 0, size, np.maximum(table.bytes_to_copy[source], 0))
            lies[rows, seat] = paths[task.replicas[rows, seat], np.maximum(table.log_dirs[source, place], NONE)]
    return own, lies


def _disks(broker: Broker, held: int | None) -> Iterator[tuple[str | None, int, int, bool]]:
    """Yield path, bytes used, size and whether it is open, of each disk; the path is None for all in one."""
    dirs = [one for one in broker.log_dirs if one.total_bytes is not None and one.usable_bytes is not None]
    if len(dirs) > 1:
        closed = broker.cordoned_dirs
        is_any_open = any(one.path not in closed for one in dirs)
        for one in dirs:
            total = one.total_bytes or 0
            yield one.path, max(0, total - (one.usable_bytes or 0)), total, not is_any_open or one.path not in closed
    elif held is not None and (size := broker.total_bytes) is not None:
        yield None, held, size, True


@dataclass(frozen=True, slots=True)
class Roomy:
    """What was found. `sets` is None where nothing that is as near to the wishes was.

    `is_exact`: all placements were searched, so none is better. `is_yielding`: the balance of replicas is not reached.
    """

    sets: ReplicaSets | None
    is_exact: bool = True
    is_yielding: bool = False

    def told(self, desired: DesiredCluster) -> Iterator[Problem]:
        """Yield what disks ask for beside what counts would."""
        at, balance = desired.limits.at.get("diskUse"), desired.balance
        found = "all placements were searched" if self.is_exact else "those that matter were searched, not all"
        if self.sets is None:
            if self.is_exact:
                message = f"no placement that keeps the rules keeps limits.diskUse: {found}"
                yield Problem(NO_SPACE, message, at, Severity.WARNING)
            return
        proof, words = self.sets.proof, []
        if self.is_yielding:
            word = "replicas" if not isinstance(balance.replicas, Off) else "topics"
            words.append(f"balance.{word} stays as near to what is asked for as it lets it")
        if proof.value > proof.lower_bound:
            more = proof.value - proof.lower_bound
            words.append(f"{size(more) if proof.objective == BYTES else more} more of {proof.objective} are copied")
        if words:
            message = f"limits.diskUse: {' and '.join(words)} than without that limit; {found}"
            yield Problem("KR848", message, at, Severity.WARNING)


def with_room(task: PlacementTask, balance: Balance, sets: ReplicaSets, disks: Disks) -> Roomy:
    """Return the sets as they are where they fit the disks, others as good, or those that copy the least more.

    Where nothing that is as balanced fits, the balance yields: it is as near as disks allow, and its levels are not in
    the proof. Nothing is returned where the search of `load_balance` is the better one for that.
    """
    crowded = disks.crowded(sets.held)
    if not len(crowded) and not disks.is_tight.any():
        return Roomy(sets)
    crowded = np.union1d(crowded, disks.broker[disks.is_tight])
    levels = sets.proof.levels
    first = len(levels) - len(sets.faces)
    for many in range(len(sets.faces), 0, -1):
        found = _nearest(disks, sets.faces[many - 1], sets.held, crowded)
        if found.table is not None:
            proof = replace(sets.proof, levels=levels[: first + many])
            return Roomy(replace(sets, held=found.table, proof=proof))
    costs = [cost for _, cost in copied(task)]
    found = _nearest(disks, sets.balanced, sets.held, crowded, costs)
    if found.table is not None:
        value = costs[0].of(disks.present, found.table)
        return Roomy(_dearer(sets, first, found.table, value), found.is_exact)
    cells = len(sets.held) * len(task.eligible.ids)
    if not first or MOST_CHOICES < cells <= MOST_CELLS:
        return Roomy(None, found.is_exact and not first)
    unbalanced = place_replicas(task, replace(balance, replicas=Off(), topics=Off()))
    targets = [each for _, each in asked_of_replicas(task, balance)]
    found = _nearest(disks, unbalanced.balanced, sets.held, crowded, [*targets, *costs])
    if found.table is None:
        return Roomy(None, found.is_exact)
    value = costs[0].of(disks.present, found.table)
    return Roomy(_dearer(unbalanced, 0, found.table, value), found.is_exact, is_yielding=True)


def _dearer(sets: ReplicaSets, first: int, held: Ints, value: int) -> ReplicaSets:
    """Return other sets, with what the prices say of those that were chosen first as their bound."""
    levels = (*sets.proof.levels[:first], replace(sets.proof.levels[first], value=value))
    return replace(sets, held=held, proof=replace(sets.proof, value=value, levels=levels))


class _Found(NamedTuple):
    """A table, None where none was found, and whether all of them were searched."""

    table: Ints | None
    is_exact: bool


def _nearest(
    disks: Disks, face: Standing | None, table: Ints, crowded: Ints, goals: Sequence[Cost | CountTargets] = ()
) -> _Found:
    """Return of what the face allows within the disks the best, of these the nearest to a table."""
    free = np.zeros((0, 0), dtype=np.bool_) if face is None else _free(face)
    if face is None or not free.any():
        return _Found(None, is_exact=True)
    is_whole = bool(free.sum() <= MOST_CHOICES)
    if not is_whole:
        table = _traded(disks, face, free, table)
        crowded = np.union1d(disks.crowded(table), disks.broker[disks.is_tight])
        if not len(crowded) and not goals:
            return _Found(table, is_exact=False)
        free = _that_matter(disks, face, free, table, crowded)
    found = _Search(disks, face, free, table).found(goals)
    return found if is_whole else _Found(found.table, is_exact=False)


def _free(face: Standing) -> Bools:
    """Return [rows, brokers] which brokers each row with a choice may take or leave."""
    choices = face.choices
    free: Bools = choices.kinds[choices.kind] == 0
    row, seat = np.nonzero(face.demand.named >= 0)
    free[row, face.demand.named[row, seat]] = choices.named[row, seat] == 0
    return free


def _traded(disks: Disks, face: Standing, free: Bools, table: Ints) -> Ints:
    """Return the table with new replicas of crowded brokers traded for smaller ones of others of the rack.

    Counts and copies stay what they are, so this is as good a table; the largest go first, each for the smallest.
    """
    number, rack, table = face.number, face.demand.rules.rack, table.copy(order="F")
    row, seat = np.nonzero((table[number] >= 0) & ~is_at(table[number], disks.present[number]))
    where, size = table[number[row], seat], disks.arriving[number[row]]
    may_go = free[row, where]
    row, seat, where, size = row[may_go], seat[may_go], where[may_go], size[may_go]
    left = disks.left(table)
    for broker in np.flatnonzero(left < 0)[np.argsort(left[left < 0], kind="stable")].tolist():
        mine = np.flatnonzero(where == broker)
        for large in mine[np.argsort(-size[mine], kind="stable")].tolist():
            if left[broker] >= 0:
                break
            other = where
            is_fine = np.asarray(rack[other] == rack[broker]) & (other != broker)
            is_fine &= free[row, broker] & free[row[large], other]
            is_fine &= (size < size[large]) & (left[other] >= size[large] - size)
            is_fine &= ~(table[number[row]] == broker).any(axis=1) & ~np.isin(other, table[number[row[large]]])
            small = np.flatnonzero(is_fine)
            if len(small):
                one = int(small[np.argmin(size[small])])
                there, gained = int(where[one]), int(size[large] - size[one])
                table[number[row[large]], seat[large]], table[number[row[one]], seat[one]] = there, broker
                where[large], where[one] = there, broker
                left[broker] += gained
                left[there] -= gained
    return table


def _that_matter(disks: Disks, face: Standing, free: Bools, table: Ints, crowded: Ints) -> Bools:
    """Return the free choices that matter to crowded brokers.

    All those of rows that come to them, the largest first; of others, the smallest first, whether they come instead;
    and of rows that are there, the smallest first, whether they go to make room.
    """
    size, now, present = (each[face.number] for each in (disks.arriving, table, disks.present))
    instead = np.zeros_like(free)
    instead[:, crowded] = True
    for held in (*now.T, *present.T):
        row = np.flatnonzero(held >= 0)
        instead[row, held[row]] = True
    comes = np.asarray((np.isin(now, crowded) & ~is_at(now, present)).any(axis=1))
    some = np.where(comes[:, None], free, free & instead)
    is_there = np.isin(present, crowded).any(axis=1) & ~comes
    some[is_there] = free[is_there]
    many = some.sum(axis=1)
    order = np.lexsort((np.where(comes, -size, size), is_there, ~comes))
    picked = np.zeros_like(comes)
    picked[order[np.cumsum(many[order]) <= MOST_CHOICES]] = True
    picked &= some[:, crowded].any(axis=1)
    return np.asarray(some & picked[:, None])


class _Search:
    """An integer program over some rows of a face; the others stay as the table has them."""

    def __init__(self, disks: Disks, face: Standing, free: Bools, table: Ints) -> None:
        """Take the rules and counts of the face, and the disks."""
        self._disks, self._face, self._table = disks, face, table
        self._rows, self._free = np.flatnonzero(free.any(axis=1)), free
        self._model = cp_model.CpModel()
        self._now = np.zeros(free.shape, dtype=np.bool_)
        row, seat = np.nonzero(table[face.number] >= 0)
        self._now[row, table[face.number[row], seat]] = True
        self._takes = {
            (row, column): self._model.new_bool_var("")
            for row in self._rows.tolist()
            for column in np.flatnonzero(free[row]).tolist()
        }
        self._keep_rules()
        self._keep_counts()
        self._keep_disks()

    def found(self, goals: Sequence[Cost | CountTargets]) -> _Found:
        """Return the table that is best in these, one after another, of these the nearest."""
        solver: cp_model.CpSolver | None = None
        is_exact = True
        for each in (*map(self._priced, goals), self._change()):
            self._model.clear_hints()
            for (row, column), take in self._takes.items():
                hint = bool(self._now[row, column]) if solver is None else solver.boolean_value(take)
                self._model.add_hint(take, hint)
            self._model.minimize(each)
            status, found = _solved(self._model)
            if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                is_exact &= status == cp_model.INFEASIBLE
                break
            solver, is_exact = found, is_exact and status == cp_model.OPTIMAL
            self._model.add(each <= round(found.objective_value))
        return _Found(None if solver is None else self._chosen(solver), is_exact)

    def _chosen(self, solver: cp_model.CpSolver) -> Ints:
        now, table = self._now.copy(), self._table.copy()
        for (row, column), take in self._takes.items():
            now[row, column] = solver.boolean_value(take)
        for row in self._rows.tolist():
            columns = np.flatnonzero(now[row])
            table[self._face.number[row]] = NONE
            table[self._face.number[row], : len(columns)] = columns
        return table

    def _priced(self, goal: Cost | CountTargets) -> cp_model.LinearExprT:
        if isinstance(goal, CountTargets):
            return self._imbalance(goal)
        number, terms = self._face.number, []
        for (row, column), take in self._takes.items():
            seat = np.flatnonzero(self._disks.present[number[row]] == column)
            price = int(goal.at[number[row], seat[0]] if len(seat) else goal.other[number[row]])
            terms.append(price * take)
        return sum(terms)

    def _imbalance(self, targets: CountTargets) -> cp_model.LinearExprT:
        """Return how far counts are from their shares: squares over capacity, or replicas outside the band."""
        topic, brokers = self._disks.topic[self._face.number], self._free.shape[1]
        of_row = topic if targets.is_cells else np.zeros_like(topic)
        still, where = np.nonzero(self._now & ~self._moving(self._now))
        base = targets.base + np.bincount(of_row[still] * brokers + where, minlength=len(targets.base))
        closed = np.ones(len(self._table), dtype=np.bool_)
        closed[self._face.number] = False
        gone, seat = np.nonzero((self._table >= 0) & closed[:, None])
        of_gone = self._disks.topic[gone] if targets.is_cells else np.zeros_like(gone)
        base = base + np.bincount(of_gone * brokers + self._table[gone, seat], minlength=len(base))
        some: list[list[cp_model.IntVar]] = [[] for _ in base]
        for (row, column), take in self._takes.items():
            some[int(of_row[row]) * brokers + column].append(take)
        most = int(base.sum()) + len(self._takes)
        weight = weights(targets.capacity, most).tolist()
        terms: list[cp_model.LinearExprT] = []
        for place, (already, takes) in enumerate(zip(base.tolist(), some, strict=True)):
            count = already + sum(takes)
            if targets.low is None or targets.high is None:
                square = self._model.new_int_var(0, (already + len(takes)) ** 2, "")
                number = self._model.new_int_var(already, already + len(takes), "")
                self._model.add(number == count)
                self._model.add_multiplication_equality(square, [number, number])
                terms.append(weight[place] * square)
            else:
                beyond = self._model.new_int_var(0, most, "")
                self._model.add(beyond >= count - int(targets.high[place]))
                self._model.add(beyond >= int(targets.low[place]) - count)
                terms.append(beyond)
        return sum(terms)

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
        choices, topic = self._face.choices, self._face.demand.rules.topic[self._face.demand.rule]
        others = self._now.sum(axis=0) - self._moving(self._now).sum(axis=0)
        for column, (low, high) in enumerate(zip(choices.low.tolist(), choices.high.tolist(), strict=True)):
            some = [take for (_, where), take in self._takes.items() if where == column]
            self._between(some, low - int(others[column]), high - int(others[column]))
        if not choices.has_cells:
            return
        cells: dict[int, list[cp_model.IntVar]] = {}
        for (row, column), take in self._takes.items():
            cells.setdefault(int(topic[row]) * len(choices.low) + column, []).append(take)
        still, where = np.nonzero(self._now & ~self._moving(self._now))
        beside = np.bincount(topic[still] * len(choices.low) + where, minlength=choices.places)
        for cell, some in sorted(cells.items()):
            low, high = int(choices.cell_low[cell]), int(choices.cell_high[cell])
            self._between(some, low - int(beside[cell]), high - int(beside[cell]))

    def _moving(self, mask: Bools) -> Bools:
        """Return the part of a mask [rows, brokers] that is searched."""
        part = np.zeros_like(mask)
        part[self._rows] = mask[self._rows] & self._free[self._rows]
        return part

    def _keep_disks(self) -> None:
        """No disk has more than it may, in the end or, of tight ones, in each step."""
        disks = self._disks
        comes, goes = [*self._coming()], [*self._going()]
        steps = STEPS if len(self._takes) <= MOST_IN_STEPS and disks.is_tight.any() else 1
        rows = sorted({row for _, row, *_ in (*comes, *goes)}) if steps > 1 else []
        ended = {row: [self._model.new_bool_var("") for _ in range(steps - 1)] for row in rows}
        for marks in ended.values():
            for earlier, later in pairwise(marks):
                self._model.add_implication(earlier, later)

        def by(row: int, step: int) -> cp_model.IntVar | int:
            return int(step >= steps) if not 1 <= step < steps else ended[row][step - 1]

        for disk, (used, allowed) in enumerate(zip(disks.used.tolist(), disks.allowed.tolist(), strict=True)):
            arriving, leaving = ([each for each in some if each[0] == disk] for some in (comes, goes))
            if not arriving and (not leaving or used <= allowed or disks.is_spared[disk]):
                continue
            for step in (*(range(1, steps + 1) if disks.is_tight[disk] else ()), steps + 1):
                # Over its share from the begin, a disk takes nothing in before it is below it.
                most = max(allowed, used) if step <= steps else allowed
                added = [size * self._both(take, by(row, step)) for _, row, size, take in arriving]
                freed = [size * self._both(take, by(row, step - 1)) for _, row, size, take in leaving]
                self._model.add(used + sum(added) - sum(freed) <= most)

    def _both(self, one: cp_model.IntVar | int, other: cp_model.IntVar | int) -> cp_model.IntVar | int:
        """Return what is one where both are."""
        if isinstance(one, int) or isinstance(other, int):
            return (other if one else 0) if isinstance(one, int) else (one if other else 0)
        both = self._model.new_bool_var("")
        self._model.add_multiplication_equality(both, [one, other])
        return both

    def _coming(self) -> Iterator[tuple[int, int, int, cp_model.IntVar | int]]:
        """Yield the disk, row and bytes of each new replica that there is or may be, and whether; where it fits."""
        disks = self._disks
        places = [np.flatnonzero((disks.broker == one) & disks.is_open).tolist() for one in range(self._free.shape[1])]
        for row, column, take in self._everyone():
            size, some = int(disks.arriving[row]), places[column]
            if (disks.present[row] == column).any() or not size:
                continue
            if not some and column in disks.broker and not isinstance(take, int):
                self._model.add(take == 0)
            if not some:
                continue
            parts = [take] if len(some) == 1 else [self._model.new_bool_var("") for _ in some]
            if len(some) > 1:
                self._model.add(sum(parts) == take)
            for disk, part in zip(some, parts, strict=True):
                yield disk, row, size, part

    def _going(self) -> Iterator[tuple[int, int, int, cp_model.IntVar | int]]:
        """Yield the disk, row and bytes of each present replica that goes or may go, and whether."""
        disks, searched = self._disks, self._searched
        table = np.concatenate([self._table, disks.fixed], axis=1)
        is_kept = is_at(disks.present, table)
        for row, seat in zip(*(each.tolist() for each in np.nonzero(disks.lies >= 0)), strict=True):
            take = searched.get((row, int(disks.present[row, seat])))
            if take is not None or not is_kept[row, seat]:
                yield int(disks.lies[row, seat]), row, int(disks.own[row, seat]), 1 if take is None else take.negated()

    @property
    def _searched(self) -> dict[tuple[int, int], cp_model.IntVar]:
        return {(int(self._face.number[row]), column): take for (row, column), take in self._takes.items()}

    def _everyone(self) -> Iterator[tuple[int, int, cp_model.IntVar | int]]:
        """Yield the row and broker of each replica that there is or may be, and whether."""
        searched = self._searched
        for (row, column), take in searched.items():
            yield row, column, take
        table = np.concatenate([self._table, self._disks.fixed], axis=1)
        held, seat = np.nonzero(table >= 0)
        for one, where in zip(held.tolist(), table[held, seat].tolist(), strict=True):
            if (one, where) not in searched:
                yield one, where, 1

    def _between(self, some: Sequence[cp_model.IntVar], low: int, high: int) -> None:
        if low > 0 or high < len(some):
            self._model.add_linear_constraint(sum(some), low, high)


def _solved(model: cp_model.CpModel) -> tuple[cp_model.CpSolverStatus, cp_model.CpSolver]:
    """Return how it ended, and the solver with the best solution found.

    One worker, a fixed seed and a limit in steps: each machine finds the same.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = EFFORT
    return solver.solve(model), solver
