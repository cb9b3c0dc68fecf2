"""Names crash points: where a test, or an operator's drill, may end the process between two steps."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

CRASH_POINTS = (
    "lock.taken",
    "intent.before",
    "intent.told",
    "intent.written",
    "throttle.broker",
    "throttle.topic",
    "reassign.before",
    "reassign.sent",
    "reassign.recorded",
    "dirs.before",
    "dirs.sent",
    "dirs.recorded",
    "poll",
    "moves.done",
    "unthrottle.topic",
    "unthrottle.broker",
    "unthrottle.sent",
    "election.before",
    "election.sent",
    "topics.before",
    "topics.sent",
    "withdraw.before",
    "withdraw.sent",
    "stage.done",
    "end.before",
    "end.recorded",
)
"""Every boundary at which a run may die; each stage passes those that its kind has."""


class Killed(BaseException):
    """What a test raises at a crash point: unlike every other exception, a run does not clean up after it."""


def _go_on(_name: str) -> None:
    """Do nothing."""


_hook: list[Callable[[str], None]] = [_go_on]


def crash_point(name: str) -> None:
    """Pass the boundary of that name; does nothing unless a hook is planted."""
    _hook[0](name)


@contextmanager
def planted(hook: Callable[[str], None]) -> Iterator[None]:
    """Call `hook` with the name of each boundary that is passed inside the block."""
    before = _hook[0]
    _hook[0] = hook
    try:
        yield
    finally:
        _hook[0] = before
