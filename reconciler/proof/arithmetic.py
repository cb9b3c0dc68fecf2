"""Names the arrays of the proof and computes with them: exact sums, lists of brokers side by side, rows that are alike.

The planner has functions like these of its own. These are written anew, so that no fault of those is repeated here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]
"""Whole numbers: of 64 bits, or Python's own where 64 bits may not do."""
Bools = NDArray[np.bool_]
NONE = -1
"""No broker, no row, an unknown size; fills a list that is shorter than the longest."""


class NotProved(Exception):
    """A plan does not show what it says; the text is one sentence that names the first thing wrong."""


SAFE = 1 << 60
"""A few numbers below it can be added in 64 bits; where one is not below it, all are Python's own."""
_HALF = 32


def whole_numbers(values: Sequence[int]) -> Ints:
    """Return these numbers, of which a few can be added."""
    is_safe = max(values, default=0) < SAFE and min(values, default=0) > -SAFE
    return np.array(values, dtype=np.int64 if is_safe else object)


def exact_sum(values: Ints) -> int:
    """Return the sum, however large it is."""
    if values.dtype == object:
        return int(values.sum()) if values.size else 0
    # The sum of a billion halves of 32 bits fits 64.
    high, low = values >> _HALF, values & ((1 << _HALF) - 1)
    return (int(high.sum()) << _HALF) + int(low.sum())


def exact_product(counts: Ints, sizes: Ints) -> Ints:
    """Return the products of two columns, however large they are."""
    is_safe = int(np.abs(counts).max(initial=0)) * int(np.abs(sizes).max(initial=0)) < SAFE
    return counts * sizes if is_safe else counts.astype(object) * sizes.astype(object)


def stacked(tables: Sequence[Ints]) -> Ints:
    """Return the rows of these tables of brokers, one table below the other, as wide as the widest."""
    width = max((table.shape[1] for table in tables), default=1)
    missing = [width - table.shape[1] for table in tables]
    if not any(missing):
        return np.concatenate(tables) if tables else np.full((0, width), NONE)
    pads = [np.full((len(table), pad), NONE) for table, pad in zip(tables, missing, strict=True)]
    return np.concatenate([np.hstack(pair) for pair in zip(tables, pads, strict=True)])


def table_of_lists(lists: Sequence[Sequence[int]]) -> Ints:
    """Return lists of brokers as the rows of a table."""
    width = max(map(len, lists), default=1) or 1
    rows = [(*brokers, *[NONE] * (width - len(brokers))) for brokers in lists]
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


def lists_of(table: Ints) -> Iterator[tuple[int, ...]]:
    """Yield the rows of a table of brokers as lists."""
    return (tuple([broker_id for broker_id in row if broker_id >= 0]) for row in table.tolist())


def is_among(named: Ints, table: Ints) -> Bools:
    """Return [rows, width] which of the named brokers are in the same row of the table."""
    is_there: Bools = np.zeros(named.shape, dtype=np.bool_)
    for column in table.T:
        is_there |= named == column[:, None]
    return is_there & (named >= 0)


def is_new(named: Ints, table: Ints) -> Bools:
    """Return [rows, width] which of the named brokers are not in the same row of the table."""
    return (named >= 0) & ~is_among(named, table)


def differs(lists: Ints, expected: Ints) -> Bools:
    """Return which rows of two tables of brokers are not the same list."""
    left, right = np.split(stacked([lists, expected]), 2)
    is_unlike: Bools = (left != right).any(axis=1)
    return is_unlike


def has_twice(lists: Ints) -> Bools:
    """Return which rows name a broker twice."""
    ordered = np.sort(lists, axis=1)
    is_repeated: Bools = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return is_repeated


def positions_in(ids: Ints, brokers: Ints) -> Ints:
    """Return where each broker is among these ascending ids; NONE for one that is not."""
    if not len(ids):
        return np.full(brokers.shape, NONE)
    place = np.minimum(np.searchsorted(ids, brokers), len(ids) - 1)
    return np.where(ids[place] == brokers, place, NONE)


def kinds_of(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return a row of each kind, and the kind of each row; rows of one kind are equal in every column."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if (int(code.max(initial=0)) + 1) * span >= SAFE:
            code = np.unique(code, return_inverse=True)[1]
        code = code * span + (column - low)
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return first, kind
