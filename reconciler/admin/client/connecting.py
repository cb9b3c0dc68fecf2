"""Opens the connections to a cluster, or says in one sentence why that cannot be.

First it finds which bootstrap servers can be reached, by connections of its own: a dead one costs no time and gets a
clear word. Then the library connects, and its log is listened to, because it raises nothing but a time-out.
"""

import ipaddress
import logging
import socket
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import repeat
from typing import Self

import kafka.errors
from kafka import KafkaAdminClient
from kafka.net import KafkaSSLTransport, KafkaTCPTransport
from kafka.net.compat import KafkaNetClient

from reconciler.admin.client.checks import failed_check, final_refusal
from reconciler.admin.client.errors import said
from reconciler.admin.client.oauth import TokenProvider, check_credentials_of_aws
from reconciler.admin.client.properties import Connection
from reconciler.admin.client.tls import Context
from reconciler.admin.client.wire import RETRY_SECONDS, Wire
from reconciler.model.client_properties import AWS_MSK_IAM, OAUTHBEARER
from reconciler.model.problem import CheckFailed, ClusterUnavailable

logger = logging.getLogger(__name__)

REACH_SECONDS = 4.0
MOST_AT_ONCE = 16
BOOTSTRAP_SECONDS = 10.0
SETUP_SECONDS = 10.0
# These hand over a password, or a token, as it is.
IN_THE_CLEAR = ("PLAIN", OAUTHBEARER)
# ApiVersions, version 0, without a client's name: the one request that every broker answers before a login.
WHAT_DO_YOU_SPEAK = struct.pack(">ihhih", 10, 18, 0, 1, -1)

Server = tuple[str, int]
Received = tuple[bytes, Exception | None]


def open_wire(connection: Connection, setup_seconds: float = SETUP_SECONDS, *, is_checked: bool = False) -> Wire:
    """Connect, or say in one sentence why that cannot be; `is_checked`: others of this connection stand already."""
    setup_ms = int(setup_seconds * 1000)
    # The admin client does not take these two, its connections do.
    setup = {"socket_connection_setup_timeout_ms": setup_ms, "socket_connection_setup_timeout_max_ms": 3 * setup_ms}
    hear_last_answers()
    provider = connection.options.get("sasl_oauth_token_provider")
    if isinstance(provider, TokenProvider):
        provider.token()  # told here, in words, rather than by a thread of the library that cannot log in
    if connection.options.get("sasl_mechanism") == AWS_MSK_IAM:
        check_credentials_of_aws()
    if not is_checked:
        _warn_of_clear_text(connection)
    context = connection.options.get("ssl_context")
    servers = reachable(connection.servers, None if is_checked or not isinstance(context, ssl.SSLContext) else context)
    started: list[KafkaNetClient] = []

    def start(**options: object) -> KafkaNetClient:
        started.append(KafkaNetClient(**{**options, **setup}))
        return started[-1]

    began = time.monotonic()
    with _Listener(started, connection) as heard:
        try:
            client = KafkaAdminClient(
                bootstrap_servers=[_shown(server) for server in servers],
                bootstrap_timeout_ms=int(BOOTSTRAP_SECONDS * 1000),
                kafka_client=start,
                **connection.options,
            )
        except BaseException as error:
            for net_client in started:  # the library leaves its thread running when it cannot connect
                net_client.close()
            if isinstance(error, kafka.errors.KafkaError | OSError | ValueError):
                raise _refusal(heard.reason or error, connection) from None
            raise
    seconds = client.config["request_timeout_ms"] / 1000
    took = time.monotonic() - began
    return Wire(client, seconds, min(RETRY_SECONDS, seconds), connection=connection, opened_in_seconds=took)


def open_another(wire: Wire, setup_seconds: float) -> Wire:
    """Return connections of their own to the brokers known now: requests on these wait for none of the others.

    One that cannot be set up within so long is given up.
    """
    if wire.connection is None:
        raise ClusterUnavailable("These connections cannot be made a second time. Connect to the cluster anew.")
    known = tuple((broker.host, broker.port) for broker in wire.manager.cluster.brokers())
    servers = known or wire.connection.servers
    return open_wire(replace(wire.connection, servers=servers), setup_seconds, is_checked=True)


def reachable(servers: Sequence[Server], context: ssl.SSLContext | None = None) -> tuple[Server, ...]:
    """Return the servers that accept a connection, in the order given; none: ClusterUnavailable says why.

    With a context the handshake is tried here, too, so that what fails is told by its cause and a login is never begun.
    A server that fails beside others that do not is left out, and told.
    """
    # No message holds what stands in a property: a server is named by its place in the list.
    names = ["the broker"] if len(servers) == 1 else [f"server {place}" for place in range(1, len(servers) + 1)]
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        reasons = list(pool.map(_why_not, servers, names, repeat(context)))
    found = tuple(server for server, reason in zip(servers, reasons, strict=True) if reason is None)
    failed = [reason for reason in reasons if isinstance(reason, CheckFailed)]
    if found:
        for error in failed:
            logger.warning("%s It is left out. (%s)", error, error.code)
        return found
    if failed:
        raise failed[0]
    told = "; ".join(f"{name}: {reason}" for name, reason in zip(names, reasons, strict=True))
    raise ClusterUnavailable(
        f"None of bootstrap.servers can be reached ({told}). "
        "Check their names and ports, that the brokers run, and that the network between lets this machine through."
    )


def _why_not(server: Server, name: str, context: ssl.SSLContext | None) -> str | CheckFailed | None:
    try:
        with socket.create_connection(server, timeout=REACH_SECONDS) as connected:
            return None if context is None else _failed_check(connected, server[0], name, context)
    except TimeoutError:
        return f"no answer within {REACH_SECONDS:.0f} s"
    except (socket.gaierror, UnicodeError):
        return "no such host"
    except OSError as error:
        return (error.strerror or type(error).__name__).lower()


def _failed_check(connected: socket.socket, host: str, name: str, context: ssl.SSLContext) -> CheckFailed | None:
    has_certificate = isinstance(context, Context) and context.has_certificate
    said = "Handshake failed"
    try:
        with context.wrap_socket(connected, server_hostname=host.rstrip(".")) as secured:
            said = "Closed"
            # With TLS 1.3 a broker looks at a client's certificate after the handshake: wait for its answer.
            secured.sendall(WHAT_DO_YOU_SPEAK)
            secured.recv(1)
    except TimeoutError:
        return None  # one that is frozen, or very slow: the library waits longer
    except OSError as error:  # ssl.SSLError is one, too
        return failed_check(f"{said}: {error}", name, has_certificate=has_certificate)
    return None


def hear_last_answers() -> None:
    """Have the library hand on all bytes before it tells the end of a stream, which the next read finds again.

    A broker that answers and hangs up at once, as after a refused login, is not heard otherwise: kafka-python 3.0.12
    throws away with the connection what `_sock_recv` read before the end of the stream.
    """
    for transport in (KafkaTCPTransport, KafkaSSLTransport):
        read = transport._sock_recv  # noqa: SLF001 - the library offers no other place
        if read.__module__ != __name__:
            transport._sock_recv = _data_first(read)  # noqa: SLF001


def _data_first(read: Callable[[object], Received]) -> Callable[[object], Received]:
    def data_first(transport: object) -> Received:
        data, error = read(transport)
        return (data, None) if data else (data, error)

    return data_first


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
