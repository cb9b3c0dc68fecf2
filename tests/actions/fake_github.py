"""GitHub's REST API in memory, on loopback: comments and labels of one repository, in pages, with faults on demand.

with FakeGitHub(token="...") as github:
    github.comments[7] = [...]
    github.faults = [Fault("POST", 502, is_done=True)]
    ... run the program with GITHUB_API_URL=github.address ...
"""

import json
import re
import threading
import urllib.parse
from collections import defaultdict
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from helpers.waiting import HANG

REPOSITORY = "acme/kafka"
AUTHOR = "github-actions[bot]"


@dataclass(frozen=True, slots=True)
class Fault:
    """The next request of that method is answered so; 0: not at all. `is_done`: it has its effect nonetheless."""

    method: str
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    is_done: bool = False


@dataclass
class FakeGitHub:
    """The repository's state, and every request that came: method and path."""

    token: str
    page_size: int = 100
    comments: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    labels: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    foreign_next: str = ""
    login: str = AUTHOR
    is_read_only: bool = False

    def __enter__(self) -> Self:
        """Start to listen."""
        handler = type("Handler", (_Handler,), {"github": self})
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
    def address(self) -> str:
        """What GITHUB_API_URL is to be."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def add(self, number: int, body: str, author: str = AUTHOR) -> dict[str, Any]:
        """Add a comment."""
        id_ = 1 + sum(map(len, self.comments.values())) + 1000 * number
        while any(each["id"] == id_ for several in self.comments.values() for each in several):
            id_ += 1
        url = f"https://github.invalid/{REPOSITORY}/pull/{number}#issuecomment-{id_}"
        made = {"id": id_, "body": body, "user": {"login": author}, "html_url": url}
        self.comments[number].append(made)
        return made

    def bodies(self, number: int) -> list[str]:
        """Return the bodies of a pull request's comments."""
        return [each["body"] for each in self.comments[number]]

    def writes(self) -> list[str]:
        """Return the methods of all requests that change something."""
        return [method for method, _ in self.requests if method != "GET"]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:  # noqa: ANN401 - JSON
        """Do what a request asks for, and return status and answer."""
        issues = f"/repos/{REPOSITORY}/issues"
        if found := re.fullmatch(rf"{issues}/(\d+)/comments", path):
            return self._comments(method, int(found[1]), body)
        if found := re.fullmatch(rf"{issues}/(\d+)/labels(?:/([^/]+))?", path):
            return self._labels(method, int(found[1]), found[2], body)
        if found := re.fullmatch(rf"{issues}/comments/(\d+)", path):
            return self._comment(method, int(found[1]), body)
        return 404, {"message": "Not Found"}

    def _comments(self, method: str, number: int, body: Any) -> tuple[int, Any]:  # noqa: ANN401 - JSON
        if method == "POST":
            return 201, self.add(number, body["body"], self.login)
        return 200, self.comments[number]

    def _labels(self, method: str, number: int, name: str | None, body: Any) -> tuple[int, Any]:  # noqa: ANN401 - JSON
        there = self.labels[number]
        if method == "POST":
            there += [each for each in body["labels"] if each not in there]
        elif name is not None:
            if urllib.parse.unquote(name) not in there:
                return 404, {"message": "Label does not exist"}
            there.remove(urllib.parse.unquote(name))
        return 200, [{"name": each} for each in there]

    def _comment(self, method: str, id_: int, body: Any) -> tuple[int, Any]:  # noqa: ANN401 - JSON
        several = next((each for each in self.comments.values() if any(one["id"] == id_ for one in each)), None)
        if several is None:
            return 404, {"message": "Not Found"}
        comment = next(one for one in several if one["id"] == id_)
        if method == "DELETE":
            several.remove(comment)
            return 204, None
        comment["body"] = body["body"]
        return 200, comment


class _Handler(BaseHTTPRequestHandler):
    github: FakeGitHub

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PATCH(self) -> None:
        self._handle()

    def do_DELETE(self) -> None:
        self._handle()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        del format, args

    def _handle(self) -> None:
        github, parts = self.github, urllib.parse.urlsplit(self.path)
        github.requests.append((self.command, parts.path))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        if self.headers.get("Authorization") != f"Bearer {github.token}":
            github.strangers.append(self.path)
            return self._send(401, {"message": "Bad credentials"})
        fault = next((each for each in github.faults if each.method == self.command), None)
        if fault is not None:
            github.faults.remove(fault)
            if fault.is_done:
                github.answer(self.command, parts.path, body)
            if not fault.status:
                self.close_connection = True
                return None
            return self._send(fault.status, {"message": f"fault {github.token}"}, dict(fault.headers))
        if github.is_read_only and self.command != "GET":
            return self._send(403, {"message": "Resource not accessible by integration"})
        status, answer = github.answer(self.command, parts.path, body)
        if self.command != "GET" or not isinstance(answer, list):
            return self._send(status, answer)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        page, size = int(asked.get("page", "1")), min(int(asked.get("per_page", "30")), github.page_size)
        headers = {}
        if page * size < len(answer):
            base = github.foreign_next or github.address
            address = f"{base}{parts.path}?per_page={size}&page={page + 1}"
            headers["Link"] = f'<{address}>; rel="next", <{github.address}{parts.path}?page=99>; rel="last"'
        return self._send(status, answer[(page - 1) * size : page * size], headers)

    def _send(self, status: int, answer: object, headers: dict[str, str] | None = None) -> None:
        content = b"" if status == 204 else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
