"""A proxy before a broker that keeps what clients send to it."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self


class Recorder:
    """Hands connections on; `sent` holds, for each, the bytes of the client."""

    def __init__(self, broker: tuple[str, int]) -> None:
        self.sent: list[bytes] = []
        self._broker = broker
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._serve)]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            broker = socket.create_connection(self._broker)
            self.sent.append(b"")
            for hand_on in (self._to_broker, self._to_client):
                thread = threading.Thread(target=hand_on, args=(client, broker, len(self.sent) - 1))
                self._threads.append(thread)
                thread.start()

    def _to_broker(self, client: socket.socket, broker: socket.socket, number: int) -> None:
        for piece in _pieces(client):
            self.sent[number] += piece
            broker.sendall(piece)
        _end(broker)

    def _to_client(self, client: socket.socket, broker: socket.socket, _: int) -> None:
        for piece in _pieces(broker):
            client.sendall(piece)
        _end(client)


def _pieces(source: socket.socket) -> Iterator[bytes]:
    try:
        while piece := source.recv(65536):
            yield piece
    except OSError:
        return


def _end(other: socket.socket) -> None:
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
