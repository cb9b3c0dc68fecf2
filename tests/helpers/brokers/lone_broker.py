"""A broker that says what it speaks and that it is alone, and answers nothing else: enough for a client to connect.

with LoneBroker() as broker:                # `context`: of a TLS server
    broker.port, broker.received            # the requests' keys, in their order
with LoneBroker(is_silent=True): ...        # takes connections, and that is all
with LoneBroker(hangs_up_after=1): ...      # closes a connection after so many bytes
with LoneBroker(flood=Flood(1 << 30)): ...  # answers the second request for metadata with so many bytes
"""

import socket
import ssl
import threading
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, Self

from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

HOST, NODE = "127.0.0.1", 1
METADATA, API_VERSIONS = 3, 18
VERSIONS = {0: (3, 9), METADATA: (0, 8), API_VERSIONS: (0, 2), 19: (2, 4), 45: (0, 0), 46: (0, 0)}
"""What it says that it takes: versions of requests whose answers have no tagged fields, where it answers."""


class Flood(NamedTuple):
    """An answer that no broker gives: the length that it announces, and the byte that it consists of."""

    size: int
    byte: int = 0
    request: int = 2
    """The number of the request for metadata that it answers; a client connects with the first."""


class LoneBroker:
    """See the module's docstring."""

    def __init__(
        self,
        *,
        context: ssl.SSLContext | None = None,
        is_silent: bool = False,
        hangs_up_after: int = 0,
        flood: Flood | None = None,
    ) -> None:
        self.received: list[int] = []
        self._flood = flood
        self._context, self._is_silent, self._hangs_up_after = context, is_silent, hangs_up_after
        self._listener = socket.create_server((HOST, 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._serve)]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def address(self) -> str:
        """The same, as a client wants it."""
        return f"{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(taken)
            if not self._is_silent:
                self._threads.append(threading.Thread(target=self._speak, args=(taken,)))
                self._threads[-1].start()

    def _speak(self, taken: socket.socket) -> None:
        with suppress(OSError):
            if self._hangs_up_after:
                taken.recv(self._hangs_up_after)
                taken.close()
                return
            if self._context is not None:
                taken = self._context.wrap_socket(taken, server_side=True)
                self._open.append(taken)
            stream = taken.makefile("rb")
            while size := stream.read(4):
                request = stream.read(int.from_bytes(size))
                key, version = (int.from_bytes(request[at : at + 2]) for at in (0, 2))
                self.received.append(key)
                if self._flood and key == METADATA and self.received.count(METADATA) >= self._flood.request:
                    taken.sendall(self._flood.size.to_bytes(4) + request[4:8])
                    for at in range(4, self._flood.size, 1 << 16):
                        taken.sendall(bytes([self._flood.byte]) * min(1 << 16, self._flood.size - at))
                    continue
                answer = self._answer(key, version)
                if answer:
                    taken.sendall((4 + len(answer)).to_bytes(4) + request[4:8] + answer)

    def _answer(self, key: int, version: int) -> bytes:
        if key == API_VERSIONS:
            known = version if version <= VERSIONS[API_VERSIONS][1] else 0
            form = ApiVersionsResponse.ApiVersion
            keys = [form(api_key=one, min_version=low, max_version=high) for one, (low, high) in VERSIONS.items()]
            told = ApiVersionsResponse(error_code=0 if known == version else 35, api_keys=keys, throttle_time_ms=0)
            return bytes(told.encode(version=known))
        if key == METADATA:
            broker = MetadataResponse.MetadataResponseBroker(node_id=NODE, host=HOST, port=self.port, rack=None)
            told = MetadataResponse(
                brokers=[broker], cluster_id="lone", controller_id=NODE, topics=[], throttle_time_ms=0
            )
            return bytes(told.encode(version=version))
        return b""
