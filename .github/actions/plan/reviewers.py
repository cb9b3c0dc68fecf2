#!/usr/bin/env python3
"""reviewers.py ENVIRONMENT: exits with 1 unless GitHub asks somebody before a job of that environment begins.

GitHub makes an environment that a workflow names and nobody has made, without any rule: the plan of a new cluster would
be applied unread. It needs GITHUB_REPOSITORY and GITHUB_TOKEN, which may read actions; GITHUB_API_URL says where.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from github_api import GitHubError, NotFoundError, github_of


def main(environment: str, variables: Mapping[str, str]) -> int:
    """Ask, say what is missing, and return the exit code."""
    try:
        found: Any = github_of(variables).send("GET", f"environments/{quote(environment, safe='')}")
        has_reviewers = any(
            rule.get("type") == "required_reviewers" and rule.get("reviewers")
            for rule in found.get("protection_rules", [])
        )
        missing = "" if has_reviewers else "has no required reviewers, so nobody would be asked: give it some"
    except NotFoundError:
        missing = "is not there, and GitHub would make it without reviewers: make it, with required reviewers"
    except GitHubError as error:
        missing = f"cannot be looked at: {error}"
    if not missing:
        return 0
    told = f"the environment {environment} {missing}"
    print(f"::error::{told}")
    Path(variables["RUNNER_TEMP"], "result").write_text(f"1\n{told}\n", "utf-8")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ))
