"""Asks the file system about paths, and raises OSError if it does not answer.

pathlib takes such an error for a no: in its listings (`glob`, `rglob`) of folders that may not be read, and since
Python 3.14 in each question (`exists`, `is_dir`, `is_file`). The program would then say that a path does not exist.
"""

import fnmatch
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_PATTERN = frozenset("*?[")


def is_there(path: str | Path) -> bool:
    """Whether anything is at that path; a link counts as what it leads to."""
    return _mode(path) != 0


def is_folder(path: str | Path, *, if_unknown: bool | None = None) -> bool:
    """Whether a folder is there, or a link to one; `if_unknown` is the answer in place of an error."""
    try:
        return stat.S_ISDIR(_mode(path))
    except OSError:
        if if_unknown is None:
            raise
        return if_unknown


def is_file(path: str | Path) -> bool:
    """Whether a regular file is there, or a link to one."""
    return stat.S_ISREG(_mode(path))


def files_below(folder: str | Path, skipped: str = "") -> list[Path]:
    """Return the regular files in and below a folder, sorted; no link to a folder is followed.

    `skipped`: first letters of names that are passed over, with all that is below them.
    """
    files: list[Path] = []
    for above, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if name[0] not in skipped]
        files += (path for name in names if name[0] not in skipped and is_file(path := Path(above, name)))
    return sorted(files)


def expanded(folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the paths below a folder that have these names, which may be patterns; `**` is any number of folders.

    A path may come twice.
    """
    if not names:
        yield folder
        return
    first, *rest = names
    if not is_folder(folder):
        return
    if first == "**":
        for above, _folders, _files in os.walk(folder, onerror=_raise):
            yield from expanded(Path(above), rest)
    elif _PATTERN.intersection(first):
        for path in folder.iterdir():
            if fnmatch.fnmatchcase(path.name, first):
                yield from expanded(path, rest)
    elif is_there(folder / first):
        yield from expanded(folder / first, rest)


def _mode(path: str | Path) -> int:
    try:
        return Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL, which no path has
        return 0


def _raise(error: OSError) -> None:
    raise error
