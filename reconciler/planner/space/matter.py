"""Picks what of a large cluster matters to crowded disks: replicas to trade, and choices that are worth a search."""

import numpy as np

from reconciler.model.columns import Bools, Ints
from reconciler.planner.costs import is_at
from reconciler.planner.rows import Standing
from reconciler.planner.space.disks import Disks

MOST_CHOICES = 40_000
"""Choices of one search: where there are more, the rows that matter to crowded disks are looked at alone."""


def traded(disks: Disks, face: Standing, free: Bools, table: Ints) -> Ints:
    """Return the table with new replicas of crowded brokers traded for smaller ones of others of the rack.

    Counts and copies stay what they are, so this is as good a table; the largest go first, each for the smallest.
    """
    number, rack, table = face.number, face.demand.rules.rack, table.copy(order="F")
    row, seat = np.nonzero((table[number] >= 0) & ~is_at(table[number], disks.task.replicas[number]))
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


def that_matter(disks: Disks, face: Standing, free: Bools, table: Ints, crowded: Ints) -> Bools:
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
