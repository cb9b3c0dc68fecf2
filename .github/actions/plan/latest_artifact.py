#!/usr/bin/env python3
"""latest_artifact.py NAME DIR [PATH]: puts the newest artifact of that name into DIR; exits with 1 where there is none.

With PATH it exits with 0 and a notice where the default branch has no such file yet, so that no run can have made any.
Only what a run on the default branch of this very repository made counts: a fork may name its artifacts as it likes.
It needs GITHUB_REPOSITORY, DEFAULT_BRANCH and GITHUB_TOKEN, which may read actions; GITHUB_API_URL says where.
"""

import io
import os
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from github_api import GitHub, GitHubError, NotFoundError, github_of

MOST_BYTES = 1 << 30


def main(name: str, folder: Path, variables: Mapping[str, str], path: str = "") -> int:
    """Fetch it, say what was fetched, and return the exit code; every error ends here, as a sentence."""
    try:
        github, branch = github_of(variables), variables.get("DEFAULT_BRANCH", "")
        if path and not _is_on(github, branch, path):
            print(f"::notice::{path} is new: {name} comes with a run of {branch}, so its plan is made after the merge")
            return 0
        return _fetched(github, name, folder, branch)
    except (GitHubError, OSError, zipfile.BadZipFile) as error:
        print(f"::error::the artifact {name} was not fetched: {error}")
        return 1


def _is_on(github: GitHub, branch: str, path: str) -> bool:
    try:
        github.send("GET", f"contents/{quote(path)}?ref={quote(branch, safe='')}")
    except NotFoundError:
        return False
    return True


def _fetched(github: GitHub, name: str, folder: Path, branch: str) -> int:
    ours = of_branch(github, name, branch)
    if not ours:
        print(f"::error::no artifact {name} of branch {branch}: run the workflow that makes it, then this one again")
        return 1
    newest = max(ours, key=lambda artifact: (artifact["created_at"], artifact["id"]))
    unpack(github, newest, folder)
    print(f"{name}: made at {newest['created_at']} by run {newest['workflow_run']['id']}")
    return 0


def of_branch(github: GitHub, name: str, branch: str) -> list[Mapping[str, Any]]:
    """Return the artifacts of that name which runs on that branch of this very repository made."""
    listed: Any = github.send("GET", f"actions/artifacts?name={quote(name)}&per_page=100").get("artifacts", [])
    return [artifact for artifact in listed if _is_ours(artifact, branch)]


def unpack(github: GitHub, artifact: Mapping[str, Any], folder: Path) -> None:
    """Put what an artifact holds into the folder, not beside it; raises GitHubError for more than MOST_BYTES."""
    with zipfile.ZipFile(io.BytesIO(github.download(f"actions/artifacts/{artifact['id']}/zip"))) as archive:
        if sum(each.file_size for each in archive.infolist()) > MOST_BYTES:
            raise GitHubError(f"It unpacks to more than {MOST_BYTES:,} bytes.")
        archive.extractall(folder)


def _is_ours(artifact: Mapping[str, Any], branch: str) -> bool:
    run = artifact["workflow_run"]
    is_own: bool = run["head_repository_id"] == run["repository_id"]
    return is_own and run["head_branch"] == branch and not artifact["expired"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), os.environ, *sys.argv[3:]))
