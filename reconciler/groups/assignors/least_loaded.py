"""The least loaded member of each of many overlapping sets, while loads change."""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace


class LeastLoaded:
    """Answers who of a set has the least load, the lowest number first; reads `loads`, which its owner changes.

    A load that grows needs no word; of one that shrinks `has_less` must be told. Each answer costs about the logarithm
    of the set's size.
    """

    def __init__(self, sets: Sequence[Sequence[int]], loads: Sequence[int]) -> None:
        self._loads = loads
        self._members = len(loads)
        self._sets_of: list[list[int]] = [[] for _ in loads]
        # An entry is load * members + member. Each member of a set has one there that is no more than its load.
        self._heaps: list[list[int]] = []
        for number, members in enumerate(sets):
            for member in members:
                self._sets_of[member].append(number)
            self._heaps.append([loads[member] * self._members + member for member in members])
            heapify(self._heaps[-1])

    def first(self, number: int) -> int:
        """Return the least loaded member of a set that is not empty."""
        heap = self._heaps[number]
        while True:
            load, member = divmod(heap[0], self._members)
            if load == self._loads[member]:
                return member
            if load < self._loads[member]:
                heapreplace(heap, self._loads[member] * self._members + member)
            else:
                heappop(heap)

    def has_less(self, member: int) -> None:
        """Take note that a member's load has shrunk."""
        entry = self._loads[member] * self._members + member
        for number in self._sets_of[member]:
            heappush(self._heaps[number], entry)
