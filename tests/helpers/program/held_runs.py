"""`reconciler` in processes that stop at a crash point until they may go on: a test decides what comes first.

    run = HeldRun(folder, "apply", "plan.json", "--yes")   # folder: of this run alone; it is called in the one above
    run.is_there                                           # it has reached the point, "lock.taken"
    run.go_on(); run.ended()                               # its exit code, and all that it said

The processes are forked from one that has imported the program already, so that forty of them cost seconds.
"""

import multiprocessing
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from helpers.waiting import HANG, wait_for

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

STDOUT, STDERR = 1, 2


class HeldRun:
    """One command that waits at a crash point; see the module's docstring."""

    def __init__(self, folder: Path, *arguments: str, at: str = "lock.taken", has_own_journal: bool = True) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        self.folder = folder
        started = multiprocessing.get_context("forkserver")
        started.set_forkserver_preload(["reconciler.cli.main", "reconciler.workflow.apply", "reconciler.admin.client"])
        if has_own_journal:
            arguments = (*arguments, "--journal", str(folder / "journal.jsonl"))
        self.process: ForkServerProcess = started.Process(target=_run, args=(folder, at, arguments))
        self.process.start()

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def is_there(self) -> bool:
        """Whether it has reached the point."""
        return (self.folder / "reached").exists()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return not self.process.is_alive()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def go_on(self) -> None:
        """Let it go on."""
        (self.folder / "go").touch()

    def kill(self) -> None:
        """Kill it, as a crash does."""
        self.process.kill()

    def ended(self) -> tuple[int, str]:
        """Wait for its end; return the exit code and what it said."""
        self.process.join(HANG)
        assert self.process.exitcode is not None, f"it runs still: {self.said()}"
        return self.process.exitcode, self.said()

    def said(self) -> str:
        """What it has said so far."""
        said = self.folder / "said"
        return said.read_text() if said.exists() else ""


def _run(folder: Path, at: str, arguments: tuple[str, ...]) -> None:
    """Be the program."""
    said = os.open(folder / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (STDOUT, STDERR):
        os.dup2(said, stream)
    os.chdir(folder.parent)
    for name in [name for name in os.environ if name.startswith("RECONCILER_")]:
        del os.environ[name]
    from reconciler.apply.crash import planted
    from reconciler.cli.main import main

    with planted(lambda name: _wait(folder) if name == at else None):
        sys.exit(main([*arguments]))


def _wait(folder: Path) -> None:
    (folder / "reached").touch()
    wait_for((folder / "go").exists, "the test to let it go on", pause=0.02)
