"""GitLab's REST API in memory, on loopback: generic packages, notes on merge requests, and a store that it leads to.

with FakeGitLab().served() as gitlab:
    ... run the program with gitlab.variables ...
"""

import base64
import json
import re
import subprocess
import urllib.parse
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from helpers.program.loopback import Answer, Request, serving

JOB_TOKEN, NOTE_TOKEN = "canary-job-71", "canary-note-72"
OWN, OTHER = {"id": 5, "username": "project_bot"}, {"id": 6, "username": "eve"}


@dataclass
class FakeGitLab:
    """One project: its packages by version and name, its notes by merge request, and what asked without a right."""

    packages: dict[str, bytes] = field(default_factory=dict)
    snapshots: dict[str, bytes] = field(default_factory=dict)
    repository: Path | None = None
    """Whose refs are advertised, by git itself."""
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
        names = {"CI_DEFAULT_BRANCH": "main", "CI_PROJECT_URL": f"{self.address}/acme/kafka", "CI_COMMIT_SHA": "0" * 40}
        return {
            **names,
            "CI_API_V4_URL": address,
            "CI_PROJECT_ID": "9",
            "CI_JOB_TOKEN": JOB_TOKEN,
            "RECONCILER_PAUSE": "0.01",
        }

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
        if path == "/acme/kafka.git/info/refs":
            return self._refs(request.headers.get("Authorization"))
        is_note = "/merge_requests/" in path or path.endswith("/user")
        if tokens != ((None, NOTE_TOKEN) if is_note else (JOB_TOKEN, None)):
            self.strangers.append(path)
            return Answer(401, b"{}")
        if self.failures:
            self.failures -= 1
            return Answer(503, b"{}")
        status, answer = self.answer(request.method, path, request.body, urllib.parse.urlsplit(request.path).query)
        if status == 302:
            return Answer(302, headers={"Location": f"{self.address}/store/{answer.decode()}"})
        return Answer(status, answer)

    def answer(self, method: str, path: str, body: bytes, query: str = "") -> tuple[int, bytes]:
        """Do what a request asks for, and return status and answer."""
        project = "/api/v4/projects/9"
        if found := re.fullmatch(rf"{project}/packages/generic/reconciler/([\w+.-]+/[\w.+-]+)", path):
            if method == "PUT":
                self.packages[found[1]] = body
                return 201, b"{}"
            return (302, found[1].encode()) if found[1] in self.packages else (404, b"{}")
        if found := re.fullmatch(rf"{project}/jobs/artifacts/main/raw/reconciler-job/snapshot.json", path):
            name = dict(urllib.parse.parse_qsl(query))["job"].removeprefix("plan ")
            return (200, self.snapshots[name]) if name in self.snapshots else (404, b"{}")
        if path == "/api/v4/user":
            return 200, json.dumps(OWN).encode()
        if found := re.fullmatch(rf"{project}/merge_requests/(\d+)/notes(?:/(\d+))?", path):
            return self._notes(method, int(found[1]), found[2], body)
        return 404, b"{}"

    def _refs(self, authorization: str | None) -> Answer:
        user = base64.b64encode(f"gitlab-ci-token:{JOB_TOKEN}".encode()).decode()
        if authorization != f"Basic {user}":
            return Answer(401)
        assert self.repository is not None
        command = ["git", "upload-pack", "--http-backend-info-refs", str(self.repository)]
        refs = subprocess.run(command, capture_output=True, check=True).stdout
        return Answer(200, b"001e# service=git-upload-pack\n0000" + refs)

    def _notes(self, method: str, number: int, id_: str | None, body: bytes) -> tuple[int, bytes]:
        if method == "POST":
            return 201, json.dumps(self.add(number, json.loads(body)["body"], OWN)).encode()
        if method == "PUT":
            (one,) = [each for each in self.notes[number] if each["id"] == int(id_ or 0)]
            assert one["author"] == OWN
            one["body"] = json.loads(body)["body"]
            return 200, json.dumps(one).encode()
        return 200, json.dumps(self.notes[number]).encode()
