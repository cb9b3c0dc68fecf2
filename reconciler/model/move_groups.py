"""Sums moves up by group, however many there are: what a reviewer reads of them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from reconciler.model.columns import Ints, lists_of, starts_of_runs, sums
from reconciler.model.move_table import Moves, Why

K = TypeVar("K", bound=tuple[Any, ...])


@dataclass(frozen=True, eq=False)
class MoveGroup:
    """What some moves come to; a partition that moves several times counts from its first list to its last."""

    every: Moves
    rows: Ints
    """Which of all moves are in the group."""
    partitions: int
    topics: int
    copies: int
    bytes: int
    is_size_known: bool
    factors: Mapping[tuple[int, int], int]
    """How many of the partitions have which replication factor before and after."""

    @property
    def why(self) -> Why:
        """What asks for the first of them."""
        return self.every.whys[int(self.every.why[self.rows[0]])]

    @property
    def topic(self) -> str:
        """The topic of the first of them."""
        return self.every.topics[int(self.every.topic[self.rows[0]])]

    @cached_property
    def growth(self) -> int:
        """How many replicas more there are after."""
        return sum((after - before) * count for (before, after), count in self.factors.items())

    @property
    def left(self) -> tuple[frozenset[int], frozenset[int]]:
        """The brokers that any of the partitions leaves, and those that each of them leaves."""
        moves = self.every.part(self.rows)
        first, last = moves.ends
        lists = zip(lists_of(moves.before[first]), lists_of(moves.after[last]), strict=True)
        left = [frozenset(before).difference(after) for before, after in lists]
        return frozenset[int]().union(*left), frozenset.intersection(*left)


def grouped(moves: Moves, key: Callable[[Why, str], K]) -> Mapping[K, MoveGroup]:
    """Return the groups of moves for which the key of why they are made, and of their topic, is the same, sorted."""
    if not len(moves):
        return {}
    group, keys = _numbered(moves, key)
    # First all moves of a partition in a group, in their order; what is summed of partitions is asked of the ends.
    order = np.lexsort((moves.partition, group))
    is_first = starts_of_runs(group[order], moves.partition[order])
    first, last = order[is_first], order[np.append(is_first[1:], True)]
    of_way = group[first]
    topics = Counter(place for place, _ in {*zip(of_way.tolist(), moves.topic[first].tolist(), strict=True)})
    lengths = ((moves.before[first] >= 0).sum(axis=1).tolist(), (moves.after[last] >= 0).sum(axis=1).tolist())
    factors: list[Counter[tuple[int, int]]] = [Counter() for _ in keys]
    for (place, *factor), count in Counter(zip(of_way.tolist(), *lengths, strict=True)).items():
        factors[place][factor[0], factor[1]] = count
    copies, size, unknown = (
        sums(group, each) for each in (moves.copies, moves.bytes, (~moves.is_size_known).astype(int))
    )
    rows = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    return {
        found: MoveGroup(
            moves,
            np.sort(rows[place]),
            partitions=factors[place].total(),
            topics=topics[place],
            copies=copies[place],
            bytes=size[place],
            is_size_known=not unknown[place],
            factors=factors[place],
        )
        for place, found in enumerate(keys)
    }


def _numbered(moves: Moves, key: Callable[[Why, str], K]) -> tuple[Ints, list[K]]:
    """Return the number of each move's group, and the keys of the groups, sorted."""
    pairs, place = np.unique(moves.why * len(moves.topics) + moves.topic, return_inverse=True)
    found = [
        key(moves.whys[pair // len(moves.topics)], moves.topics[pair % len(moves.topics)]) for pair in pairs.tolist()
    ]
    keys = sorted({*found})
    number = {each: position for position, each in enumerate(keys)}
    return np.array([number[each] for each in found], dtype=np.int64)[place], keys
