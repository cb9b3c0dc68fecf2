"""Keeps a plan's run journal: a JSON line an event, appended durably, read even where a crash tore the last line."""

import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.files.bounded import file_bytes
from reconciler.files.json_text import canonical_json
from reconciler.files.raw import invalid, make_folder, sync_folder
from reconciler.model.codec import Malformed, from_json, to_json
from reconciler.model.run import RunEvent, RunFailed

UNREADABLE = "KR221"
NOT_WRITTEN = "KR721"
_FIRST_BYTES = b'{"detail":'
"""An event's line begins so: its keys are sorted."""
_BLANK = b"\0\t\n\r "
_NOT_THERE = (FileNotFoundError, NotADirectoryError)


def journal_path(folder: Path, cluster: str, plan_id: str) -> Path:
    """Return where the journal of a plan's runs stands, beneath that folder."""
    return folder / "runs" / cluster / f"{plan_id}.jsonl"


class RunJournal:
    """One plan's events in an append-only journal file, which may hold other plans', of other clusters, too.

    `events` holds what was there when it was opened. A file that does not exist yet is made with the first event; an
    event that could not be written whole raises RunFailed, and is cut off again, then or before the next event.
    """

    def __init__(self, path: Path, plan: str) -> None:
        self.path = path
        self.plan = plan
        self._events: tuple[RunEvent, ...] = ()
        self._end = 0
        # Of a file that stands there already, nobody knows whether whoever made it lived to sync its folder.
        self._is_name_kept = False
        self.read_again()

    @property
    def events(self) -> Sequence[RunEvent]:
        """Return the events that were there at the start, or when it was read again, oldest first."""
        return self._events

    def read_again(self) -> None:
        """Take into `events` what stands there now: another process may have written since."""
        with suppress(*_NOT_THERE):
            events, self._end = _read(_bytes(self.path), self.path)
            self._events = _of(self.plan, events)

    def append(self, event: RunEvent, /) -> None:
        """Write one more event and wait until it is on disk."""
        try:
            make_folder(self.path.parent)
            # A surrogate that stands alone becomes its JSON escape.
            line = event_text(replace(event, plan=self.plan))
            self._append_line(line.encode(errors="backslashreplace") + b"\n")
            if not self._is_name_kept:
                sync_folder(self.path.parent)
                self._is_name_kept = True
        except OSError as error:
            raise RunFailed(
                f"{self.path}: the run journal cannot be written: {error.strerror or error}. Make room, or name "
                "another place with --journal",
                code=NOT_WRITTEN,
            ) from None

    def _append_line(self, line: bytes) -> None:
        """Append a whole line behind the last whole event; what a full disk cut short is taken back."""
        with self.path.open("a+b", buffering=0) as file:
            start = self._cut_torn_tail(file)
            try:
                _write_whole(file, line)
                os.fsync(file.fileno())
            except OSError:
                _taken_back(file, start)
                raise
            self._end = start + len(line)

    def _cut_torn_tail(self, file: FileIO) -> int:
        """Return where the next line begins; what a crash left there of an event goes first."""
        size = file.seek(0, os.SEEK_END)
        if size == self._end:
            return size
        known = self._end if self._end < size else 0
        file.seek(known)
        _, sound = (_sound if known else _read)(file.readall(), self.path)
        if known + sound < size:
            file.truncate(known + sound)
        return known + sound


def read_journal(path: str | Path, plan: str | None = None) -> tuple[RunEvent, ...]:
    """Return the events of a plan, or of all, oldest first; a last line that a crash cut short is left out."""
    path = Path(path)
    try:
        events, _ = _read(_bytes(path), path)
    except _NOT_THERE as error:
        raise invalid(UNREADABLE, f"{path}: the run journal cannot be read: {error.strerror}") from None
    return events if plan is None else _of(plan, events)


def _of(plan: str, events: Sequence[RunEvent]) -> tuple[RunEvent, ...]:
    return tuple(event for event in events if event.plan == plan)


def event_text(event: RunEvent) -> str:
    """Return the event's line, without its newline; `sum` is what a damaged line is known by."""
    fields: dict[str, Any] = to_json(event)
    return canonical_json(fields | {"sum": _checksum(fields)})


class _Line(NamedTuple):
    """One line that is not blank: its number, its event if it is one, and where it ends in the file."""

    number: int
    event: RunEvent | None
    end: int


def _bytes(path: Path) -> bytes:
    """Return what is in the file; one of `_NOT_THERE` where there is none."""
    try:
        return file_bytes(path)
    except _NOT_THERE:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise invalid(UNREADABLE, f"{path}: the run journal cannot be read: {reason}") from None


def _read(content: bytes, path: Path) -> tuple[tuple[RunEvent, ...], int]:
    """Return the events of a whole file and where the last one ends; a file of something else is refused.

    What was torn off is cut off, so nothing may be taken for that but what a crash can leave of a first event.
    """
    if not _may_be_torn(content) and all(line.event is None for line in _lines(content)):
        raise invalid(
            UNREADABLE,
            f"{path}: no line of this file is an event of a run. If it is something else, name another file with "
            "--journal; if it was a run journal, it is damaged. Move the file away and run again: what was done is "
            "read from the cluster",
        )
    return _sound(content, path)


def _may_be_torn(content: bytes) -> bool:
    """Whether this may be part of an event's line, or the zeros of a file that was made longer and not written."""
    return not content.strip(_BLANK) or content.startswith(_FIRST_BYTES) or _FIRST_BYTES.startswith(content)


def _sound(content: bytes, path: Path) -> tuple[tuple[RunEvent, ...], int]:
    """Return the events and where the last one ends; only the last line may be torn."""
    lines = list(_lines(content))
    events = [line.event for line in lines if line.event is not None]
    for line in lines[:-1]:
        if line.event is None:
            raise invalid(
                UNREADABLE,
                f"{path}:{line.number}:1: this line of the run journal is damaged. Move the file away and run again: "
                "what was done is read from the cluster",
            )
    end = max((line.end for line in lines if line.event is not None), default=0)
    return tuple(events), end


def _lines(content: bytes) -> Iterator[_Line]:
    end = 0
    for number, line in enumerate(BytesIO(content), start=1):
        end += len(line)
        if line.strip():
            yield _Line(number, _event(line) if line.endswith(b"\n") else None, end)


def _taken_back(file: FileIO, start: int) -> None:
    """Cut what was written of a line; where that fails too, the next append does it."""
    with suppress(OSError):
        file.truncate(start)


def _write_whole(file: FileIO, content: bytes) -> None:
    while content:
        content = content[file.write(content) or 0 :]


def _event(line: bytes) -> RunEvent | None:
    """Return the event of a line, None where it is none."""
    try:
        fields: dict[str, Any] = json.loads(line)
        if fields.pop("sum") != _checksum(fields):
            return None
        event = from_json(RunEvent, fields)
    except (Malformed, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    # A moment without its zone cannot be compared with any other.
    return event if event.time.tzinfo is not None else None


def _checksum(fields: dict[str, Any]) -> str:
    return f"{zlib.crc32(canonical_json(fields).encode(errors='backslashreplace')):08x}"
