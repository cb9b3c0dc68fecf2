"""What is to be placed, in arrays: one row a partition, or a class of partitions that obey the same rules."""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.planner.network import Bools, Ints, Network


@dataclass(frozen=True, slots=True)
class Rows:
    """Demands on brokers, all arrays with one row each.

    `count` [n]: partitions in the row. `need` [n]: replicas of one of them. `allowed` [n, brokers]: who may hold one.
    `low`, `high` [n, racks]: the fewest and most replicas of one partition in a rack. `rack` [brokers]: the rack of
    each broker. `leading` [n, racks]: racks that together must hold at least one replica; all false where none must.
    """

    count: Ints
    need: Ints
    allowed: Bools
    low: Ints
    high: Ints
    rack: Ints
    leading: Bools

    @property
    def total(self) -> int:
        """Replicas to place."""
        return int((self.count * self.need).sum())

    def room(self) -> Ints:
        """Return [n, racks]: the brokers of each rack that may hold a replica."""
        racks = self.low.shape[1]
        return np.stack([self.allowed[:, self.rack == rack].sum(axis=1) for rack in range(racks)], axis=1)


@dataclass(frozen=True, slots=True)
class Choices:
    """Which choices of a row are still free, as the objectives solved so far left them.

    `racks` [n, racks] and `brokers` [n, brokers] and `leading` [n]: -1 held at the lower bound, 1 at the
    upper, 0 free. `low`, `high`
    [brokers]: bounds of what each broker gets in all.
    """

    racks: Ints
    brokers: Ints
    leading: Ints
    low: Ints
    high: Ints

    def of_rows(self, kind: Ints) -> "Choices":
        """Return the choices of rows whose classes are `kind`, from those of the classes."""
        return replace(self, racks=self.racks[kind], brokers=self.brokers[kind], leading=self.leading[kind])


@dataclass(frozen=True, slots=True)
class Layout:
    """Where rows, racks and brokers are in a network: arc numbers, -1 for no arc, and what each arc stands for."""

    leading_row: Ints
    rack_arc: Ints
    broker_row: Ints
    broker_column: Ints
    first_broker_arc: int
    first_sink_arc: int
    first_broker_node: int

    def spread(self, values: Ints) -> Ints:
        """Return values [n, brokers] as one a rack -> broker arc."""
        return values[self.broker_row, self.broker_column]


def free_choices(rows: Rows) -> Choices:
    """Return choices with nothing decided."""
    brokers = rows.allowed.shape[1]
    return Choices(
        racks=np.zeros(rows.low.shape, dtype=np.int64),
        brokers=np.zeros(rows.allowed.shape, dtype=np.int64),
        leading=np.zeros(len(rows.count), dtype=np.int64),
        low=np.zeros(brokers, dtype=np.int64),
        high=np.full(brokers, rows.total, dtype=np.int64),
    )


def build_network(rows: Rows, choices: Choices) -> tuple[Network, Layout]:
    """Return the network row (-> leading racks) -> rack -> broker -> sink, and where things are in it."""
    n, racks = rows.low.shape
    brokers = rows.allowed.shape[1]
    first_rack, first_group = n, n + n * racks
    first_broker = first_group + n
    sink = first_broker + brokers
    group = np.flatnonzero(rows.leading.any(axis=1))
    room = rows.room()
    row, rack = np.nonzero(room > 0)
    column_row, column = np.nonzero(rows.allowed)
    tail_rack = np.where(rows.leading[row, rack], first_group + row, row)
    low = (rows.count[:, None] * rows.low)[row, rack]
    high = (rows.count[:, None] * np.minimum(rows.high, room))[row, rack]
    state, chosen = choices.racks[row, rack], choices.brokers[column_row, column]
    one = rows.count[column_row]
    parts = [
        (
            group,
            first_group + group,
            rows.count[group],
            np.where(choices.leading[group] < 0, rows.count[group], (rows.count * rows.need)[group]),
        ),
        (
            tail_rack,
            first_rack + row * racks + rack,
            np.where(state > 0, high, low),
            np.where(state < 0, low, high),
        ),
        (
            first_rack + column_row * racks + rows.rack[column],
            first_broker + column,
            np.where(chosen > 0, one, 0),
            np.where(chosen < 0, 0, one),
        ),
        (np.arange(first_broker, sink), np.full(brokers, sink), choices.low, choices.high),
    ]
    tail, head, lower, upper = (np.concatenate(arrays).astype(np.int64) for arrays in zip(*parts, strict=True))
    supply = np.zeros(sink + 1, dtype=np.int64)
    supply[:n] = rows.count * rows.need
    supply[sink] = -rows.total
    layers = tuple(int(end) for end in np.cumsum([len(part[0]) for part in parts]))
    rack_arc = np.full((n, racks), -1, dtype=np.int64)
    rack_arc[row, rack] = layers[0] + np.arange(len(row))
    layout = Layout(group, rack_arc, column_row, column, layers[1], layers[2], first_broker)
    return Network(tail, head, lower, upper, supply, layers), layout


def classes(rows: Rows) -> tuple[Rows, Ints]:
    """Return one row for each class of equal rows, and the class of each row."""
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
    _, first, kind = np.unique(packed, return_index=True, return_inverse=True)
    count = np.bincount(kind, weights=rows.count, minlength=len(first)).astype(np.int64)
    picked = Rows(
        count,
        rows.need[first],
        rows.allowed[first],
        rows.low[first],
        rows.high[first],
        rows.rack,
        rows.leading[first],
    )
    return picked, kind.astype(np.int64)
