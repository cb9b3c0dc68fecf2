"""A webhook: a real HTTP server that keeps what it is told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

SECRET = "T0KEN/B0KEN/xSECRETx"  # noqa: S105 - of this test


class Receiver(ThreadingHTTPServer):
    """Takes messages, and answers as it is told; a proxy, too, for whoever takes it for one."""

    def __init__(self) -> None:
        self.got: list[tuple[str, Any]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        super().__init__(("127.0.0.1", 0), _Taking)

    @property
    def host(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def url(self) -> str:
        return f"{self.host}/services/{SECRET}"


class _Taking(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.server.got.append((self.path, json.loads(self.rfile.read(length))))
        status, headers = self.server.answers.pop(0) if self.server.answers else (200, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        del format, args


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Yield one that takes messages until the end."""
    with Receiver() as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
