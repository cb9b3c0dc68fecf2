"""A file layer that keeps every write, fsync, rename and folder fsync, and every state that a power loss can leave.

What was not synced may be on disk or not, one operation without the other; the last write may be torn at any byte, or
be there in its length alone, as zeros. A file's fsync keeps its content, a folder's fsync the names in it: neither the
other (ALICE, OSDI 2014).
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from itertools import combinations
from pathlib import Path

import pytest

MOST_UNSYNCED = 6
Files = dict[str, bytes]
"""What is found after the power came back: paths beneath the root, and their content."""


@dataclass(frozen=True, slots=True)
class Written:
    """Bytes of a file from an offset on."""

    file: int
    offset: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A file's new, smaller size."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Named:
    """A name in a folder that is given to a file, or to a folder (`file` None); `instead_of` is the name it had."""

    folder: str
    name: str
    file: int | None
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A name that is taken out of a folder."""

    folder: str
    name: str


@dataclass(frozen=True, slots=True)
class Synced:
    """An fsync of a file's content, or of a folder's names."""

    file: int | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The caller was told that what it asked for so far is kept."""


Operation = Written | Cut | Named | Unnamed | Synced | Told


@dataclass(slots=True)
class Disk:
    """The operations beneath a root, in order."""

    root: Path
    log: list[Operation] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    _made: int = 0

    def told(self) -> None:
        """Note that a call has returned."""
        self.log.append(Told())

    def number(self, handle: int) -> int:
        """Return our own number of an open file."""
        return self._numbers[os.fstat(handle).st_ino]

    def found(self, path: Path) -> None:
        """Note a file that has just been made."""
        self._made += 1
        self._numbers[path.stat().st_ino] = self._made
        self.log.append(Named(self.at(path.parent), path.name, self._made))

    def at(self, path: str | Path) -> str:
        """Return the path beneath the root."""
        return os.path.relpath(path, self.root)


class _File(FileIO):
    """A file whose writes and cuts are kept."""

    disk: Disk

    def write(self, content: object) -> int:
        start = os.fstat(self.fileno()).st_size if "a" in self.mode else self.tell()
        written = super().write(content)  # type: ignore[arg-type] # bytes, as FileIO takes them
        assert isinstance(content, bytes)
        self.disk.log.append(Written(self.disk.number(self.fileno()), start, content[:written]))
        return written

    def truncate(self, size: int | None = None) -> int:
        cut = super().truncate(size)
        self.disk.log.append(Cut(self.disk.number(self.fileno()), cut))
        return cut


@contextmanager
def recorded(root: Path, before: Files | None = None) -> Iterator[Disk]:
    """Keep what is done to files beneath that folder, by whichever of Python's ways our own code takes.

    `before` are the files that stand there already.
    """
    disk = Disk(root)
    for number, path in enumerate(before or {}, start=1):
        disk._numbers[(root / path).stat().st_ino] = -number
    opened, fsync, mkdir, replaced = Path.open, os.fsync, os.mkdir, os.replace
    unlinked, mkstemp = os.unlink, tempfile.mkstemp

    class File(_File):
        pass

    File.disk = disk

    def open_(path: Path, mode: str = "r", buffering: int = -1, **options: object) -> object:
        if buffering != 0:
            return opened(path, mode, buffering, **options)  # type: ignore[call-overload]
        is_new = not path.exists()
        file = File(path, mode.replace("b", ""))
        if is_new:
            disk.found(path)
        return file

    def mkdir_(path: str | Path, mode: int = 0o777) -> None:
        mkdir(path, mode)
        disk.log.append(Named(disk.at(Path(path).parent), Path(path).name, None))

    def mkstemp_(**options: str) -> tuple[int, str]:
        handle, name = mkstemp(**options)  # type: ignore[call-overload]
        disk.found(Path(name))
        return handle, name

    def fsync_(handle: int) -> None:
        fsync(handle)
        path = Path(f"/proc/self/fd/{handle}").resolve()
        disk.log.append(Synced(folder=disk.at(path)) if path.is_dir() else Synced(disk.number(handle)))

    def replace_(source: str | Path, target: str | Path) -> None:
        number = disk._numbers[Path(source).stat().st_ino]
        replaced(source, target)
        disk.log.append(Named(disk.at(Path(target).parent), Path(target).name, number, Path(source).name))

    def unlink_(path: str | Path) -> None:
        unlinked(path)
        disk.log.append(Unnamed(disk.at(Path(path).parent), Path(path).name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", open_)
        patch.setattr(os, "fsync", fsync_)
        patch.setattr(os, "mkdir", mkdir_)
        patch.setattr(os, "replace", replace_)
        patch.setattr(os, "unlink", unlink_)
        patch.setattr(os, "fdopen", File)
        patch.setattr(tempfile, "mkstemp", mkstemp_)
        yield disk


@dataclass(frozen=True, slots=True)
class State:
    """One state after a power loss: the files, how many calls had returned, and how the state came about."""

    files: Files
    told: int
    how: str


def states_after_power_loss(log: Sequence[Operation], before: Files) -> Iterator[State]:
    """Yield every state that a power loss after each operation can leave, each one once for that operation."""
    for count in range(len(log) + 1):
        done = log[:count]
        told = sum(isinstance(operation, Told) for operation in done)
        unsynced = _unsynced(done)
        assert len(unsynced) <= MOST_UNSYNCED, f"{len(unsynced)} operations at once are not synced"
        seen = set()
        for size in range(len(unsynced) + 1):
            for kept in combinations(unsynced, size):
                lost = set(unsynced) - set(kept)
                for how, operations in _torn(done, lost, unsynced):
                    files = _files(operations, before)
                    key = tuple(sorted(files.items()))
                    if key not in seen:
                        seen.add(key)
                        yield State(files, told, f"after {count} operations, without {sorted(lost)}{how}")


def _unsynced(done: Sequence[Operation]) -> list[int]:
    """Return the positions of what no later fsync has made last."""
    found: list[int] = []
    for position, operation in enumerate(done):
        match operation:
            case Synced():
                found = [each for each in found if not _is_kept_by(done[each], operation)]
            case Told():
                pass
            case _:
                found.append(position)
    return found


def _is_kept_by(operation: Operation, sync: Synced) -> bool:
    match operation:
        case Written() | Cut():
            return operation.file == sync.file
        case Named() | Unnamed():
            return operation.folder == sync.folder
        case _:
            return False


def _torn(done: Sequence[Operation], lost: set[int], unsynced: Sequence[int]) -> Iterator[tuple[str, list[Operation]]]:
    """Yield the operations that reached the disk: the last unsynced write whole, torn at each byte, or as zeros."""
    kept = [(position, operation) for position, operation in enumerate(done) if position not in lost]
    yield "", [operation for _, operation in kept]
    writes = [position for position, operation in kept if isinstance(operation, Written) and position in unsynced]
    if not writes:
        return
    last = done[writes[-1]]
    assert isinstance(last, Written)
    for length in range(len(last.content)):
        torn = Written(last.file, last.offset, last.content[:length])
        yield f", torn at byte {length}", [torn if position == writes[-1] else each for position, each in kept]
    zeros = Written(last.file, last.offset, bytes(len(last.content)))
    yield ", as zeros", [zeros if position == writes[-1] else each for position, each in kept]


def _files(operations: Sequence[Operation], before: Files) -> Files:
    names: dict[str, int | None] = {path: -number for number, path in enumerate(before, start=1)}
    contents = {-number: bytearray(content) for number, content in enumerate(before.values(), start=1)}
    for operation in operations:
        match operation:
            case Written():
                content = contents.setdefault(operation.file, bytearray())
                content.extend(bytes(max(0, operation.offset - len(content))))
                content[operation.offset : operation.offset + len(operation.content)] = operation.content
            case Cut():
                content = contents.setdefault(operation.file, bytearray())
                del content[operation.size :]
            case Named():
                names[os.path.normpath(f"{operation.folder}/{operation.name}")] = operation.file
                if operation.instead_of is not None:
                    names.pop(os.path.normpath(f"{operation.folder}/{operation.instead_of}"), None)
            case Unnamed():
                names.pop(os.path.normpath(f"{operation.folder}/{operation.name}"), None)
            case _:
                pass
    return {
        path: bytes(contents.get(number, b""))
        for path, number in names.items()
        if number is not None and _is_reachable(path, names, before)
    }


def _is_reachable(path: str, names: dict[str, int | None], before: Files) -> bool:
    """Whether every folder above is there: one that was made and not kept takes all beneath with it."""
    folders = [str(parent) for parent in Path(path).parents if str(parent) != "."]
    stood = {str(parent) for known in before for parent in Path(known).parents}
    return all(folder in names or folder in stood for folder in folders)


def put(files: Files, root: Path) -> None:
    """Make these files beneath that folder."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


Check = Callable[[State], str | None]
"""Returns what is wrong with a state, None for nothing."""
