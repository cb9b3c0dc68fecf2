"""Searches other orders in which the replicas of partitions can be replaced, if brokers have no room for the first.

A chain replaces the replicas of a partition in one order. If all brokers are nearly full, another order may be the only
one that fits. So the search chooses for all partitions at once which replica comes next and which goes for it.

The question is hard in general, so the search is bounded by a count, never by time.
"""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.staging.chain import Walk

# So many states are visited, which takes about a second on one core.
MOST_VISITS = 50_000

Replicas = frozenset[int]


def other_ways(walks: Sequence[Walk], free: Mapping[int, int]) -> list[list[Replicas]] | None:
    """Return the replica sets that each partition passes so that each fits as it comes, or None if none was found.

    `free` is how many replicas each broker that could come above the limit may still take.
    """
    start = [frozenset(walk.move.from_replicas) for walk in walks]
    goals = [frozenset(walk.move.to_replicas) for walk in walks]
    visits, visited = 0, {tuple(start)}
    path = [_State(start, free, walks)]
    # Depth first: what frees the most goes first, and a state that failed is not tried again.
    while path and path[-1].now != goals:
        place, reached = next(path[-1].choices, (None, frozenset[int]()))
        if place is None or visits >= MOST_VISITS:
            path.pop()
            continue
        visits += 1
        state = path[-1].after(place, reached, walks)
        if tuple(state.now) not in visited:
            visited.add(tuple(state.now))
            path.append(state)
    ways: list[list[Replicas]] = [[] for _ in walks]
    for state in path[1:]:
        ways[state.place].append(state.now[state.place])
    return ways if path else None


class _State:
    """The replicas of each partition by now, how many more each broker may take, and the partition that came last."""

    def __init__(self, now: list[Replicas], free: Mapping[int, int], walks: Sequence[Walk], place: int = -1) -> None:
        self.now, self.free, self.place = now, free, place
        choices = [
            (self._net(current, reached), number, sorted(reached))
            for number, (walk, current) in enumerate(zip(walks, now, strict=True))
            if current != frozenset(walk.move.to_replicas)
            for reached in walk.next_sets(current)
            if all(free.get(broker_id, 1) > 0 for broker_id in reached - current)
        ]
        self.choices: Iterator[tuple[int, Replicas]] = iter(
            [(number, frozenset(ids)) for _, number, ids in sorted(choices)]
        )

    def after(self, place: int, reached: Replicas, walks: Sequence[Walk]) -> "_State":
        """Return the state after that partition has come to these replicas."""
        current, free = self.now[place], dict(self.free)
        for brokers, change in ((reached - current, -1), (current - reached, 1)):
            for broker_id in brokers & free.keys():
                free[broker_id] += change
        return _State([*self.now[:place], reached, *self.now[place + 1 :]], free, walks, place)

    def _net(self, current: Replicas, reached: Replicas) -> int:
        return len((reached - current) & self.free.keys()) - len((current - reached) & self.free.keys())
