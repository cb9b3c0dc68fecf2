"""Finds a placement that fits the disks: among the optima of counts, then among all as balanced, then among all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Bools, Ints, is_at, is_missing
from reconciler.model.desired import Balance, DesiredCluster, Off
from reconciler.model.disk_space import NO_SPACE
from reconciler.model.plan import BYTES
from reconciler.model.problem import Problem, warning
from reconciler.model.words import size
from reconciler.planner.costs import Cost
from reconciler.planner.objectives import CountTargets, asked_of_replicas
from reconciler.planner.placement_task import PlacementTask
from reconciler.planner.replicas import ReplicaSets, copied, place_replicas
from reconciler.planner.rows import Standing
from reconciler.planner.space.disks import Disks
from reconciler.planner.space.search import Found, Search

MOST_CHOICES = 40_000
"""Choices of one search: where there are more, the rows that matter to crowded disks are looked at alone."""
MOST_CELLS = 3_000_000
"""Partitions times brokers: up to so many, `load_balance` searches where no flow is near."""


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
        found = "all placements were searched"
        if not self.is_exact:
            found = f"not {found}, only those that matter to full disks"
        if self.sets is None:
            if self.is_exact:
                message = f"no placement that keeps the rules keeps limits.diskUse: {found}"
                yield warning(NO_SPACE, message, at)
            return
        proof, words = self.sets.proof, []
        if self.is_yielding:
            word = "replicas" if not isinstance(balance.replicas, Off) else "topics"
            words.append(f"disks do not allow what balance.{word} asks for, and counts are as near to it as they allow")
        if proof.value > proof.lower_bound:
            more = proof.value - proof.lower_bound
            copies = size(more) if proof.objective == BYTES else f"{more} replicas"
            words.append(f"to keep it, {copies} more are copied than without it")
        if words:
            message = f"limits.diskUse: {'; '.join(words)}; {found}"
            yield warning("KR848", message, at)


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
        value = costs[0].of(disks.task.replicas, found.table)
        return Roomy(_dearer(sets, first, found.table, value), found.is_exact)
    cells = len(sets.held) * len(task.eligible.ids)
    if not first or MOST_CHOICES < cells <= MOST_CELLS:
        return Roomy(None, found.is_exact and not first)
    unbalanced = place_replicas(task, replace(balance, replicas=Off(), topics=Off()))
    targets = [each for _, each in asked_of_replicas(task, balance)]
    found = _nearest(disks, unbalanced.balanced, sets.held, crowded, [*targets, *costs])
    if found.table is None:
        return Roomy(None, found.is_exact)
    value = costs[0].of(disks.task.replicas, found.table)
    return Roomy(_dearer(unbalanced, 0, found.table, value), found.is_exact, is_yielding=True)


def _dearer(sets: ReplicaSets, first: int, held: Ints, value: int) -> ReplicaSets:
    """Return other sets, with what the prices say of those that were chosen first as their bound."""
    levels = (*sets.proof.levels[:first], replace(sets.proof.levels[first], value=value))
    return replace(sets, held=held, proof=replace(sets.proof, value=value, levels=levels))


def _nearest(
    disks: Disks, face: Standing | None, table: Ints, crowded: Ints, goals: Sequence[Cost | CountTargets] = ()
) -> Found:
    """Return of what the face allows within the disks the best, of these the nearest to a table."""
    if face is None:
        return Found(None, is_exact=True)
    free = face.choices.states(face.demand, np.arange(len(face.number))) == 0
    if not free.any():
        return Found(None, is_exact=True)
    is_whole = bool(free.sum() <= MOST_CHOICES)
    if not is_whole:
        table = _traded(disks, face, free, table)
        crowded = np.union1d(disks.crowded(table), disks.broker[disks.is_tight])
        if not len(crowded) and not goals:
            return Found(table, is_exact=False)
        free = _that_matter(disks, face, free, table, crowded)
    found = Search(disks, face, free, table).found(goals)
    return found if is_whole else Found(found.table, is_exact=False)


def _traded(disks: Disks, face: Standing, free: Bools, table: Ints) -> Ints:
    """Return the table with new replicas of crowded brokers traded for smaller ones of others of the rack.

    Counts and copies stay what they are, so this is as good a table; the largest go first, each for the smallest.
    """
    number, rack, table = face.number, face.demand.rules.rack, table.copy(order="F")
    row, seat = np.nonzero(is_missing(table[number], disks.task.replicas[number]))
    where, size = table[number[row], seat], disks.task.size[number[row]]
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
    size, now, present = (each[face.number] for each in (disks.task.size, table, disks.task.replicas))
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
