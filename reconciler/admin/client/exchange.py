"""Sends one request to one broker and awaits its answer, with deadlines of our own over all that the library does.

kafka-python 3.0.12 waits without a deadline in four places: in a TLS handshake, for a request that is asked while a
session logs in again, for its own thread (`manager.run` from another one), and for that thread's end (`close`).
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import kafka.errors
from kafka.net.manager import KafkaConnectionManager

from reconciler.admin.client.errors import said

if TYPE_CHECKING:
    from kafka.net.connection import KafkaConnection
    from kafka.net.selector import Task
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.metadata import MetadataResponse

T = TypeVar("T")

# How soon it is seen that a quota lets requests through again.
QUOTA_SECONDS = 0.05
# So much later its asker gives up: the reason that is known here comes first.
SLACK_SECONDS = 1.0
LOGGING_IN, HELD_BACK = "a session that logs in again", "throttle"


class NotSent(Exception):
    """The request did not leave this machine."""


class NoAnswer(Exception):
    """The request may have arrived, but no answer came."""


class Connections(KafkaConnectionManager):  # type: ignore[misc] # the library has no types
    """The library's connections; one whose setting up takes too long is given up, wherever it hangs."""

    async def _connect(
        self,
        node: "MetadataResponse.MetadataResponseBroker",
        conn: "KafkaConnection",
        reset_backoff_on_connect: bool = True,  # noqa: FBT001, FBT002 - the library's own
        timeout_at: float | None = None,
    ) -> None:
        coming = super()._connect(node, conn, reset_backoff_on_connect=reset_backoff_on_connect, timeout_at=timeout_at)
        task = self._net.call_soon(coming)
        if timeout_at is not None:
            self._net.call_at(timeout_at, lambda: self._give_up(conn, task))

    def _give_up(self, conn: "KafkaConnection", task: "Task") -> None:
        if not conn.initializing:
            return
        if conn.transport is None:  # from then on a connection that is closed ends its task itself
            self._net.cancel(task)
            self.update_backoff(conn.node_id)
        conn.close(kafka.errors.KafkaTimeoutError("no connection in time"))


@dataclass(slots=True, eq=False)
class Sending:
    """How far a request has come, for the thread that waits for it and the library's, which sends it.

    `deadline` is for the step that it is in: the connection with its checks and login, a quota, the answer.
    """

    node: int
    seconds: float
    setup_seconds: float
    deadline: float = 0.0
    is_sent: bool = False
    _is_given_up: bool = False
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def leave(self) -> bool:
        """Return whether the request may leave: never once its asker has given up."""
        with self._turn:
            if not self._is_given_up:
                self.is_sent, self.deadline = True, time.monotonic() + self.seconds
            return self.is_sent

    def awaited(self, call: Callable[[], T]) -> T:
        """Return what the call returns; at the deadline raise NotSent, and keep it from leaving, or NoAnswer."""
        self.deadline = time.monotonic() + self.setup_seconds
        try:
            return _until(lambda: self.deadline, call)
        except TimeoutError:
            with self._turn:
                self._is_given_up = True
        if self.is_sent:
            raise NoAnswer(f"broker {self.node}: no answer within {self.seconds:.0f} s")
        raise NotSent(f"broker {self.node}: no connection within {self.setup_seconds:.0f} s")


def exchange(
    manager: KafkaConnectionManager, request: "ApiMessage", node: int, seconds: float, setup_seconds: float
) -> "ApiMessage":
    """Return that broker's answer; raises NotSent or NoAnswer, in time whatever the library does.

    `seconds`: for the answer; `setup_seconds`: for the connection, where there is none yet.
    """
    sending = Sending(node, seconds, setup_seconds)
    return sending.awaited(partial(manager.run, _send, manager, request, sending))


def look_for_brokers(manager: KafkaConnectionManager, guide: int, seconds: float, setup_seconds: float) -> None:
    """Learn of brokers that came, or came back: the library asks for them every five minutes only."""
    sending = Sending(guide, seconds, setup_seconds)
    try:
        sending.awaited(partial(manager.run, _learn, manager, sending))
    except NoAnswer as error:
        raise NotSent(str(error)) from None


def within(seconds: float, call: Callable[[], T]) -> T:
    """Return what a call into the library returns; raises TimeoutError after so long, though the call may never end."""
    end = time.monotonic() + seconds
    return _until(lambda: end, call)


def begin(call: Callable[[], T]) -> tuple[Future[T], threading.Thread]:
    """Begin a call in a thread that keeps nobody waiting, this process neither."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again, by who waits for it
            outcome.set_exception(error)

    thread = threading.Thread(target=run, name="kafka call", daemon=True)
    thread.start()
    return outcome, thread


def _until(deadline: Callable[[], float], call: Callable[[], T]) -> T:
    """Return what a call returns; the deadline is asked for again when it has come, as it may have been put off."""
    outcome, thread = begin(call)
    while not outcome.done():
        at = deadline()
        wait((outcome,), max(0.0, at - time.monotonic()))
        if not outcome.done() and deadline() <= at:
            raise TimeoutError
    thread.join()
    return outcome.result()


async def _send(manager: KafkaConnectionManager, request: "ApiMessage", sending: Sending) -> "ApiMessage":
    """Send and await the answer, telling apart what was certainly not sent."""
    who = f"broker {sending.node}"
    try:
        connection = manager.get_connection(sending.node)
        await connection
    except (kafka.errors.KafkaError, OSError) as error:
        raise NotSent(f"{who}: {said(error)}") from error
    end = time.monotonic() + sending.seconds
    sending.deadline = end + SLACK_SECONDS
    # The library sends nothing while a quota holds us back, and looks once whether that is over, maybe too early. What
    # is asked while the session logs in again it keeps, without a timer.
    while (reason := _holds_back(connection)) and time.monotonic() < end:
        await manager._net.sleep(QUOTA_SECONDS)  # noqa: SLF001 - the library offers these no other way
        if reason == HELD_BACK:
            connection._maybe_unthrottle()  # noqa: SLF001
    if not connection.connected:
        raise NotSent(f"{who}: connection closed")
    if reason or not sending.leave():
        raise NotSent(f"{who}: {reason or 'given up'}")
    try:
        return await connection.send_request(request, request_timeout_ms=int(sending.seconds * 1000))
    except kafka.errors.IncompatibleBrokerVersion:
        raise
    except kafka.errors.NodeNotReadyError as error:
        raise NotSent(f"{who}: {said(error)}") from None
    except (kafka.errors.KafkaError, OSError) as error:
        raise NoAnswer(f"{who}: {said(error)}") from None


async def _learn(manager: KafkaConnectionManager, sending: Sending) -> None:
    manager.cluster.update_metadata(await _send(manager, manager.cluster.metadata_request(), sending))


def _holds_back(connection: "KafkaConnection") -> str:
    """Return why a connection sends nothing just now; "" where it does."""
    if connection._reauth.is_reauthenticating:  # noqa: SLF001
        return LOGGING_IN
    return HELD_BACK if HELD_BACK in connection.paused else ""
