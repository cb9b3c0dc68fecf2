"""Looks after the Java that Spark runs on: finds it, starts it without noise, ends it with the program.

Signals: SIGINT, SIGTERM and SIGHUP end Java first while Spark works, then the program as they would without Spark.
"""

import logging
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from types import FrameType

from reconciler.files.paths import is_file
from reconciler.model.problem import ReconcilerError

OLDEST_JAVA = 17
NO_JAVA = "KR021"
OLD_JAVA = "KR022"
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_TIMEOUT_SECONDS = 60


def require_java(environ: Mapping[str, str]) -> None:
    """Raise ReconcilerError where Java is missing or older than 17, in one sentence that says what to do."""
    program = _java_program(environ)
    version = java_version(_told_version(program))
    if version is None:
        raise ReconcilerError(
            f"{program} does not say which Java it is, so Spark cannot be started: "
            f"install Java {OLDEST_JAVA} or newer, or point JAVA_HOME at one",
            code=NO_JAVA,
        )
    if version < OLDEST_JAVA:
        raise ReconcilerError(
            f"{program} is Java {version}, and Spark needs {OLDEST_JAVA} or newer: "
            "install one, or point JAVA_HOME at it",
            code=OLD_JAVA,
        )


def java_version(told: str) -> int | None:
    """Return the major version in what `java -version` tells, None where there is none: 1.8 is 8."""
    found = _VERSION.search(told)
    return int(found[1]) if found else None


def _java_program(environ: Mapping[str, str]) -> str:
    """Return the java that Spark's own scripts would run: of JAVA_HOME where that is set, else of the PATH."""
    home = environ.get("JAVA_HOME")
    if home:
        program = Path(home) / "bin" / "java"
        if is_file(program):
            return str(program)
        raise ReconcilerError(
            f"JAVA_HOME is {home}, which holds no bin/java, so Spark cannot be started: "
            f"point it at Java {OLDEST_JAVA} or newer, or unset it",
            code=NO_JAVA,
        )
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is None:
        raise ReconcilerError(
            f"Java is missing, and Spark runs on it: install Java {OLDEST_JAVA} or newer, or point JAVA_HOME at one",
            code=NO_JAVA,
        )
    return found


def _told_version(program: str) -> str:
    try:
        ended = subprocess.run(  # noqa: S603 - the java that Spark is about to run anyway
            [program, "-version"], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return ended.stderr + ended.stdout


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


_END_SECONDS = 15
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Handler = Callable[[int, FrameType | None], object] | int


class _CutOff(BaseException):
    """A signal came. py4j logs the stack of a KeyboardInterrupt; of this it knows nothing."""


@dataclass(slots=True)
class Signals:
    """The handlers that were there, and what the first signal's raised."""

    handlers: Mapping[int, _Handler]
    raised: list[BaseException] = field(default_factory=list)

    @property
    def has_ended_java(self) -> bool:
        """Return whether there is no Spark left to talk to."""
        return bool(self.raised)

    def take(self) -> None:
        """Hear the signals from here on. To be called again after a start of Spark, which takes SIGINT to itself.

        What came while Java was started, and could not be ended, ends it now.
        """
        for number, handler in self.handlers.items():
            signal.signal(number, self._on if callable(handler) else handler)
        if self.raised:
            _end_java()
            raise _CutOff

    def give_back(self) -> None:
        """Put the handlers back that were there before."""
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def _on(self, number: int, frame: FrameType | None) -> None:
        """Do what was done before at this signal; where that raises, end Java, so that nothing waits for its answer.

        A call of py4j that is cut off leaves an answer behind, which the next call would take for its own.
        """
        handler = self.handlers[number]
        try:
            if callable(handler):
                handler(number, frame)
        except BaseException as error:  # noqa: BLE001 - kept, and raised at the end of the block
            is_first = not self.raised
            self.raised.append(error)
            if is_first and not _end_java():
                return
            raise _CutOff from None


@contextmanager
def signals_end_java() -> Iterator[Signals]:
    """Let what a handler of such a signal raises end the block, whatever the clean-up on the way met without Java.

    Outside of the main thread, and for a signal that is ignored or has no handler in Python, nothing changes.
    """
    is_heard = threading.current_thread() is threading.main_thread()
    found = {number: signal.getsignal(number) for number in _HEARD} if is_heard else {}
    signals = Signals({number: handler for number, handler in found.items() if handler is not None})
    signals.take()
    try:
        yield signals
    except BaseException:
        if not signals.raised:
            raise
    finally:
        signals.give_back()
    if signals.raised:
        raise signals.raised[0]


def _end_java() -> bool:
    """End the Java that Spark was started in, with all that it writes; one that was there before is only let go.

    Return False while it starts: left alone then, it would wait for ever for whoever started it.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway  # noqa: SLF001 - the only way to the process
    if gateway is None:
        return False
    # py4j's own thread may wait for an answer too, and tells the root logger that none comes: that is no news.
    logging.getLogger().addHandler(logging.NullHandler())
    cut_off = gateway._gateway_client.get_thread_connection()  # noqa: SLF001 - it waits for an answer
    if cut_off is not None:
        cut_off.close()
    process = getattr(gateway, "proc", None)
    if process is None:  # spark-submit's
        return True
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except TimeoutExpired:
        process.kill()
        process.wait()
    return True
