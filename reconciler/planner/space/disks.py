"""Tells what lies on each disk of the brokers that take part, and which of them a table of replicas fills too far."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from reconciler.model.cluster import Broker, Cluster
from reconciler.model.columns import NONE, Bools, Ints, exact_product, is_at, is_missing
from reconciler.model.disk_space import Space, bytes_held, deleted_bytes
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
    is_inside: Bools  # [disks]: whether replicas may move between them and the others of their broker
    deleted: Ints  # [disks]: bytes of topics that the plan deletes after all moves
    task: PlacementTask  # whose partitions take of them: `size` is what a new replica takes
    own: Ints  # [partitions, width]: the bytes of each present replica
    lies: Ints  # [partitions, width]: its disk, -1 where none is watched

    def crowded(self, held: Ints) -> Ints:
        """Return the brokers that a table fills too far in the end, or brings something to that no disk may take."""
        _, _, columns = self._after(held)
        closed = np.setdiff1d(np.intersect1d(columns, self.broker), self.broker[self.is_open])
        return np.union1d(self.broker[self.excess(held) > 0], closed)

    def excess(self, held: Ints) -> Ints:
        """Return by how many bytes [disks] a table fills each disk too far in the end.

        Of a broker with several disks, new replicas go, the largest first, to the disk where most is free.
        """
        free, row, columns = self._after(held)
        for column in np.unique(columns).tolist():
            places = np.flatnonzero((self.broker == column) & self.is_open)
            for size in np.sort(self.task.size[row[columns == column]])[::-1].tolist() if len(places) else ():
                free[places[free[places].argmax()]] -= size
        return np.maximum(-free, 0)

    def least_excess(self) -> int:
        """Return bytes above the limit that there are with every placement: a bound, without racks and counts.

        Replicas without a choice stay. Beside them, all others together may have more than the disks' room, and one may
        have more than the roomiest disk that may take it::

            85 of 100 bytes are allowed, and a partition has 90: on each disk, 5 bytes are too many
        """
        task = self.task
        allowed = task.rule_classes.rows.allowed
        has_choice = (task.need > 0) & (task.need < allowed.sum(axis=1)[task.rule_class])
        # What has no choice stays, unless it has to leave.
        has_to_leave = ~allowed[task.rule_class[:, None], task.replicas]
        is_inside = (self.lies >= 0) & np.append(self.is_inside, False)[self.lies]
        is_movable = (task.need > 0)[:, None] & (has_choice[:, None] | has_to_leave)
        is_movable &= (self.lies >= 0) & ~is_at(task.replicas, task.fixed)
        is_movable |= is_inside
        moved = np.zeros_like(self.used)
        np.add.at(moved, self.lies[is_movable], self.own[is_movable])
        room = self.allowed + self.deleted - (self.used - moved)
        by_broker = np.full(len(task.eligible.ids), LARGEST)
        by_broker[self.broker] = 0
        np.maximum.at(by_broker, self.broker, room)
        # A replica that lags may have less than a copy, and stay.
        size = np.minimum(task.size, np.where(self.lies >= 0, self.own, LARGEST).min(axis=1, initial=LARGEST))
        large = np.flatnonzero((size > by_broker.min(initial=LARGEST)) & has_choice)
        excess = np.sort(
            np.where(allowed[task.rule_class[large]], np.maximum(size[large, None] - by_broker, 0), LARGEST), axis=1
        )
        is_needed = (np.arange(excess.shape[1]) < task.need[large, None]) & (excess < LARGEST)
        is_whole = len(np.unique(self.broker)) == len(by_broker)  # else a broker takes any number of bytes
        beyond = exact_product(size, task.need)[has_choice].sum() - np.maximum(room, 0).sum() if is_whole else 0
        return int(np.maximum(-room, 0).sum() + max(excess[is_needed].sum(), beyond))

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
        free = self.allowed - self.used + self.deleted
        np.add.at(free, self.lies[is_left], self.own[is_left])
        row, seat = np.nonzero(is_missing(table, self.task.replicas))
        return free, row, table[row, seat]


def disks_of(task: PlacementTask, observed: Cluster, space: Space, deleted: Collection[str] = ()) -> Disks:
    """Return the disks of the brokers that take part; `deleted` are the topics that the plan deletes."""
    held, eligible = bytes_held(observed), task.eligible
    found = [
        (column, path, used, _allowed(space, broker_id, used, total), is_open, broker_id in space.tight, total)
        for column, broker_id in enumerate(eligible.ids)
        for path, used, total, is_open in _disks(observed.brokers[broker_id], held.get(broker_id))
    ]
    broker, used, allowed, total = (np.array([each[part] for each in found], dtype=np.int64) for part in (0, 2, 3, 6))
    is_open, is_tight = (np.array([each[part] for each in found], dtype=np.bool_) for part in (4, 5))
    is_inside = np.isin(broker, eligible.columns([*space.inside]))
    own, lies = _lying(task, observed, {each[:2]: place for place, each in enumerate(found)})
    of_deleted = deleted_bytes(observed, deleted)
    gone = np.array([of_deleted.get((eligible.ids[each[0]], each[1]), 0) for each in found], dtype=np.int64)
    return Disks(broker, used, allowed, total, is_open, is_tight, is_inside, gone, task, own, lies)


def _allowed(space: Space, broker_id: int, used: int, total: int) -> int:
    """Return the bytes that a disk may hold; one that is not to be relieved may stay as full as it is."""
    is_relieved = space.relieved is None or broker_id in space.relieved
    return max(int(total * space.share), 0 if is_relieved else used)


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
