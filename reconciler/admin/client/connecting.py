"""Opens the connections to a cluster, or says in one sentence why that cannot be.

First it finds which bootstrap servers answer, by connections of its own: a dead or frozen one costs no time and gets a
clear word. Then the library connects, and its log is listened to, because it raises nothing but a time-out.
"""

import ipaddress
import logging
import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Self

import kafka.errors
import kafka.net.connection
from kafka import KafkaAdminClient
from kafka.net import KafkaSSLTransport, KafkaTCPTransport
from kafka.net.compat import KafkaNetClient
from kafka.net.selector import NetworkSelector
from kafka.protocol.parser import KafkaProtocol

from reconciler.admin.client.checks import failed_check, final_refusal
from reconciler.admin.client.errors import ANSWER_BYTES, said
from reconciler.admin.client.exchange import Connections, begin, within
from reconciler.admin.client.oauth import TokenProvider, check_credentials_of_aws
from reconciler.admin.client.properties import Connection
from reconciler.admin.client.tls import Context
from reconciler.admin.client.wire import CLOSE_SECONDS, RETRY_SECONDS, SETUP_SECONDS, Wire
from reconciler.model.client_properties import AWS_MSK_IAM, OAUTHBEARER
from reconciler.model.problem import CheckFailed, ClusterUnavailable

logger = logging.getLogger(__name__)

# So long all servers are waited for; then who has answered is enough, and the first one that does is.
REACH_SECONDS = 4.0
BOOTSTRAP_SECONDS = 10.0
# Where one has answered so soon, another that has said nothing within REACH_SECONDS is no more asked for long.
NEAR_SECONDS = 1.0
# How much is read from a connection at once, and by one call of the system.
PART_BYTES, CHUNK_BYTES = 1 << 20, 1 << 16
# These hand over a password, or a token, as it is.
IN_THE_CLEAR = ("PLAIN", OAUTHBEARER)
# ApiVersions, version 0, without a client's name: the one request that every broker answers before a login.
WHAT_DO_YOU_SPEAK = struct.pack(">ihhih", 10, 18, 0, 1, -1)

SILENT, HUNG_UP = "it takes connections and says nothing", "it takes connections and hangs up"

Server = tuple[str, int]
Reason = str | CheckFailed | None
Received = tuple[bytes, Exception | None]


def open_wire(connection: Connection, setup_seconds: float = SETUP_SECONDS, *, is_checked: bool = False) -> Wire:
    """Connect, or say in one sentence why that cannot be; `is_checked`: others of this connection stand already."""
    # A connection that took too long may take longer the next time, but none keeps its asker for ever.
    most_seconds = min(3 * setup_seconds, SETUP_SECONDS)
    # The admin client does not take the first two, its connections do.
    setup = {
        "socket_connection_setup_timeout_ms": int(setup_seconds * 1000),
        "socket_connection_setup_timeout_max_ms": int(most_seconds * 1000),
        "receive_message_max_bytes": ANSWER_BYTES,
    }
    read_in_parts()
    provider = connection.options.get("sasl_oauth_token_provider")
    if isinstance(provider, TokenProvider):
        provider.token()  # told here, in words, rather than by a thread of the library that cannot log in
    if connection.options.get("sasl_mechanism") == AWS_MSK_IAM:
        check_credentials_of_aws()
    if not is_checked:
        _warn_of_clear_text(connection)
    context = connection.options.get("ssl_context")
    servers = reachable(
        connection.servers,
        context if isinstance(context, ssl.SSLContext) else None,
        patience=0.0 if is_checked else REACH_SECONDS,
    )
    started: list[KafkaNetClient] = []

    def start(**options: object) -> KafkaNetClient:
        options |= setup
        net = NetworkSelector(**options)
        started.append(KafkaNetClient(net, Connections(net, **options), **options))
        return started[-1]

    began = time.monotonic()
    client = partial(
        KafkaAdminClient,
        bootstrap_servers=[_shown(server) for server in servers],
        bootstrap_timeout_ms=int(BOOTSTRAP_SECONDS * 1000),
        kafka_client=start,
        **connection.options,
    )
    with _Listener(started, connection) as heard:
        try:
            connected = within(BOOTSTRAP_SECONDS + CLOSE_SECONDS, client)
        except BaseException as error:
            for net_client in started:  # the library leaves its thread running when it cannot connect
                with suppress(TimeoutError):
                    within(CLOSE_SECONDS, net_client.close)
            if isinstance(error, kafka.errors.KafkaError | OSError | ValueError):
                raise _refusal(heard.reason or error, connection) from None
            raise
    seconds = connected.config["request_timeout_ms"] / 1000
    wire = Wire(
        connected,
        seconds,
        min(RETRY_SECONDS, seconds),
        connection=connection,
        opened_in_seconds=time.monotonic() - began,
        setup_seconds=most_seconds,
    )
    if not is_checked and wire.opened_in_seconds < NEAR_SECONDS:
        wire.avoid({*connection.servers} - {*servers})
    return wire


def open_another(wire: Wire, setup_seconds: float) -> Wire:
    """Return connections of their own to the brokers known now: requests on these wait for none of the others.

    One that cannot be set up within so long is given up.
    """
    if wire.connection is None:
        raise ClusterUnavailable("These connections cannot be made a second time. Connect to the cluster anew.")
    brokers = wire.manager.cluster.brokers()
    known = tuple((broker.host, broker.port) for broker in brokers if not wire.is_silent(broker.node_id))
    servers = known or wire.connection.servers
    another = open_wire(replace(wire.connection, servers=servers), setup_seconds, is_checked=True)
    another.avoided |= wire.avoided
    another.silent |= wire.silent
    return another


def reachable(
    servers: Sequence[Server], context: ssl.SSLContext | None = None, *, patience: float = REACH_SECONDS
) -> tuple[Server, ...]:
    """Return the servers that answer, in the order given; where none does, ClusterUnavailable says why.

    Each is asked what it speaks, behind a TLS handshake where there is a context, so that what fails is told by its
    cause and a login is never begun. A server that fails its check beside others that do not is left out, and told.
    Once one has answered, the others are waited for until `patience` is over: a frozen one keeps nobody from the rest.
    """
    # No message holds what stands in a property: a server is named by its place in the list.
    names = ["the broker"] if len(servers) == 1 else [f"server {place}" for place in range(1, len(servers) + 1)]
    looks = [partial(_why_not, *one, context) for one in zip(servers, names, strict=True)]
    reasons = _outcomes(looks, patience)
    failed = [reason for reason in reasons if isinstance(reason, CheckFailed)]
    # One that hangs up may do so because of our properties: where none answers, the library finds out which.
    for fitting in ((None,), (HUNG_UP,)):
        found = tuple(server for server, reason in zip(servers, reasons, strict=True) if reason in fitting)
        if found:
            for error in failed:
                logger.warning("%s It is left out. (%s)", error, error.code)
            return found
    if failed:
        raise failed[0]
    told = "; ".join(f"{name}: {reason}" for name, reason in zip(names, reasons, strict=True))
    if SILENT in reasons:
        raise ClusterUnavailable(
            f"None of bootstrap.servers answers ({told}). "
            "Look whether these brokers hang, as a stopped process or a stalled disk does, and whether a balancer "
            "without brokers stands before them."
        )
    raise ClusterUnavailable(
        f"None of bootstrap.servers can be reached ({told}). "
        "Check their names and ports, that the brokers run, and that the network between lets this machine through."
    )


def _outcomes(looks: Sequence[Callable[[], Reason]], patience: float) -> list[Reason]:
    """Return what each look says, once all have ended or one has found an answer and the patience is over."""
    begun = [begin(look)[0] for look in looks]
    end = time.monotonic() + BOOTSTRAP_SECONDS
    ended, pending = wait(begun, patience)
    while pending and not any(one.result() is None for one in ended):
        more, pending = wait(pending, max(0.0, end - time.monotonic()), FIRST_COMPLETED)
        ended |= more
        if not more:
            break
    return [one.result() if one in ended else SILENT for one in begun]


def _why_not(server: Server, name: str, context: ssl.SSLContext | None) -> Reason:
    """Return why a server is not to be asked; None for one that answers."""
    try:
        with socket.create_connection(server, timeout=REACH_SECONDS) as connected:
            connected.settimeout(BOOTSTRAP_SECONDS)
            return _answer(connected) if context is None else _answer_by_tls(connected, server[0], name, context)
    except TimeoutError:
        return f"no answer within {REACH_SECONDS:.0f} s"
    except (socket.gaierror, UnicodeError):
        return "no such host"
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()


def _answer(connected: socket.socket) -> str | None:
    try:
        connected.send(WHAT_DO_YOU_SPEAK)
        return None if connected.recv(1) else HUNG_UP
    except TimeoutError:
        return SILENT
    except ConnectionError:
        return HUNG_UP


def _answer_by_tls(connected: socket.socket, host: str, name: str, context: ssl.SSLContext) -> Reason:
    has_certificate = isinstance(context, Context) and context.has_certificate
    said = "Handshake failed"
    try:
        with context.wrap_socket(connected, server_hostname=host.rstrip(".")) as secured:
            said = "Closed"
            # With TLS 1.3 a broker looks at a client's certificate after the handshake: wait for its answer.
            secured.send(WHAT_DO_YOU_SPEAK)
            return None if secured.recv(1) else HUNG_UP
    except TimeoutError:
        return SILENT
    except OSError as error:  # ssl.SSLError is one, too
        return failed_check(f"{said}: {error}", name, has_certificate=has_certificate) or HUNG_UP


def read_in_parts() -> None:
    """Have the library read at most PART_BYTES at once, and hand them on before it reports the end of a stream.

    kafka-python 3.0.12 reads for as long as bytes come, so a fast sender fills the memory before the frame's length is
    checked. With the connection it also throws away what it read before the end of the stream: the answer of a broker
    that answers and hangs up, as after a refused login.
    """
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        transport._sock_recv = _received  # noqa: SLF001 - the library offers no other place
    kafka.net.connection.KafkaProtocol = Answers


class Answers(KafkaProtocol):  # type: ignore[misc] # the library has no types
    """The library's decoder; an error of it keeps no answer in memory, and always ends the connection."""

    def receive_bytes(self, data: bytes) -> list[object]:
        """Return the answers that are whole; raises KafkaProtocolError for one that cannot be decoded."""
        try:
            answers: list[object] = super().receive_bytes(data)
        except kafka.errors.KafkaProtocolError as error:
            wrong = error
        except Exception:  # noqa: BLE001 - the library's task would end, and its asker wait for the deadline
            wrong = kafka.errors.KafkaProtocolError("Unable to decode response")
        else:
            return answers
        self._rbuffer = wrong.__context__ = None  # the frames of a traceback hold the answer
        raise wrong.with_traceback(None)


def _received(transport: KafkaTCPTransport) -> Received:
    connected, received = transport._sock, bytearray()  # noqa: SLF001 - as above
    # What OpenSSL has decrypted already wakes no selector: it is read although the part is full.
    while len(received) < PART_BYTES or (isinstance(connected, ssl.SSLSocket) and connected.pending()):
        try:
            data = connected.recv(CHUNK_BYTES)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            break
        except (OSError, ValueError, AttributeError) as error:  # the last two: closed meanwhile
            return bytes(received), None if received else kafka.errors.KafkaConnectionError(error)
        if not data:
            return bytes(received), None if received else kafka.errors.KafkaConnectionError("socket disconnected")
        received += data
    return bytes(received), None


def _shown(server: Server) -> str:
    """Return host:port, for the library: no message of ours names a server but by its place."""
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _warn_of_clear_text(connection: Connection) -> None:
    is_clear = connection.options["security_protocol"] == "SASL_PLAINTEXT"
    if (
        is_clear
        and connection.options.get("sasl_mechanism") in IN_THE_CLEAR
        and not all(map(_is_here, connection.servers))
    ):
        logger.warning(
            "The login crosses the network in the clear: whoever listens can use it. "
            "Set security.protocol to SASL_SSL, or sasl.mechanism to a SCRAM one. (KR649)"
        )


def _is_here(server: Server) -> bool:
    """Whether what is sent to this server stays on this machine."""
    try:
        return ipaddress.ip_address(server[0]).is_loopback
    except ValueError:
        return server[0].rstrip(".").lower() == "localhost"


def _refusal(error: Exception, connection: Connection) -> ClusterUnavailable:
    final = final_refusal(error, "the broker", connection)
    if final is not None:
        return final
    is_login = str(connection.options["security_protocol"]).startswith("SASL")
    fitting = "security.protocol, sasl.mechanism" if is_login else "security.protocol"
    return ClusterUnavailable(
        f"What bootstrap.servers names takes connections but does not answer as a Kafka broker "
        f"({said(error)}). "
        f"Check that {fitting} and the ssl.* properties fit that listener, and that it is a broker's port."
    )


class _Listener(logging.Handler):
    """Hears why the library could not connect (it raises a time-out only), and stops what can never succeed."""

    def __init__(self, started: list[KafkaNetClient], connection: Connection) -> None:
        super().__init__(logging.WARNING)
        self.reason: Exception | None = None
        self._started, self._connection = started, connection

    def emit(self, record: logging.LogRecord) -> None:
        told = record.args if isinstance(record.args, tuple) else ()
        reasons = [reason for reason in told if isinstance(reason, Exception)]
        if kafka.errors.UnsupportedSaslMechanismError.__name__ in told:
            # The broker hangs up so soon that the library may know no more than that; its log holds the name.
            reasons.append(kafka.errors.UnsupportedSaslMechanismError())
        self.reason = self.reason or next(iter(reasons), None)
        refused = next(
            (each for each in reasons if final_refusal(each, "the broker", self._connection) is not None), None
        )
        if refused is not None:
            self.reason = refused
            for client in self._started:  # more tries might lock the account
                client._manager.closed = True  # noqa: SLF001 - the library tries until its time is up

    def __enter__(self) -> Self:
        logging.getLogger("kafka").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kafka").removeHandler(self)
