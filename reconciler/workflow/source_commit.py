"""The commit that the desired state was read at, where it stands in a Git repository and is committed."""

import os
import subprocess
from pathlib import Path

_SECONDS = 10
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit")
"""A repository may name a program of its own as fsmonitor; reading a commit must not run it."""
_YAML = ("*.yaml", "*.yml", ":(exclude,glob)**/.*/**")
"""Where desired state may stand: not in hidden folders, which are not read."""


def source_commit(root: Path) -> str | None:
    """Return the commit, None without Git or a repository, or where YAML files differ from what is committed.

    A YAML file that Git ignores is in no commit, so it differs.
    """
    if _is_itself_a_repository(root.resolve()):
        return None
    differing = _git(root, "status", "--porcelain", "--ignored", "--", *_YAML)
    if differing is None or differing:
        return None
    return _git(root, "rev-parse", "--verify", "HEAD")


def _is_itself_a_repository(root: Path) -> bool:
    """Whether files below the nearest `.git` could make up a repository, whose settings name programs that Git runs.

    Git takes any folder for one that holds HEAD, objects and refs, and these can be committed as any file can.
    """
    for folder in (root, *root.parents):
        if os.path.lexists(folder / "HEAD"):
            return True
        if (folder / ".git").exists():
            return False
    return False


def _git(root: Path, *arguments: str) -> str | None:
    command = ("git", *_SETTINGS, "-C", str(root), *arguments)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)  # noqa: S603 - fixed words and a path, no shell
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.strip() if ended.returncode == 0 else None
