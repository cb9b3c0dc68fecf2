"""Sends one request to one broker: who is asked, what is asked again, and what an answer that never came means."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, TypeVar

import kafka.errors

from reconciler.admin.client.checks import final_refusal
from reconciler.admin.client.errors import (
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    RETRIABLE,
    THROTTLING_QUOTA_EXCEEDED,
    name_of,
)
from reconciler.admin.client.exchange import NoAnswer, NotSent, begin, exchange, look_for_brokers, within
from reconciler.admin.client.properties import Connection
from reconciler.admin.waits import WAITS, waiting_for
from reconciler.model.problem import CheckFailed, ClusterUnavailable, NotOffered, OutcomeUnknown
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import few

if TYPE_CHECKING:
    from kafka import KafkaAdminClient
    from kafka.net.manager import KafkaConnectionManager
    from kafka.protocol.api_message import ApiMessage

logger = logging.getLogger(__name__)

Item = TypeVar("Item")

REQUEST_SECONDS = 30.0
# One that is frozen takes a connection, or a request, and never answers: after so long another one is asked.
FIRST_TRY_SECONDS = 10.0
MOST_ASKED = 2
SETUP_SECONDS = 10.0
CLOSE_SECONDS = 5.0
RETRY_SECONDS = 15.0
ONE_BROKER_SECONDS = 2.0
PAUSE_SECONDS = 0.2
# A broker that did not answer is asked last for so long: one that is frozen still accepts connections.
AVOID_SECONDS = 30.0
# One that is silent keeps whoever asks it waiting; for so long it is left out, or is asked for a moment only.
SILENT_SECONDS = 60.0
# The library fails a request when five are under way to one broker.
MOST_AT_ONCE = 4

Build = Callable[[], "ApiMessage"]
"""Makes a request; a fresh one for each try, because sending one fixes its version."""


class NotLetIn(NotSent):
    """A check failed, here or at the broker: more tries would end the same way, or lock the account."""

    def __init__(self, reason: str, node: int, refusal: CheckFailed) -> None:
        super().__init__(reason)
        self.node, self.refusal = node, refusal


@dataclass(slots=True)
class Wire:
    """Connections to one cluster. No broker is taken for the controller: any of them forwards to the active one.

    `silent`: until when one that kept a question waiting in vain is left out. `refused`: which check failed at which
    broker, and until when that counts. `guard` is called before each request that writes, repeated ones too; what it
    raises is raised instead. `opened_in_seconds`: how long the first connection took, with its checks and login;
    `setup_seconds`: how long another one may take.
    """

    client: "KafkaAdminClient"
    request_seconds: float = REQUEST_SECONDS
    retry_seconds: float = RETRY_SECONDS
    avoided: dict[int, float] = field(default_factory=dict)
    silent: dict[int, float] = field(default_factory=dict)
    refused: dict[int, tuple[CheckFailed, float]] = field(default_factory=dict)
    turn: int = 0
    connection: Connection | None = None
    guard: Callable[[], None] | None = None
    opened_in_seconds: float = 0.0
    setup_seconds: float = SETUP_SECONDS

    @property
    def manager(self) -> "KafkaConnectionManager":
        """The library's connections."""
        return self.client._manager  # noqa: SLF001 - the library offers raw requests no other way

    @property
    def write_timeout_ms(self) -> int:
        """How long a broker may work on a write: less than we wait, so that its own word comes first."""
        return int(self.request_seconds * 1000 * 2 / 3)

    @property
    def moment_seconds(self) -> float:
        """How long a broker gets that was silent a moment ago: enough for one that is well, however far away."""
        return max(ONE_BROKER_SECONDS, 2 * self.opened_in_seconds)

    def read(self, build: Build, node_id: int | None = None) -> "ApiMessage":
        """Return the answer of that broker, or of any; asks again, and others, for `retry_seconds`."""
        closed: set[int] = set()
        reason = ""
        is_silent = node_id is not None and self.is_silent(node_id)
        with waiting_for(_answer_of(node_id)):
            for number in tries(min(self.moment_seconds, self.retry_seconds) if is_silent else self.retry_seconds):
                try:
                    response = (
                        self._first_answer(build, closed)
                        if node_id is None
                        else self.ask(build, node_id, self._patience(node_id, is_first=not number))
                    )
                    reason = _retriable_error(response)
                    if not reason:
                        return response
                except NotLetIn as error:
                    if self._is_final(error, node_id, closed):
                        raise error.refusal from None
                    reason = str(error)
                except (NotSent, NoAnswer) as error:
                    reason = str(error)
        raise self._unavailable(reason)

    def write(self, build: Build) -> "ApiMessage":
        """Return any broker's answer. Tried again only while it is certain that no broker has acted on it."""
        try:
            return self._write(build, None, self.retry_seconds)
        except NotLetIn as error:
            raise error.refusal from None
        except NotSent as error:
            raise self._unavailable(str(error)) from None

    def write_to(self, node_id: int, build: Build) -> "ApiMessage":
        """Return that broker's answer; raises NotSent soon where it is down."""
        return self._write(build, node_id, min(ONE_BROKER_SECONDS, self.retry_seconds))

    def ask(self, build: Build, node_id: int | None, seconds: float) -> "ApiMessage":
        """Return that broker's answer, or any one's, within so long; tried once, raises NotSent or NoAnswer."""
        node, request = self._choose() if node_id is None else node_id, build()
        began = time.monotonic()
        setup_seconds = min(self.setup_seconds, seconds) if self.is_silent(node) else self.setup_seconds
        try:
            if self.manager.cluster.broker_metadata(node) is None:
                look_for_brokers(self.manager, self._choose(), min(seconds, FIRST_TRY_SECONDS), self.setup_seconds)
            response = exchange(self.manager, request, node, seconds, setup_seconds)
        except kafka.errors.IncompatibleBrokerVersion:
            name = type(request).__name__.removesuffix("Request")
            raise NotOffered(
                f"Broker {node} does not take {name} as Kafka 3.5 and later do: it is older, or a service that leaves "
                "this out. See which verbs run where: .github/guides/where-it-runs.md."
            ) from None
        except (NotSent, NoAnswer) as error:
            self.avoided[node] = time.monotonic() + AVOID_SECONDS
            if isinstance(error, NotSent) or seconds >= self.request_seconds:
                self._note_silence(node, began)
            refusal = self._refusal(error, node) if isinstance(error, NotSent) else None
            if refusal is not None:
                raise NotLetIn(str(error), node, refusal) from None
            raise
        self.avoided.pop(node, None)
        self.refused.pop(node, None)
        _count_quota(node, getattr(response, "throttle_time_ms", 0))
        self.silent.pop(node, None)
        return response

    def read_many(self, builds: Sequence[Build]) -> "list[ApiMessage]":
        """Return the answers to several requests that any broker can answer, in their order."""
        with _threads(MOST_AT_ONCE) as pool:
            return list(pool.map(self.read, builds))

    def read_each(
        self, builds: Mapping[int, Build], seconds: float | None = None, *, is_waiting_for_all: bool = True
    ) -> "dict[int, ApiMessage]":
        """Return the answers of several brokers at once; one that gives none is left out: it hides itself alone.

        `seconds`: how long each answer may take, where that is less than any request may. Without
        `is_waiting_for_all` one that was silent a moment ago is left out unasked.
        """
        if not is_waiting_for_all:
            builds = {node: build for node, build in builds.items() if not self.is_silent(node)}
        allowed = self.request_seconds if seconds is None else seconds
        answers: dict[int, ApiMessage | None] = {}

        def ask(node: int) -> None:
            answers[node] = self._read_or_none(builds[node], node, allowed)

        with waiting_for(lambda: _answers_of(builds, answers)), _threads(max(1, len(builds))) as pool:
            list(pool.map(ask, builds))
        return {node: answer for node in builds if (answer := answers[node]) is not None}

    def brokers(self) -> list[int]:
        """Return the brokers that the library knows as alive."""
        return sorted(broker.node_id for broker in self.manager.cluster.brokers())

    def avoid(self, servers: Collection[tuple[str, int]]) -> None:
        """Take brokers at these addresses for silent, which did not answer a moment ago."""
        now = time.monotonic()
        for broker in self.manager.cluster.brokers():
            if (broker.host, broker.port) in servers:
                self.avoided[broker.node_id], self.silent[broker.node_id] = now + AVOID_SECONDS, now + SILENT_SECONDS

    def is_silent(self, node: int) -> bool:
        """Whether that broker kept a question waiting in vain a moment ago."""
        return self.silent.get(node, 0.0) >= time.monotonic()

    def is_supported(self, request: "type[ApiMessage]", version: int) -> bool:
        """Whether the cluster speaks that version of a request; 0: whether it takes such requests at all."""
        supported = self.manager.broker_version_data.api_versions.get(request.API_KEY)
        return supported is not None and supported[1] >= version

    def close(self) -> None:
        """Close all connections, as far as the library does so in time."""
        with suppress(TimeoutError):
            within(CLOSE_SECONDS, self.client.close)

    def _patience(self, node: int, *, is_first: bool) -> float:
        """Return how long one broker may take that alone can answer: one that is thawed does so in a moment."""
        if self.is_silent(node):
            return min(self.moment_seconds, self.request_seconds)
        return min(FIRST_TRY_SECONDS, self.request_seconds) if is_first else self.request_seconds

    def _first_answer(self, build: Build, closed: set[int]) -> "ApiMessage":
        """Return what the first of some brokers answers: the next one is asked beside one that is silent for a while.

        One that is frozen never answers. One that hands a question on to a controller that is frozen does, after 30 s
        (controller.socket.timeout.ms), and so would the next one: what it was asked is not given up.
        """
        pending: dict[Future[ApiMessage], int] = {}
        left = min(MOST_ASKED, max(1, len(self.brokers())))
        while True:
            if left:
                left, node = left - 1, self._choose()
                pending[begin(partial(self.ask, build, node, self.request_seconds))[0]] = node
            ended, _ = wait(pending, FIRST_TRY_SECONDS if left else None, FIRST_COMPLETED)
            for one in ended:
                node = pending.pop(one)
                # Until the others have answered this question they keep the next one waiting, too.
                others = {*self.brokers()} - {node} if pending else ()
                self.avoided |= dict.fromkeys(others, time.monotonic() + AVOID_SECONDS)
                error = one.exception()
                if error is None:
                    return one.result()
                if isinstance(error, NotLetIn):
                    closed.add(error.node)
                if not pending:
                    raise error
            self.avoided |= dict.fromkeys(pending.values(), time.monotonic() + AVOID_SECONDS)

    def _write(self, build: Build, node_id: int | None, seconds: float) -> "ApiMessage":
        closed: set[int] = set()
        reason = ""
        with waiting_for(_answer_of(node_id)):
            for _ in tries(seconds):
                if self.guard is not None:
                    self.guard()
                try:
                    response = self.ask(build, node_id, self.request_seconds)
                    code = getattr(response, "error_code", NONE)
                    if code == REQUEST_TIMED_OUT:  # the controller works on it, or has done it (KAFKA-16015)
                        raise self._unknown(name_of(code))
                    if code != NOT_CONTROLLER:  # it was forwarded (KIP-590) to one that has resigned
                        return response
                    reason = name_of(code)
                except NotLetIn as error:
                    if self._is_final(error, node_id, closed):
                        raise
                    reason = str(error)
                except NotSent as error:
                    reason = str(error)
                except NoAnswer as error:
                    raise self._unknown(str(error)) from None
        raise NotSent(reason)

    def _note_silence(self, node: int, began: float) -> None:
        """Take note of a broker that kept its asker waiting: one that is down refuses at once."""
        now = time.monotonic()
        if self.is_silent(node) or now - began > 2 * ONE_BROKER_SECONDS:
            self.silent[node] = now + SILENT_SECONDS

    def _read_or_none(self, build: Build, node_id: int, seconds: float) -> "ApiMessage | None":
        seconds = min(seconds, self.moment_seconds) if self.is_silent(node_id) else seconds
        for _ in tries(ONE_BROKER_SECONDS):
            try:
                response = self.ask(build, node_id, seconds)
            except (NoAnswer, NotLetIn):
                return None
            except NotSent:
                continue
            return None if _retriable_error(response) else response
        return None

    def _refusal(self, error: NotSent, node: int) -> CheckFailed | None:
        """Return which check failed there, now or a moment ago: between its own tries the library does not say."""
        told = None if self.connection is None else final_refusal(error.__cause__, f"broker {node}", self.connection)
        now = time.monotonic()
        if told is not None:
            self.refused[node] = told, now + AVOID_SECONDS
        known = self.refused.get(node)
        return known[0] if known is not None and known[1] > now else None

    def _is_final(self, error: NotLetIn, node_id: int | None, closed: set[int]) -> bool:
        """Whether nobody is left to ask, with this one too among those that are closed to us."""
        closed.add(error.node)
        return node_id is not None or closed >= {*self.brokers()}

    def _choose(self) -> int:
        """Return a broker to ask: each in its turn, those that just failed last."""
        self.turn += 1
        nodes, now = self.brokers(), time.monotonic()
        if not nodes:
            raise NotSent("no broker is known")
        # In turn, so that no broker answers everything, and one that is slow costs a part of the requests only.
        turned = nodes[self.turn % len(nodes) :] + nodes[: self.turn % len(nodes)]
        return min(turned, key=lambda node: max(self.avoided.get(node, 0.0) - now, 0.0))

    def _unavailable(self, reason: str) -> ClusterUnavailable:
        return ClusterUnavailable(
            f"The cluster does not answer ({reason}). "
            "Check that its brokers run and can be reached from here, then try again."
        )

    def _unknown(self, reason: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"The cluster did not answer a change ({reason}): it may have happened "
            "or not. Look at the cluster before repeating it; `apply` does so by itself when it is run again."
        )


def tries(seconds: float, pause_seconds: float = PAUSE_SECONDS) -> Iterator[int]:
    """Yield the number of each try: the first at once, each other after a pause, for as long as it begins in time."""
    deadline = time.monotonic() + seconds
    for number in count():
        yield number
        if time.monotonic() + pause_seconds > deadline:
            return
        time.sleep(pause_seconds)


@contextmanager
def _threads(most: int) -> Iterator[ThreadPoolExecutor]:
    """Yield threads that are waited for at the end, but not after an error: a second Ctrl-C ends the waiting."""
    pool = ThreadPoolExecutor(most)
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()


def _answer_of(node_id: int | None) -> str:
    return "an answer of the cluster" if node_id is None else f"an answer of broker {node_id}"


def _answers_of(asked: Collection[int], answered: Collection[int]) -> str:
    missing = sorted(node for node in asked if node not in answered)
    return _answer_of(missing[0]) if len(missing) == 1 else f"answers of brokers {few(missing)}" if missing else ""


def _count_quota(node: int, milliseconds: int) -> None:
    """Take note of what a quota makes us wait, and tell of it the first time; the library would each time."""
    if milliseconds and not WAITS.held_back:
        logger.warning(
            "A quota of the cluster slows this client down: broker %d holds it back for %d ms. All goes on, only "
            "later; raise the quota of its user or client id to be faster. (KR731)", node, milliseconds
        )  # fmt: skip
    WAITS.held_back += milliseconds / 1000


def _retriable_error(response: "ApiMessage") -> str:
    """Return the name of the whole answer's error, if asking again may help, else ""."""
    code = getattr(response, "error_code", NONE)
    return name_of(code) if code in RETRIABLE or code == THROTTLING_QUOTA_EXCEEDED else ""


def batches(items: Collection[Item], most: int) -> list[list[Item]]:
    """Return the items in lists of at most so many, in their order."""
    listed = list(items)
    return [listed[start : start + most] for start in range(0, len(listed), most)]


def by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the numbers of the partitions of each topic, as requests list them; sorted, each once."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(set(topic_partitions)):
        found[topic].append(partition)
    return found
