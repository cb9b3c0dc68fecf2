"""A plan's run journal: one JSON line an event, appended durably, read back even where a crash tore the last line."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from io import FileIO
from pathlib import Path

from reconciler.files.json_text import canonical_json
from reconciler.files.raw import invalid, sync_folder
from reconciler.model.problem import RunFailed
from reconciler.model.run import Outcome, RunEvent

UNREADABLE = "KR221"
NOT_WRITTEN = "KR720"


def journal_path(folder: Path, cluster: str, plan_id: str) -> Path:
    """Return where the journal of a plan's runs stands, beneath that folder."""
    return folder / "runs" / cluster / f"{plan_id}.jsonl"


class RunJournal:
    """An append-only journal file. `events` holds what was there when it was opened.

    A file that does not exist yet is made with the first event; an event that could not be written whole raises
    RunFailed, and is cut off again where that is possible.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events = read_journal(path) if path.exists() else ()

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start, oldest first."""
        return self._events

    def append(self, event: RunEvent, /) -> None:
        """Write one more event and wait until it is on disk."""
        try:
            is_new = not self.path.exists()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _append_line(self.path, event_text(event).encode() + b"\n")
            if is_new:
                sync_folder(self.path.parent)
        except OSError as error:
            raise RunFailed(
                f"{self.path}: the run journal cannot be written: {error.strerror}. Make room, or name another "
                "place with --journal, and apply the same plan again: it goes on where the cluster stands",
                code=NOT_WRITTEN,
            ) from None


def read_journal(path: str | Path) -> tuple[RunEvent, ...]:
    """Return the events of a journal, oldest first; a last line that a crash cut short is left out."""
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise invalid(UNREADABLE, f"{path}: the run journal cannot be read: {error.strerror}") from None
    events = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        event = _event(line)
        if event is not None:
            events.append(event)
        elif number < len(lines) and any(rest.strip() for rest in lines[number:]) and not _is_torn(line):
            raise invalid(UNREADABLE, f"{path}:{number}: this line of the run journal is not an event; was it edited?")
    return tuple(events)


def event_text(event: RunEvent) -> str:
    """Return the event's line, without its newline."""
    return canonical_json(
        {
            "time": event.time.isoformat(),
            "stage": event.stage,
            "step": event.step,
            "outcome": event.outcome.value,
            "detail": dict(event.detail),
        }
    )


def _append_line(path: Path, line: bytes) -> None:
    """Append a whole line and wait until it is on disk; what a full disk cut short is taken back."""
    with path.open("ab", buffering=0) as file:
        start = file.seek(0, os.SEEK_END)
        prefix = b"" if _ends_with_newline(path, start) else b"\n"
        try:
            _write_whole(file, prefix + line)
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(start)
            raise


def _write_whole(file: FileIO, content: bytes) -> None:
    while content:
        content = content[file.write(content) or 0 :]


def _ends_with_newline(path: Path, size: int) -> bool:
    """Whether the last line is whole; one that a crash tore is ended before the next."""
    if size == 0:
        return True
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"


def _event(line: bytes) -> RunEvent | None:
    """Return the event of a line, None where it is none."""
    try:
        found = json.loads(line)
        return RunEvent(
            datetime.fromisoformat(found["time"]),
            int(found["stage"]),
            str(found["step"]),
            Outcome(found["outcome"]),
            dict(found["detail"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _is_torn(line: bytes) -> bool:
    """Whether a line begins as an event does: a crash cut it, and a later run went on below."""
    return line.startswith(b'{"detail":') and not line.endswith(b"}")
