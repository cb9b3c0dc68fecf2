"""Admits moves as slots become free: the rule that a run follows, and that estimates are simulated with.

A slot is a copy in flight at a broker: one that it receives or, counted apart, one that it serves as the partition's
leader. Kafka throttles the two directions apart (KIP-73), so neither waits for the other. A replica that only leaves
serves nothing and takes no slot.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K")
_Place = tuple[int | None, bool]


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
        for broker in copy.added:
            if self._received[broker] >= most:
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


class Window:
    """Admits the copies of one stage, each known by its place in the plan's order, as others end."""

    def __init__(self, most: int | None) -> None:
        """Begin with nothing in flight and nothing that waits."""
        self._slots = Slots(most)
        self._copies: dict[int, Copy] = {}
        self._places: dict[int, tuple[_Place, ...]] = {}
        self._waiting: defaultdict[_Place, set[int]] = defaultdict(set)

    def add(self, number: int, copy: Copy) -> None:
        """Let a copy wait."""
        self._copies[number] = copy
        # Where it takes slots: each broker, and whether it serves there.
        places = self._places[number] = (*((broker, False) for broker in copy.added), (copy.source, True))
        for place in places:
            self._waiting[place].add(number)

    def begun(self) -> list[int]:
        """Return the copies that begin at once."""
        return self._admitted(self._copies)

    def after(self, ended: Sequence[int]) -> list[int]:
        """Return the copies that begin now that these have ended.

        Only those that wait at their brokers are asked: at no other has a slot become free.
        """
        for number in ended:
            self._slots.free(self._copies[number])
        places = {place for number in ended for place in self._places[number]}
        return self._admitted(set().union(*(self._waiting[place] for place in places)))

    def _admitted(self, numbers: Iterable[int]) -> list[int]:
        begun = list(self._slots.admitted((number, self._copies[number]) for number in sorted(numbers)))
        for number in begun:
            for place in self._places[number]:
                self._waiting[place].discard(number)
        return begun
