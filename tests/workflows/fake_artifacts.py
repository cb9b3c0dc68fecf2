"""GitHub's lists of runs and artifacts, their commits and approvals, the store, and its environments, on loopback.

with Artifacts().served() as github:
    github.listed = (artifact(1, "plan-demo"),)
    ... run the program with GITHUB_API_URL=github.address ...
"""

import io
import json
import re
import urllib.parse
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from helpers.program.loopback import Answer, Request, serving

TOKEN = "canary-5f1d"  # noqa: S105 - of no account


OWNER = {"id": 1, "full_name": "acme/kafka"}
Listed = tuple[dict[str, object], ...]


@dataclass
class Artifacts:
    """GitHub's lists, and the store that it redirects to; the store must not be shown the token.

    The branch main has the commits of `history`, the newest last; `changed` has the files of a comparison by its base.
    """

    listed: Listed = ()
    runs: Listed = ()
    jobs: Mapping[int, Listed] = field(default_factory=dict)
    reviews: Mapping[int, Listed] = field(default_factory=dict)
    history: tuple[str, ...] = field(default_factory=lambda: tuple(map(commit, range(100))))
    changed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()
    archives: Mapping[int, bytes] = field(default_factory=dict)
    archive: bytes = b""
    store: str = ""
    unreviewed: frozenset[str] = frozenset()
    branch_policies: Mapping[str, Mapping[str, bool] | None] = field(default_factory=dict)
    deployers: Mapping[str, tuple[tuple[str, str | None], ...]] = field(default_factory=dict)
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

    def answer(self, request: Request) -> Answer:  # noqa: PLR0911 - a row of a table each
        """Answer as the lists and the store do."""
        path, authorization = request.path, request.headers.get("Authorization", "")
        if path.startswith("/store/"):
            self.shown += (authorization,)
            is_failing = len(self.shown) <= self.failures
            return Answer(503) if is_failing else Answer(200, self.archives.get(int(path.split("/")[-2]), self.archive))
        self.asked += (path,)
        if authorization != f"Bearer {TOKEN}":
            return Answer(401, b"{}")
        if path.endswith("/zip"):
            return Answer(302, headers={"Location": f"{self.store or self.address}/store{path}"})
        kind, _, rest = path.removeprefix("/repos/acme/kafka/").partition("/")
        match kind:
            case "contents":
                return Answer(404 if self.is_unmerged else 200, b"{}")
            case "environments":
                if "/deployment-branch-policies" in rest:
                    return self._page(path)
                return self._environment(rest)
            case "git":
                return self._ref(rest.removeprefix("ref/"))
            case "compare":
                return self._comparison(*rest.split("..."))
            case _:
                return self._page(path)

    def _environment(self, name: str) -> Answer:
        """Answer for one environment; unless a field says else it is there, asks somebody, and is for main alone."""
        reviewers = [] if name in self.unreviewed else [{"type": "User", "reviewer": {"login": "eve"}}]
        rules = [{"type": "branch_policy"}, {"type": "required_reviewers", "reviewers": reviewers}]
        policy = self.branch_policies.get(name, {"protected_branches": False, "custom_branch_policies": True})
        made = {"name": name, "protection_rules": rules, "deployment_branch_policy": policy}
        return Answer(404 if name in self.unmade else 200, json.dumps(made).encode())

    def _ref(self, name: str) -> Answer:
        kind, _, short = name.partition("/")
        if name != "heads/main" and not (kind == "tags" and short in self.tags):
            return Answer(404, b"{}")
        made = {"ref": f"refs/{name}", "object": {"sha": self.history[-1], "type": "commit"}}
        return Answer(200, json.dumps(made).encode())

    def _comparison(self, base: str, head: str) -> Answer:
        """Answer as git does; what is not in the history has branched off at its first commit."""
        if head not in self.history or (base not in self.history and not re.fullmatch("[0-9a-f]{40}", base)):
            return Answer(404, b"{}")
        is_ancestor = base in self.history
        status = "diverged" if not is_ancestor else "identical" if base == head else "ahead"
        files = [{"filename": name} for name in self.changed.get(base, ())]
        made = {
            "status": status,
            "merge_base_commit": {"sha": base if is_ancestor else self.history[0]},
            "files": files[:300],
        }
        return Answer(200, json.dumps(made).encode())

    def _page(self, path: str) -> Answer:
        parts = urllib.parse.urlsplit(path)
        asked = dict(urllib.parse.parse_qsl(parts.query))
        name, found = self._list(parts.path, asked)
        size, page = int(asked["per_page"]), int(asked.get("page", "1"))
        one_page = list(found[(page - 1) * size : page * size])
        next_page = urllib.parse.urlencode({**asked, "page": page + 1})
        link = {"Link": f'<{self.address}{parts.path}?{next_page}>; rel="next"'} if page * size < len(found) else {}
        return Answer(200, json.dumps({name: one_page} if name else one_page).encode(), link)

    def _list(self, path: str, asked: Mapping[str, str]) -> tuple[str, Listed]:
        if found := re.search(r"/actions/workflows/([\w.]+)/runs$", path):
            end = f"/{found[1]}"
            runs = [run for run in self.runs if run["head_branch"] == asked["branch"]]
            return "workflow_runs", tuple(run for run in runs if str(run["path"]).partition("@")[0].endswith(end))
        if path.endswith("/deployment-branch-policies"):
            named = self.deployers.get(path.split("/")[-2], (("main", "branch"),))
            return "branch_policies", tuple({"id": 1, "name": name, "type": kind} for name, kind in named)
        if path.endswith("/jobs"):
            return "jobs", self.jobs.get(int(path.split("/")[-2]), ())
        if path.endswith("/approvals"):
            return "", self.reviews.get(int(path.split("/")[-2]), (review("kafka-apply-demo"),))
        assert path.endswith("/actions/artifacts")
        return "artifacts", tuple(each for each in self.listed if each["name"] == asked["name"])


def artifact(
    number: int, name: str, *, run: int = 0, repository: int = 1, branch: str = "main", expired: bool = False
) -> dict[str, object]:
    """Return an artifact as GitHub lists it; `run` is its run, 70 + `number` where none is given."""
    made_by = {"id": run or 70 + number, "repository_id": 1, "head_repository_id": repository, "head_branch": branch}
    at = f"2026-11-{number % 30 + 1:02}T00:00:00Z"
    return {"id": number, "name": name, "created_at": at, "expired": expired, "workflow_run": made_by}


def commit(number: int) -> str:
    """Return the commit of that number in the history of main."""
    return f"{number:040x}"


def workflow_run(
    number: int, event: str, *, repository: int = 1, branch: str = "main", workflow: str = "apply.yml"
) -> dict[str, object]:
    """Return the run of that number as GitHub lists it; its id is 70 + `number`, its commit that of the number."""
    called = {"path": "acme/kafka/.github/workflows/apply-cluster.yml@main", "ref": f"refs/heads/{branch}"}
    return {
        "id": 70 + number,
        "run_number": number,
        "run_attempt": 1,
        "event": event,
        "path": f".github/workflows/{workflow}",
        "head_sha": commit(number),
        "head_branch": branch,
        "head_repository": {"id": repository, "full_name": "acme/kafka" if repository == 1 else "eve/kafka"},
        "repository": OWNER,
        "referenced_workflows": [called],
    }


def review(environment: str, state: str = "approved", user: str = "User") -> dict[str, object]:
    """Return a review of a run as GitHub lists it."""
    return {"state": state, "comment": "", "environments": [{"id": 1, "name": environment}], "user": {"type": user}}


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
