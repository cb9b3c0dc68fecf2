"""No silence: while a run waits, a line at least every 15 s says for what, and for how long already."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.admin.waits import WAITS
from reconciler.cli.terminal import silent_seconds, tell
from reconciler.render.units import duration

QUIET_SECONDS = 10.0
"""How long nothing is said before a line; less than the 15 s that are promised, for a busy machine may be late."""
LOOK_SECONDS = 1.0
WORKING = "Working: nothing is waited for."
IN_SECONDS = 300
"""How long a wait is told in seconds: `2 min` would stand still for too long."""


@contextmanager
def heartbeat() -> Iterator[None]:
    """Tell within the block what is waited for, or that it is at work, whenever nothing else was told for a while."""
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(ended,), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beat(ended: threading.Event) -> None:
    while not ended.wait(LOOK_SECONDS):
        if WAITS.is_real and silent_seconds() >= QUIET_SECONDS:
            tell(waiting_line() or WORKING)


def waiting_line() -> str:
    """Return what is waited for in one line, empty for nothing."""
    told = "; ".join(f"{_shown(seconds)} for {text}" for text, seconds in WAITS.told().items())
    quota = f" (quotas of the cluster made requests wait {_shown(WAITS.held_back)} so far)" if WAITS.held_back else ""
    return f"Waiting {told}{quota}." if told else ""


def _shown(seconds: float) -> str:
    """Return a time as one waits: in seconds for some minutes."""
    return f"{seconds:.0f} s" if seconds < IN_SECONDS else duration(seconds)
