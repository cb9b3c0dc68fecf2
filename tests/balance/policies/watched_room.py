"""A room in which policies are asked, and what a query that got out of it would have touched."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.waiting import wait_for

from reconciler.balance.policies.asking import Room, policy_room

CANARY = "CANARYvalue"


@dataclass(frozen=True)
class Watched:
    """A room, and what a query that got out of it would have touched."""

    room: Room
    file: Path
    listener: socket.socket

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def processes(self) -> set[int]:
        return {pid for pid in descendants(self.room._process.pid) if is_there(pid)}

    def lasting(self) -> set[int]:
        """Wait until Python and Java are all there is: Spark itself runs `getconf` for a moment, some seconds in."""
        wait_for(lambda: len(self.processes()) <= 2, "the end of all but Python and Java")
        return self.processes()

    def told(self, query: str) -> tuple[str, str]:
        """Return how the query ended, `rows`, `refused` or `failed`, and all that was answered."""
        answer = self.room._ask({"query": query}, 300)
        return next(iter(answer)), str(answer)

    def assert_untouched(self) -> None:
        assert not self.file.exists()
        with pytest.raises(BlockingIOError):
            self.listener.accept()


def descendants(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread ends at any time
            for child in task.read_text().split():
                yield from descendants(int(child))


def is_there(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def watched_room(file: Path) -> Iterator[Watched]:
    """Open one; `file` must never come to be."""
    with ExitStack() as open_now, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANARY_SECRET", CANARY)
        listener = open_now.enter_context(socket.create_server(("127.0.0.1", 0)))
        listener.settimeout(0)
        yield Watched(open_now.enter_context(policy_room(os.environ)), file, listener)
