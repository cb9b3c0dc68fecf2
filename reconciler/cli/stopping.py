"""SIGINT, SIGTERM and SIGHUP while something runs: the first asks it to end in order, the second ends the waiting.

An output that is closed asks too. SIGHUP is never the second: a terminal that goes sends several, after EIO at a write.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

from reconciler.cli.exits import Exit
from reconciler.cli.outputs import OUTPUTS

LAST_SECONDS = 8.0
"""How long the second signal leaves to say what is left behind, and to close connections."""
_STDERR = 2
_EXITS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}


@dataclass(slots=True)
class Stopping:
    """Which signal came, if any."""

    came: signal.Signals | None = None

    def reason(self) -> str | None:
        """Return why to stop, None for no reason."""
        if self.came is not None:
            return f"{self.came.name} came"
        return f"{OUTPUTS.closed} was closed" if OUTPUTS.closed is not None else None

    @property
    def exit(self) -> Exit | None:
        """The exit code of that signal, or of a closed output."""
        if self.came is not None:
            return _EXITS[self.came]
        return Exit.TERMINATED if OUTPUTS.closed is not None else None


@contextmanager
def stopping() -> Iterator[Stopping]:
    """Yield what tells of a signal, or of a closed output; the handlers that were there come back at the end.

    SIGHUP stays ignored where it is.
    """
    seen = Stopping()
    OUTPUTS.hush()

    def handle(number: int, _frame: FrameType | None) -> None:
        if seen.came is not None and number == signal.SIGHUP:
            return
        if seen.came is not None:
            _end_soon(_EXITS[seen.came])
            raise KeyboardInterrupt
        seen.came = signal.Signals(number)
        _tell_at_once(f"{seen.came.name}: ending in order, throttles go back first. Once more ends the waiting.\n")

    is_deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heard = [each for each in _EXITS if not (is_deaf and each is signal.SIGHUP)]
    before = {each: signal.signal(each, handle) for each in heard}
    try:
        yield seen
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _end_soon(code: Exit) -> None:
    """End the process after a while whatever it waits for: a frozen broker's answer, or a thread that does."""
    timer = threading.Timer(LAST_SECONDS, os._exit, (int(code),))
    timer.daemon = True
    timer.start()


def _tell_at_once(text: str) -> None:
    """Write past the stream's buffer: the signal may have come while that was being written to."""
    with suppress(OSError):
        os.write(_STDERR, text.encode())
