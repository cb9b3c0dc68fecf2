#!/usr/bin/env python3
"""latest_artifact.py WORKFLOW NAME DIR [PATH]: puts the newest artifact NAME of a workflow into DIR, or exits with 1.

With PATH it exits with 0 and a notice where the default branch has no such file yet, so that no run can have made any.
Only runs of the default branch of this very repository count (see Branch): anybody who may push can make runs and
artifacts of any name. It needs GITHUB_REPOSITORY, DEFAULT_BRANCH and GITHUB_TOKEN, which may read actions and contents;
GITHUB_API_URL says where.
"""

import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from github_api import GitHub, GitHubError, NotFoundError, github_of

MOST_BYTES = 1 << 30
EVENTS = frozenset({"push", "workflow_dispatch", "schedule"})
"""Those that run a workflow as the default branch has it; the code of a pull request is its author's."""
MOST_FILES = 300
"""GitHub lists no more changed files between two commits."""
Found = Mapping[str, Any]


def main(workflow: str, name: str, folder: Path, variables: Mapping[str, str], path: str = "") -> int:
    """Fetch it, say what was fetched, and return the exit code; every error ends here, as a sentence."""
    try:
        github, branch_name = github_of(variables), variables.get("DEFAULT_BRANCH", "")
        if path and not _is_on(github, branch_name, path):
            print(f"::notice::{path} is new: {name} comes with a run of {branch_name}, so its plan waits for the merge")
            return 0
        return _fetched(branch_of(github, branch_name), workflow, name, folder)
    except (GitHubError, OSError, zipfile.BadZipFile) as error:
        print(f"::error::the artifact {name} was not fetched: {error}")
        return 1


def _is_on(github: GitHub, branch: str, path: str) -> bool:
    try:
        github.send("GET", f"contents/{quote(path)}?ref={quote(f'refs/heads/{branch}', safe='')}")
    except NotFoundError:
        return False
    return True


def _fetched(branch: "Branch", workflow: str, name: str, folder: Path) -> int:
    artifacts = by_run(branch, name)
    runs = (run for run in branch.runs(workflow) if run["id"] in artifacts)
    run = next((run for run in runs if branch.changed_since(str(run.get("head_sha"))) is not None), None)
    if run is None:
        print(f"::error::no artifact {name} of branch {branch.name}: run {workflow}, then this workflow again")
        return 1
    artifact = artifacts[run["id"]]
    unpack(branch.github, artifact, folder)
    print(f"{name}: made at {artifact['created_at']} by run {run['id']}")
    return 0


@dataclass(frozen=True, slots=True)
class Branch:
    """The default branch with its newest `commit`; tells its runs from those that only carry its name.

    GitHub lists runs by the bare name of what they ran on. A tag of that name, and a branch of that name in a fork, are
    listed alike, and whoever pushes one decides which workflow runs there.
    """

    github: GitHub
    name: str
    commit: str

    def runs(self, workflow: str) -> list[Found]:
        """Return the workflow's runs on this branch, the newest first; their commits are not looked at yet."""
        listed = self.github.pages(
            f"actions/workflows/{workflow}/runs?branch={quote(self.name, safe='')}", "workflow_runs"
        )
        own = [run for run in listed if self._is_own(run, workflow)]
        return sorted(own, key=lambda run: int(run["run_number"]), reverse=True)

    def _is_own(self, run: Found, workflow: str) -> bool:
        repository, head = (run.get(key) or {} for key in ("repository", "head_repository"))
        path, _, ref = str(run.get("path")).partition("@")
        called = [one.get("ref") for one in run.get("referenced_workflows") or () if _is_of(one, repository)]
        return (
            repository.get("id") is not None
            and head.get("id") == repository.get("id")
            and run.get("head_branch") == self.name
            and run.get("event") in EVENTS
            and path == f".github/workflows/{workflow}"
            and all(one in {"", None, self.name, f"refs/heads/{self.name}"} for one in (ref, *called))
        )

    def changed_since(self, commit: str) -> tuple[str, ...] | None:
        """Return the files that this branch has changed since that commit; None if the commit is not in its history."""
        if not re.fullmatch(r"[0-9a-f]{40}", commit):
            return None
        try:
            compared: Any = self.github.send("GET", f"compare/{commit}...{self.commit}")
        except NotFoundError:
            return None
        if compared.get("status") not in {"ahead", "identical"} or compared["merge_base_commit"]["sha"] != commit:
            return None
        changes = compared.get("files") or ()
        return tuple(one[key] for one in changes for key in ("filename", "previous_filename") if key in one)


def _is_of(called: Found, repository: Found) -> bool:
    return str(called.get("path")).startswith(f"{repository.get('full_name')}/")


def branch_of(github: GitHub, name: str) -> Branch:
    """Return the branch of that name; raises GitHubError while a tag has the same name."""
    place = quote(name)
    found: Any = github.send("GET", f"git/ref/heads/{place}")
    try:
        tag = github.send("GET", f"git/ref/tags/{place}").get("ref")
    except NotFoundError:
        tag = None
    if tag == f"refs/tags/{name}":
        raise GitHubError(f"a tag is named {name}, like the default branch, and GitHub mixes up their runs: delete it")
    if found.get("ref") != f"refs/heads/{name}":
        raise GitHubError(f"this repository has no branch {name}")
    return Branch(github, name, str(found["object"]["sha"]))


def by_run(branch: Branch, name: str) -> Mapping[int, Found]:
    """Return the newest artifact of that name for each run that made one; whether a run counts is not looked at."""
    listed = [artifact for artifact in _artifacts(branch, name) if not artifact["expired"]]
    return {artifact["workflow_run"]["id"]: artifact for artifact in sorted(listed, key=lambda one: int(one["id"]))}


def _artifacts(branch: Branch, name: str) -> Iterator[Found]:
    for artifact in branch.github.pages(f"actions/artifacts?name={quote(name)}", "artifacts"):
        run: Any = artifact.get("workflow_run") or {}
        is_own = run.get("head_repository_id") == run.get("repository_id") and run.get("head_branch") == branch.name
        if is_own and artifact.get("name") == name:
            yield artifact


def unpack(github: GitHub, artifact: Found, folder: Path) -> None:
    """Put what an artifact holds into the folder, not beside it; raises GitHubError for more than MOST_BYTES."""
    with zipfile.ZipFile(io.BytesIO(github.download(f"actions/artifacts/{artifact['id']}/zip"))) as archive:
        if sum(each.file_size for each in archive.infolist()) > MOST_BYTES:
            raise GitHubError(f"It unpacks to more than {MOST_BYTES:,} bytes.")
        archive.extractall(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), os.environ, *sys.argv[4:]))
