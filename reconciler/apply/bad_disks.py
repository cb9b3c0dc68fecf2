"""Destinations' log dirs that can take nothing more in: offline, or about to be.

Kafka keeps a broker alive whose log dir failed (a full or broken disk), lists the move for ever and says nothing:
only DescribeLogDirs tells (seen on 4.1.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from reconciler.model.cluster import LogDir

NEARLY_NOTHING = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BadDisk:
    """Since when a broker has a log dir that is offline, or only ones that are nearly full, and which.

    `usable_bytes`: what is left in all its log dirs, where all of them are nearly full.
    """

    since: datetime
    path: str
    is_offline: bool
    usable_bytes: int | None = None

    def told(self, broker: int) -> str:
        """Return it in words."""
        if self.is_offline:
            return f"log dir {self.path} of broker {broker} is offline"
        return f"log dir {self.path} of broker {broker} has {self.usable_bytes} bytes left"


def bad_disks(
    known: Mapping[int, BadDisk], log_dirs: Mapping[int, tuple[LogDir, ...]], now: datetime
) -> Mapping[int, BadDisk]:
    """Return the bad disks after a look at some brokers' log dirs; of the other brokers what was known stays."""
    found = {broker: bad for broker, bad in known.items() if broker not in log_dirs}
    for broker, told in log_dirs.items():
        offline = [one for one in told if one.is_offline]
        rest = [one for one in told if not one.is_offline]
        nearly_full = rest if all(is_nearly_full(one) for one in rest) else []
        if offline or nearly_full:
            since = known[broker].since if broker in known else now
            usable = sum(one.usable_bytes or 0 for one in nearly_full) if nearly_full else None
            found[broker] = BadDisk(since, (offline or nearly_full)[0].path, bool(offline), usable)
    return found


def is_nearly_full(log_dir: LogDir) -> bool:
    """Whether a log dir is about to fail: less than 2 % of it, and less than 256 MiB, is left; unknown is not full."""
    usable, total = log_dir.usable_bytes, log_dir.total_bytes
    return usable is not None and total is not None and usable < min(NEARLY_NOTHING, total // 50)
