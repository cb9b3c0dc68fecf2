"""Reads bytes of a file or stdin, and replaces files whole or not at all."""

import errno
import gzip
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from reconciler.files.bounded import GZIP_MAGIC, MAX_BYTES, file_bytes, stdin_bytes, unpacked
from reconciler.files.paths import is_there
from reconciler.model.problem import InvalidInput, Problem, ReconcilerError

STDIN = "-"
_NO_FOLDER_SYNC = frozenset({errno.EACCES, errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOTSUP, errno.EPERM})


def invalid(code: str, message: str) -> InvalidInput:
    """Return an error of one problem that has no line of its own; the message names the file."""
    return InvalidInput([Problem(code, message)])


def display_name(source: str | Path) -> str:
    """Return what messages call that source."""
    return "stdin" if str(source) == STDIN else str(source)


def read_bytes(source: str | Path, what: str, code: str, most: int = MAX_BYTES) -> bytes:
    """Return a file's content, `-` being stdin; what is gzipped, by its first bytes, is unpacked.

    Raises InvalidInput for what cannot be read, for more than `most` bytes, packed or not, and for what is no file but
    might be read for ever: a device, a named pipe.
    """
    name = display_name(source)
    try:
        content = stdin_bytes(most) if str(source) == STDIN else file_bytes(Path(source), most)
        return unpacked(content, most) if content.startswith(GZIP_MAGIC) else content
    except FileNotFoundError:
        raise invalid(code, f"{name}: no such file, so there is no {what} to read; check the path") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise invalid(code, f"{name}: the {what} cannot be read: {reason}") from None


def packed_bytes(content: bytes) -> bytes:
    """Return the content gzipped: the same bytes for the same content, whenever and wherever."""
    return gzip.compress(content, compresslevel=6, mtime=0)


def write_atomically(path: Path, content: bytes, what: str, code: str) -> None:
    """Replace that file in one step: after a crash it is the old one or the new one, never half of either."""
    try:
        make_folder(path.parent)
        _replace(path, content)
    except OSError as error:
        raise ReconcilerError(f"{path}: the {what} cannot be written: {error.strerror}", code=code) from None


def _replace(path: Path, content: bytes) -> None:
    target = Path(os.path.realpath(path))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), _mode_of(target))
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)


def _mode_of(target: Path) -> int:
    """Return the mode of the file that is replaced or, for a new one, what the umask leaves."""
    with suppress(FileNotFoundError):
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def make_folder(folder: Path) -> None:
    """Make that folder and those above it, and make their names last: with one of them all beneath would go."""
    missing = [each for each in (folder, *folder.parents) if not is_there(each)]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_folder(each.parent)


def sync_folder(folder: Path) -> None:
    """Make names made or replaced in that folder last; a file system that cannot sync folders is left alone."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
