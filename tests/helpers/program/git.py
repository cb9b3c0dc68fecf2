"""Calls Git for tests, with settings of their own in the place of this machine's."""

import subprocess
from pathlib import Path

SETTINGS = ("user.name=t", "user.email=t@a.invalid", "commit.gpgsign=false", "core.excludesFile=", "safe.directory=*")


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    """Return the output of Git in that folder, without the last line's end."""
    options = [word for setting in SETTINGS for word in ("-c", setting)]
    command = ["git", *options, "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=check).stdout.rstrip("\n")
