"""Marks a line of a file wherever it moves: GitHub's `primaryLocationLineHash`, and where the line ends."""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from reconciler.files.paths import is_file
from reconciler.files.strict_yaml import MAX_BYTES

_WINDOW = 100
_FACTOR = 37
_WORD = 1 << 64
_END_OF_FILE = "\uffff"
_UNIT_BYTES = 2


class LineMark(NamedTuple):
    """The column behind a line's last character, and the hash of the line and what follows it."""

    end_column: int
    hash: str


def line_marks(path: Path, lines: Collection[int]) -> Mapping[int, LineMark]:
    """Return the marks of those lines, as far as the file has them; nothing for a file that cannot be read.

    The hash is the one that `github/codeql-action` (src/fingerprints.ts) computes and compares: over the 100 UTF-16
    units from the line's start, blanks left out, line ends as one; behind the colon how often it occurred so far.
    """
    try:
        if not is_file(path) or path.stat().st_size > MAX_BYTES:
            return {}
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return {}
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    ends = [len(line.rstrip()) + 1 for line in text.split("\n")]
    hashes = _hashes(text, lines)
    return {number: LineMark(ends[number - 1], hashes[number]) for number in sorted(lines) if number in hashes}


def _hashes(text: str, lines: Collection[int]) -> Mapping[int, str]:
    text = text.replace(" ", "").replace("\t", "") + _END_OF_FILE
    units = text.encode("utf-16-le")
    seen: Counter[bytes] = Counter()
    found = {}
    start = 0
    for number, line in enumerate(text.split("\n")[: max(lines, default=0)], start=1):
        window = units[start : start + _WINDOW * _UNIT_BYTES]
        seen[window] += 1
        if number in lines:
            found[number] = f"{_hash(window):x}:{seen[window]}"
        start += len(f"{line}\n".encode("utf-16-le"))
    return found


def _hash(window: bytes) -> int:
    value = 0
    for position in range(0, len(window), _UNIT_BYTES):
        value = (value * _FACTOR + int.from_bytes(window[position : position + _UNIT_BYTES], "little")) % _WORD
    return value * pow(_FACTOR, _WINDOW - len(window) // _UNIT_BYTES, _WORD) % _WORD
