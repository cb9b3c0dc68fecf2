"""SIGINT, SIGTERM and SIGHUP while Spark works: its Java ends first, then the program as it would without Spark."""

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from subprocess import TimeoutExpired
from types import FrameType

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
