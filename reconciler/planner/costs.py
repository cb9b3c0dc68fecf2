"""States what the choice of a broker costs a row: one cost for every broker but those that it names."""

from dataclasses import dataclass, replace

import numpy as np

from reconciler.model.columns import Ints, is_at
from reconciler.planner.pieces import exact_dot
from reconciler.planner.placement_task import EligibleBrokers
from reconciler.planner.rows import rows_at
from reconciler.planner.to_place import PartitionsToPlace


@dataclass(frozen=True, slots=True)
class Turns:
    """How far each broker is from its turn to take a new partition, where nothing else decides.

    It is (`seat` - number - round * `shift`) modulo `members`, the round being number // `members`.
    """

    seat: Ints  # [brokers]: its place among those that take turns
    shift: Ints  # [brokers]: by how much a round shifts the turns of its rack
    members: Ints  # [brokers]: how many take turns with it
    number: Ints  # [rows]: the number of a new partition, -1 for a row without turns

    def away(self, number: Ints, broker: Ints) -> Ints:
        """Return how far these brokers are from the turn of these partitions."""
        members = self.members[broker]
        away: Ints = (self.seat[broker] - number - (number // members) * self.shift[broker]) % members
        return np.where(number < 0, 0, away)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One for each broker but those of the rack that a row wants a replica in, or but the broker that it wants."""

    rack: Ints  # [brokers]
    number: Ints  # [rows]: a rack, or the broker's column behind all racks; -1 for a row that wants none

    def away(self, number: Ints, broker: Ints) -> Ints:
        """Return what these brokers cost rows with these wishes."""
        rack = self.rack[broker]
        is_there = np.where(number < self.racks, rack == number, broker == number - self.racks)
        return np.where(is_there | (number < 0), 0, 1)

    @property
    def racks(self) -> int:
        """How many racks there are."""
        return int(self.rack.max(initial=-1)) + 1


@dataclass(frozen=True, slots=True)
class Cost:
    """What each row pays for a broker; numbers beyond 64 bits are Python's own."""

    other: Ints  # [rows]: for every broker that it does not name
    at: Ints  # [rows, some]: for each that it names
    turns: Turns | Wanted | None = None  # comes on top, for the brokers that it names too

    def take(self, index: Ints) -> "Cost":
        """Return what these rows alone pay."""
        turns = None if self.turns is None else replace(self.turns, number=self.turns.number[index])
        return Cost(self.other[index], rows_at(self.at, index), turns)

    def of(self, named: Ints, table: Ints) -> int:
        """Return what all rows pay, turns aside, for the brokers of a table [rows, most], of which they name some."""
        is_held = is_at(named, table)
        beside = (table >= 0).sum(axis=1) - is_held.sum(axis=1)
        return exact_dot(self.other, beside) + exact_dot(self.at[is_held], np.ones(int(is_held.sum()), dtype=np.int64))


def copies(size: Ints, named: Ints) -> Cost:
    """Return the cost of copying so much to every broker but those that a row names."""
    return Cost(size, np.zeros_like(named))


def no_cost(named: Ints) -> Cost:
    """Return that any broker is as good as any other."""
    return Cost(np.zeros(len(named), dtype=np.int64), np.zeros_like(named))


def turns(partitions: PartitionsToPlace, eligible: EligibleBrokers) -> Turns:
    """Return how far each broker is from its turn for a new partition; 0 for the others.

    Partition n is the turn of broker n of each rack; with each round the racks shift against one another, so that two
    brokers do not meet in every partition, as Kafka's own placer shifts followers.
    """
    rack = eligible.rack
    members = np.bincount(rack, minlength=len(eligible.racks))[rack]
    return Turns(seats(rack), rack, members, _numbers(partitions))


def seats(rack: Ints) -> Ints:
    """Return the place of each broker among those of its rack."""
    return np.array([int((rack[:column] == own).sum()) for column, own in enumerate(rack)], dtype=np.int64)


def leader_turns(partitions: PartitionsToPlace, eligible: EligibleBrokers, named: Ints) -> Cost:
    """Return how far the rack of each broker that a row names is from its turn to lead a new partition, else 0."""
    members = np.full(len(eligible.ids), max(1, len(eligible.racks)), dtype=np.int64)
    away = Turns(eligible.rack, np.zeros_like(members), members, _numbers(partitions))
    return Cost(np.zeros(len(named), dtype=np.int64), away.away(away.number[:, None], np.maximum(named, 0)))


def _numbers(partitions: PartitionsToPlace) -> Ints:
    return np.where(partitions.is_new, partitions.number, -1)
