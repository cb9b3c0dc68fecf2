"""Finds the files that a path of samples holds, and of what kind each is; tells every problem at once.

Files are looked at here, and read by Spark.
"""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

from reconciler.model.problem import InvalidInput, Problem

NO_FILE = "KR140"
NOT_SAMPLES = "KR144"
DAMAGED = "KR145"
WRONG_COLUMNS = "KR146"
KEYS = ("cluster", "topic", "partition")
RATES = ("bytes_in", "bytes_out", "messages_in")
SAMPLE_COLUMNS = {
    "ts": "timestamp",
    "cluster": "string",
    "topic": "string",
    "partition": "int32",
    **dict.fromkeys(RATES, "float64"),
    "size_bytes": "int64",
    "end_offset": "int64",
}
"""One row for each cluster, topic, partition and moment, with Arrow's types; a rate is per second, null is unknown.

`size_bytes` is the leader's log, else the largest replica's; `end_offset` the log end offset. `collect` writes these
two and leaves the rates null: `loads` makes them from growth."""
REPLICA_COLUMNS = {
    "ts": "timestamp",
    "cluster": "string",
    "broker": "int32",
    "log_dir": "string",
    "topic": "string",
    "partition": "int32",
    "size_bytes": "int64",
    "offset_lag": "int64",
    "is_future": "bool_",
}
"""One row for each replica and moment, which `collect` writes beside the samples: what log dirs hold.

`is_future`: the copy that a move between log dirs of one broker is filling."""
BROKER_COLUMNS = {
    "ts": "timestamp",
    "cluster": "string",
    "broker": "int32",
    "bytes_in": "float64",
    "bytes_out": "float64",
    "replication_bytes_in": "float64",
    "cpu": "float64",
    "produce_ms": "float64",
    "fetch_consumer_ms": "float64",
    "fetch_follower_ms": "float64",
    "log_flush_ms": "float64",
}
"""One row for each broker and moment, which `collect` writes beside the samples where exporters tell it.

Rates are per second, `cpu` is a share of the machine; the last four are the 99.9th percentile, else the 99th, in
milliseconds. Null is unknown."""
NEEDED = ("ts", "topic", "partition")
MEASURES = (*RATES, "size_bytes", "end_offset")
REPLICA_ONLY = ("broker", "log_dir", "offset_lag", "is_future")
COLUMNS = (*NEEDED, "cluster", *MEASURES)
# What no replica sample has: a file with one of them holds samples of partitions, whatever other columns it has.
_OF_PARTITIONS = frozenset(MEASURES) - {"size_bytes"}
_HEAD_BYTES = 1 << 16
_TIMES = ("timestamp", "string", "large_string", "int")
_NUMBERS = ("int", "uint", "float", "double", "decimal32", "decimal64", "decimal128", "string", "large_string")
_TEXTS = ("string", "large_string", "dictionary")
_PATTERN = frozenset("*?[]{}\\")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Kind(StrEnum):
    """What a file holds."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON_LINES = "json lines"
    PROMETHEUS = "Prometheus export"
    SNAPSHOT = "snapshot"


_TABLES = (Kind.PARQUET, Kind.CSV, Kind.JSON_LINES)


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One file of samples, with an absolute path or a URI.

    `columns` are its columns and their types as Arrow names them, in the file's order; all are texts in CSV and JSON.
    `root`: the path that was given, below which folders `name=value` are columns too, the `folders`.
    """

    path: str
    kind: Kind
    columns: tuple[tuple[str, str], ...] = ()
    root: str = ""
    folders: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """The columns by name, those of folders included."""
        return frozenset((*dict(self.columns), *self.folders))

    @property
    def is_uri(self) -> bool:
        """Whether it is named by a URI, whose patterns are Hadoop's, and nobody has looked at it."""
        return _URI.match(self.path) is not None

    @property
    def may_stand_alone(self) -> bool:
        """Whether its samples may well have all their rates, so that none has to be made from growth."""
        return self.kind in _TABLES and not self.has_replicas and (not self.columns or "bytes_in" in self.names)

    @property
    def has_messages(self) -> bool:
        """Whether its samples may well tell the messages that come in."""
        return not self.columns or "messages_in" in self.names

    @property
    def has_replicas(self) -> bool:
        """Whether it holds replica samples: what log dirs of brokers hold. Samples with rates are a partition's."""
        return "broker" in self.names and self.names.isdisjoint(_OF_PARTITIONS)


@dataclass(frozen=True, slots=True)
class Found:
    """The files of samples in the order of their paths, and notes on what was passed over."""

    files: tuple[SampleFile, ...]
    notes: tuple[str, ...] = ()


class _Wrong(ValueError):
    """A file is not what it should be: a code and a sentence without the file's name."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


def find_sample_files(paths: Iterable[str]) -> Found:
    """Return every file of samples at and below the paths; a URI is passed on by its name.

    Raises InvalidInput with one problem for each file that is missing, damaged, or has not the right columns.
    """
    files: dict[str, SampleFile] = {}
    notes: list[str] = []
    problems: list[Problem] = []
    for given in paths:
        if _URI.match(given):
            files.setdefault(given, SampleFile(given, _kind_by_name(given) or Kind.PARQUET, root=given))
            continue
        found, passed_over = _below(Path(given))
        if not found:
            problems.append(Problem(NO_FILE, _nothing_there(given)))
        notes.extend(f"{path}: not a kind of file that holds samples; passed over" for path in passed_over)
        for path in found:
            try:
                files.setdefault(str(path), _looked_at(path, Path(given).absolute()))
            except _Wrong as wrong:
                problems.append(Problem(wrong.code, f"{path}: {wrong}"))
    if problems:
        raise InvalidInput(problems)
    notes.extend(_unused_columns(files.values()))
    return Found(tuple(files[path] for path in sorted(files)), tuple(notes))


def _below(given: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to read and those to pass over; hidden ones, and Spark's own `_names`, do not show."""
    if given.is_file():
        return [given.absolute()], []
    base = given.absolute()
    shown = [
        path
        for path in sorted(base.rglob("*"))
        if path.is_file() and not any(part[0] in "._" for part in path.relative_to(base).parts)
    ]
    wanted = [path for path in shown if _kind_by_name(path.name)]
    return wanted, [path for path in shown if not _kind_by_name(path.name)]


def _nothing_there(given: str) -> str:
    if Path(given).exists():
        return f"{given}: holds no samples: no .parquet, .csv, .jsonl or .json file is in it"
    return f"{given}: no such file or folder, so there are no samples to read; check the path"


def _kind_by_name(name: str) -> Kind | None:
    """Return the kind that the name says; `.json` may be three of them."""
    plain = name.lower().removesuffix(".gz")
    if plain.endswith((".parquet", ".pq")):
        return Kind.PARQUET
    if plain.endswith(".csv"):
        return Kind.CSV
    return Kind.JSON_LINES if plain.endswith((".jsonl", ".ndjson", ".json")) else None


def _looked_at(path: Path, root: Path) -> SampleFile:
    kind = _kind_by_name(path.name)
    _refuse_names_of_sparks(path)
    if kind is None:
        raise _Wrong(NOT_SAMPLES, "is not a .parquet, .csv, .jsonl or .json file, so its samples cannot be read")
    columns: Iterable[tuple[str, str]] = ()
    if kind is Kind.PARQUET:
        columns = _parquet_columns(path)
    elif kind is Kind.CSV:
        columns = ((name, "string") for name in _csv_header(path))
    else:
        kind, columns = _json_kind(path)
    base = root if root.is_dir() else root.parent
    folders = tuple(part.partition("=")[0] for part in path.relative_to(base).parts[:-1] if "=" in part)
    file = SampleFile(str(path), kind, tuple(columns), str(base), folders)
    if kind in {Kind.PARQUET, Kind.CSV, Kind.JSON_LINES}:
        _check_columns(file)
    return file


def _refuse_names_of_sparks(path: Path) -> None:
    """Refuse what Spark would read something else for, or nothing at all."""
    if path.name[0] in "._":
        raise _Wrong(NOT_SAMPLES, f"begins with {path.name[0]}, and Spark passes over such names: rename it")
    if found := sorted(_PATTERN.intersection(str(path))):
        raise _Wrong(NOT_SAMPLES, f"has {' '.join(found)} in its path, which is a pattern to Spark: rename it")


def _parquet_columns(path: Path) -> list[tuple[str, str]]:
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise _Wrong(
            NOT_SAMPLES, "Parquet needs pyarrow, which is not installed: pip install 'kafka-reconciler[spark]'"
        ) from None
    try:
        schema = parquet.read_schema(path)
    except (ArrowException, OSError, ValueError) as error:
        raise _Wrong(DAMAGED, f"is no Parquet file, or a damaged one: {_first_line(error)}") from None
    # A column in which nothing was ever known has no type: it is as if it were not there.
    columns = [(field.name, str(field.type)) for field in schema if str(field.type) != "null"]
    for name in (*COLUMNS, *REPLICA_ONLY):
        _refuse_twice(name, [found for found, _ in columns if found.lower() == name])
    return columns


def _csv_header(path: Path) -> list[str]:
    head = _head(path).decode("utf-8", "replace").removeprefix("\ufeff")
    header = [name.strip() for name in next(csv.reader(io.StringIO(head)), [])]
    if not header:
        raise _Wrong(DAMAGED, f"is empty; its first line must name the columns, such as {','.join(COLUMNS)}")
    for name in (*COLUMNS, *REPLICA_ONLY):
        _refuse_twice(name, [found for found in header if found == name])
    return header


def _refuse_twice(name: str, spelt: list[str]) -> None:
    if len(spelt) > 1:
        others = f", as {' and as '.join(spelt)}: Spark takes them for one" if len(set(spelt)) > 1 else ""
        raise _Wrong(WRONG_COLUMNS, f"names the column {name} twice{others}")


def _json_kind(path: Path) -> tuple[Kind, list[tuple[str, str]]]:
    """Tell lines of samples, a Prometheus answer and a snapshot apart by what they begin with."""
    head = _head(path).decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    first = head.partition("\n")[0]
    try:
        line = json.loads(first)
    except ValueError:
        line = None
    if isinstance(line, dict) and not {"data", "topics", "brokers", "clusterId"} & line.keys():
        return Kind.JSON_LINES, [(name, "string") for name in line]
    if re.search(r'"(resultType|metric|errorType)"\s*:', head):
        _refuse_other_answers(head)
        return Kind.PROMETHEUS, []
    if re.search(r'"(formatVersion|clusterId|brokers)"\s*:', head):
        return Kind.SNAPSHOT, []
    raise _Wrong(NOT_SAMPLES, "is neither lines of JSON samples, nor a Prometheus range-query answer, nor a snapshot")


def _refuse_other_answers(head: str) -> None:
    if re.search(r'"status"\s*:\s*"error"', head):
        raise _Wrong(NOT_SAMPLES, "is an error that Prometheus answered, not data; ask it again")
    if re.search(r'"resultType"\s*:\s*"(vector|scalar|string)"', head):
        raise _Wrong(NOT_SAMPLES, "is the answer to an instant query; ask for a range (/api/v1/query_range)")


def _head(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except (OSError, EOFError, ValueError) as error:
        raise _Wrong(DAMAGED, f"cannot be read: {_first_line(error)}") from None


def _check_columns(file: SampleFile) -> None:
    """Refuse a file whose needed columns are missing, misspelt or of a type that cannot be a time, text or number."""
    missing = [name for name in NEEDED if name not in file.names]
    for name in sorted(file.names - set(COLUMNS) - set(REPLICA_ONLY)):
        wanted = [each for each in COLUMNS if each not in file.names]
        meant = get_close_matches(name, wanted, n=1, cutoff=0.75)
        if meant:
            raise _Wrong(WRONG_COLUMNS, f"has no column {meant[0]}, but {name}: did you mean {meant[0]}?")
    if missing:
        has = ", ".join(sorted(file.names))
        raise _Wrong(
            WRONG_COLUMNS,
            f"has no column {' and no column '.join(missing)}; samples need {', '.join(NEEDED)}; it has {has}",
        )
    for name, found in file.columns:
        expected = _expected(name)
        if expected and not found.startswith(expected[1]):
            raise _Wrong(WRONG_COLUMNS, f"has the column {name} as {found}; it must be {expected[0]}")
        if name == "ts" and found.startswith("timestamp[ns"):
            raise _Wrong(
                WRONG_COLUMNS,
                "has times in nanoseconds, which Spark does not read: write ts in microseconds "
                "(pyarrow and pandas: coerce_timestamps='us')",
            )


def _expected(name: str) -> tuple[str, tuple[str, ...]] | None:
    if name == "ts":
        return "a timestamp, an ISO 8601 text, or seconds or milliseconds since 1970", _TIMES
    if name in {"cluster", "topic"}:
        return "a text", _TEXTS
    number = "a number: whole, a float of 32 or 64 bits, a decimal of up to 38 digits, or a text that is one"
    return (number, _NUMBERS) if name in {"partition", *MEASURES} else None


def _unused_columns(files: Iterable[SampleFile]) -> list[str]:
    unused: dict[str, str] = {}
    for file in files:
        used = {*COLUMNS, *REPLICA_ONLY} if file.has_replicas else {*COLUMNS}
        for name in sorted(set(dict(file.columns)) - used):
            unused.setdefault(name, file.path)
    return [f"{path}: the column {name} is none of a sample's; not used" for name, path in sorted(unused.items())]


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
