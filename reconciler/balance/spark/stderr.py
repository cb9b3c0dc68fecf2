"""What Java says on stderr, without the line that every start of Spark costs and that no user can act on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

_STDERR = 2
# Spark itself asks for this module, and Java has no switch that would keep the line back.
_EXPECTED = b"WARNING: Using incubator modules: jdk.incubator.vector"


@contextmanager
def without_the_expected_line() -> Iterator[None]:
    """Let what is started meanwhile write to stderr as ever, but for that one line; other lines pass as they come."""
    try:
        kept = os.dup(_STDERR)
    except OSError:  # closed by whoever started this
        yield
        return
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    Thread(target=_pass_on, args=(reading, os.dup(kept)), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def _pass_on(reading: int, to: int) -> None:
    """Copy whole lines until whoever writes them is gone; what has no end yet, such as a bar, passes at once."""
    rest = b""
    while read := os.read(reading, 1 << 16):
        *lines, rest = (rest + read).split(b"\n")
        os.write(to, b"".join(line + b"\n" for line in lines if line != _EXPECTED))
        if rest and not _EXPECTED.startswith(rest):
            os.write(to, rest)
            rest = b""
    os.write(to, rest)
    os.close(reading)
    os.close(to)
