"""Which bootstrap servers can be reached: found out first, so that a dead one costs no time and gets a clear word."""

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from reconciler.model.problem import ClusterUnavailable

CONNECT_SECONDS = 4.0
MOST_AT_ONCE = 16

Server = tuple[str, int]


def reachable(servers: Sequence[Server], seconds: float = CONNECT_SECONDS) -> tuple[Server, ...]:
    """Return the servers that accept a connection, in the order given; none: ClusterUnavailable says why."""
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        reasons = list(pool.map(lambda server: _why_not(server, seconds), servers))
    found = tuple(server for server, reason in zip(servers, reasons, strict=True) if reason is None)
    if found:
        return found
    told = "; ".join(f"{shown(server)}: {reason}" for server, reason in zip(servers, reasons, strict=True))
    raise ClusterUnavailable(
        f"None of bootstrap.servers can be reached ({told}). "
        "Check their names and ports, that the brokers run, and that the network between lets this machine through."
    )


def shown(server: Server) -> str:
    """Return host:port."""
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _why_not(server: Server, seconds: float) -> str | None:
    try:
        socket.create_connection(server, timeout=seconds).close()
    except TimeoutError:
        return f"no answer within {seconds:.0f} s"
    except socket.gaierror:
        return "no such host"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return None
