"""What the tests of wider worlds share: what a run told and when, and whether its lock was held all the time."""

import json
import threading
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from helpers.beside import Beside
from helpers.brokers.run import Applying
from helpers.waiting import ATTEMPT

PAUSE = 0.25
LOCK_TYPE = "reconciler"
PEAK = "VmHWM:"


class Watched(Beside):
    """An apply under watch, from `with` to its end: when it said something, and which members its lock's group had."""

    def __init__(self, applying: Applying, bootstrap: str) -> None:
        self.applying = applying
        self.members: set[str] = set()
        self.looks = 0
        self.peak_megabytes = 0.0
        self._said = [_moment()]
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        super().__init__(threading.Thread(target=self._listen), threading.Thread(target=self._look))

    @property
    def silence(self) -> float:
        """The longest time without a word on stdout or stderr, in seconds."""
        return max(later - earlier for earlier, later in pairwise(self._said))

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self._said[-1] - self._said[0]

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        self._said.append(_moment())

    def _listen(self) -> None:
        said = 0
        while not self._is_over.wait(PAUSE):
            now = sum(path.stat().st_size for path in (self.applying.out, self.applying.err))
            with suppress(OSError, StopIteration):
                status = Path(f"/proc/{self.applying.process.pid}/status").read_text().splitlines()
                self.peak_megabytes = int(next(line for line in status if line.startswith(PEAK)).split()[1]) / 1024
            if now != said:
                said = now
                self._said.append(_moment())

    def _look(self) -> None:
        while not self._is_over.wait(4 * PAUSE):
            with suppress(KafkaException), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # its successor lists consumers' groups alone
                groups = self._client.list_groups(timeout=ATTEMPT)
                self.members |= {m.id for group in groups if group.protocol_type == LOCK_TYPE for m in group.members}
                self.looks += 1


def _moment() -> float:
    """Return when that was, for figures alone."""
    return time.monotonic()


def described(watched: Watched) -> str:
    """Return what a watched run took, in words."""
    return f"{watched.seconds:.0f} s, longest silence {watched.silence:.1f} s"


def events(folder: Path) -> Sequence[dict[str, Any]]:
    """Return the events of the one journal in an operator's folder."""
    (path,) = folder.glob("runs/*/*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def steps(folder: Path) -> list[object]:
    """Return the steps that its journal tells."""
    return [event["step"] for event in events(folder)]
