"""A process that dies at one of the boundaries that it passes, and the journal that the next one finds."""

from collections.abc import Callable
from itertools import count as count_from

import pytest

from reconciler.admin.simulated import SimulatedAdmin
from reconciler.apply.crash import Killed, planted
from reconciler.apply.journal import MemoryJournal
from reconciler.apply.run import run_plan
from reconciler.model.plan import Plan

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


def killed(admin: SimulatedAdmin, plan: Plan, when: Callable[[str], object]) -> MemoryJournal:
    """Run until the process is killed at the boundary where `when` holds; return the journal as it is read again."""
    journal = MemoryJournal()

    def kill(name: str) -> None:
        if when(name):
            raise Killed(name)

    with planted(kill), pytest.raises(Killed):
        run_plan(plan, admin, journal)
    return MemoryJournal(journal.appended)


def passing(point: str, count: int = 1) -> Callable[[str], bool]:
    """Return what holds when a boundary is passed for the n-th time."""
    hits = count_from(1)
    return lambda name: name == point and next(hits) == count


def kept(journal: MemoryJournal) -> MemoryJournal:
    """Return the journal as it is read again on the same machine."""
    return MemoryJournal([*journal.events, *journal.appended])


def lost(_journal: MemoryJournal) -> MemoryJournal:
    """Return the journal of another machine."""
    return MemoryJournal()
