"""Ends a call after so many seconds, whatever it waits for: a time-out of a socket begins anew with each byte."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return the call's result, or raise its error; raises TimeoutError at the deadline, though the call goes on."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again, where the result is awaited
            outcome.set_exception(error)

    Thread(target=run, daemon=True).start()  # the process ends without it
    return outcome.result(seconds)
