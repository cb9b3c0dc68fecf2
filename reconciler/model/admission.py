"""Admits moves as slots become free: the rule that a run follows, and that estimates are simulated with.

A slot is a copy in flight at a broker: one that it receives or, counted apart, one that it serves as the partition's
leader. Kafka throttles the two directions apart (KIP-73), so neither waits for the other. A replica that only leaves
serves nothing and takes no slot.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

K = TypeVar("K")


class Copy(NamedTuple):
    """What one move asks of brokers: those that receive a replica, and the leader that serves them; None: nobody."""

    added: tuple[int, ...]
    source: int | None


class Slots:
    """Counts the copies in flight at each broker, each direction by itself; at most so many, None for any number."""

    def __init__(self, most: int | None) -> None:
        """Begin with nothing in flight."""
        self._most = most
        self._received: Counter[int] = Counter()
        self._served: Counter[int] = Counter()

    def take(self, copy: Copy) -> None:
        """Count a copy that is in flight."""
        self._count(copy, 1)

    def free(self, copy: Copy) -> None:
        """Count a copy no longer: it has ended."""
        self._count(copy, -1)

    def has_room(self, copy: Copy) -> bool:
        """Whether the copy may begin; one that asks for more than there can be begins once its brokers are idle."""
        most = self._most
        if most is None or not copy.added:
            return True
        if any(self._received[broker] >= most for broker in copy.added):
            return False
        if copy.source is None:
            return True
        served = self._served[copy.source]
        return served == 0 or served + len(copy.added) <= most

    def admitted(self, waiting: Iterable[tuple[K, Copy]]) -> Iterator[K]:
        """Yield which of these may begin now, and count them: in their order, none waiting for one that cannot."""
        for key, copy in waiting:
            if self.has_room(copy):
                self.take(copy)
                yield key

    def _count(self, copy: Copy, sign: int) -> None:
        for broker in copy.added:
            self._received[broker] += sign
        if copy.source is not None:
            self._served[copy.source] += sign * len(copy.added)
