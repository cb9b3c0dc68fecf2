"""The program under a real kill -9: the process ends itself by SIGKILL at a named crash point.

    death = killed_at("reassign.sent", "apply", "plan.json", "--yes", cwd=folder)   # at its first hit
    death = killed_at("throttle.broker:2", ...)                                     # at its second hit
    death = killed_at("poll|moves.done", ...)                                       # at the first hit of either
    death.died_at                                                                   # where it died

Nothing of this is in the product: see `helpers.program.warm`.
"""

import signal
from pathlib import Path

from helpers.program.warm import Ended, Kill, run
from helpers.waiting import asked_again

REFUSED = 3


class LockedError(AssertionError):
    """The cluster is locked still."""


def killed_at(points: str, *arguments: str | Path, cwd: Path) -> Ended:
    """Run the program until it kills itself at one of these points; fail if it ends before."""
    death = killed_or_ended(points, *arguments, cwd=cwd)
    assert death is not None, f"{arguments} ended without passing {points}"
    return death


def killed_or_ended(points: str, *arguments: str | Path, cwd: Path) -> Ended | None:
    """Run the program until it kills itself at one of these points; None if it ends well before.

    Where a killed run still holds the cluster's lock, which its death ends within seconds, it is tried again.
    """

    def once() -> Ended:
        ended = run(*arguments, cwd=cwd, kill=Kill(point=points))
        if ended.code == REFUSED:
            raise LockedError(ended.err)
        return ended

    ended = asked_again(once, LockedError)
    assert ended.code in {0, -signal.SIGKILL}, f"{arguments} ended with {ended.code}\n{ended.out}\n{ended.err}"
    return ended if ended.is_killed else None
