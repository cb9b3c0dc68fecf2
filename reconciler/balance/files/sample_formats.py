"""Looks at how files of samples begin: compressed text, Parquet, CSV with semicolons.

Spark needs the result to read a file, and a user to know why a file could not be read.
"""

import csv
import gzip
import io
import re
from pathlib import Path

from reconciler.model.problem import first_line

NOT_SAMPLES = "KR144"
DAMAGED = "KR145"
WRONG_COLUMNS = "KR146"
NAMELESS = "KR441"
_HEAD_BYTES = 1 << 16
COMPRESSED = (".gz", ".zst")


class Wrong(ValueError):
    """A file is not what it should be: a code and a sentence without the file's name."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def plain_name(name: str) -> str:
    """Return a file's name in small letters, without what says how it is compressed."""
    plain = name.lower()
    for ending in COMPRESSED:
        plain = plain.removesuffix(ending)
    return plain


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file's text, also of one that is compressed."""
    try:
        if path.suffix.lower() == ".zst":
            return _zst_head(path)
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError, ValueError) as error:
        raise Wrong(DAMAGED, f"cannot be read: {first_line(error)}") from None


def _zst_head(path: Path) -> bytes:
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise _without_pyarrow("A .zst file") from None
    with pa.input_stream(str(path), compression="zstd") as stream:
        return bytes(stream.read(_HEAD_BYTES))


def _without_pyarrow(what: str) -> Wrong:
    return Wrong(NOT_SAMPLES, f"{what} needs pyarrow, which is not installed: pip install 'WHEEL[spark]'")


def parquet_columns(path: Path) -> list[tuple[str, str]]:
    """Return the columns of a Parquet file and their types as Arrow names them."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise _without_pyarrow("Parquet") from None
    try:
        schema = parquet.read_schema(path)
    except (ArrowException, OSError, ValueError) as error:
        raise Wrong(DAMAGED, f"is no Parquet file, or a damaged one: {first_line(error)}") from None
    return [(field.name, str(field.type)) for field in schema]


def csv_fields(head: str) -> tuple[list[str], str]:
    """Return the names in a CSV's first line and what separates them: a comma or, where it has none, a semicolon."""
    text = head.removeprefix("\ufeff")
    first = text.partition("\n")[0]
    separator = ";" if ";" in first and "," not in first else ","
    return [name.strip() for name in next(csv.reader(io.StringIO(text), delimiter=separator), [])], separator


_MEASURE = re.compile(r"(?<![a-z])(bytes_in|bytes_out|messages_in|size_bytes|end_offset)(?![a-z])")


def nameless_measure(head: str, name: str, given: str | None) -> str:
    """Return what a Prometheus answer's series measure where they have no name: what was given, or the file's name.

    Series with names need none of it: the empty text.
    """
    labels = re.search(r'"metric"\s*:\s*({[^{}]*})', head)
    if labels is None or '"__name__"' in labels[1]:
        return ""
    if given is not None:
        return given
    named = sorted({found[0] for found in _MEASURE.finditer(name.lower())})
    if len(named) == 1:
        return named[0]
    raise Wrong(
        NAMELESS,
        "has series without a name, as rate() and sum() answer, and does not say what they measure: give --measure, or "
        "let the file's name hold one of bytes_in, bytes_out, messages_in, size_bytes, end_offset",
    )
