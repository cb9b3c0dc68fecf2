"""Whose turn it is to take a new partition, where nothing else decides: a topic goes round the brokers of each rack."""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.demand import Bench, Slot
from reconciler.planner.network import Ints


def turns(slots: Sequence[Slot], bench: Bench) -> Ints:
    """Return, [slots, brokers], how far each broker is from its turn for a new partition; 0 for the others.

    Partition n is the turn of broker n of each rack; with each round the racks shift against one another, so that two
    brokers do not meet in every partition, as Kafka's own placer shifts followers.
    """
    members = np.bincount(bench.rack, minlength=len(bench.racks))[bench.rack]
    seat = np.array(
        [int((bench.rack[:column] == rack).sum()) for column, rack in enumerate(bench.rack)], dtype=np.int64
    )
    distance = np.zeros((len(slots), len(bench.ids)), dtype=np.int64)
    for number, slot in enumerate(slots):
        if slot.is_new:
            partition = slot.topic_partition.partition
            distance[number] = (seat - partition - (partition // members) * bench.rack) % members
    return distance


def leader_turns(slots: Sequence[Slot], bench: Bench) -> Ints:
    """Return, [slots, brokers], how far each broker's rack is from its turn to lead a new partition, 0 for others."""
    racks = max(1, len(bench.racks))
    distance = np.zeros((len(slots), len(bench.ids)), dtype=np.int64)
    for number, slot in enumerate(slots):
        if slot.is_new:
            distance[number] = (bench.rack - slot.topic_partition.partition) % racks
    return distance
