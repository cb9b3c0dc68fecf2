"""A TLS server that keeps what it was sent: whether anything arrives after a check has failed."""

import socket
import ssl
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from helpers.waiting import HANG, wait_for


class TlsServer:
    """Takes connections, one after the other; whoever finishes the handshake is read from, and gets no answer."""

    def __init__(self, key_and_chain: Path) -> None:
        self.received, self.connections, self.handshakes = b"", 0, 0
        self._ended = 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(key_and_chain)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def wait_until_idle(self) -> None:
        """Wait until every connection that was taken has ended."""
        wait_for(lambda: self._ended == self.connections > 0, "the connections to end", pause=0.01)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            with accepted:
                accepted.settimeout(HANG)
                try:
                    with self._context.wrap_socket(accepted, server_side=True) as secured:
                        self.handshakes += 1
                        self.received += secured.recv(4096)
                except OSError:
                    pass  # what this server is for
            self._ended += 1
