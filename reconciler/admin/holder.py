"""Tells who this process is, for those who find its lock."""

import getpass
import os
import socket
from datetime import UTC, datetime

from reconciler.model.lock import Holder


def this_process(purpose: str, since: datetime, digest: str = "") -> Holder:
    """Return this process as the holder of a lock, to run the plan of that digest."""
    time = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Holder(purpose, _user(), socket.gethostname(), os.getpid(), time, digest)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user id that has no name
        return str(os.getuid())


def is_this_process(holder: Holder) -> bool:
    """Whether that holder is this process."""
    return (holder.host, holder.pid) == (socket.gethostname(), os.getpid())
