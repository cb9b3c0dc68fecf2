"""A process that dies at one of the boundaries that it passes, and the journal that the next one finds."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import count as count_from

import pytest
from helpers.plans.small_runs import cluster, whole_plan

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.crash import Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.leftovers import restore_throttles
from reconciler.apply.run import run_plan
from reconciler.apply.run_record import read_record
from reconciler.apply.session import Belief
from reconciler.model.plan import Plan
from reconciler.model.run import RunResult

Journals = Callable[[MemoryJournal], MemoryJournal]


class Bomb:
    """Kills the process at the n-th boundary that it passes, and keeps the names of all."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.passed: list[str] = []

    def __call__(self, name: str) -> None:
        self.passed.append(name)
        if len(self.passed) == self.at:
            raise Killed(name)


def dies(work: Callable[[], object], when: Callable[[str], object]) -> None:
    """Do it until the process is killed at the boundary where `when` holds."""

    def kill(name: str) -> None:
        if when(name):
            raise Killed(name)

    with planted(kill), pytest.raises(Killed):
        work()


def killed(admin: SimulatedAdmin, plan: Plan, when: Callable[[str], object]) -> MemoryJournal:
    """Run until the process is killed at the boundary where `when` holds; return the journal as it is read again."""
    journal = MemoryJournal()
    dies(lambda: run_plan(plan, admin, journal), when)
    return MemoryJournal(journal.appended)


def boundaries_of(work: Callable[[], object]) -> list[str]:
    """Return the boundaries that it passes, in order."""
    bomb = Bomb()
    with planted(bomb):
        work()
    return bomb.passed


@cache
def boundaries_of_whole_run() -> Sequence[str]:
    """Return the boundaries that a run of the whole plan passes, in order."""
    return boundaries_of(lambda: run_plan(whole_plan(cluster()), SimulatedAdmin(cluster()), MemoryJournal()))


def by_name(boundaries: Iterable[str], every: int) -> list[tuple[int, str]]:
    """Return each boundary's number and name, or every n-th in the order of their names."""
    return sorted(enumerate(boundaries, start=1), key=lambda place: (place[1], place[0]))[::every]


def nth(number: int) -> Callable[[str], bool]:
    """Return what holds at the n-th boundary, whatever its name."""
    passed = count_from(1)
    return lambda _name: next(passed) == number


def passing(point: str, count: int = 1) -> Callable[[str], bool]:
    """Return what holds when a boundary is passed for the n-th time."""
    hits = count_from(1)
    return lambda name: name == point and next(hits) == count


def put_back_what_is_named(plan: Plan, admin: SimulatedAdmin, ended: RunResult) -> None:
    """Have `doctor --fix throttles`, after its question, put back what only the record names, where a verb said so."""
    if "KR726" in {one.code for one in ended.leftover_throttles}:
        restore_throttles(plan, admin, MemoryJournal(), belief=Belief.ALL)


def put_back_what_the_record_names(admin: SimulatedAdmin) -> None:
    """Do what `doctor --fix throttles` does, after its question, on a machine that has nothing but the cluster."""
    record = read_record(admin)
    if record is not None:
        restore_throttles(record.plan(admin.cluster_id()), admin, MemoryJournal(), belief=Belief.ALL)


def kept(journal: MemoryJournal) -> MemoryJournal:
    """Return the journal as it is read again on the same machine."""
    return MemoryJournal([*journal.events, *journal.appended])


def lost(_journal: MemoryJournal) -> MemoryJournal:
    """Return the journal of another machine."""
    return MemoryJournal()
