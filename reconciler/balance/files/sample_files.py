"""Finds the files that a path of samples holds, and of what kind each is; tells every problem at once.

Files of this machine are looked at here, and read by Spark. What lies at a URI, and tables, only Spark can look at:
`spark.places` does, and has the same checks made here.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

from reconciler.balance.files.sample_formats import (
    DAMAGED,
    NOT_SAMPLES,
    WRONG_COLUMNS,
    Wrong,
    csv_fields,
    head_of,
    nameless_measure,
    parquet_columns,
    plain_name,
)
from reconciler.balance.files.table_folders import (
    DELTA,
    ICEBERG,
    PART_OF_TABLE,
    part_of_table,
    table_above,
    tables_below,
)
from reconciler.balance.model.shares import RATES
from reconciler.files.paths import expanded, files_below, is_file, is_folder, is_there
from reconciler.files.places import as_local, is_for_spark, is_uri
from reconciler.model.problem import InvalidInput, Problem
from reconciler.model.words import named_some

NO_FILE = "KR140"
COLUMNS_SHOWN = 20
KEYS = ("cluster", "topic", "partition")
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
ESTIMATED = "estimated"
"""A column that files of samples may have: whether a row's rates were not measured, but made of a topic's."""
LOG_START = "log_start_offset"
"""A column that files of samples may have: the first offset of the leader's log, by which a new log is told."""
NEEDED = ("ts", "topic", "partition")
MEASURES = (*RATES, "size_bytes", "end_offset")
COLUMNS = (*NEEDED, "cluster", *MEASURES)
_TIMES = ("timestamp", "string", "large_string", "int")
_NUMBERS = ("int", "uint", "float", "double", "decimal32", "decimal64", "decimal128", "string", "large_string")
_TEXTS = ("string", "large_string", "dictionary")
_PATTERN = frozenset("*?[]{}\\")
_HIDDEN = "._"  # Spark passes over names that begin so; earlier versions of `collect` wrote some for brokers


class Kind(StrEnum):
    """What a file holds."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON_LINES = "json lines"
    PROMETHEUS = "Prometheus export"
    SNAPSHOT = "snapshot"
    DELTA = DELTA
    ICEBERG = ICEBERG
    TABLE = "table"
    """Of the session's catalogue."""
    PLACE = "place"
    """A URI or a name, at which nobody has looked yet."""


TABLES = (Kind.DELTA, Kind.ICEBERG, Kind.TABLE)
ROWS = (Kind.PARQUET, Kind.CSV, Kind.JSON_LINES, *TABLES)
"""Kinds whose rows are samples as they stand."""
_ENDINGS = {
    ".parquet": Kind.PARQUET, ".pq": Kind.PARQUET, ".csv": Kind.CSV,
    ".jsonl": Kind.JSON_LINES, ".ndjson": Kind.JSON_LINES, ".json": Kind.JSON_LINES,
}  # fmt: skip
_KNOWN_ENDINGS = ".parquet, .csv, .jsonl or .json file"


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
    is_pattern: bool = False
    """Whether the path is a pattern of Hadoop's, and no name."""
    separator: str = ","
    """What stands between a CSV's fields; where it is a semicolon, a comma may stand before a number's fraction."""
    measure: str = ""
    """What a Prometheus answer's series measure that have no name; of a place, those of all answers there."""

    @property
    def names(self) -> frozenset[str]:
        """The columns by name, those of folders included."""
        return frozenset((*dict(self.columns), *self.folders))

    @property
    def is_uri(self) -> bool:
        """Whether it is named by a URI."""
        return is_uri(self.path)

    @property
    def may_stand_alone(self) -> bool:
        """Whether its samples may well have all their rates, so that none has to be made from growth."""
        return self.kind in ROWS and (not self.columns or "bytes_in" in self.names)

    @property
    def has_messages(self) -> bool:
        """Whether its samples may well tell the messages that come in."""
        return not self.columns or "messages_in" in self.names


@dataclass(frozen=True, slots=True)
class Found:
    """The files of samples in the order of their paths, and notes on what was passed over."""

    files: tuple[SampleFile, ...]
    notes: tuple[str, ...] = ()


def find_sample_files(paths: Iterable[str], measure: str | None = None) -> Found:
    """Return every file of samples at and below the paths, patterns included; of a URI or a table, the place.

    `measure`: what series of Prometheus measure that have no name; None: their file's name says it.
    Raises InvalidInput with one problem for each file that is missing, damaged, or has not the right columns.
    """
    files: dict[str, SampleFile] = {}
    notes: list[str] = []
    problems: list[Problem] = []
    for given in paths:
        if _is_sparks_to_find(given):
            files.setdefault(given, SampleFile(given, Kind.PLACE, root=given, measure=measure or ""))
            continue
        for path in _matches(as_local(given)):
            found = _at(path, _root(given, path), notes, problems, measure)
            files |= {file.path: file for file in found if file.path not in files}
    if problems:
        raise InvalidInput(problems)
    notes.extend(unused_columns(files.values()))
    return Found(tuple(files[path] for path in sorted(files)), tuple(notes))


def _at(given: Path, root: Path, notes: list[str], problems: list[Problem], measure: str | None) -> list[SampleFile]:
    """Return the files at and below a path, each Delta or Iceberg table as one; add to the notes and problems."""
    found, passed_over = _below(given)
    base = given.absolute()
    tables = tables_below(base, found) if is_folder(base) else {}
    if not found and not tables:
        problems.append(Problem(NO_FILE, _nothing_there(str(given))))
    elif (table := table_above(base)) is not None:
        problems.append(Problem(PART_OF_TABLE, f"{given}: {part_of_table(str(table))}"))
        return []

    def of_no_table(paths: Iterable[Path]) -> list[Path]:
        return [path for path in paths if not tables or tables.keys().isdisjoint(path.parents)]

    notes.extend(f"{path}: not a kind of file that holds samples; passed over" for path in of_no_table(passed_over))
    files = [SampleFile(str(table), Kind(name), root=str(table)) for table, name in tables.items()]
    for path in of_no_table(found):
        try:
            files.append(_looked_at(path, root, measure))
        except Wrong as wrong:
            problems.append(Problem(wrong.code, f"{path}: {wrong}"))
    return files


def _is_sparks_to_find(given: str) -> bool:
    """Return whether only Spark can look there; a misspelt file is no table."""
    return is_for_spark(given) and (is_uri(given) or kind_by_name(given) is None)


def _matches(given: str) -> list[Path]:
    """Return the shown names that a pattern matches; the name of an existing file or folder is no pattern."""
    before = _before_pattern(given)
    if is_there(given) or before == Path(given).absolute():
        return [Path(given)]
    paths = set(expanded(before, Path(given).absolute().relative_to(before).parts))
    visible = [path for path in paths if not any(part[0] in _HIDDEN for part in path.relative_to(before).parts)]
    return sorted(visible) or [Path(given)]


def _root(given: str, path: Path) -> Path:
    """Return below what folders `name=value` are columns: of a pattern, what stands before it."""
    return path.absolute() if path == Path(as_local(given)) else _before_pattern(as_local(given))


def _before_pattern(given: str) -> Path:
    return Path(*takewhile(lambda part: not _PATTERN.intersection(part), Path(given).absolute().parts))


def _below(given: Path) -> tuple[list[Path], list[Path]]:
    """Return the files to read and those to pass over; hidden ones do not show."""
    if is_file(given):
        return [given.absolute()], []
    shown = files_below(given.absolute(), skipped=_HIDDEN) if is_there(given) else []
    wanted = [path for path in shown if kind_by_name(path.name)]
    return wanted, [path for path in shown if not kind_by_name(path.name)]


def _nothing_there(given: str) -> str:
    if is_there(given):
        return f"{given}: holds no samples: no {_KNOWN_ENDINGS} is in it"
    return f"{given}: no such file or folder, so there are no samples to read; check the path"


def kind_by_name(name: str) -> Kind | None:
    """Return the kind that the name says; `.json` may be three of them."""
    plain = plain_name(name)
    return next((kind for ending, kind in _ENDINGS.items() if plain.endswith(ending)), None)


def _looked_at(path: Path, root: Path, measure: str | None) -> SampleFile:
    kind = kind_by_name(path.name)
    _refuse_names_of_sparks(path)
    if kind is None:
        raise Wrong(NOT_SAMPLES, f"is not a {_KNOWN_ENDINGS}, so its samples cannot be read")
    columns: Iterable[tuple[str, str]] = ()
    separator, named = ",", ""
    head = "" if kind is Kind.PARQUET else head_of(path).decode("utf-8", "replace")
    if kind is Kind.PARQUET:
        columns = _known_columns(parquet_columns(path))
    elif kind is Kind.CSV:
        header, separator = csv_header(head)
        columns = ((name, "string") for name in header)
    else:
        kind, columns = json_kind(head)
    if kind is Kind.PROMETHEUS:
        named = nameless_measure(head, path.name, measure)
    base = root if is_folder(root) else root.parent
    folders = tuple(part.partition("=")[0] for part in path.relative_to(base).parts[:-1] if "=" in part)
    file = SampleFile(str(path), kind, tuple(columns), str(base), folders, separator=separator, measure=named)
    if kind in ROWS:
        check_columns(file)
    return file


def _refuse_names_of_sparks(path: Path) -> None:
    """Refuse what Spark would read something else for, or nothing at all."""
    if path.name[0] in _HIDDEN:
        raise Wrong(NOT_SAMPLES, f"begins with {path.name[0]}, and Spark passes over such names: rename it")
    if found := sorted(_PATTERN.intersection(str(path))):
        raise Wrong(NOT_SAMPLES, f"has {' '.join(found)} in its path, which is a pattern to Spark: rename it")


def _known_columns(columns: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the columns that have a type: one in which nothing was ever known is as if it were not there."""
    typed = [(name, kind) for name, kind in columns if kind != "null"]
    for name in (*COLUMNS, LOG_START):
        _refuse_twice(name, [found for found, _ in typed if found.lower() == name])
    return typed


def csv_header(head: str) -> tuple[list[str], str]:
    """Return the columns that a CSV's first line names, and what separates them; raise Wrong where it names none."""
    header, separator = csv_fields(head)
    if not header:
        raise Wrong(DAMAGED, f"is empty; its first line must name the columns, such as {','.join(COLUMNS)}")
    for name in (*COLUMNS, LOG_START):
        _refuse_twice(name, [found for found in header if found == name])
    return header, separator


def _refuse_twice(name: str, spelt: list[str]) -> None:
    if len(spelt) > 1:
        others = f", as {' and as '.join(spelt)}: Spark takes them for one" if len(set(spelt)) > 1 else ""
        raise Wrong(WRONG_COLUMNS, f"names the column {name} twice{others}")


def json_kind(head: str) -> tuple[Kind, list[tuple[str, str]]]:
    """Tell lines of samples, a Prometheus answer and a snapshot apart by what they begin with."""
    head = head.removeprefix("\ufeff").lstrip()
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
    raise Wrong(NOT_SAMPLES, "is neither lines of JSON samples, nor a Prometheus range-query answer, nor a snapshot")


def _refuse_other_answers(head: str) -> None:
    if re.search(r'"status"\s*:\s*"error"', head):
        raise Wrong(NOT_SAMPLES, "is an error that Prometheus answered, not data; ask it again")
    if re.search(r'"resultType"\s*:\s*"(vector|scalar|string)"', head):
        raise Wrong(NOT_SAMPLES, "is the answer to an instant query; ask for a range (/api/v1/query_range)")


def check_columns(file: SampleFile) -> None:
    """Refuse a file whose needed columns are missing, misspelt or of a type that cannot be a time, text or number."""
    missing = [name for name in NEEDED if name not in file.names]
    for name in sorted(file.names - {*COLUMNS, LOG_START}):
        wanted = [each for each in COLUMNS if each not in file.names]
        meant = get_close_matches(name, wanted, n=1, cutoff=0.75)
        if meant:
            raise Wrong(WRONG_COLUMNS, f"has no column {meant[0]}, but {name}: did you mean {meant[0]}?")
    if missing:
        has = named_some(sorted(file.names), COLUMNS_SHOWN)
        raise Wrong(
            WRONG_COLUMNS,
            f"has no column {' and no column '.join(missing)}; samples need {', '.join(NEEDED)}; it has {has}",
        )
    for name, found in file.columns:
        expected = _expected(name)
        if expected and not found.startswith(expected[1]):
            raise Wrong(WRONG_COLUMNS, f"has the column {name} as {found}; it must be {expected[0]}")
        if name == "ts" and found.startswith("timestamp[ns"):
            raise Wrong(
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
    return (number, _NUMBERS) if name in {"partition", *MEASURES, LOG_START} else None


def unused_columns(files: Iterable[SampleFile]) -> list[str]:
    """Return a note for each column that no sample has, by the first file that has it."""
    unused: dict[str, str] = {}
    for file in files:
        for name in sorted(set(dict(file.columns)) - {*COLUMNS, LOG_START, ESTIMATED}):
            unused.setdefault(name, file.path)
    return [f"{path}: the column {name} is none of a sample's; not used" for name, path in sorted(unused.items())]
