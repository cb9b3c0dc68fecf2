"""What a run needs of a journal; the file behind it is handed in by the workflow."""

from collections.abc import Callable, Sequence
from typing import Protocol

from reconciler.model.problem import ReconcilerError
from reconciler.model.run import RunEvent, RunFailed


class Journal(Protocol):
    """The events of one plan's runs. An aid, never the truth: without it a run must still end right."""

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start, oldest first."""

    def read_again(self) -> None:
        """Take into `events` what another process has written since the start."""

    def append(self, event: RunEvent, /) -> None:
        """Write one more event, durably: it is read again after a crash that follows."""


class MemoryJournal:
    """A journal that ends with the process: for a run whose record nobody keeps."""

    def __init__(self, events: Sequence[RunEvent] = ()) -> None:
        self._before = tuple(events)
        self.appended: list[RunEvent] = []

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start."""
        return self._before

    def read_again(self) -> None:
        """Change nothing: nobody else writes into this process."""

    def append(self, event: RunEvent, /) -> None:
        """Keep one more event."""
        self.appended.append(event)


class DispensableJournal:
    """A journal that whoever puts things back goes on without: that it cannot be written is told, once."""

    def __init__(self, journal: Journal, say: Callable[[str], None]) -> None:
        self._journal = journal
        self._say = say
        self._is_broken = False

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start."""
        return self._journal.events

    def read_again(self) -> None:
        """Take into `events` what another process has written since the start."""
        self._journal.read_again()

    def append(self, event: RunEvent, /) -> None:
        """Write one more event, unless one before it could not be written."""
        if self._is_broken:
            return
        try:
            self._journal.append(event)
        except (OSError, ReconcilerError) as error:
            self._is_broken = True
            code = f" ({error.code})" if isinstance(error, RunFailed) else ""
            self._say(f"{error}. This goes on without it: what is to be put back, the cluster shows{code}")
