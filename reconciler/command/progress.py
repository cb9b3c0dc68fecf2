"""Shows on stderr that work goes on: a bar where somebody watches, else a line a stage.

A run is never silent: while it waits, a line at least every 15 s says for what, and for how long already.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from reconciler.admin.waits import WAITS, Wait, waiting_for
from reconciler.command.terminal import heard, is_stream_colored, silent_seconds, tell
from reconciler.model.run import RunProgress
from reconciler.model.words import duration, number, rate, size

if TYPE_CHECKING:
    from reconciler.admin.port import ProgressHook  # every verb loads this module, few of them a cluster

LAST_READ = "groups"
"""What is read last of a cluster."""
QUIET_SECONDS = 10.0
"""How long nothing is said before a line; less than the 15 s that are promised, for a busy machine may be late."""
LOOK_SECONDS = 1.0
WORKING = "Working."
"""The wait that is no wait: it says, where nothing else is waited for, that the verb has not ended."""
IN_SECONDS = 300
"""How long a wait is told in seconds: `2 min` would stand still for too long."""


@contextmanager
def reading(then: str = "") -> "Iterator[ProgressHook | None]":
    """Yield a hook that shows what is read of a cluster; None where nobody watches.

    `then` says what follows in the same block, such as `planning`: it is shown once all is read.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console = Console(stderr=True, no_color=not is_stream_colored(sys.stderr))
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(f"reading, {then}" if then else "reading", total=None)

        def told(what: str, done: int, total: int) -> None:
            if then and what == LAST_READ and done == total:
                shown.reset(task, total=None, description=then)
            else:
                shown.update(task, description=f"reading {what}", completed=done, total=total)

        yield told


@contextmanager
def running(cluster_name: str) -> Iterator[Callable[[RunProgress], None]]:
    """Yield a hook that shows where a run stands: bytes, rate, time left."""
    with waiting_for() as wait:
        if not sys.stderr.isatty():
            yield _told_by_stage(cluster_name, wait)
            return
        with _shown_as_bar(cluster_name, wait) as hook:
            yield hook


@contextmanager
def _shown_as_bar(cluster_name: str, wait: Wait) -> Iterator[Callable[[RunProgress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=Console(stderr=True, no_color=not is_stream_colored(sys.stderr))) as shown:
        tasks = {}

        def told(seen: RunProgress) -> None:
            if seen.stage not in tasks:
                title = f"{cluster_name}  stage {seen.stage}/{seen.stages}"
                tasks[seen.stage] = shown.add_task(title, total=None, told="")
            by_bytes = seen.total_bytes > 0
            if _is_news(wait, cluster_name, seen):
                heard()
            shown.update(
                tasks[seen.stage],
                completed=seen.copied_bytes if by_bytes else seen.done_moves,
                total=seen.total_bytes if by_bytes else seen.moves,
                told=progress_text(seen),
            )

        yield told


def progress_text(seen: RunProgress) -> str:
    """Return where a stage stands: `8/12   16.0 of 24.0 GiB   48 MiB/s   about 3 min left`."""
    parts = [f"{number(seen.done_moves)}/{number(seen.moves)}"]
    if seen.total_bytes:
        parts.append(f"{size(seen.copied_bytes)} of {size(seen.total_bytes)}")
    if seen.bytes_per_second and seen.done_moves < seen.moves:
        parts.append(rate(seen.bytes_per_second))
    if seen.eta_seconds and seen.done_moves < seen.moves:
        parts.append(f"about {duration(seen.eta_seconds)} left")
    return "   ".join(parts)


def _is_news(wait: Wait, cluster_name: str, seen: RunProgress) -> bool:
    """Say what is waited for, nothing once all is done, and return whether that changed; it began with its stage."""
    title, before, since = f"stage {seen.stage}/{seen.stages} of {cluster_name}", wait.text, wait.since
    wait.say(f"{title}: {progress_text(seen)}" if seen.done_moves < seen.moves else "")
    if before.startswith(f"{title}:"):
        wait.since = since
    return wait.text != before


def _told_by_stage(cluster_name: str, wait: Wait) -> Callable[[RunProgress], None]:
    told: set[tuple[int, bool]] = set()

    def hook(seen: RunProgress) -> None:
        key = (seen.stage, seen.done_moves == seen.moves)
        _is_news(wait, cluster_name, seen)
        if key not in told:
            told.add(key)
            tell(f"{cluster_name}  stage {seen.stage}/{seen.stages}  {progress_text(seen)}")

    return hook


@contextmanager
def heartbeat() -> Iterator[None]:
    """Write a line within the block that says what the verb waits for, after each while without another line."""
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(ended,), name="heartbeat", daemon=True)
    heard()
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def working() -> AbstractContextManager[Wait]:
    """Have the heartbeat say within the block that work goes on, if the verb waits for no answer."""
    return waiting_for(WORKING)


def _beat(ended: threading.Event) -> None:
    while not ended.wait(LOOK_SECONDS):
        if WAITS.is_real and silent_seconds() >= QUIET_SECONDS and (line := waiting_line()):
            tell(line)


def waiting_line() -> str:
    """Return one line that says what the verb waits for; empty if it does not wait."""
    waits = WAITS.told()
    is_working = waits.pop(WORKING, None) is not None
    if not waits:
        return WORKING if is_working else ""
    listed = "; ".join(f"{_shown(seconds)} for {text}" for text, seconds in waits.items())
    quota = f" (quotas of the cluster made requests wait {_shown(WAITS.held_back)} so far)" if WAITS.held_back else ""
    return f"Waiting {listed}{quota}."


def _shown(seconds: float) -> str:
    """Return a time as one waits: in seconds for some minutes."""
    return f"{seconds:.0f} s" if seconds < IN_SECONDS else duration(seconds)
