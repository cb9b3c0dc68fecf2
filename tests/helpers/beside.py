"""What goes on in threads beside a test, for as long as a block."""

import threading
from types import TracebackType
from typing import Self

from helpers.waiting import HANG


class Beside:
    """Threads that run until `_is_over` is set, at the block's end."""

    def __init__(self, *threads: threading.Thread) -> None:
        self._is_over = threading.Event()
        self._threads = threads

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(HANG)
