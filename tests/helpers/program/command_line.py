"""The program as its users start it: a process of its own, with its exit code, stdout and stderr."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from helpers.program.call import captured


@dataclass(frozen=True)
class Outcome:
    """What one command left."""

    code: int
    out: str
    err: str


def reconciler(*arguments: str | Path, cwd: Path, expect: int | None = 0) -> Outcome:
    """Run `reconciler ARGUMENTS` in that folder; fail with all it printed where the exit code is another; None: any."""
    command = [sys.executable, "-m", "reconciler", *map(str, arguments)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RECONCILER_")}
    done = captured(command, cwd, environment)
    outcome = Outcome(done.returncode, done.stdout, done.stderr)
    assert expect in {None, done.returncode}, (
        f"{command[3:]} ended with {done.returncode}\n{outcome.out}\n{outcome.err}"
    )
    return outcome
