#!/usr/bin/env python3
"""reviewers.py CLUSTER: exits with 1 unless GitHub guards the two environments whose jobs may change that cluster.

- `kafka-apply-CLUSTER` asks somebody before its job begins.
- To it and to `kafka-continue-CLUSTER`, which asks nobody, the default branch alone may deploy. Whoever may push can
  write a workflow that names an environment, and GitHub gives its secrets to every branch unless a policy forbids it.

GitHub makes an environment that a workflow names and nobody has made, without any rule: the plan of a new cluster would
be applied unread. It needs GITHUB_REPOSITORY, DEFAULT_BRANCH and GITHUB_TOKEN, which may read actions; GITHUB_API_URL
says where.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from github_api import GitHub, GitHubError, NotFoundError, github_of


def main(cluster: str, variables: Mapping[str, str]) -> int:
    """Ask, say what is missing, and return the exit code."""
    branch = variables.get("DEFAULT_BRANCH", "")
    missing = []
    for name in (f"kafka-apply-{cluster}", f"kafka-continue-{cluster}"):
        try:
            needs_reviewers = name.startswith("kafka-apply-")
            missing += [f"the environment {name} {text}" for text in _missing(variables, name, branch, needs_reviewers)]
        except GitHubError as error:
            missing.append(f"the environment {name} cannot be looked at: {error}")
    if not missing:
        return 0
    for text in missing:
        print(f"::error::{text}")
    Path(variables["RUNNER_TEMP"], "result").write_text(f"1\n{missing[0]}\n", "utf-8")
    return 1


def _missing(variables: Mapping[str, str], name: str, branch: str, needs_reviewers: bool) -> Iterator[str]:  # noqa: FBT001 - by place
    """Yield what the environment lacks, each a predicate that says what to do."""
    github = github_of(variables)
    path = f"environments/{quote(name, safe='')}"
    try:
        environment: Any = github.send("GET", path)
    except NotFoundError:
        yield "is not there, and GitHub would make it without any rule: make it, and let one branch deploy to it"
        return
    rules = environment.get("protection_rules") or []
    if needs_reviewers and not any(one.get("type") == "required_reviewers" and one.get("reviewers") for one in rules):
        yield "has no required reviewers, so nobody would be asked: give it some"
    allowed = _allowed(github, path, environment)
    if not branch or allowed != [("branch", branch)]:
        named = ", ".join(f"the {kind} {text}" for kind, text in allowed) or "every branch"
        yield (
            f"lets {named} deploy, and so have its password: in its settings choose "
            f"`Selected branches and tags`, and name {branch or 'the default branch'} there and nothing else"
        )


def _allowed(github: GitHub, path: str, environment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what may deploy: kind and pattern, sorted; empty for everything."""
    policy = environment.get("deployment_branch_policy")
    if not policy:
        return []
    if not policy.get("custom_branch_policies"):
        return [("rule", "that a branch is protected")]
    listed = github.pages(f"{path}/deployment-branch-policies", "branch_policies")
    # A server that is older than policies for tags names no type.
    return sorted((str(one.get("type") or "branch"), str(one.get("name"))) for one in listed) or [
        ("branch", "of no name")
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ))
