"""GitLab's REST API in memory, on loopback: generic packages, notes on merge requests, and a store that it leads to.

with FakeGitLab() as gitlab:
    ... run the program with gitlab.variables ...
"""

import json
import re
import threading
import urllib.parse
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from helpers.waiting import HANG

JOB_TOKEN, NOTE_TOKEN = "canary-job-71", "canary-note-72"
OWN, OTHER = {"id": 5, "username": "project_bot"}, {"id": 6, "username": "eve"}


@dataclass
class FakeGitLab:
    """One project: its packages by version and name, its notes by merge request, and what asked without a right."""

    packages: dict[str, bytes] = field(default_factory=dict)
    notes: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    requests: list[tuple[str, str]] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    failures: int = 0

    def __enter__(self) -> Self:
        """Start to listen."""
        handler = type("Handler", (_Handler,), {"gitlab": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(HANG)

    @property
    def variables(self) -> Mapping[str, str]:
        """What GitLab tells every job."""
        address = f"http://127.0.0.1:{self._server.server_address[1]}/api/v4"
        return {"CI_API_V4_URL": address, "CI_PROJECT_ID": "9", "CI_JOB_TOKEN": JOB_TOKEN, "RECONCILER_PAUSE": "0.01"}

    def add(self, number: int, body: str, author: Mapping[str, Any]) -> dict[str, Any]:
        """Add a note."""
        made = {"id": 100 * number + len(self.notes[number]), "body": body, "author": author}
        self.notes[number].append(made)
        return made

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Do what a request asks for, and return status and answer."""
        project = "/api/v4/projects/9"
        if found := re.fullmatch(rf"{project}/packages/generic/reconciler/([\w+.-]+/[\w.+-]+)", path):
            if method == "PUT":
                self.packages[found[1]] = body
                return 201, b"{}"
            return (302, found[1].encode()) if found[1] in self.packages else (404, b"{}")
        if path == "/api/v4/user":
            return 200, json.dumps(OWN).encode()
        if found := re.fullmatch(rf"{project}/merge_requests/(\d+)/notes(?:/(\d+))?", path):
            return self._notes(method, int(found[1]), found[2], body)
        return 404, b"{}"

    def _notes(self, method: str, number: int, id_: str | None, body: bytes) -> tuple[int, bytes]:
        if method == "POST":
            return 201, json.dumps(self.add(number, json.loads(body)["body"], OWN)).encode()
        if method == "PUT":
            (one,) = [each for each in self.notes[number] if each["id"] == int(id_ or 0)]
            assert one["author"] == OWN
            one["body"] = json.loads(body)["body"]
            return 200, json.dumps(one).encode()
        return 200, json.dumps(self.notes[number]).encode()


class _Handler(BaseHTTPRequestHandler):
    gitlab: FakeGitLab

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        del format, args

    def _handle(self) -> None:
        gitlab, path = self.gitlab, urllib.parse.urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        gitlab.requests.append((self.command, path))
        tokens = (self.headers.get("JOB-TOKEN"), self.headers.get("PRIVATE-TOKEN"))
        if path.startswith("/store/"):
            if tokens != (None, None):
                gitlab.strangers.append(path)
            return self._send(200, gitlab.packages[path.removeprefix("/store/")])
        is_note = "/merge_requests/" in path or path.endswith("/user")
        if tokens != ((None, NOTE_TOKEN) if is_note else (JOB_TOKEN, None)):
            gitlab.strangers.append(path)
            return self._send(401, b"{}")
        if gitlab.failures:
            gitlab.failures -= 1
            return self._send(503, b"{}")
        status, answer = gitlab.answer(self.command, path, body)
        if status == 302:
            return self._send(302, b"", f"http://{self.headers['Host']}/store/{answer.decode()}")
        return self._send(status, answer)

    def _send(self, status: int, content: bytes, location: str = "") -> None:
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
