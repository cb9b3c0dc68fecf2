"""Replaces a result folder whole or not at all, and refuses one that another program wrote."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from reconciler.files.loads import REPORT
from reconciler.files.paths import is_file, is_folder, is_there
from reconciler.files.places import as_local, is_uri
from reconciler.files.raw import sync_folder
from reconciler.model.problem import ReconcilerError

NOT_OURS = "KR147"
UNWRITTEN = "KR148"
A_URI = "KR149"
LOADS_REPORT, TABLES_MARK = REPORT, "_balance"
"""Files that say that `loads`, or `balance`, wrote the folder, so that its next run may replace it."""


@contextmanager
def replaced_folder(out: Path, token: str) -> Iterator[Path]:
    """Yield a new folder beside `out` to write into; at the end it takes the place of `out`.

    Where the block fails, `out` is what it was. A folder that holds anything, but no file named `token` that says what
    wrote it, is refused: nothing is written over that was not made by the same verb.
    """
    target = out.absolute()
    refuse_foreign(target, token)
    mark = uuid4().hex[:8]
    new, old = (target.with_name(f".{target.name}.{word}-{mark}") for word in ("new", "old"))
    try:
        new.mkdir(parents=True)
        yield new
        _take_place(new, target, old)
    except OSError as error:
        raise ReconcilerError(f"{out}: the folder cannot be written: {error.strerror}", code=UNWRITTEN) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def refuse_foreign_at(place: str, token: str) -> None:
    """Refuse a path of this machine as `refuse_foreign` does; Spark looks later at a URI or a table."""
    local = as_local(place)
    if not is_uri(local):
        refuse_foreign(Path(local), token)


def refuse_uri(out: str) -> None:
    """Raise ReconcilerError for the URI of a file system: taken for a path, its scheme would name a folder here."""
    if is_uri(as_local(out)) or is_uri(out):
        message = f"{out}: is a URI, and samples are collected in a folder of this machine: name one by its path"
        raise ReconcilerError(message, code=A_URI)


def refuse_foreign(target: Path, token: str) -> None:
    """Raise ReconcilerError where that is a file, or a folder that holds something but no `token`."""
    if not is_there(target):
        return
    if not is_folder(target):
        raise ReconcilerError(f"{target}: is a file; name a folder to write to", code=NOT_OURS)
    if any(target.iterdir()) and not is_file(target / token):
        message = f"{target}: holds other things (it has no {token}): name an empty or a new folder"
        raise ReconcilerError(message, code=NOT_OURS)


def _take_place(new: Path, target: Path, old: Path) -> None:
    """Two renames: between them a crash leaves both folders whole, beside their place."""
    if is_there(target):
        target.rename(old)
    try:
        new.rename(target)
    except OSError:
        if is_there(old):
            old.rename(target)
        raise
    sync_folder(target.parent)
