"""One request to one broker: who is asked, what is asked again, and what an answer that never came means."""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Self, TypeVar

import kafka.errors
from kafka import KafkaAdminClient
from kafka.net.compat import KafkaNetClient

from reconciler.admin.client.errors import (
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    RETRIABLE,
    THROTTLING_QUOTA_EXCEEDED,
    name_of,
)
from reconciler.admin.client.last_answer import keep_last_answers
from reconciler.admin.client.oauth import TokenProvider
from reconciler.admin.client.properties import Connection
from reconciler.admin.client.reach import Server, reachable, shown
from reconciler.admin.client.redact import hide_in_logs, without_secrets
from reconciler.model.problem import ClusterUnavailable, OutcomeUnknown

if TYPE_CHECKING:
    from kafka.net.manager import KafkaConnectionManager
    from kafka.protocol.api_message import ApiMessage

Item = TypeVar("Item")

BOOTSTRAP_SECONDS = 10.0
REQUEST_SECONDS = 30.0
SETUP_SECONDS = 10.0
# One that is frozen takes a request and never answers: the first try is short, another broker gets the second.
FIRST_TRY_SECONDS = 10.0
RETRY_SECONDS = 15.0
ONE_BROKER_SECONDS = 2.0
PAUSE_SECONDS = 0.2
# A broker that did not answer is asked last for so long: one that is frozen still accepts connections.
AVOID_SECONDS = 30.0
# The library fails a request when five are under way to one broker.
MOST_AT_ONCE = 4

Build = Callable[[], "ApiMessage"]
"""Makes a request; a fresh one for each try, because sending one fixes its version."""


LOGIN_REFUSED = (kafka.errors.SaslAuthenticationFailedError, kafka.errors.UnsupportedSaslMechanismError)


class NotSent(Exception):
    """The request did not leave this machine."""


class NoAnswer(Exception):
    """The request may have arrived, but no answer came."""


@dataclass(slots=True)
class Wire:
    """Connections to one cluster. No broker is taken for the controller: any of them forwards to the active one.

    `guard` is called before each request that writes, repeated ones too; what it raises is raised instead.
    """

    client: KafkaAdminClient
    servers: tuple[Server, ...]
    request_seconds: float = REQUEST_SECONDS
    retry_seconds: float = RETRY_SECONDS
    avoided: dict[int, float] = field(default_factory=dict)
    turn: int = 0
    connection: Connection | None = None
    guard: Callable[[], None] | None = None

    @property
    def manager(self) -> "KafkaConnectionManager":
        """The library's connections."""
        return self.client._manager  # noqa: SLF001 - the library offers raw requests no other way

    @property
    def write_timeout_ms(self) -> int:
        """How long a broker may work on a write: less than we wait, so that its own word comes first."""
        return int(self.request_seconds * 1000 * 2 / 3)

    def read(self, build: Build, node_id: int | None = None) -> "ApiMessage":
        """Return the answer of that broker, or of any; asks again, and others, for `retry_seconds`."""
        deadline = time.monotonic() + self.retry_seconds
        seconds = min(FIRST_TRY_SECONDS, self.request_seconds)
        while True:
            try:
                response = self._exchange(build, node_id, seconds)
                reason = _retriable_error(response)
                if reason is None:
                    return response
            except (NotSent, NoAnswer) as error:
                reason = str(error)
            if time.monotonic() + PAUSE_SECONDS > deadline:
                raise self._unavailable(reason)
            seconds = self.request_seconds
            time.sleep(PAUSE_SECONDS)

    def write(self, build: Build) -> "ApiMessage":
        """Return any broker's answer. Tried again only while it is certain that no broker has acted on it."""
        try:
            return self._write(build, None, self.retry_seconds)
        except NotSent as error:
            raise self._unavailable(str(error)) from None

    def write_to(self, node_id: int, build: Build) -> "ApiMessage":
        """Return that broker's answer; raises NotSent soon where it is down."""
        return self._write(build, node_id, min(ONE_BROKER_SECONDS, self.retry_seconds))

    def ask(self, build: Build, node_id: int | None, seconds: float) -> "ApiMessage":
        """Return that broker's answer, or any one's, within so long; tried once, raises NotSent or NoAnswer."""
        return self._exchange(build, node_id, seconds)

    def another(self, setup_seconds: float) -> "Wire":
        """Return connections of their own to the brokers known now: requests on these wait for none of the others.

        One that cannot be set up within so long is given up.
        """
        if self.connection is None:
            raise ClusterUnavailable("These connections cannot be made a second time. Connect to the cluster anew.")
        known = tuple((broker.host, broker.port) for broker in self.manager.cluster.brokers())
        servers = known or self.connection.servers
        return open_wire(replace(self.connection, servers=servers), setup_seconds)

    def read_many(self, builds: Sequence[Build]) -> "list[ApiMessage]":
        """Return the answers to several requests that any broker can answer, in their order."""
        with _threads(MOST_AT_ONCE) as pool:
            return list(pool.map(self.read, builds))

    def read_each(self, builds: Mapping[int, Build], seconds: float | None = None) -> "dict[int, ApiMessage]":
        """Return the answers of several brokers at once; one that gives none is left out: it hides itself alone.

        `seconds`: how long each answer may take, where that is less than any request may.
        """
        allowed = self.request_seconds if seconds is None else seconds
        with _threads(max(1, len(builds))) as pool:
            answers = list(pool.map(self._read_or_none, builds.values(), builds, repeat(allowed)))
        return {node: answer for node, answer in zip(builds, answers, strict=True) if answer is not None}

    def brokers(self) -> list[int]:
        """Return the brokers that the library knows as alive."""
        return sorted(broker.node_id for broker in self.manager.cluster.brokers())

    def is_supported(self, request: "type[ApiMessage]", version: int) -> bool:
        """Whether the cluster speaks that version of a request."""
        supported = self.manager.broker_version_data.api_versions.get(request.API_KEY)
        return supported is not None and supported[1] >= version

    def close(self) -> None:
        """Close all connections."""
        self.client.close()

    def _write(self, build: Build, node_id: int | None, seconds: float) -> "ApiMessage":
        deadline = time.monotonic() + seconds
        while True:
            if self.guard is not None:
                self.guard()
            try:
                response = self._exchange(build, node_id, self.request_seconds)
                code = getattr(response, "error_code", NONE)
                if code == REQUEST_TIMED_OUT:
                    raise self._unknown(name_of(code))
                if code != NOT_CONTROLLER:
                    return response
                reason = name_of(code)
            except NotSent as error:
                reason = str(error)
            except NoAnswer as error:
                raise self._unknown(str(error)) from None
            if time.monotonic() + PAUSE_SECONDS > deadline:
                raise NotSent(reason)
            time.sleep(PAUSE_SECONDS)

    def _read_or_none(self, build: Build, node_id: int, seconds: float) -> "ApiMessage | None":
        deadline = time.monotonic() + ONE_BROKER_SECONDS
        while True:
            try:
                response = self._exchange(build, node_id, seconds)
                return response if _retriable_error(response) is None else None
            except NoAnswer:
                return None
            except NotSent:
                if time.monotonic() + PAUSE_SECONDS > deadline:
                    return None
                time.sleep(PAUSE_SECONDS)

    def _exchange(self, build: Build, node_id: int | None, seconds: float) -> "ApiMessage":
        node = self._choose() if node_id is None else node_id
        try:
            if self.manager.cluster.broker_metadata(node) is None:
                self.manager.run(_look_for_brokers, self.manager, self._choose())
            response = self.manager.run(_exchange, self.manager, build(), node, int(seconds * 1000))
        except kafka.errors.IncompatibleBrokerVersion as error:
            raise ClusterUnavailable(
                f"Broker {node} is too old for this: {error}. The reconciler needs Kafka 3.5 or later."
            ) from None
        except (NotSent, NoAnswer):
            self.avoided[node] = time.monotonic() + AVOID_SECONDS
            raise
        self.avoided.pop(node, None)
        return response

    def _choose(self) -> int:
        """Return a broker to ask: each in its turn, those that just failed last."""
        self.turn += 1
        nodes, now = self.brokers(), time.monotonic()
        if not nodes:
            raise NotSent("no broker is known")
        turned = nodes[self.turn % len(nodes) :] + nodes[: self.turn % len(nodes)]
        return min(turned, key=lambda node: max(self.avoided.get(node, 0.0) - now, 0.0))

    def _unavailable(self, reason: str) -> ClusterUnavailable:
        return ClusterUnavailable(
            f"The cluster at {self._where()} does not answer ({without_secrets(reason)}). "
            "Check that its brokers run and can be reached from here, then try again."
        )

    def _unknown(self, reason: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"The cluster at {self._where()} did not answer a change ({without_secrets(reason)}): it may have happened "
            "or not. Look at the cluster before repeating it; `apply` does so by itself when it is run again."
        )

    def _where(self) -> str:
        return ",".join(map(shown, self.servers))


def open_wire(connection: Connection, setup_seconds: float = SETUP_SECONDS) -> Wire:
    """Connect, or say in one sentence why that cannot be."""
    setup_ms = int(setup_seconds * 1000)
    # The admin client does not take these two, its connections do.
    setup = {"socket_connection_setup_timeout_ms": setup_ms, "socket_connection_setup_timeout_max_ms": 3 * setup_ms}
    hide_in_logs(*connection.secrets)
    keep_last_answers()
    provider = connection.options.get("sasl_oauth_token_provider")
    if isinstance(provider, TokenProvider):
        provider.token()  # told here, in words, rather than by a thread of the library that cannot log in
    servers = reachable(connection.servers)
    started: list[KafkaNetClient] = []

    def start(**options: object) -> KafkaNetClient:
        started.append(KafkaNetClient(**{**options, **setup}))
        return started[-1]

    with _Listener(started) as heard:
        try:
            client = KafkaAdminClient(
                bootstrap_servers=[shown(server) for server in servers],
                bootstrap_timeout_ms=int(BOOTSTRAP_SECONDS * 1000),
                kafka_client=start,
                **connection.options,
            )
        except (kafka.errors.KafkaError, OSError, ValueError) as error:
            for net_client in started:  # the library leaves its thread running when it cannot connect
                net_client.close()
            raise _refusal(heard.reason or error, servers, connection) from None
    seconds = client.config["request_timeout_ms"] / 1000
    return Wire(client, tuple(connection.servers), seconds, min(RETRY_SECONDS, seconds), connection=connection)


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


async def _look_for_brokers(manager: "KafkaConnectionManager", guide: int) -> None:
    """Learn of brokers that came, or came back: the library asks for them every five minutes only."""
    try:
        await manager.cluster.refresh_metadata(guide)
    except (kafka.errors.KafkaError, OSError) as error:
        raise NotSent(f"broker {guide}: {_said(error)}") from None


async def _exchange(
    manager: "KafkaConnectionManager", request: "ApiMessage", node_id: int, timeout_ms: int
) -> "ApiMessage":
    """Send and await the answer, telling apart what was certainly not sent."""
    try:
        connection = manager.get_connection(node_id)
        await connection
    except (kafka.errors.KafkaError, OSError) as error:
        raise NotSent(f"broker {node_id}: {_said(error)}") from None
    if not connection.connected:
        raise NotSent(f"broker {node_id}: connection closed")
    try:
        return await connection.send_request(request, request_timeout_ms=timeout_ms)
    except kafka.errors.IncompatibleBrokerVersion:
        raise
    except kafka.errors.NodeNotReadyError as error:
        raise NotSent(f"broker {node_id}: {_said(error)}") from None
    except (kafka.errors.KafkaError, OSError) as error:
        raise NoAnswer(f"broker {node_id}: {_said(error)}") from None


def _retriable_error(response: "ApiMessage") -> str | None:
    code = getattr(response, "error_code", NONE)
    return name_of(code) if code in RETRIABLE or code == THROTTLING_QUOTA_EXCEEDED else None


def _said(error: Exception) -> str:
    texts = [str(text) for text in error.args if str(text)]
    return texts[0] if texts and not texts[0].isdigit() else type(error).__name__.removesuffix("Error")


def _refusal(error: Exception, servers: Sequence[Server], connection: Connection) -> ClusterUnavailable:
    where = ",".join(map(shown, servers))
    protocol = str(connection.options["security_protocol"])
    if isinstance(error, kafka.errors.SaslAuthenticationFailedError):
        is_named = connection.user is not None
        who = f" of user {connection.user}" if is_named else ""
        check = "sasl.username, sasl.password" if is_named else "whose token or credentials they are"
        return ClusterUnavailable(
            f"{where} refused the login{who} with {connection.options.get('sasl_mechanism')}. "
            f"Check {check} and sasl.mechanism.",
            code="KR602",
        )
    if isinstance(error, kafka.errors.UnsupportedSaslMechanismError):
        mechanism = connection.options.get("sasl_mechanism")
        return ClusterUnavailable(
            f"{where} does not offer sasl.mechanism {mechanism}. Ask which mechanisms its listener has enabled.",
            code="KR602",
        )
    reason = without_secrets(_said(error))
    fitting = "security.protocol, sasl.mechanism" if protocol.startswith("SASL") else "security.protocol"
    return ClusterUnavailable(
        f"{where} accepts connections but does not answer as a Kafka broker over {protocol} ({reason}). "
        f"Check that {fitting} and the ssl.* properties fit that listener, and that it is a broker's port.",
    )


class _Listener(logging.Handler):
    """Hears why the library could not connect (it raises a time-out only), and stops what can never succeed."""

    def __init__(self, started: list[KafkaNetClient]) -> None:
        super().__init__(logging.WARNING)
        self.reason: Exception | None = None
        self._started = started

    def emit(self, record: logging.LogRecord) -> None:
        told = record.args if isinstance(record.args, tuple) else ()
        reasons = [reason for reason in told if isinstance(reason, Exception)]
        if kafka.errors.UnsupportedSaslMechanismError.__name__ in told:
            # The broker hangs up so soon that the library may know no more than that; its log holds the name.
            reasons.append(kafka.errors.UnsupportedSaslMechanismError())
        self.reason = self.reason or next(iter(reasons), None)
        refused = next((reason for reason in reasons if isinstance(reason, LOGIN_REFUSED)), None)
        if refused is not None:
            self.reason = refused
            for client in self._started:  # more tries might lock the account
                client._manager.closed = True  # noqa: SLF001 - the library tries until its time is up

    def __enter__(self) -> Self:
        logging.getLogger("kafka").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka").removeHandler(self)


def batches(items: Collection[Item], most: int) -> list[list[Item]]:
    """Return the items in lists of at most so many, in their order."""
    listed = list(items)
    return [listed[start : start + most] for start in range(0, len(listed), most)]
