"""GitLab's REST API in memory, on loopback: generic packages, notes on merge requests, and a store that it leads to.

with FakeGitLab().served() as gitlab:
    ... run the program with gitlab.variables ...
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
    address: str = ""

    @contextmanager
    def served(self) -> Iterator[Self]:
        """Yield it while it listens."""
        with serving(self.respond) as self.address:
            yield self

    @property
    def variables(self) -> Mapping[str, str]:
        """What GitLab tells every job."""
        address = f"{self.address}/api/v4"
        return {"CI_API_V4_URL": address, "CI_PROJECT_ID": "9", "CI_JOB_TOKEN": JOB_TOKEN, "RECONCILER_PAUSE": "0.01"}

    def add(self, number: int, body: str, author: Mapping[str, Any]) -> dict[str, Any]:
        """Add a note."""
        made = {"id": 100 * number + len(self.notes[number]), "body": body, "author": author}
        self.notes[number].append(made)
        return made

    def respond(self, request: Request) -> Answer:
        """Answer a request, after as many failures as `failures` says."""
        path = urllib.parse.urlsplit(request.path).path
        self.requests.append((request.method, path))
        tokens = (request.headers.get("JOB-TOKEN"), request.headers.get("PRIVATE-TOKEN"))
        if path.startswith("/store/"):
            if tokens != (None, None):
                self.strangers.append(path)
            return Answer(200, self.packages[path.removeprefix("/store/")])
        is_note = "/merge_requests/" in path or path.endswith("/user")
        if tokens != ((None, NOTE_TOKEN) if is_note else (JOB_TOKEN, None)):
            self.strangers.append(path)
            return Answer(401, b"{}")
        if self.failures:
            self.failures -= 1
            return Answer(503, b"{}")
        status, answer = self.answer(request.method, path, request.body)
        if status == 302:
            return Answer(302, headers={"Location": f"{self.address}/store/{answer.decode()}"})
        return Answer(status, answer)

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
