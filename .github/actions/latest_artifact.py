#!/usr/bin/env python3
"""latest_artifact.py NAME DIR: puts the newest artifact of that name into DIR; exits with 1 where there is none.

Only what a run on the default branch of this very repository made counts: a fork may name its artifacts as it likes.
It needs GITHUB_REPOSITORY, DEFAULT_BRANCH and GITHUB_TOKEN, which may read actions; GITHUB_API_URL says where.
"""

import io
import json
import os
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from urllib.parse import quote

SECONDS = 60


def main(name: str, folder: Path) -> int:
    """Fetch it, and say what was fetched."""
    listed = json.load(_asked(f"/actions/artifacts?name={quote(name)}&per_page=100"))["artifacts"]
    ours = [artifact for artifact in listed if _is_ours(artifact)]
    if not ours:
        branch = os.environ["DEFAULT_BRANCH"]
        print(f"::error::no artifact {name} of branch {branch}: run the workflow that makes it, then this one again")
        return 1
    newest = max(ours, key=lambda artifact: (artifact["created_at"], artifact["id"]))
    with zipfile.ZipFile(io.BytesIO(_asked(f"/actions/artifacts/{newest['id']}/zip").read())) as archive:
        archive.extractall(folder)
    print(f"{name}: made at {newest['created_at']} by run {newest['workflow_run']['id']}")
    return 0


def _is_ours(artifact: dict) -> bool:
    run = artifact["workflow_run"]
    is_own = run["head_repository_id"] == run["repository_id"]
    return is_own and run["head_branch"] == os.environ["DEFAULT_BRANCH"] and not artifact["expired"]


def _asked(path: str) -> io.BufferedIOBase:
    """Return the answer; a redirection, to where the bytes are kept, is followed without the token."""
    url = f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/repos/{os.environ['GITHUB_REPOSITORY']}{path}"
    request = urllib.request.Request(url, headers={"Accept": "application/vnd.github+json"})
    request.add_unredirected_header("Authorization", f"Bearer {os.environ['GITHUB_TOKEN']}")
    return urllib.request.urlopen(request, timeout=SECONDS)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], Path(sys.argv[2])))
    except (urllib.error.URLError, zipfile.BadZipFile) as error:
        print(f"::error::GitHub did not give the artifact {sys.argv[1]}: {error}")
        sys.exit(1)
