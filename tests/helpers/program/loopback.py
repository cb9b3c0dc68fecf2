"""Serves HTTP on loopback: a fake says what it answers, and nothing else."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from helpers.waiting import HANG


class Request(NamedTuple):
    """What a client sends; the path has the query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What a fake answers."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


@contextmanager
def serving(answer: Callable[[Request], Answer | None]) -> Iterator[str]:
    """Yield the address of a server that answers as that function says; None: it closes the connection."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answered = answer(Request(self.command, self.path, self.headers, body))  # type: ignore[arg-type]
            if answered is None:
                self.close_connection = True
                return
            self.send_response(answered.status)
            for name, value in answered.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answered.body)))
            self.end_headers()
            self.wfile.write(answered.body)

        do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the standard library's names

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(HANG)


DRIPS = {
    "nothing": (b"", b""),
    "a header without end": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "headers without end": (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
    "an answer that is put off": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a body without end": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
}
"""What a server begins its answer with, and what it adds again and again, each time before a client gives up."""


@contextmanager
def dripping(begin: bytes, again: bytes) -> Iterator[str]:
    """Yield the address of a server whose answer never ends, and is never silent for long."""
    is_over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def drip(taken: socket.socket) -> None:
        with taken, suppress(OSError):
            taken.sendall(begin)
            while not is_over.wait(0.02):
                taken.sendall(again)

    def serve() -> None:
        with suppress(OSError):
            while not is_over.is_set():
                threads.append(threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True))
                threads[-1].start()

    threads.append(threading.Thread(target=serve, daemon=True))
    threads[0].start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in threads:
            thread.join(HANG)
