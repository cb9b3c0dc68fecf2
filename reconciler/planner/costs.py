"""States what the choice of a broker costs a row, without a matrix of rows by brokers.

Nearly all costs are equal for all brokers but the few that a partition is on already, so these few alone are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from reconciler.planner.placement_task import EligibleBrokers
from reconciler.planner.rows import Ints
from reconciler.planner.to_place import PartitionToPlace


class Cost(Protocol):
    """What the choice of a broker costs each row."""

    @property
    def largest(self) -> int:
        """The largest cost, taken as positive."""

    def of(self, index: Ints, column: Ints) -> Ints:
        """Return the costs [index, seats] of these rows on the brokers `column` [seats] or [index, seats]."""

    def on(self, row: Ints, column: Ints) -> Ints:
        """Return the cost of each of these rows on the broker beside it."""


@dataclass(frozen=True, slots=True)
class HeldCost:
    """One cost for every broker but some."""

    other: Ints  # [rows]: the cost on every broker that is not named
    columns: Ints  # [rows, some]: the brokers that are named, -1 for none
    at: Ints  # [rows, some]: the cost on these

    @property
    def largest(self) -> int:
        """The largest cost, taken as positive."""
        return max(int(np.abs(self.other).max(initial=0)), int(np.abs(self.at).max(initial=0)))

    def of(self, index: Ints, column: Ints) -> Ints:
        """Return the costs [index, seats] of these rows on the brokers `column` [seats] or [index, seats]."""
        seats = column.shape[-1]
        cost = np.repeat(self.other[index], seats).reshape(len(index), seats)
        for place in range(self.columns.shape[1]):
            row, seat = _seated(self.columns[index, place], column)
            cost[row, seat] = self.at[index[row], place]
        return cost

    def on(self, row: Ints, column: Ints) -> Ints:
        """Return the cost of each of these rows on the broker beside it."""
        cost = self.other[row]
        for place in range(self.columns.shape[1]):
            there = self.columns[row, place] == column
            cost[there] = self.at[row[there], place]
        return cost


def _seated(broker: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Return the rows whose broker has a seat, and the seat."""
    if column.ndim > 1:
        row, seat = np.nonzero(broker[:, None] == column)
        return row, seat
    # One seat longer than any broker's number, so that -1 finds the last place, where nobody sits.
    seat_of = np.full(max(broker.max(initial=-1), column.max(initial=-1)) + 2, -1)
    seat_of[column] = np.arange(len(column))
    found = seat_of[broker]
    row = np.flatnonzero(found >= 0)
    return row, found[row]


@dataclass(frozen=True, slots=True)
class TurnCost:
    """How far each broker is from its turn to take a new partition, where nothing else decides.

    It is (`seat` - `number` - round * `shift`) modulo `members`, the round being `number` // `members`.
    """

    seat: Ints  # [brokers]: its place among those that take turns
    shift: Ints  # [brokers]: by how much a round shifts the turns of its rack
    members: Ints  # [brokers]: how many take turns with it
    number: Ints  # [rows]: the number of a new partition, -1 for a row without turns

    @property
    def largest(self) -> int:
        """The largest cost, taken as positive."""
        return int(self.members.max(initial=1))

    def of(self, index: Ints, column: Ints) -> Ints:
        """Return the costs [index, seats] of these rows on the brokers `column` [seats] or [index, seats]."""
        return self._away(self.number[index][:, None], column)

    def on(self, row: Ints, column: Ints) -> Ints:
        """Return the cost of each of these rows on the broker beside it."""
        return self._away(self.number[row], column)

    def _away(self, number: Ints, column: Ints) -> Ints:
        members = self.members[column]
        away: Ints = (self.seat[column] - number - (number // members) * self.shift[column]) % members
        return np.where(number < 0, 0, away)


@dataclass(frozen=True, slots=True)
class NoCost:
    """Any broker is as good as any other."""

    largest: int = 0

    def of(self, index: Ints, column: Ints) -> Ints:
        """Return zeros [index, seats]."""
        return np.zeros((len(index), column.shape[-1]), dtype=np.int64)

    def on(self, row: Ints, column: Ints) -> Ints:
        """Return a zero for each."""
        del column
        return np.zeros_like(row)


NO_COST = NoCost()


def turns(partitions: Sequence[PartitionToPlace], eligible: EligibleBrokers) -> TurnCost:
    """Return how far each broker is from its turn for a new partition; 0 for the others.

    Partition n is the turn of broker n of each rack; with each round the racks shift against one another, so that two
    brokers do not meet in every partition, as Kafka's own placer shifts followers.
    """
    rack = eligible.rack
    members = np.bincount(rack, minlength=len(eligible.racks))[rack]
    seat = np.array([int((rack[:column] == own).sum()) for column, own in enumerate(rack)], dtype=np.int64)
    return TurnCost(seat, rack, members, _numbers(partitions))


def leader_turns(partitions: Sequence[PartitionToPlace], eligible: EligibleBrokers) -> TurnCost:
    """Return how far each broker's rack is from its turn to lead a new partition, 0 for others."""
    members = np.full(len(eligible.ids), max(1, len(eligible.racks)), dtype=np.int64)
    return TurnCost(eligible.rack, np.zeros_like(members), members, _numbers(partitions))


def _numbers(partitions: Sequence[PartitionToPlace]) -> Ints:
    return np.array([each.topic_partition.partition if each.is_new else -1 for each in partitions], dtype=np.int64)
