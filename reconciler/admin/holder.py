"""Who this process is, for those who find its lock."""

import getpass
import os
import socket
from datetime import UTC, datetime

from reconciler.model.lock import Holder


def this_process(purpose: str, since: datetime) -> Holder:
    """Return this process as the holder of a lock."""
    time = since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Holder(purpose, _user(), socket.gethostname(), os.getpid(), time)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user id that has no name
        return str(os.getuid())
