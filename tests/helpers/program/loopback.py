"""Serves HTTP on loopback: a fake says what it answers, and nothing else."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
