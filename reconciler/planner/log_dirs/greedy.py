"""Finds places for the replicas of one broker that are good at once, and mostly close to the least bytes."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence

from reconciler.planner.log_dirs.dir_task import NOWHERE, DirTask


class Greedy:
    """Places the homeless where most is free, largest first; then moves what is too much, and what is missing.

    Each move is the largest that is not more than is needed, the last one the smallest that suffices: so little more
    than what is needed is moved where there are many replicas.
    """

    def __init__(self, task: DirTask) -> None:
        self._task = task
        self._dirs = list(task.home)
        self._used = task.used(task.home)
        self._most = task.most
        self._there: list[list[tuple[int, int]]] = [[] for _ in task.fixed]  # by log dir: size and number, ascending
        for number, home in enumerate(task.home):
            if home != NOWHERE and task.size[number]:
                insort(self._there[home], (task.size[number], number))

    def places(self) -> tuple[int, ...]:
        """Return the log dir of each replica."""
        task = self._task
        homeless = [number for number, home in enumerate(task.home) if home == NOWHERE]
        for number in sorted(homeless, key=lambda one: (-task.size[one], one)):
            self._settle(number)
        while task.is_free and (self._relieve() or self._fill() or self._nearer()):
            pass
        return taken_back(task, self._dirs)

    def _settle(self, number: int) -> None:
        size = self._task.size[number]

        def badness(place: int) -> tuple[int, ...]:
            end = self._used[place] + size
            missing = self._task.low[place] - self._used[place]
            return (
                max(0, end - self._task.total[place]),
                max(0, end - self._task.allowed[place]),
                max(0, end - self._most[place]),
                -max(0, missing),
                end - self._most[place],
            )

        place = min(range(len(self._used)), key=lambda one: (badness(one), one))
        self._dirs[number] = place
        self._used[place] += size

    def _relieve(self) -> bool:
        """Move one replica out of the log dir that is the most above its band; false where that cannot be."""
        above = [(self._used[place] - most, place) for place, most in enumerate(self._most)]
        over, donor = max(above, key=lambda one: (one[0], -one[1]))
        return over > 0 and any(self._moved_some(donor, taker, over) for taker in self._takers(donor))

    def _fill(self) -> bool:
        """Move one replica into the log dir that is the most below its band; false where that cannot be."""
        below = [(low - self._used[place], place) for place, low in enumerate(self._task.low)]
        under, taker = max(below, key=lambda one: (one[0], -one[1]))
        donors = sorted(
            (place for place in range(len(self._used)) if place != taker),
            key=lambda one: (self._task.low[one] - self._used[one], one),
        )
        return under > 0 and any(self._moved_some(donor, taker, under) for donor in donors)

    def _nearer(self) -> bool:
        """Move one replica that brings limits and bands nearer, though it keeps neither; false where none does."""
        places = range(len(self._used))
        for donor in sorted(places, key=lambda one: (self._most[one] - self._used[one], one)):
            for taker in sorted(places, key=lambda one: (self._used[one] - self._most[one], one)):
                for number in self._candidates(donor, taker):
                    if self._broken(donor, taker, number) < self._broken(donor, taker, None):
                        self._move(number, donor, taker)
                        return True
        return False

    def _candidates(self, donor: int, taker: int) -> list[int]:
        """Return the replicas whose sizes are next to what the one has too much, and to what the other can take."""
        there = self._there[donor]
        wanted = (self._used[donor] - self._most[donor], self._most[taker] - self._used[taker])
        found = {bisect_left(there, (max(0, size), NOWHERE)) + step for size in wanted for step in (-1, 0)}
        return [there[place][1] for place in sorted(found) if donor != taker and 0 <= place < len(there)]

    def _broken(self, donor: int, taker: int, number: int | None) -> tuple[int, ...]:
        """Return by how much these two log dirs break limits and bands, once that replica has moved."""
        task, size = self._task, 0 if number is None else self._task.size[number]
        pairs = ((donor, self._used[donor] - size), (taker, self._used[taker] + size))
        return (
            sum(max(0, held - task.total[place]) for place, held in pairs),
            sum(max(0, held - task.allowed[place]) for place, held in pairs),
            sum(max(0, task.low[place] - held, held - task.high[place]) for place, held in pairs),
        )

    def _move(self, number: int, donor: int, taker: int) -> None:
        size = self._task.size[number]
        self._there[donor].remove((size, number))
        self._dirs[number] = taker
        self._used[donor] -= size
        self._used[taker] += size

    def _takers(self, donor: int) -> list[int]:
        others = (place for place in range(len(self._used)) if place != donor)
        return sorted(others, key=lambda one: (self._used[one] - self._most[one], one))

    def _moved_some(self, donor: int, taker: int, needed: int) -> bool:
        """Move the largest replica that is at most what is needed, else the smallest that is more; bounds are kept."""
        there = self._there[donor]
        room = min(self._most[taker] - self._used[taker], self._used[donor] - self._task.low[donor])
        last = bisect_right(there, (min(needed, room), len(self._dirs)))
        if last:
            chosen = last - 1
        else:
            chosen = bisect_left(there, (needed, NOWHERE))
            if chosen == len(there) or there[chosen][0] > room:
                return False
        self._move(there[chosen][1], donor, taker)
        return True


def taken_back(task: DirTask, dirs: Sequence[int]) -> tuple[int, ...]:
    """Return the places without the moves that no limit and no band needs, the largest taken back first."""
    places, used, most = [*dirs], task.used(dirs), task.most
    while True:
        needless = [
            number
            for number, (home, place) in enumerate(zip(task.home, places, strict=True))
            if home not in {NOWHERE, place}
            and task.size[number]
            and used[place] - task.size[number] >= task.low[place]
            and used[home] + task.size[number] <= most[home]
        ]
        if not needless:
            return tuple(places)
        number = max(needless, key=lambda one: (task.size[one], -one))
        used[places[number]] -= task.size[number]
        used[task.home[number]] += task.size[number]
        places[number] = task.home[number]
