"""Computes with columns of numbers: lists of brokers side by side, exact sums by broker, rows that are alike."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reconciler.model.codec import MAX_INTEGER

T = TypeVar("T", bound=Any)
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NONE = -1
"""In any column: nobody, nothing, unknown; behind the last item of a list."""
_MOST_DENSE = 1 << 16
"""Numbers below this are looked up in a column that has a place for each of them."""


def alike(columns: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the first row of each kind, ascending, and the kind of each row; rows of a kind are equal throughout."""
    code = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        least = int(column.min(initial=0))
        span = int(column.max(initial=0)) - least + 1
        if span == 1:
            continue
        if int(code.max(initial=0)) >= (1 << 62) // span:
            code = np.unique(code, return_inverse=True)[1]
        code = code * span + (column.astype(np.int64, copy=False) - least)
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[kind]


def place_among_equals(ordered: Ints) -> Ints:
    """Return, of numbers in ascending order, how many equal ones stand before each."""
    start = np.flatnonzero(starts_of_runs(ordered))
    place: Ints = np.arange(len(ordered)) - np.repeat(start, np.diff(start, append=len(ordered)))
    return place


def distinct(numbers: Ints) -> Ints:
    """Return which numbers are there, ascending, each once; below 0 is none."""
    there = numbers[numbers >= 0]
    if int(there.max(initial=0)) >= _MOST_DENSE:
        return np.unique(there)
    return np.flatnonzero(np.bincount(there))


def starts_of_runs(*columns: Ints) -> Bools:
    """Return which rows differ from the row before them, in any of these columns; the first row does."""
    found = np.ones(len(columns[0]), dtype=np.bool_)
    found[1:] = np.any([np.diff(column) != 0 for column in columns], axis=0)
    return found


def counted(sizes: Ints) -> Ints:
    """Return 0, 1, 2 and so on up to each of these sizes, one size behind the other."""
    place: Ints = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return place


def places_in(ids: Ints, wanted: Ints) -> Ints:
    """Return the place of each wanted number among these ascending ids; NONE for one that is not there."""
    if not len(ids):
        return np.full(wanted.shape, NONE, dtype=np.int64)
    if len(ids) <= int(ids[-1]) + 1 <= _MOST_DENSE:
        # Ids of brokers are mostly small: to look each up takes a tenth of a search.
        dense = np.full(int(ids[-1]) + 2, NONE, dtype=wanted.dtype)
        dense[ids] = np.arange(len(ids))
        return dense[np.where((wanted >= 0) & (wanted < len(dense)), wanted, NONE)]
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[place] == wanted, place, NONE)


def sums(brokers: Ints, amounts: Ints) -> dict[int, int]:
    """Return the exact sum of the amounts beside each broker; NONE is no broker."""
    is_one = brokers >= 0
    place, counted = brokers[is_one], np.broadcast_to(amounts, brokers.shape)[is_one]
    if int(place.max(initial=0)) < _MOST_DENSE:
        ids = np.arange(int(place.max(initial=NONE)) + 1)
        is_there = np.bincount(place, minlength=len(ids)) > 0
    else:
        ids, place = np.unique(place, return_inverse=True)
        is_there = np.ones(len(ids), dtype=np.bool_)
    is_wide = int(counted.max(initial=0)) > ((1 << 62) // max(1, len(counted)))
    total = np.zeros(len(ids), dtype=np.object_ if is_wide else np.int64)
    np.add.at(total, place, counted.astype(total.dtype))
    return dict(zip(ids[is_there].tolist(), total[is_there].tolist(), strict=True))


def exact(numbers: Sequence[int]) -> Ints:
    """Return these whole numbers as a column, of Python's own where 64 bits do not hold one."""
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=np.object_)


def rows_of_each(table: T, names: Iterable[str], rows: Ints) -> T:
    """Return a table, which is a dataclass, with these rows of its columns of these names."""
    return replace(table, **{name: getattr(table, name)[rows] for name in names})


def narrowed(numbers: Ints) -> Ints:
    """Return the same in 16 bits each where these hold all: there is less to go through."""
    is_small = int(numbers.min(initial=0)) >= -(1 << 15) and int(numbers.max(initial=0)) < 1 << 15
    return numbers.astype(np.int16) if is_small else numbers


def exact_product(counts: Ints, sizes: Ints) -> Ints:
    """Return the products of two columns, as Python's own numbers where 64 bits might not hold one."""
    is_wide = int(counts.max(initial=0)) * int(sizes.max(initial=0)) > MAX_INTEGER
    return counts.astype(np.object_) * sizes if is_wide else counts * sizes


def is_at(named: Ints, table: Ints) -> Bools:
    """Return [rows, some] which of the named brokers are among those of the table [rows, others]."""
    found: Bools = np.zeros(named.shape, dtype=np.bool_)
    for place in range(table.shape[1]):
        found |= named == table[:, place, None]
    return found & (named >= 0)


def is_missing(named: Ints, table: Ints) -> Bools:
    """Return [rows, some] which of the named brokers are not among those of the table [rows, others]."""
    return (named >= 0) & ~is_at(named, table)


def is_repeated(lists: Ints) -> Bools:
    """Return which rows name one broker twice."""
    ordered = np.sort(lists, axis=1)
    found: Bools = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    return found


def is_unlike(lists: Ints, others: Ints) -> Bools:
    """Return which rows of the two tables of brokers are not the same list."""
    one, other = np.split(beside_each_other([lists, others]), 2)
    found: Bools = (one != other).any(axis=1)
    return found


def beside_each_other(tables: Sequence[Ints]) -> Ints:
    """Return the rows of all these tables of brokers, as wide as the widest, one table behind the other."""
    width = max((each.shape[1] for each in tables), default=1)
    found = np.full((sum(map(len, tables)), width), NONE, dtype=np.int64)
    start = 0
    for each in tables:
        found[start : start + len(each), : each.shape[1]] = each
        start += len(each)
    return found


def padded(lists: Sequence[Sequence[int]]) -> Ints:
    """Return lists of brokers as rows as wide as the longest, NONE where a list has ended."""
    made = Lists()
    made.add(lists)
    return made.padded(1)


def lists_of(table: Ints) -> Iterator[tuple[int, ...]]:
    """Yield the rows of a table of brokers as lists that end where NONE begins."""
    if table.min(initial=0) > NONE:
        return map(tuple, table.tolist())
    return (tuple([one for one in row if one >= 0]) for row in table.tolist())


@dataclass(slots=True)
class Lists:
    """Takes lists of numbers, one behind the other."""

    flat: "array[int]" = field(default_factory=lambda: array("q"))
    length: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, lists: Sequence[Sequence[int]]) -> None:
        """Take some more."""
        self.length.fromlist([*map(len, lists)])
        self.flat.fromlist([*chain.from_iterable(lists)])  # twice as fast as `extend`

    def padded(self, width: int, empty: int = NONE) -> Ints:
        """Return them as rows of that width at least; one without items is full of `empty`."""
        length, flat = column(self.length), column(self.flat)
        width = max(width, int(length.max(initial=0)))
        if not len(flat):
            return np.broadcast_to(np.int64(empty), (len(length), width))
        if length.min(initial=width) == width:
            return flat.reshape(len(length), width)
        rows = np.where(length == 0, empty, NONE)[:, None].repeat(width, axis=1)
        rows[np.arange(width) < length[:, None]] = flat
        return rows


def column(numbers: "array[int]") -> Ints:
    """Return these numbers as a column."""
    return np.frombuffer(numbers, dtype=np.int64) if numbers else np.empty(0, dtype=np.int64)
