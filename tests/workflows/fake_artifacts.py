"""GitHub's lists of runs and artifacts, the store of their archives, and its environments, on loopback.

with serving() as github:
    github.listed = (artifact(1, "plan-demo"),)
    ... run the program with GITHUB_API_URL=http://127.0.0.1:{github.port} ...
"""

import http.server
import io
import json
import threading
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

TOKEN = "canary-5f1d"  # noqa: S105 - of no account


class Artifacts(http.server.BaseHTTPRequestHandler):
    """GitHub's lists, and the store that it redirects to; the store must not be shown the token."""

    listed: tuple[dict[str, object], ...] = ()
    runs: tuple[dict[str, object], ...] = ()
    jobs: Mapping[int, tuple[dict[str, object], ...]] = {}
    archives: Mapping[int, bytes] = {}
    archive = b""
    store = ""
    unreviewed: frozenset[str] = frozenset()
    is_unmerged = False
    unmade: frozenset[str] = frozenset()
    failures = 0
    shown: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    port = 0

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization", "")
        if self.path.startswith("/store/"):
            type(self).shown += (authorization,)
            is_failing = len(self.shown) <= self.failures
            self._answer(503 if is_failing else 200, b"" if is_failing else self._held())
            return
        type(self).asked += (self.path,)
        if authorization != f"Bearer {TOKEN}":
            self._answer(401, b"{}")
        elif "/contents/" in self.path:
            self._answer(404 if self.is_unmerged else 200, b"{}")
        elif "/environments/" in self.path:
            self._environment(self.path.rpartition("/")[2])
        elif self.path.endswith("/zip"):
            self._answer(302, b"", location=f"{self.store or 'http://' + self.headers['Host']}/store{self.path}")
        else:
            self._answer(200, json.dumps(self._list()).encode())

    def _environment(self, name: str) -> None:
        """Answer for one environment; each is there and asks somebody, but those of `unmade` and `unreviewed`."""
        reviewers = [] if name in self.unreviewed else [{"type": "User", "reviewer": {"login": "eve"}}]
        rules = [{"type": "branch_policy"}, {"type": "required_reviewers", "reviewers": reviewers}]
        made = {"name": name, "protection_rules": rules}
        self._answer(404 if name in self.unmade else 200, json.dumps(made).encode())

    def _list(self) -> Mapping[str, object]:
        parts = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        if parts.path.endswith("/actions/workflows/apply.yml/runs"):
            return {"workflow_runs": [run for run in self.runs if run["head_branch"] == asked["branch"]]}
        if parts.path.endswith("/jobs"):
            size, page = int(asked["per_page"]), int(asked["page"])
            return {"jobs": self.jobs.get(int(parts.path.split("/")[-2]), ())[(page - 1) * size : page * size]}
        assert parts.path.endswith("/actions/artifacts")
        return {"artifacts": [each for each in self.listed if each["name"] == asked["name"]]}

    def _held(self) -> bytes:
        return self.archives.get(int(self.path.split("/")[-2]), self.archive)

    def _answer(self, code: int, body: bytes, location: str | None = None) -> None:
        self.send_response(code)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[type[Artifacts]]:
    """Yield GitHub's API, on the loopback port that it names."""

    class Served(Artifacts):
        """Those of one test."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Served)
    Served.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def artifact(
    number: int, name: str, *, run: int = 0, repository: int = 1, branch: str = "main", expired: bool = False
) -> dict[str, object]:
    """Return an artifact as GitHub lists it; `run` is its run, 70 + `number` where none is given."""
    made_by = {"id": run or 70 + number, "repository_id": 1, "head_repository_id": repository, "head_branch": branch}
    at = f"2026-11-{number:02}T00:00:00Z"
    return {"id": number, "name": name, "created_at": at, "expired": expired, "workflow_run": made_by}


def workflow_run(number: int, event: str, *, repository: int = 1, branch: str = "main") -> dict[str, object]:
    """Return the run of that number as GitHub lists it; its id is 70 + `number`."""
    there = {"head_branch": branch, "head_repository": {"id": repository}, "repository": {"id": 1}}
    return {"id": 70 + number, "run_number": number, "event": event, **there}


def ended_job(name: str, conclusion: str = "success") -> dict[str, object]:
    """Return a job of a run as GitHub lists it."""
    return {"name": name, "conclusion": conclusion}


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of these files."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()
