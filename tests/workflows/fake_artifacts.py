"""GitHub's lists of runs and artifacts, the store of their archives, and its environments, on loopback.

with Artifacts().served() as github:
    github.listed = (artifact(1, "plan-demo"),)
    ... run the program with GITHUB_API_URL=github.address ...
"""

import io
import json
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from helpers.program.loopback import Answer, Request, serving

TOKEN = "canary-5f1d"  # noqa: S105 - of no account


@dataclass
class Artifacts:
    """GitHub's lists, and the store that it redirects to; the store must not be shown the token."""

    listed: tuple[dict[str, object], ...] = ()
    runs: tuple[dict[str, object], ...] = ()
    jobs: Mapping[int, tuple[dict[str, object], ...]] = field(default_factory=dict)
    archives: Mapping[int, bytes] = field(default_factory=dict)
    archive: bytes = b""
    store: str = ""
    unreviewed: frozenset[str] = frozenset()
    is_unmerged: bool = False
    unmade: frozenset[str] = frozenset()
    failures: int = 0
    shown: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    address: str = ""

    @contextmanager
    def served(self) -> Iterator[Self]:
        """Yield it while it listens."""
        with serving(self.answer) as self.address:
            yield self

    def answer(self, request: Request) -> Answer:
        """Answer as the lists and the store do."""
        path, authorization = request.path, request.headers.get("Authorization", "")
        if path.startswith("/store/"):
            self.shown += (authorization,)
            is_failing = len(self.shown) <= self.failures
            return Answer(503) if is_failing else Answer(200, self.archives.get(int(path.split("/")[-2]), self.archive))
        self.asked += (path,)
        if authorization != f"Bearer {TOKEN}":
            return Answer(401, b"{}")
        if "/contents/" in path:
            return Answer(404 if self.is_unmerged else 200, b"{}")
        if "/environments/" in path:
            return self._environment(path.rpartition("/")[2])
        if path.endswith("/zip"):
            return Answer(302, headers={"Location": f"{self.store or self.address}/store{path}"})
        return Answer(200, json.dumps(self._list(path)).encode())

    def _environment(self, name: str) -> Answer:
        """Answer for one environment; each is there and asks somebody, but those of `unmade` and `unreviewed`."""
        reviewers = [] if name in self.unreviewed else [{"type": "User", "reviewer": {"login": "eve"}}]
        rules = [{"type": "branch_policy"}, {"type": "required_reviewers", "reviewers": reviewers}]
        made = {"name": name, "protection_rules": rules}
        return Answer(404 if name in self.unmade else 200, json.dumps(made).encode())

    def _list(self, path: str) -> Mapping[str, object]:
        parts = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        if parts.path.endswith("/actions/workflows/apply.yml/runs"):
            return {"workflow_runs": [run for run in self.runs if run["head_branch"] == asked["branch"]]}
        if parts.path.endswith("/jobs"):
            size, page = int(asked["per_page"]), int(asked["page"])
            return {"jobs": self.jobs.get(int(parts.path.split("/")[-2]), ())[(page - 1) * size : page * size]}
        assert parts.path.endswith("/actions/artifacts")
        return {"artifacts": [each for each in self.listed if each["name"] == asked["name"]]}


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
