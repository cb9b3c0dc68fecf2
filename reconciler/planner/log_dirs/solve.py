"""Solves one broker: which replica lies in which log dir, so that the fewest bytes are copied between log dirs."""

from dataclasses import dataclass, replace

from reconciler.planner.log_dirs.dir_task import NOWHERE, Cost, DirTask
from reconciler.planner.log_dirs.greedy import Greedy, taken_back

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
        found = _with_bound(task, again.dirs)
    return found


def _solved(task: DirTask, work: float) -> Solved:
    greedy = Greedy(task).places()
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
    return _with_bound(task, min(taken_back(task, better), found.dirs, key=task.cost), known)
