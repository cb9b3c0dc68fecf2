"""A process that dies at one of the boundaries that it passes, and the journal that the next one finds."""

from collections.abc import Callable

from reconciler.apply.crash import Killed
from reconciler.apply.journal import MemoryJournal

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


def kept(journal: MemoryJournal) -> MemoryJournal:
    """Return the journal as it is read again on the same machine."""
    return MemoryJournal([*journal.events, *journal.appended])


def lost(_journal: MemoryJournal) -> MemoryJournal:
    """Return the journal of another machine."""
    return MemoryJournal()
