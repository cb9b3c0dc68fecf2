"""Relieves full disks one replica at a time: the start of a search, and its result if it finds nothing better."""

import numpy as np

from reconciler.model.columns import Ints
from reconciler.planner.cheapest_sets import bounds_of
from reconciler.planner.rows import Standing, marked, with_rows
from reconciler.planner.space.disks import Disks


def relieved(disks: Disks, face: Standing, table: Ints) -> Ints:
    """Return the table with replicas of full brokers moved to others that have room, as the face allows.

    The fullest broker gives first, of its replicas the smallest that is enough, else the largest. New ones go before
    present ones, as they are copied anyway. The table stays as it is if this does not help.
    """
    if face.choices.has_cells:
        return table
    relief = _Relief(disks, face, table)
    relief.run()
    return min(relief.table, table, key=lambda each: int(disks.excess(each).sum()))


class _Relief:
    """The rows of a face with who holds them, and the room that is left on each broker."""

    def __init__(self, disks: Disks, face: Standing, table: Ints) -> None:
        number, rack = face.number, face.demand.rules.rack
        every = np.arange(len(number))
        self._face, self._before = face, table
        self._free = face.choices.states(face.demand, every) == 0
        self._takes_in = ~np.isin(np.arange(len(rack)), np.setdiff1d(disks.broker, disks.broker[disks.is_open]))
        self._held = marked(table[number], len(rack))
        self._present = marked(disks.task.replicas[number], len(rack))
        self._bounds = bounds_of(face.demand, face.choices, every)
        self._left = disks.left(table)
        self._copy = disks.task.size[number]
        # A present replica frees its own bytes, a new one those of a copy.
        self._frees = np.repeat(self._copy[:, None], len(rack), axis=1)
        row, seat = np.nonzero(disks.task.replicas[number] >= 0)
        self._frees[row, disks.task.replicas[number][row, seat]] = disks.own[number][row, seat]
        self._in_rack = np.zeros_like(self._bounds.low)
        for each in range(self._in_rack.shape[1]):
            self._in_rack[:, each] = self._held[:, rack == each].sum(axis=1)

    @property
    def table(self) -> Ints:
        """The brokers of all rows, as in the table given."""
        changed = (self._held != marked(self._before[self._face.number], self._held.shape[1])).any(axis=1)
        return with_rows(self._before, self._face.number[changed], self._held[changed])

    def run(self) -> None:
        """Move replicas away from brokers that are too full, the fullest first, until none of them has a place."""
        is_stuck = np.zeros_like(self._left, dtype=np.bool_)
        while (room := np.where(is_stuck, 0, self._left)).min(initial=0) < 0:
            broker = int(room.argmin())
            if self._give(broker):
                # A replica that leaves this broker may make room for one that leaves another.
                is_stuck[:] = False
            else:
                is_stuck[broker] = True

    def _give(self, broker: int) -> bool:
        """Move one replica away from that broker, if any of them has a place."""
        rack, racks = self._face.demand.rules.rack, self._in_rack
        count, (least, most) = self._held.sum(axis=0), self._face.choices.bounds(are_cells=False)
        rows = np.flatnonzero(self._held[:, broker] & self._free[:, broker] & (self._frees[:, broker] > 0))
        if not len(rows) or count[broker] <= least[broker]:
            return False
        here, each = rack[broker], np.arange(len(rows))[:, None]
        is_open = self._free[rows] & ~self._held[rows] & self._takes_in & (count < most)
        is_open &= (self._left >= self._copy[rows, None]) & np.asarray(self._left >= 0)
        may_leave = (racks[rows, here] > self._bounds.low[rows, here])[:, None]
        may_come = (racks[rows] < self._bounds.high[rows])[each, rack]
        is_open &= (rack == here) | (may_leave & may_come)
        rows, is_open = rows[is_open.any(axis=1)], is_open[is_open.any(axis=1)]
        if not len(rows):
            return False
        frees, lacks = self._frees[rows, broker], -int(self._left[broker])
        is_enough = frees >= lacks
        first = np.lexsort((np.where(is_enough, frees, -frees), ~is_enough, self._present[rows, broker]))[0]
        row, columns = int(rows[first]), np.flatnonzero(is_open[first])
        # A broker that has the replica already needs no copy; then the rack with the fewest, and the most room.
        order = np.lexsort((-self._left[columns], racks[row, rack[columns]], ~self._present[row, columns]))
        to = int(columns[order[0]])
        self._held[row, [broker, to]] = False, True
        racks[row, here] -= 1
        racks[row, rack[to]] += 1
        self._left[[broker, to]] += [self._frees[row, broker], -self._frees[row, to]]
        return True
