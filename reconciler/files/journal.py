"""A plan's run journal: one JSON line an event, appended durably, read back even where a crash tore the last line."""

import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconciler.files.checked import Fields, Malformed
from reconciler.files.json_text import canonical_json
from reconciler.files.raw import invalid, sync_folder
from reconciler.model.problem import RunFailed
from reconciler.model.run import Outcome, RunEvent

UNREADABLE = "KR221"
NOT_WRITTEN = "KR720"
_OUTCOMES = {outcome.value: outcome for outcome in Outcome}


def journal_path(folder: Path, cluster: str, plan_id: str) -> Path:
    """Return where the journal of a plan's runs stands, beneath that folder."""
    return folder / "runs" / cluster / f"{plan_id}.jsonl"


class RunJournal:
    """An append-only journal file. `events` holds what was there when it was opened.

    The file is made with its first event. An event that cannot be written raises RunFailed and leaves no half a line;
    half a line that a crash left is cut off before the next event.
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
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _append_line(self.path, event_text(event).encode() + b"\n")
        except OSError as error:
            raise RunFailed(
                f"{self.path}: the run journal cannot be written: {error.strerror}. Make room, or name another "
                "place with --journal, and apply the same plan again: it goes on from where the cluster stands",
                code=NOT_WRITTEN,
            ) from None


def read_journal(path: str | Path) -> tuple[RunEvent, ...]:
    """Return the events of a journal, oldest first; a last line that a crash cut short is left out."""
    try:
        *lines, tail = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise invalid(UNREADABLE, f"{path}: the run journal cannot be read: {error.strerror}") from None
    events = []
    for number, line in enumerate(lines, start=1):
        event = _event(line)
        if event is None:
            raise invalid(
                UNREADABLE,
                f"{path}:{number}: this line of the run journal is not an event as it was written; "
                "move the file away and apply the same plan again: the cluster tells what is done",
            )
        events.append(event)
    last = _event(tail)
    return (*events, last) if last is not None else tuple(events)


def event_text(event: RunEvent) -> str:
    """Return the event's line, without its newline; `check` is a checksum of the rest."""
    fields = {
        "time": event.time.astimezone(UTC).isoformat(),
        "stage": event.stage,
        "step": event.step,
        "outcome": event.outcome.value,
        "detail": _plain(event.detail),
    }
    return canonical_json({**fields, "check": _checksum(fields)})


def _checksum(fields: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(canonical_json(fields).encode()):08x}"


def _plain(value: object) -> Any:
    """Return the value as JSON can hold it: text keys, lists, and text for all that JSON has no word for."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=canonical_json)
    return [_plain(item) for item in value] if isinstance(value, Iterable) else str(value)


def _append_line(path: Path, line: bytes) -> None:
    is_new = not path.exists()
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        end = _cut_torn_line(handle)
        try:
            _write_all(handle, line, end)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, end)
            raise
    finally:
        os.close(handle)
    if is_new:
        sync_folder(path.parent)


def _cut_torn_line(handle: int) -> int:
    """Make the file end with a whole line and return its length; a last event that lacks only its newline gets it."""
    size = os.fstat(handle).st_size
    if not size or os.pread(handle, 1, size - 1) == b"\n":
        return size
    content = os.pread(handle, size, 0)
    end = content.rfind(b"\n") + 1
    if _event(content[end:]) is not None:
        os.pwrite(handle, b"\n", size)
        return size + 1
    os.ftruncate(handle, end)
    return end


def _write_all(handle: int, line: bytes, offset: int) -> None:
    written = 0
    while written < len(line):
        written += os.pwrite(handle, line[written:], offset + written)
    os.fsync(handle)


def _event(line: bytes) -> RunEvent | None:
    """Return the event of a line, None for a line that is not one or is not as it was written."""
    try:
        fields = Fields(json.loads(line), "")
        check = fields.value.pop("check", None)
        if check != _checksum(fields.value):
            return None
        return RunEvent(
            time=datetime.fromisoformat(fields.text("time")),
            stage=fields.integer("stage"),
            step=fields.text("step"),
            outcome=_OUTCOMES[fields.text("outcome")],
            detail=fields.member("detail").value,
        )
    except (ValueError, KeyError, RecursionError, Malformed):
        return None
