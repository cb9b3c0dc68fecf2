#!/usr/bin/env python3
"""unfinished_plan.py WORKFLOW CLUSTER DIR: puts into DIR the plan that a night is to go on with, where there is one.

It is the artifact `unfinished-plan-CLUSTER` of the newest run of that workflow on the default branch that had a plan to
make or to go on with: that of a merge or a dispatch, whatever became of it, or a night that has a `plan-CLUSTER`. So a
plan that was finished, cancelled, refused, or followed by a newer one is never begun again.

Writes `found=true` or `found=false` to GITHUB_OUTPUT; exit 0 in both cases, 1 on errors. With `found=true` also the
`digest=` of the plan that was approved. It stands in the name of that run's job which applied it, `CLUSTER / apply
sha256:...` or `CLUSTER / night sha256:...`: GitHub names a job by what the job before it put out, so no artifact tells.

It needs GITHUB_REPOSITORY, GITHUB_RUN_ID, DEFAULT_BRANCH and GITHUB_TOKEN, which may read actions.
"""

import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from github_api import MOST_PAGES, PAGE, GitHub, GitHubError, github_of
from latest_artifact import of_branch, unpack

Found = Mapping[str, Any]


def main(workflow: str, cluster: str, folder: Path, variables: Mapping[str, str]) -> int:
    """Fetch it, say what was fetched or why nothing was, and return the exit code."""
    branch, own = variables.get("DEFAULT_BRANCH", ""), variables.get("GITHUB_RUN_ID", "")
    try:
        github = github_of(variables)
        runs = [run for run in _runs(github, workflow, branch) if str(run["id"]) != own]
        planned, left = (_by_run(github, f"{kind}-{cluster}", branch) for kind in ("plan", "unfinished-plan"))
        run = next((run for run in runs if run["event"] != "schedule" or run["id"] in planned), None)
        artifact = left.get(run["id"]) if run else None
        digest = _approved(github, run, cluster) if run and artifact else ""
        if artifact:
            unpack(github, artifact, folder)
    except (GitHubError, OSError, zipfile.BadZipFile) as error:
        print(f"::error::the unfinished plan of {cluster} was not fetched: {error}")
        return 1
    told = f"run {run['run_number']} ({run['event']})" if run else "no run"
    print(f"{cluster}: going on with what {told} left" if artifact else _nothing(cluster, told))
    with Path(variables["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"found={str(bool(artifact)).lower()}\ndigest={digest}\n")
    return 0


def _nothing(cluster: str, told: str) -> str:
    return f"::notice::{cluster}: nothing to go on with; {told}, the newest that counts, left no unfinished plan"


def _runs(github: GitHub, workflow: str, branch: str) -> list[Found]:
    """Return the workflow's runs on that branch of this very repository, the newest first."""
    found: Any = github.send("GET", f"actions/workflows/{workflow}/runs?branch={quote(branch, safe='')}&per_page=100")
    ours = [run for run in found["workflow_runs"] if run["head_repository"]["id"] == run["repository"]["id"]]
    return sorted(ours, key=lambda run: int(run["run_number"]), reverse=True)


def _approved(github: GitHub, run: Found, cluster: str) -> str:
    """Return the digest in the name of that run's job which applied the plan, and ended in order."""
    own = re.escape(cluster)
    named = re.compile(rf"(?:{own}|\w+ \({own}\)) / (?:apply|night) (sha256:[0-9a-f]{{64}})")
    ended = (job["name"] for job in _jobs(github, run) if job["conclusion"] == "success")
    digests = {found[1] for name in ended if (found := named.fullmatch(name))}
    if len(digests) != 1:
        raise GitHubError(
            f"no job of run {run['run_number']} is named `{cluster} / apply sha256:...` and has succeeded, so nobody "
            "can tell which plan was approved; GitHub cuts names at 100 characters, so a cluster's may have 20"
        )
    return digests.pop()


def _jobs(github: GitHub, run: Found) -> Iterator[Found]:
    for page in range(1, MOST_PAGES):
        found: Any = github.send("GET", f"actions/runs/{run['id']}/jobs?per_page={PAGE}&page={page}")
        yield from found["jobs"]
        if len(found["jobs"]) < PAGE:
            return


def _by_run(github: GitHub, name: str, branch: str) -> Mapping[int, Found]:
    """Return the newest artifact of that name for each run that made one."""
    listed = sorted(of_branch(github, name, branch), key=lambda artifact: int(artifact["id"]))
    return {artifact["workflow_run"]["id"]: artifact for artifact in listed}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), os.environ))
