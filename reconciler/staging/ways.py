"""Searches other ways from the replicas of each partition to those of its move, if brokers have no room for the first.

A chain replaces the replicas of a partition in one order. If all brokers are nearly full, another order may be the only
one that fits. So the search chooses for all partitions at once which replica comes next and which goes for it.

The question is hard in general, so the search is bounded by a count, never by time.
"""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.staging.chain import Walk

# How many next replica sets are looked at: about a second on one core.
MOST_LOOKED_AT = 50_000

Replicas = frozenset[int]


def other_ways(walks: Sequence[Walk], free: Mapping[int, int]) -> list[list[Replicas]] | None:
    """Return the replica sets that each partition passes so that each fits as it comes, or None if none was found.

    `free` is how many replicas each broker that could come above the limit may still take.
    """
    start, goals = ([frozenset(end) for end in ends] for ends in zip(*(_ends(walk) for walk in walks), strict=True))
    left, seen = MOST_LOOKED_AT, {tuple(start)}
    path = [_State(start, free, walks)]
    # Depth first: what frees the most goes first, and a state that failed is not tried again.
    while path and path[-1].now != goals:
        place, reached = next(path[-1].choices, (None, frozenset[int]()))
        if place is None or left <= 0:
            path.pop()
            continue
        left -= 1
        state = path[-1].after(place, reached, walks)
        if tuple(state.now) not in seen:
            seen.add(tuple(state.now))
            path.append(state)
    ways: list[list[Replicas]] = [[] for _ in walks]
    for state in path[1:]:
        ways[state.place].append(state.now[state.place])
    return ways if path else None


def _ends(walk: Walk) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return walk.move.from_replicas, walk.move.to_replicas


class _State:
    """The replicas of each partition by now, how many more each broker may take, and the partition that came last."""

    def __init__(self, now: list[Replicas], free: Mapping[int, int], walks: Sequence[Walk], place: int = -1) -> None:
        self.now, self.free, self.place = now, free, place
        found = [
            (self._net(current, reached), number, sorted(reached))
            for number, (walk, current) in enumerate(zip(walks, now, strict=True))
            if current != frozenset(walk.move.to_replicas)
            for reached in walk.next_sets(current)
            if all(free.get(one, 1) > 0 for one in reached - current)
        ]
        self.choices: Iterator[tuple[int, Replicas]] = iter([(each[1], frozenset(each[2])) for each in sorted(found)])

    def after(self, place: int, reached: Replicas, walks: Sequence[Walk]) -> "_State":
        """Return the state after that partition has come to these replicas."""
        current, free = self.now[place], dict(self.free)
        for brokers, change in ((reached - current, -1), (current - reached, 1)):
            for one in brokers & free.keys():
                free[one] += change
        return _State([*self.now[:place], reached, *self.now[place + 1 :]], free, walks, place)

    def _net(self, current: Replicas, reached: Replicas) -> int:
        return len((reached - current) & self.free.keys()) - len((current - reached) & self.free.keys())
