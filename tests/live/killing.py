"""The program under a real kill -9: the process ends itself by SIGKILL at a named crash point.

    death = killed_at("reassign.sent", "apply", "plan.json", "--yes", cwd=folder)   # at its first hit
    death = killed_at("throttle.broker:2", ...)                                     # at its second hit
    death = killed_at("poll|moves.done", ...)                                       # at the first hit of either
    death.point                                                                     # where it died

Nothing of this is in the product: `python -m live.killing POINT ARGUMENTS` plants a hook at the crash points that
the executor names, and then is the program.
"""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from helpers.waiting import HANG, asked_again

TESTS = Path(__file__).resolve().parents[1]
STDERR = 2
DIED = "died at "
REFUSED = 3


class LockedError(AssertionError):
    """The cluster is locked still."""


@dataclass(frozen=True)
class Death:
    """Where a process was killed, and what it had printed by then."""

    point: str
    out: str
    err: str


def killed_at(points: str, *arguments: str | Path, cwd: Path) -> Death:
    """Run the program until it kills itself at one of these points; fail if it ends before."""
    death = killed_or_ended(points, *arguments, cwd=cwd)
    assert death is not None, f"{arguments} ended without passing {points}"
    return death


def killed_or_ended(points: str, *arguments: str | Path, cwd: Path) -> Death | None:
    """Run the program until it kills itself at one of these points; None if it ends well before.

    Where a killed run still holds the cluster's lock, which its death ends within seconds, it is tried again.
    """
    command = [sys.executable, "-m", "live.killing", points, *map(str, arguments)]

    def once() -> "subprocess.CompletedProcess[str]":
        ended = subprocess.run(
            command, cwd=cwd, env=environment(), capture_output=True, text=True, timeout=HANG, check=False
        )
        if ended.returncode == REFUSED:
            raise LockedError(ended.stderr)
        return ended

    ended = asked_again(once, LockedError)
    assert ended.returncode in {0, -signal.SIGKILL}, (
        f"{command[3:]} ended with {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    )
    if ended.returncode == 0:
        return None
    return Death(ended.stderr.rpartition(DIED)[2].strip(), ended.stdout, ended.stderr)


def environment() -> dict[str, str]:
    """Return an environment in which the tests' helpers can be imported and no option is set."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RECONCILER_")}
    return kept | {"PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])}


def die_at(points: str) -> Callable[[str], None]:
    """Return a hook for crash points that kills this process at the first of these: `name` or `name:hit`."""
    wanted = {name: int(hit or 1) for name, _, hit in (point.partition(":") for point in points.split("|"))}
    hits: Counter[str] = Counter()

    def hook(name: str) -> None:
        hits[name] += 1
        if hits[name] == wanted.get(name):
            os.write(STDERR, f"{DIED}{name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def main() -> None:
    """Be the program, mortally."""
    from reconciler.apply.crash import planted
    from reconciler.cli.main import run

    points, *arguments = sys.argv[1:]
    sys.argv = ["reconciler", *arguments]
    with planted(die_at(points)):
        run()


if __name__ == "__main__":
    main()
