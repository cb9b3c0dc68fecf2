#!/usr/bin/env python3
"""unfinished_plan.py WORKFLOW CLUSTER ROOT DIR: puts into DIR the plan that a night is to go on with, if there is one.

It is the artifact `unfinished-plan-CLUSTER` of the newest run of that workflow on the default branch that had a plan to
make or to go on with: that of a merge or a dispatch, whatever became of it, or a night that has a `plan-CLUSTER`. So a
plan that was finished, cancelled, refused, or followed by a newer one is never begun again.

A night asks nobody, so the plan must have been approved before, and GitHub itself must say so:
1. The newest merge or dispatch that counts ran on the default branch, and its commit is in the history of that branch.
   So its workflow is one that was merged, and only then do the names of its jobs prove anything.
2. It ran once. The approvals of a run do not say which attempt they belong to.
3. A person has approved the environment kafka-apply-CLUSTER for that run, and nobody has rejected it.
4. Its job `CLUSTER / apply sha256:...` has succeeded. GitHub names a job by what the job before it put out.
5. What the artifact holds has that digest, computed here.
6. The default branch has changed nothing below ROOT since. Whoever may write can delete a run, but not a commit.

Writes `found=true` or `found=false` to GITHUB_OUTPUT, and `digest=` with the approved one; exit 0 in both cases, 1 if a
plan is there and one of 1 to 5 is not shown. It needs GITHUB_REPOSITORY, GITHUB_RUN_ID, DEFAULT_BRANCH and
GITHUB_TOKEN, which may read actions and contents.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from github_api import GitHub, GitHubError, github_of
from latest_artifact import MOST_FILES, Branch, Found, branch_of, by_run, unpack

MERGES = ("push", "workflow_dispatch")
FILES = frozenset({"plan.json", "next-stage.txt"})


def main(workflow: str, cluster: str, root: str, folder: Path, variables: Mapping[str, str]) -> int:
    """Fetch it, say what was fetched or why nothing was, and return the exit code."""
    try:
        branch = branch_of(github_of(variables), variables.get("DEFAULT_BRANCH", ""))
        digest, message = _fetched(branch, workflow, cluster, root, folder, variables.get("GITHUB_RUN_ID", ""))
    except (GitHubError, OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile) as error:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"::error::the unfinished plan of {cluster} was not fetched: {error}")
        return 1
    print(message)
    with Path(variables["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"found={str(bool(digest)).lower()}\ndigest={digest}\n")
    return 0


def _fetched(  # noqa: PLR0917 - the program's own arguments
    branch: Branch, workflow: str, cluster: str, root: str, folder: Path, own: str
) -> tuple[str, str]:
    """Return the digest of the plan that is in the folder now, empty for none, and what to say of it."""
    github = branch.github
    planned, unfinished = (by_run(branch, f"{kind}-{cluster}") for kind in ("plan", "unfinished-plan"))
    runs = [run for run in branch.runs(workflow) if str(run["id"]) != own]
    counted = (run for run in runs if run["event"] in MERGES or run["id"] in planned)
    newest = next((run for run in counted if _is_in(branch, run)), None)
    label = _label(newest) if newest else "no run"
    if newest is None or newest["id"] not in unfinished:
        return "", _nothing(cluster, f"{label}, the newest that counts, left no unfinished plan")
    merge = next((run for run in runs if run["event"] in MERGES and _is_in(branch, run)), None)
    if merge is None:
        raise GitHubError(f"{label} left a plan, but no merge that it could be of is listed")
    changed = branch.changed_since(str(merge["head_sha"])) or ()
    if len(changed) >= MOST_FILES or any(name.startswith(f"{root}/") for name in changed):
        return "", _nothing(cluster, f"{branch.name} has changed {root} since {_label(merge)}")
    digest = _approved(github, merge, cluster)
    if newest is not merge and _applied(github, newest, cluster, "night") != {digest}:
        raise GitHubError(f"{label} has gone on with another plan than the one that {_label(merge)} applied")
    unpack(github, unfinished[newest["id"]], folder)
    _require_only_the_plan(folder, digest)
    return digest, f"{cluster}: going on with what {label} left"


def _label(run: Found) -> str:
    return f"run {run['run_number']} ({run['event']})"


def _nothing(cluster: str, reason: str) -> str:
    return f"::notice::{cluster}: nothing to go on with; {reason}"


def _is_in(branch: Branch, run: Found) -> bool:
    return branch.changed_since(str(run.get("head_sha"))) is not None


def _approved(github: GitHub, run: Found, cluster: str) -> str:
    """Return the digest of the plan that somebody approved in that run, and that its job then applied."""
    label, environment = _label(run), f"kafka-apply-{cluster}"
    if run.get("run_attempt") != 1:
        raise GitHubError(
            f"{label} was run again, and GitHub does not say which attempt was approved: start {run['path']} anew"
        )
    reviews: list[Any] = list(github.pages(f"actions/runs/{run['id']}/approvals"))
    own = [one for one in reviews if environment in {each["name"] for each in one["environments"]}]
    if not own or any((one["state"], one["user"]["type"]) != ("approved", "User") for one in own):
        raise GitHubError(f"nobody has approved {environment} in {label}, or somebody has rejected it")
    digests = _applied(github, run, cluster, "apply")
    if len(digests) != 1:
        raise GitHubError(
            f"no job of {label} is named `{cluster} / apply sha256:...` and has succeeded, so nobody can tell "
            "which plan was approved; GitHub cuts names at 100 characters, so a cluster's may have 20"
        )
    return digests.pop()


def _applied(github: GitHub, run: Found, cluster: str, word: str) -> set[str]:
    """Return the digests in the names of that run's jobs which applied a plan of the cluster, and ended in order."""
    own = re.escape(cluster)
    pattern = re.compile(rf"(?:{own}|\w+ \({own}\)) / {word} (sha256:[0-9a-f]{{64}})")
    jobs: list[Any] = list(github.pages(f"actions/runs/{run['id']}/jobs", "jobs"))
    names = (job["name"] for job in jobs if job["conclusion"] == "success")
    return {match[1] for name in names if (match := pattern.fullmatch(name))}


def _require_only_the_plan(folder: Path, digest: str) -> None:
    """Keep the plan and where it stopped, and nothing else; raises GitHubError if it is another plan."""
    for path in folder.iterdir():
        if path.name not in FILES:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    content = {key: value for key, value in plan.items() if key not in {"id", "digest"}}
    # As `reconciler plan` computes it: schemas/plan.json has the rule.
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    if (computed := f"sha256:{hashlib.sha256(text.encode()).hexdigest()}") != digest:
        raise GitHubError(f"the artifact holds a plan with the digest {computed}, and {digest} was approved")


if __name__ == "__main__":
    workflow_name, cluster_name, root_name, goal = sys.argv[1:]
    sys.exit(main(workflow_name, cluster_name, root_name, Path(goal), os.environ))
