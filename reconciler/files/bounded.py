"""Reads bytes of files: never more than was said, and never by waiting for what may not come."""

import errno
import io
import os
import stat
import sys
import zlib
from gzip import GzipFile
from pathlib import Path
from typing import BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
MAX_BYTES = 1 << 30
MAX_PROPERTIES_BYTES = MAX_SECRET_BYTES = 1 << 20
# A snapshot of 20,000 partitions packs to a 6th, to a 117th where all are empty and equal; zeros pack to a 1,029th.
MAX_PACKING = 500
_CHUNK = 1 << 20
_LOOKED_AT = 16 << 20
_KINDS = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket", stat.S_IFIFO: "a named pipe"}
_HANDED_OVER = ("/proc/", "/dev/fd/")


def file_bytes(path: Path, most: int = MAX_BYTES, *, is_link_followed: bool = True) -> bytes:
    """Return what is in that file, or in a pipe that the shell handed to this process, as `<(...)` does.

    Raises OSError, its `strerror` being fit for people, for anything else and for more than `most` bytes.
    """
    _refuse_what_is_no_file(path, path.stat())
    # Between the two looks it may have become a pipe, whose opening would wait for a writer, or a link.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if is_link_followed else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        _refuse_what_is_no_file(path, found)
        os.set_blocking(descriptor, True)
        if found.st_size > most:
            raise _too_large(most)
        return _bytes_of(file, most)


def stdin_bytes(most: int = MAX_BYTES) -> bytes:
    """Return all of stdin; OSError as in `file_bytes`."""
    return _bytes_of(sys.stdin.buffer, most)


def unpacked(content: bytes, most: int = MAX_BYTES) -> bytes:
    """Return what is gzipped there; OSError where it is damaged, or so much that it can only be meant to do harm."""
    source = io.BytesIO(content)
    found = bytearray()
    try:
        with GzipFile(fileobj=source) as packed:
            while (part := packed.read(_CHUNK)) and not _swells(len(found), source.tell(), most):
                found += part
    except (OSError, EOFError, zlib.error):
        raise OSError(errno.EINVAL, "it is gzipped, but damaged or cut short; write it again") from None
    if part or _swells(len(found), source.tell(), most):
        raise OSError(errno.EFBIG, f"it unpacks to more than {_size(len(found))}")
    return bytes(found)


def _swells(length: int, packed_length: int, most: int) -> bool:
    return length > min(most, max(_LOOKED_AT, MAX_PACKING * packed_length))


def _refuse_what_is_no_file(path: Path, found: os.stat_result) -> None:
    kind = stat.S_IFMT(found.st_mode)
    if kind in _KINDS and not (kind == stat.S_IFIFO and os.path.realpath(path).startswith(_HANDED_OVER)):
        raise OSError(errno.EINVAL, f"it is {_KINDS[kind]}, not a file")


def _bytes_of(file: BinaryIO, most: int) -> bytes:
    """Return what is there; of a stream that is no text, or says the same for ever, only a beginning is kept."""
    parts: list[bytes] = []
    length = 0
    while part := file.read(_CHUNK):
        parts.append(part)
        length += len(part)
        if length > most:
            raise _too_large(most)
        if length > _LOOKED_AT and not parts[0].startswith(GZIP_MAGIC):
            if b"\0" in part:
                raise OSError(errno.EINVAL, "it is no text")
            if parts[0] == parts[1] == part:
                raise OSError(errno.EINVAL, "it says the same again and again")
    return b"".join(parts)


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it has more than {_size(most)}")


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count:,} bytes"
