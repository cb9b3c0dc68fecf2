"""Keeps what documents name inside the root: a path that a document writes, and every link below the root.

Whoever may change the desired state writes paths and links. The machine that reads them has more than that: error
messages quote what a file holds, and a simulated cluster's file is written. What the caller names on the command line
is the caller's own, and may be anywhere.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from reconciler.model.client_properties import name_shown
from reconciler.model.problem import InvalidInput, Location, Problem

OUTSIDE = "KR132"


def inside(root: Path, path: Path) -> Path | None:
    """Return where `path` leads, as a path below `root` on which there is no link; None where that is outside.

    The root itself may be a link. What is not there yet counts by where it would be made.
    """
    try:
        real_root, real = os.path.realpath(root), os.path.realpath(path)
        # Behind links in a circle the rest of a path is left as it is written, and may hold a link that leads out.
        if os.path.realpath(real) != real:
            return None
    except ValueError:  # a NUL
        return None
    found = Path(real)
    return root / found.relative_to(real_root) if found.is_relative_to(real_root) else None


def foreign_reason(path: Path) -> str | None:
    """Return why a file is not this user's own, in words: a link leads to it, or another user owns it; None if it is.

    What is not there yet is. Links of an absolute path are the choice of whoever named it.
    """
    for part in (path,) if path.is_absolute() else (path, *path.parents[:-1]):
        with suppress(FileNotFoundError, NotADirectoryError):
            status = part.lstat()
            if stat.S_ISLNK(status.st_mode) and not path.is_absolute():
                return f"{part} is a link"
            if status.st_uid != os.getuid():
                return f"{part} belongs to another user"
    return None


def required_inside(root: Path, path: Path, said: str, at: Location | None) -> Path:
    """Return the same; raises InvalidInput where it is outside. `said`: what is wrong, and the way to put it right."""
    found = inside(root, path)
    if found is None:
        raise InvalidInput([outside(said, at)])
    return found


def outside(said: str, at: Location | None) -> Problem:
    """Return the problem of a path that leads out of the root."""
    return Problem(OUTSIDE, said, at)


SIMULATION = (
    "simulation leads out of the root: move the file inside, or give a snapshot on the command line with --state"
)
CLIENT_FILE = "the client's file leads out of the root: move it inside, or give it on the command line with --client"
WRITTEN_THROUGH = "is behind a link that leads out of the root, and is not written: remove the link"
LINK = "is a link that leads out of the root, and is not read: put what it leads to inside the root"


def secret_outside(key: str, name: str) -> str:
    """Return what is said of a relative `${file:…}` that leads out."""
    way = "move it inside, or write its absolute path"
    return f"{name_shown(key)} wants the file {name}, which leads out of the root: {way}"
