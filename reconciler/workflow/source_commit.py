"""The commit that the desired state was read at, where it stands in a Git repository and is committed."""

import subprocess
from pathlib import Path

_SECONDS = 10
_YAML = ("*.yaml", "*.yml", ":(exclude,glob)**/.*/**")
"""Where desired state may stand: not in hidden folders, which are not read."""


def source_commit(root: Path) -> str | None:
    """Return the commit, None without Git or a repository, or where YAML files differ from what is committed.

    A YAML file that Git ignores is in no commit, so it differs.
    """
    differing = _git(root, "status", "--porcelain", "--ignored", "--", *_YAML)
    if differing is None or differing:
        return None
    return _git(root, "rev-parse", "--verify", "HEAD")


def _git(root: Path, *arguments: str) -> str | None:
    # A repository may name a program of its own as fsmonitor; reading a commit must not run it.
    command = ("git", "-c", "core.fsmonitor=false", "-C", str(root), *arguments)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - fixed words and a path, no shell
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None
