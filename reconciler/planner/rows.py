"""Holds what is to be placed as arrays: one row a partition, or a class of partitions that obey the same rules."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
States = NDArray[np.int8]
Counts = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Rows:
    """Demands on brokers, all arrays with one row each. A seat is a broker that a row may choose.

    `count` [n]: partitions in the row. `need` [n]: replicas of one of them. `allowed` [n, seats]: which seats it may
    take. `low`, `high` [n, racks]: the fewest and most replicas of one partition in a rack; `high` is no more than the
    rack's allowed seats. `rack` [seats]: the rack of each seat. `leading` [n, racks]: racks that together must hold at
    least one replica; all false where none must. `topic` [n]: the number of its topic, where topics are balanced.
    `column` [seats], or [n, seats] where rows differ: the broker of each seat, of `brokers` in all.
    """

    count: Ints
    need: Ints
    allowed: Bools
    low: Ints
    high: Ints
    rack: Ints
    leading: Bools
    topic: Ints
    column: Ints
    brokers: int

    @property
    def total(self) -> int:
        """Replicas to place."""
        return int((self.count * self.need).sum())

    def take(self, index: Ints | slice) -> "Rows":
        """Return these rows alone."""
        return Rows(
            self.count[index],
            self.need[index],
            self.allowed[index],
            self.low[index],
            self.high[index],
            self.rack,
            self.leading[index],
            self.topic[index],
            self.column if self.column.ndim == 1 else self.column[index],
            self.brokers,
        )

    def units(self, placed: Counts, *, is_by_topic: bool, topics: int = 0) -> Ints:
        """Return how many replicas `placed` [n, seats] each broker gets, or each broker of each topic."""
        row, seat = np.nonzero(placed)
        place, places = self.broker(row, seat), self.brokers
        if is_by_topic:
            place, places = self.topic[row] * self.brokers + place, topics * self.brokers
        return np.bincount(place, weights=placed[row, seat], minlength=places).astype(np.int64)

    def broker(self, row: Ints, seat: Ints) -> Ints:
        """Return the broker of these rows' seats."""
        return self.column[seat] if self.column.ndim == 1 else self.column[row, seat]


@dataclass(frozen=True, slots=True)
class Choices:
    """Which choices are still free, as the objectives solved so far left them: the face of their optimal solutions.

    `racks` [n, racks], `brokers` [n, seats] and `leading` [n]: -1 held at the lower bound, 1 at the upper, 0 free.
    `low`, `high` [brokers]: bounds of what each broker gets in all; `cell_low`, `cell_high` [topics * brokers]: the
    same for each topic's part of it, empty where topics are not balanced.
    """

    racks: States
    brokers: States
    leading: States
    low: Ints
    high: Ints
    cell_low: Ints
    cell_high: Ints

    @property
    def has_cells(self) -> bool:
        """Whether each topic's replicas on each broker are counted by themselves."""
        return len(self.cell_low) > 0

    def take(self, index: Ints | slice) -> "Choices":
        """Return the choices of these rows alone; of the same brokers."""
        return replace(self, racks=self.racks[index], brokers=self.brokers[index], leading=self.leading[index])

    def free(self, rows: Rows) -> Bools:
        """Return [n, seats] where a row's choice of a seat is not decided."""
        undecided: Bools = rows.allowed & (self.brokers == 0)
        return undecided


def free_choices(rows: Rows, topics: int = 0) -> Choices:
    """Return choices with nothing decided; with `topics`, so many are counted broker by broker."""
    brokers, cells = rows.brokers, topics * rows.brokers
    return Choices(
        racks=np.zeros(rows.low.shape, dtype=np.int8),
        brokers=np.zeros(rows.allowed.shape, dtype=np.int8),
        leading=np.zeros(len(rows.count), dtype=np.int8),
        low=np.zeros(brokers, dtype=np.int64),
        high=np.full(brokers, rows.total, dtype=np.int64),
        cell_low=np.zeros(cells, dtype=np.int64),
        cell_high=np.full(cells, rows.total, dtype=np.int64),
    )


def room(rows_allowed: Bools, rack: Ints, racks: int) -> Ints:
    """Return [n, racks]: the brokers of each rack that may hold a replica."""
    found = np.zeros((len(rows_allowed), racks), dtype=np.int64)
    for number in range(racks):
        found[:, number] = rows_allowed[:, rack == number].sum(axis=1)
    return found


def classes(rows: Rows, of_rules: Ints) -> tuple[Rows, Ints]:
    """Return one row for each class of rows of equal `of_rules` [n] and topic, and the class of each row."""
    _, first, of_row = np.unique(
        of_rules * (rows.topic.max(initial=0) + 1) + rows.topic, return_index=True, return_inverse=True
    )
    count = np.bincount(of_row, weights=rows.count, minlength=len(first)).astype(np.int64)
    return replace(rows.take(first), count=count), of_row


def demand_classes(rows: Rows) -> Ints:
    """Return a number for each row, equal for rows with equal demands, whatever their topics."""
    # Bytes that are compared as one value: numbers of replicas are small, and masks take a bit a broker.
    key = np.concatenate(
        [
            rows.need[:, None].astype(np.uint8),
            np.packbits(rows.allowed, axis=1),
            np.packbits(rows.leading, axis=1),
            rows.low.astype(np.uint8),
            rows.high.astype(np.uint8),
        ],
        axis=1,
    )
    packed = np.ascontiguousarray(key).view(np.dtype((np.void, key.shape[1]))).ravel()
    _, of_row = np.unique(packed, return_inverse=True)
    return of_row.astype(np.int64)
