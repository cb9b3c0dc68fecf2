"""stdout and stderr whose reader may go at any time: `| head`, a lost terminal. The first write that fails is SIGTERM.

While a run is on it is asked to end in order; any other verb ends there and then, and says no more, as Unix tools do.
"""

import errno
import io
import os
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reconciler.cli.exits import Terminated

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# A pipe without a reader, a terminal that is gone, a descriptor that was closed. Anything else, such as a full disk, is
# an error, which stderr tells of; of its own nobody can tell, so there it is all one.
_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO})
STDIN, STDOUT, STDERR = 0, 1, 2


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
