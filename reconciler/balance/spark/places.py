"""Looks at URIs and tables, which Spark alone can read; `sample_files` does so for paths, and has the checks.

Kinds are told by names, as on this machine's disk, and JSON by how it begins. Files at a URI are listed by Spark's own
reader of files, because a remote session has no Java to ask.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import StructType

from reconciler.balance.files.sample_files import (
    NO_FILE,
    ROWS,
    TABLES,
    Found,
    Kind,
    SampleFile,
    check_columns,
    csv_header,
    json_kind,
    kind_by_name,
    unused_columns,
)
from reconciler.balance.files.sample_formats import NOT_SAMPLES, Wrong, nameless_measure
from reconciler.balance.files.table_folders import ICEBERG, PART_OF_TABLE, part_of_table
from reconciler.balance.spark.session import as_hadoop, raised_by_spark, spark_errors
from reconciler.balance.spark.tables import format_at, iceberg_tables, place_is_table, reachable, read_format
from reconciler.balance.spark.uri_results import by_name, files_at
from reconciler.model.problem import InvalidInput, Problem

UNLIKE = "KR286"
_HEAD = 8192
_PATTERN = frozenset("*?[]{}\\")
# As Arrow names them, whose types the checks know.
_ARROW = {
    "timestamp": "timestamp[us, tz=UTC]",
    "timestamp_ntz": "timestamp[us]",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "boolean": "bool",
}


def looked_up(spark: SparkSession, files: Iterable[SampleFile]) -> Found:
    """Return the files with what lies at each place instead of the place, and notes on what was passed over there.

    Raises InvalidInput with one problem for each place and file that is missing or has not the right columns.
    """
    look = _Look(spark)
    found: dict[str, SampleFile] = {}
    new: list[SampleFile] = []
    for file in files:
        is_new = file.kind in {Kind.PLACE, *TABLES}
        try:
            with spark_errors(), reachable(file.path):
                held = _held(look, file) if is_new else [file]
        except Wrong as wrong:
            look.problems.append(Problem(wrong.code, f"{file.path}: {wrong}"))
            continue
        new += held if is_new else []
        found |= {each.path: each for each in held if each.path not in found}
    if look.problems:
        raise InvalidInput(look.problems)
    return Found(tuple(found[path] for path in sorted(found)), (*look.notes, *unused_columns(new)))


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at places: the notes and problems so far, and which folders are tables, of which each is asked once."""

    spark: SparkSession
    notes: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    formats: dict[str, str | None] = field(default_factory=dict)

    def format_at(self, folder: str) -> str | None:
        if folder not in self.formats:
            self.formats[folder] = format_at(self.spark, folder)
        return self.formats[folder]


def _held(look: _Look, file: SampleFile) -> list[SampleFile]:
    """Return what this table is, or what a place holds."""
    spark = look.spark
    if file.kind in TABLES:
        return [_table(file, read_format(spark, as_hadoop(file.path), file.kind).schema)]
    if not file.is_uri:
        if not place_is_table(spark, file.path):
            message = "no such file or folder, and no table of this name in Spark's catalogue: check the name"
            raise Wrong(NO_FILE, message)
        return [_table(replace(file, kind=Kind.TABLE), spark.table(file.path).schema)]
    return _at_uri(look, file)


def _table(file: SampleFile, schema: StructType) -> SampleFile:
    table = replace(file, columns=_columns(schema))
    check_columns(table)
    return table


def _columns(schema: StructType) -> tuple[tuple[str, str], ...]:
    """Return columns with the names that Arrow has for their types."""
    named = ((field.name, field.dataType.simpleString()) for field in schema.fields)
    return tuple((name, _ARROW.get(kind, kind.replace("decimal(", "decimal128("))) for name, kind in named)


def _at_uri(look: _Look, place: SampleFile) -> list[SampleFile]:
    spark, uri = look.spark, place.path
    names = files_at(spark, uri)
    # Nothing is found where nothing is, but of such a name Spark does not say so.
    is_pattern = not names and not _PATTERN.isdisjoint(uri)
    if is_pattern:
        names = files_at(spark, uri, is_pattern=True)
    if names is None:
        raise Wrong(NO_FILE, "no such file or folder, so there are no samples to read; check the URI")
    root = _as_listed(_before_pattern(uri) if is_pattern else uri, names)
    tables = _tables(look, root, names)
    kinds = {name: kind_by_name(_last(name)) for name in names if not _is_in(name, tables)}
    if not any(kinds.values()) and not tables:
        raise Wrong(NO_FILE, "holds no samples: no file that may hold some is in it")
    passed_over = [name for name, kind in kinds.items() if kind is None]
    look.notes.extend(f"{name}: not a kind of file that holds samples; passed over" for name in passed_over)
    held = [
        _table(SampleFile(table, Kind(form), root=table), read_format(spark, table, form).schema)
        for table, form in tables.items()
    ]
    parquet = [name for name, kind in kinds.items() if kind is Kind.PARQUET]
    whole = SampleFile(uri, Kind.PARQUET, root=root, is_pattern=is_pattern)
    held += _parquet(spark, parquet, root, whole if len(parquet) == len(names) else None)
    texts = [name for name, kind in kinds.items() if kind not in {None, Kind.PARQUET}]
    for name, head in _heads(spark, texts).items():
        try:
            held.append(_text(spark, replace(place, root=root), name, head))
        except Wrong as wrong:
            look.problems.append(Problem(wrong.code, f"{name}: {wrong}"))
    return held


def _tables(look: _Look, root: str, names: Sequence[str]) -> dict[str, str]:
    """Return the Delta and Iceberg tables at and below a URI; raise Wrong where it is a part of one."""
    is_file = list(names) == [root]
    for folder in folders_above(root):
        # Who may read a folder may not be allowed to look above it.
        with suppress(*raised_by_spark()):
            look.format_at(folder)
        if look.formats.get(folder):
            raise Wrong(PART_OF_TABLE, part_of_table(folder))
    found = dict.fromkeys(sorted(iceberg_tables(names)), ICEBERG)
    below = {folder for name in names for folder in _folders(root, name)}
    for folder in sorted(() if is_file else {root, *below}):
        form = None if _is_in(folder, found) else look.format_at(folder)
        if form:
            found[folder] = form
    return found


def folders_above(uri: str) -> list[str]:
    """Return the folders above, from the root of the file system or bucket on."""
    scheme, _, path = uri.partition("://")
    parts = path.split("/")
    return [f"{scheme}://{'/'.join(parts[:number])}" for number in range(1, len(parts))]


def _folders(root: str, name: str) -> list[str]:
    """Return the folders between the root and the file, but those of partitions."""
    parts = name.removeprefix(root).strip("/").split("/")[:-1]
    plain = list(takewhile(lambda part: "=" not in part, parts))
    return [f"{root}/{'/'.join(plain[: number + 1])}" for number in range(len(plain))]


def _before_pattern(uri: str) -> str:
    return "/".join(takewhile(lambda part: not _PATTERN.intersection(part), uri.rstrip("/").split("/")))


def _as_listed(root: str, names: Sequence[str]) -> str:
    """Return the root with the host that Spark's list has, where the URI leaves out the default one."""
    scheme, _, path = root.rstrip("/").partition(":")
    if not names or (path.startswith("//") and not path.startswith("///")):
        return root.rstrip("/")
    host = names[0].partition("://")[2].partition("/")[0]
    return f"{scheme}://{host}/{path.lstrip('/')}"


def _is_in(name: str, tables: Iterable[str]) -> bool:
    return any(name.startswith(f"{table}/") for table in tables)


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _of_partitions(root: str, name: str) -> tuple[str, ...]:
    parts = name.removeprefix(root).split("/")[:-1]
    return tuple(part.partition("=")[0] for part in parts if "=" in part)


def _parquet(spark: SparkSession, names: Sequence[str], root: str, whole: SampleFile | None) -> list[SampleFile]:
    """Return the Parquet files, as the `whole` that Spark can list by itself where they are alike and all there is.

    Those of one folder, partitions of it included, are one table: its columns are those of all of them.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name in names:
        groups.setdefault(((_folders(root, name) or [root])[-1], _of_partitions(root, name)), []).append(name)
    held = []
    for (_, folders), alike in groups.items():
        columns = _columns(_merged(spark, alike))
        single = [SampleFile(name, Kind.PARQUET, root=root) for name in alike]
        files = [
            replace(file, columns=columns, folders=folders)
            for file in ([whole] if whole is not None and len(groups) == 1 else single)
        ]
        check_columns(files[0])
        held += files
    return held


def _merged(spark: SparkSession, names: Sequence[str]) -> StructType:
    """Return all columns of these files; raise Wrong where they are of unlike types."""
    reader = spark.read.option("mergeSchema", value=True).option("recursiveFileLookup", value=True)
    try:
        return reader.parquet(*map(by_name, names)).schema
    except raised_by_spark() as error:
        if "CANNOT_MERGE" not in str(error) and "Failed merging schema" not in str(error):
            raise
        raise Wrong(
            UNLIKE, "its Parquet files have columns of one name and unlike types: name them one by one"
        ) from None


def _heads(spark: SparkSession, names: Sequence[str], *, is_whole: bool = False) -> Mapping[str, str]:
    """Return how each file begins: its first line, or more."""
    if not names:
        return {}
    lines = spark.read.text(list(map(by_name, names)), wholetext=is_whole)
    rows = (
        lines.select(
            F.col("_metadata.file_path").alias("path"),
            F.substring("value", 1, _HEAD).alias("head"),
            F.monotonically_increasing_id().alias("place"),
        )
        .groupBy("path")
        .agg(F.min_by("head", "place").alias("head"))
        .collect()
    )
    heads = {unquote(row["path"]): row["head"] for row in rows}
    return {name: heads.get(name, "") for name in names}


def _text(spark: SparkSession, place: SampleFile, name: str, head: str) -> SampleFile:
    """Return a file of text by its first line; where JSON does not tell what it is there, more of it does."""
    root = place.root
    folders = _of_partitions(root, name)
    if kind_by_name(_last(name)) is Kind.CSV:
        header, separator = csv_header(head)
        file = SampleFile(
            name, Kind.CSV, tuple((column, "string") for column in header), root, folders, separator=separator
        )
    else:
        try:
            kind, found = json_kind(head)
        except Wrong as wrong:
            if wrong.code != NOT_SAMPLES or len(head) == _HEAD:
                raise
            head = _heads(spark, [name], is_whole=True)[name]
            kind, found = json_kind(head)
        measure = nameless_measure(head, _last(name), place.measure or None) if kind is Kind.PROMETHEUS else ""
        file = SampleFile(name, kind, tuple(found), root, folders, measure=measure)
    if file.kind in ROWS:
        check_columns(file)
    return file
