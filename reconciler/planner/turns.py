"""Whose turn it is to take a new partition, where nothing else decides: a topic goes round the brokers of each rack."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.costs import TurnCost
from reconciler.planner.demand import Bench, Slot
from reconciler.planner.rows import Ints


def turns(slots: Sequence[Slot], bench: Bench) -> TurnCost:
    """Return how far each broker is from its turn for a new partition; 0 for the others.

    Partition n is the turn of broker n of each rack; with each round the racks shift against one another, so that two
    brokers do not meet in every partition, as Kafka's own placer shifts followers.
    """
    members = np.bincount(bench.rack, minlength=len(bench.racks))[bench.rack]
    seat = np.array(
        [int((bench.rack[:column] == rack).sum()) for column, rack in enumerate(bench.rack)], dtype=np.int64
    )
    return TurnCost(seat, bench.rack, members, _numbers(slots))


def leader_turns(slots: Sequence[Slot], bench: Bench) -> TurnCost:
    """Return how far each broker's rack is from its turn to lead a new partition, 0 for others."""
    members = np.full(len(bench.ids), max(1, len(bench.racks)), dtype=np.int64)
    return TurnCost(bench.rack, np.zeros_like(members), members, _numbers(slots))


def _numbers(slots: Sequence[Slot]) -> Ints:
    """Return the number of each new partition, -1 for the others."""
    return np.array([slot.topic_partition.partition if slot.is_new else -1 for slot in slots], dtype=np.int64)
