"""Solves one broker: which replica lies in which log dir, so that the fewest bytes are copied between log dirs."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

NOWHERE = -1
"""The home of a replica that comes to the broker, or whose log dir is to end empty."""


@dataclass(frozen=True, slots=True)
class DirTask:
    """The log dirs of a broker that may take replicas, and the replicas that lie, or are to lie, in one of them.

    By log dir: its `total` bytes, those `allowed` by `limits.diskUse`, `low` and `high` the band that the balance asks
    for, and `fixed` bytes that nothing moves. By replica: `size` in bytes, and `home`, the log dir that it lies in, or
    NOWHERE.
    `is_free`: replicas with a home may leave it.
    """

    total: tuple[int, ...]
    allowed: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    fixed: tuple[int, ...]
    size: tuple[int, ...]
    home: tuple[int, ...]
    is_free: bool = True

    @property
    def most(self) -> tuple[int, ...]:
        """The bytes at most that limit and band allow, by log dir."""
        return tuple(map(min, zip(self.high, self.allowed, strict=True)))

    def used(self, dirs: Sequence[int]) -> list[int]:
        """Return the bytes in each log dir, with the replicas in these."""
        used = list(self.fixed)
        for size, place in zip(self.size, dirs, strict=True):
            if place != NOWHERE:
                used[place] += size
        return used

    def cost(self, dirs: Sequence[int]) -> "Cost":
        """Return what these places cost."""
        used = self.used(dirs)
        return Cost(
            sum(max(0, held - total) for held, total in zip(used, self.total, strict=True)),
            sum(max(0, held - most) for held, most in zip(used, self.allowed, strict=True)),
            sum(max(0, low - held, held - high) for held, low, high in zip(used, self.low, self.high, strict=True)),
            sum(size for size, home, at in zip(self.size, self.home, dirs, strict=True) if NOWHERE != home != at),
        )


class Cost(NamedTuple):
    """Bytes that no log dir has room for, over what is allowed, outside of the bands, and moved: the first is worst."""

    overflow: int
    excess: int
    outside: int
    moved: int


FEW, MOST_NODES = 16, 30_000
"""Of so few replicas the optimum is looked for to the byte, in so many steps at the most."""
MOST_CHOICES = 2000
"""Replicas times log dirs up to which the solver is asked; beyond, greedy choices and their bound stand."""
CLOSE = 300
"""Of many replicas a gap of one part in so many is good enough: no more than that is looked for."""


@dataclass(frozen=True, slots=True)
class Solved:
    """The log dir of each replica. `least`: no places that are as good for limits and bands move fewer bytes."""

    dirs: tuple[int, ...]
    cost: Cost
    least: int


def solve(task: DirTask, work: float) -> Solved:
    """Return places for all replicas; `work` bounds the search, in the solver's own deterministic units.

    From the state that is reached the next plan moves nothing: where a bound ended the search, it is gone on with.
    """
    found = _solved(task, work)
    while found.cost.excess or found.cost.outside:
        again = _solved(replace(task, home=found.dirs), work)
        if not again.cost.moved:
            break
        # `again` began where the attempt before it ended. From home, fewer moves may be enough.
        found = _with_bound(task, _taken_back(task, again.dirs))
    return found


def _solved(task: DirTask, work: float) -> Solved:
    greedy = _Greedy(task).places()
    if NOWHERE not in task.home and task.cost(task.home) <= task.cost(greedy):
        greedy = task.home
    found = _with_bound(task, greedy)
    cost = found.cost
    if not cost.excess and not cost.outside and cost.moved == found.least:
        return found
    if len(task.size) <= FEW:
        dirs, is_whole = _Branches(task, greedy).best()
        return _with_bound(task, dirs, task.cost(dirs).moved if is_whole else 0)
    is_kept = not cost.excess and not cost.outside
    if len(task.size) * len(task.fixed) > MOST_CHOICES or (
        is_kept and (cost.moved - found.least) * CLOSE <= cost.moved
    ):
        return found
    return _searched(task, found, work)


def _with_bound(task: DirTask, dirs: tuple[int, ...], known: int = 0) -> Solved:
    cost = task.cost(dirs)
    return Solved(dirs, cost, min(cost.moved, max(known, _least(task, cost))))


def _least(task: DirTask, cost: Cost) -> int:
    """Return the bytes that all places move which are as good as that in excess and outside.

    What lies above a band has to leave. What is missing below one has to come, from those without a home first.
    """
    if not task.is_free:
        return 0
    base = task.used(task.home)
    above = sum(max(0, held - most) for held, most in zip(base, task.most, strict=True))
    below = sum(max(0, low - held) for held, low in zip(base, task.low, strict=True))
    coming = sum(size for size, home in zip(task.size, task.home, strict=True) if home == NOWHERE)
    return max(0, above - cost.excess - cost.outside, below - coming - cost.outside)


class _Greedy:
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
        return _taken_back(task, self._dirs)

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


def _taken_back(task: DirTask, dirs: Sequence[int]) -> tuple[int, ...]:
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


class _Branches:
    """Tries all places of few replicas, the largest first, but for those that cannot be better than the best so far."""

    def __init__(self, task: DirTask, start: tuple[int, ...]) -> None:
        self._task, self._best, self._cost = task, start, task.cost(start)
        self._order = sorted(range(len(task.size)), key=lambda one: (-task.size[one], one))
        self._dirs, self._used, self._nodes = [NOWHERE] * len(task.size), list(task.fixed), 0

    def best(self) -> tuple[tuple[int, ...], bool]:
        """Return the best places, and whether all others were tried or ruled out."""
        self._try(0, 0, sum(self._task.size))
        return self._best, self._nodes < MOST_NODES

    def _try(self, depth: int, moved: int, left: int) -> None:
        """Place the next replica in each log dir; `moved` and `left`: bytes moved so far, and those not placed yet."""
        if self._bound(moved, left) >= self._cost or self._nodes >= MOST_NODES:
            return
        if depth == len(self._order):
            self._best, self._cost = tuple(self._dirs), self._task.cost(self._dirs)
            return
        self._nodes += 1
        number = self._order[depth]
        size, home = self._task.size[number], self._task.home[number]
        is_bound = not self._task.is_free and home != NOWHERE
        for place in (home,) if is_bound else sorted(range(len(self._used)), key=lambda one: (one != home, one)):
            self._dirs[number] = place
            self._used[place] += size
            self._try(depth + 1, moved + (size if NOWHERE != home != place else 0), left - size)
            self._used[place] -= size
        self._dirs[number] = NOWHERE

    def _bound(self, moved: int, left: int) -> Cost:
        """Return what all ways on from here cost at least."""
        task, used = self._task, self._used
        overflow = sum(max(0, held - total) for held, total in zip(used, task.total, strict=True))
        excess = sum(max(0, held - most) for held, most in zip(used, task.allowed, strict=True))
        above = sum(max(0, held - high) for held, high in zip(used, task.high, strict=True))
        below = sum(max(0, low - held) for held, low in zip(used, task.low, strict=True))
        return Cost(overflow, excess, above + max(0, below - left), moved)


def _searched(task: DirTask, found: Solved, work: float) -> Solved:
    """Return places that keep limits and bands, with fewer bytes moved if so much work finds them, and the bound."""
    from ortools.sat.python import cp_model  # a third of a second, and few plans need it

    from reconciler.planner.integer import FOUND, solved

    model, places = cp_model.CpModel(), range(len(task.fixed))
    chosen = [[model.new_bool_var("") for _ in places] for _ in task.size]
    for number, choices in enumerate(chosen):
        model.add_exactly_one(choices)
        for place in places:
            model.add_hint(choices[place], int(found.dirs[number] == place))
        if not task.is_free and task.home[number] != NOWHERE:
            model.add(choices[task.home[number]] == 1)
    for place in places:
        brought = cp_model.LinearExpr.weighted_sum([each[place] for each in chosen], task.size)
        least, most = (bound - task.fixed[place] for bound in (task.low[place], task.most[place]))
        model.add_linear_constraint(brought, least, max(least - 1, most))
    homes = [(number, home) for number, home in enumerate(task.home) if home != NOWHERE]
    staying = [chosen[number][home] for number, home in homes]
    model.maximize(cp_model.LinearExpr.weighted_sum(staying, [task.size[number] for number, _ in homes]))
    status, solver = solved(model, work, gap=1 / CLOSE)
    if status not in FOUND:
        return found
    known = sum(task.size[number] for number, _ in homes) - int(solver.best_objective_bound)
    better = [next(place for place in places if solver.boolean_value(choices[place])) for choices in chosen]
    return _with_bound(task, min(_taken_back(task, better), found.dirs, key=task.cost), known)
