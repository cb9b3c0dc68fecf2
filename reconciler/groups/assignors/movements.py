"""Which partitions have moved in a rebalance, so that none goes one way while another of its topic goes back."""

from reconciler.groups.assignors.numbered import NumberedGroup
from reconciler.model.java_hash import FIRST_CAPACITY, bin_of, is_too_full


class Movements:
    """For each topic and pair of members, the partitions that went from the one to the other."""

    def __init__(self, group: NumberedGroup) -> None:
        self._group = group
        self._way: dict[int, tuple[int, int]] = {}
        self._gone: dict[tuple[int, int, int], _HashSet] = {}

    def instead_of(self, partition: int, owner: int, taker: int) -> int:
        """Return the partition that rather moves to `taker`: one of the topic that had gone the way back, if any.

        Where several had, Kafka takes the first in hash order.
        """
        source = self._way[partition][0] if partition in self._way else owner
        back = self._gone.get((self._group.topic_of[partition], taker, source))
        return partition if back is None else back.first()

    def record(self, partition: int, owner: int, taker: int) -> None:
        """Take note of a move; several of one partition count as one, and none if it comes back to where it was."""
        topic = self._group.topic_of[partition]
        source = owner
        if partition in self._way:
            way = self._way.pop(partition)
            source = way[0]
            gone = self._gone[topic, *way]
            gone.remove(partition)
            if not gone:
                del self._gone[topic, *way]
        if source != taker:
            self._way[partition] = (source, taker)
            key = (topic, source, taker)
            if key not in self._gone:
                self._gone[key] = _HashSet()
            self._gone[key].add(partition, self._group.hash_of(partition))


class _HashSet:
    """Numbers in the order in which a `java.util.HashSet` of their partitions would be walked."""

    __slots__ = ("_capacity", "_hashes")

    def __init__(self) -> None:
        self._capacity = FIRST_CAPACITY
        self._hashes: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes)

    def add(self, number: int, its_hash: int) -> None:
        self._hashes[number] = its_hash
        if is_too_full(len(self._hashes), self._capacity):
            self._capacity *= 2

    def remove(self, number: int) -> None:
        del self._hashes[number]

    def first(self) -> int:
        return min(self._hashes, key=lambda number: bin_of(self._hashes[number], self._capacity))
