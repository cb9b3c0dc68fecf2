"""Holds what this process waits for just now, in words: set where it waits, read by whoever informs people.

A simulated cluster has a time of its own and keeps nobody waiting: `is_real` is False once one was opened.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Wait:
    """One thing that is waited for, as it reads after `waiting 20 s for`; empty where nothing is, for the moment."""

    what: str | Callable[[], str]
    since: float

    def say(self, what: str) -> None:
        """Wait for that now; it begins anew where it is something else."""
        if what != self.what:
            self.since, self.what = time.monotonic(), what

    @property
    def text(self) -> str:
        """What is waited for, in one line."""
        return (self.what if isinstance(self.what, str) else self.what()).partition("\n")[0]


@dataclass(slots=True)
class Waits:
    """All waits of this process. `held_back`: how long the cluster's quotas have made its requests wait, in seconds."""

    is_real: bool = True
    held_back: float = 0.0
    _now: list[Wait] = field(default_factory=list)

    def told(self) -> dict[str, float]:
        """Return what is waited for and for how many seconds already, the longest wait first."""
        now = time.monotonic()
        found = sorted(((wait.since, wait.text) for wait in tuple(self._now)), reverse=True)
        return dict(sorted(((text, now - since) for since, text in found if text), key=lambda one: -one[1]))

    @contextmanager
    def waiting_for(self, what: str | Callable[[], str] = "") -> Iterator[Wait]:
        """Say within the block what is waited for; a function is asked each time somebody wants to know."""
        wait = Wait(what, time.monotonic())
        self._now.append(wait)
        try:
            yield wait
        finally:
            self._now.remove(wait)


WAITS = Waits()
waiting_for = WAITS.waiting_for
