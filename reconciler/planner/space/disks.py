"""Tells what lies on each disk of the brokers that take part, and which of them a table of replicas fills too far."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from reconciler.model.cluster import Broker, Cluster
from reconciler.model.columns import NONE, Bools, Ints, is_at, is_missing
from reconciler.model.disk_space import Space, bytes_held
from reconciler.model.table_maker import table_of
from reconciler.planner.cheapest_sets import LARGEST
from reconciler.planner.placement_task import PlacementTask


@dataclass(frozen=True, slots=True)
class Disks:
    """The disks whose size is known, a broker's log dirs each or all in one, and what partitions take of them.

    Tables of who holds a partition are columns of brokers, -1 for none, without those that the task has fixed.
    """

    broker: Ints  # [disks]: the broker's column
    used: Ints  # [disks]: bytes
    allowed: Ints  # [disks]: bytes
    total: Ints  # [disks]: bytes
    is_open: Bools  # [disks]: whether new replicas may go there
    is_tight: Bools  # [disks]: whether they are looked at in each step, and not in the end alone
    is_spared: Bools  # [disks]: whether they may stay as full as they are; then nothing comes
    task: PlacementTask  # whose partitions take of them: `size` is what a new replica takes
    own: Ints  # [partitions, width]: the bytes of each present replica
    lies: Ints  # [partitions, width]: its disk, -1 where none is watched

    def crowded(self, held: Ints) -> Ints:
        """Return the brokers that a table fills too far in the end.

        Of a broker with several disks, those that its new replicas, the largest first to where most is free, overfill.
        """
        free, row, columns = self._after(held)
        found = {*self.broker[(free < 0) & ~self.is_spared].tolist()}
        for column in np.unique(columns).tolist():
            left = free[(self.broker == column) & self.is_open].tolist()
            sizes = np.sort(self.task.size[row[columns == column]])[::-1].tolist()
            for each in sizes if left else ():
                emptiest = left.index(max(left))
                left[emptiest] -= each
            if min(left, default=-1) < 0 and column in self.broker:
                found.add(column)
        return np.array(sorted(found), dtype=np.int64)

    def left(self, held: Ints) -> Ints:
        """Return the bytes that are left [brokers] once a table holds; where no disk is watched, without end."""
        free, row, columns = self._after(held)
        left = np.full(len(self.task.eligible.ids), LARGEST)
        left[self.broker] = 0
        np.add.at(left, self.broker, free)
        np.subtract.at(left, columns, self.task.size[row])
        return left

    def _after(self, held: Ints) -> tuple[Ints, Ints, Ints]:
        """Return what is free [disks] without the replicas that leave, and the row and broker of each that comes."""
        table = np.concatenate([held, self.task.fixed], axis=1)
        is_left = ~is_at(self.task.replicas, table) & (self.lies >= 0)
        free = self.allowed - self.used
        np.add.at(free, self.lies[is_left], self.own[is_left])
        row, seat = np.nonzero(is_missing(table, self.task.replicas))
        return free, row, table[row, seat]


def disks_of(task: PlacementTask, observed: Cluster, space: Space) -> Disks:
    """Return the disks of the brokers that take part."""
    held, eligible = bytes_held(observed), task.eligible
    found = [
        (column, path, used, int(total * space.share), is_open, broker_id in space.tight, total)
        for column, broker_id in enumerate(eligible.ids)
        for path, used, total, is_open in _disks(observed.brokers[broker_id], held.get(broker_id))
    ]
    broker, used, allowed, total = (np.array([each[part] for each in found], dtype=np.int64) for part in (0, 2, 3, 6))
    is_open, is_tight = (np.array([each[part] for each in found], dtype=np.bool_) for part in (4, 5))
    is_spared = (used > allowed) & space.is_sparing
    own, lies = _lying(task, observed, {each[:2]: place for place, each in enumerate(found)})
    is_open &= ~is_spared
    return Disks(broker, used, allowed, total, is_open, is_tight, is_spared, task, own, lies)


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
    dirs = broker.sized_dirs
    if len(dirs) > 1:
        yield from dirs
    elif held is not None and (size := broker.total_bytes) is not None:
        yield None, held, size, True
