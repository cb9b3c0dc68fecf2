"""Notices that a verb is to end: by SIGINT, SIGTERM, SIGHUP, or because nobody reads its output any more.

While a run is on, the first signal asks it to end in order, and the second ends the waiting. SIGHUP is never the
second: a terminal that goes away sends several, after EIO at a write.

stdout and stderr may lose their reader at any time: `| head`, a lost terminal. The first write that fails counts as
SIGTERM: a run is asked to end in order; any other verb ends at once and says no more, as Unix tools do.
"""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from reconciler.command.exits import Exit
from reconciler.command.terminal import Teller
from reconciler.model.run import RunEnded, RunResult

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# A pipe without a reader, a terminal that is gone, a descriptor that was closed. Anything else, such as a full disk, is
# an error, which stderr tells of. If stderr itself fails, nobody can be told, so the cause does not matter.
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO})
STDIN, STDOUT, STDERR = 0, 1, 2
LAST_SECONDS = 8.0
"""How long the second signal leaves to say what is left behind, and to close connections."""
_EXITS = {signal.SIGINT: Exit.INTERRUPTED, signal.SIGTERM: Exit.TERMINATED, signal.SIGHUP: Exit.TERMINATED}


class Terminated(BaseException):
    """SIGTERM or SIGHUP came; not an Exception, so that nothing on the way takes it for a failure to be handled."""


class Closed(Terminated):
    """An output was closed: whoever asked for it wants no more of it."""


@dataclass(slots=True)
class Outputs:
    """What is known of the outputs: the first one that was found `closed`, and whether that ends the program."""

    closed: str | None = None
    ends: bool = True

    def hush(self) -> None:
        """Let nothing end from here on because an output is closed: a run sees to it, or the verb is over anyway."""
        self.ends = False

    def gone(self, name: str) -> None:
        """Take note of a closed output; raises Closed, once, where that is the program's end."""
        self.closed = self.closed or name
        if self.ends and threading.current_thread() is threading.main_thread():
            self.ends = False
            raise Closed


OUTPUTS = Outputs()


class _Output(io.FileIO):
    """The file below a stream: what cannot be written because nobody reads it any more counts as written."""

    def __init__(self, number: int, name: str, *, is_gone: bool) -> None:
        super().__init__(number, "wb", closefd=False)
        self._called, self._is_gone = name, is_gone

    def write(self, data: "ReadableBuffer", /) -> int:
        if not self._is_gone:
            try:
                return super().write(data)
            except OSError as error:
                self._is_gone = True
                if error.errno not in _GONE and self._called == "stdout":
                    raise
        OUTPUTS.gone(self._called)
        return memoryview(data).nbytes


def guard_outputs() -> None:
    """Have all that is written to stdout and stderr, by whomever, find out when they are closed.

    One that was closed from the start is found so by the first write, and no run begins without stderr; nothing that is
    opened later takes its number.
    """
    missing = [number for number in (STDIN, STDOUT, STDERR) if not _is_open(number)]
    while missing and os.open(os.devnull, os.O_RDWR) < max(missing):
        pass
    if STDERR in missing:
        OUTPUTS.closed = "stderr"
    if STDIN in missing:
        sys.stdin = os.fdopen(STDIN, closefd=False)
    sys.stdout = _guarded(sys.stdout, STDOUT, "stdout", is_gone=STDOUT in missing)
    sys.stderr = _guarded(sys.stderr, STDERR, "stderr", is_gone=STDERR in missing)


def _guarded(stream: object, number: int, name: str, *, is_gone: bool) -> io.TextIOWrapper:
    file = io.BufferedWriter(_Output(number, name, is_gone=is_gone))
    if not isinstance(stream, io.TextIOWrapper):
        return io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="\n")
    stream.flush()
    return io.TextIOWrapper(
        file,
        stream.encoding,
        stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


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


class Ended(Exception):
    """A run ended early because of a signal or a closed output; the verb ends with that exit code."""

    def __init__(self, code: Exit, result: RunResult | None) -> None:
        super().__init__()
        self.code, self.result = code, result


@contextmanager
def ending_in_order(notify: Teller, again: str) -> Iterator[Stopping]:
    """Yield the same as `stopping`; a run that ends within because it was asked to is told of, and raises Ended.

    `again`: what to run to put things in order where the second signal ended the waiting.
    """
    with stopping() as stop:
        try:
            yield stop
        except (RunEnded, KeyboardInterrupt) as error:
            if stop.exit is None:
                raise
            notify.once(str(error) or f"Ended without waiting: run {again} to put things in order.")
            raise Ended(stop.exit, error.result if isinstance(error, RunEnded) else None) from error


def _end_soon(code: Exit) -> None:
    """End the process after a while whatever it waits for: a frozen broker's answer, or a thread that does."""
    timer = threading.Timer(LAST_SECONDS, os._exit, (int(code),))
    timer.daemon = True
    timer.start()


def _tell_at_once(text: str) -> None:
    """Write past the stream's buffer: the signal may have come while that was being written to."""
    with suppress(OSError):
        os.write(STDERR, text.encode())
