"""GitHub's REST API in memory, on loopback: comments and labels of one repository, in pages, with faults on demand.

with FakeGitHub(token="...").served() as github:
    github.comments[7] = [...]
    github.faults = [Fault("POST", 502, is_done=True)]
    ... run the program with GITHUB_API_URL=github.address ...
"""

import json
import re
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from helpers.program.loopback import Answer, Request, serving

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
    address: str = ""

    @contextmanager
    def served(self) -> Iterator[Self]:
        """Yield it while it listens; `address` is what GITHUB_API_URL is to be."""
        with serving(self.respond) as self.address:
            yield self

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

    def respond(self, request: Request) -> Answer | None:
        """Answer a request, or fail as `faults` says."""
        method, parts = request.method, urllib.parse.urlsplit(request.path)
        self.requests.append((method, parts.path))
        body = json.loads(request.body) if request.body else None
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            self.strangers.append(request.path)
            return as_json(401, {"message": "Bad credentials"})
        fault = next((each for each in self.faults if each.method == method), None)
        if fault is not None:
            self.faults.remove(fault)
            if fault.is_done:
                self.answer(method, parts.path, body)
            return (
                as_json(fault.status, {"message": f"fault {self.token}"}, dict(fault.headers)) if fault.status else None
            )
        if self.is_read_only and method != "GET":
            return as_json(403, {"message": "Resource not accessible by integration"})
        status, answer = self.answer(method, parts.path, body)
        if method != "GET" or not isinstance(answer, list):
            return as_json(status, answer)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        page, size = int(asked.get("page", "1")), min(int(asked.get("per_page", "30")), self.page_size)
        headers = {}
        if page * size < len(answer):
            base = self.foreign_next or self.address
            address = f"{base}{parts.path}?per_page={size}&page={page + 1}"
            headers["Link"] = f'<{address}>; rel="next", <{self.address}{parts.path}?page=99>; rel="last"'
        return as_json(status, answer[(page - 1) * size : page * size], headers)

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


def as_json(status: int, answer: object, headers: Mapping[str, str] | None = None) -> Answer:
    """Return the answer as JSON; one without content is empty."""
    return Answer(status, b"" if status == 204 else json.dumps(answer).encode(), headers or {})
