"""Finds which bootstrap servers can be reached, first of all: a dead one costs no time and gets a clear word.

With TLS the handshake is tried here, too: what fails is told by its cause, and a login is never begun.
"""

import logging
import socket
import ssl
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat

from reconciler.admin.client.checks import failed_check
from reconciler.admin.client.tls import Context
from reconciler.model.problem import CheckFailed, ClusterUnavailable

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 4.0
MOST_AT_ONCE = 16
# ApiVersions, version 0, without a client's name: the one request that every broker answers before a login.
WHAT_DO_YOU_SPEAK = struct.pack(">ihhih", 10, 18, 0, 1, -1)

Server = tuple[str, int]


def reachable(
    servers: Sequence[Server], context: ssl.SSLContext | None = None, seconds: float = CONNECT_SECONDS
) -> tuple[Server, ...]:
    """Return the servers that accept a connection, in the order given; none: ClusterUnavailable says why.

    With a context they have passed its checks. One that fails them beside others that do not is left out, and told.
    """
    # No message holds what stands in a property: a server is named by its place in the list.
    names = ["the broker"] if len(servers) == 1 else [f"server {place}" for place in range(1, len(servers) + 1)]
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        reasons = list(pool.map(_why_not, servers, names, repeat(context), repeat(seconds)))
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


def shown(server: Server) -> str:
    """Return host:port, for the library: no message of ours names a server but by its place."""
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _why_not(server: Server, name: str, context: ssl.SSLContext | None, seconds: float) -> str | CheckFailed | None:
    try:
        with socket.create_connection(server, timeout=seconds) as connected:
            return None if context is None else _failed_check(connected, server[0], name, context)
    except TimeoutError:
        return f"no answer within {seconds:.0f} s"
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
