"""Reads and writes whole tables at any place: a path of this machine, a URI that Hadoop knows, a table of a catalogue.

Executors write. A result is whole or not there: a local folder takes its place by a rename, and so does one at a URI.
An object store has no such rename: there a list, written last, names the files of the result. Tables of a catalogue
have their format's own commit. Reading goes by Spark alone; only what is renamed or listed at a URI asks Spark's Java.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from reconciler.balance.files.folders import NOT_OURS, replaced_folder
from reconciler.balance.files.table_folders import DELTA, ICEBERG, NO_READER, no_reader
from reconciler.balance.spark.session import as_hadoop, raised_by_spark, write_parquet
from reconciler.balance.spark.uri_results import GLOB_PATHS, files_at, listed_files, replaced_at_uri
from reconciler.files.places import as_local, is_uri, may_be_table, path_of
from reconciler.model.problem import ReconcilerError

NOT_WHOLE = "KR284"
NO_FILE_SYSTEM = "KR285"
_MISSING_CLASS = re.compile(r'No FileSystem for scheme "?([\w+.-]+)|ClassNotFoundException: Class (\S+) not found')
_ICEBERG_METADATA = re.compile(r"(.+)/metadata/[^/]+\.metadata\.json", re.DOTALL)
_OURS = "reconciler.writtenBy"


class NothingThere(ReconcilerError):
    """A place holds nothing, and no table has its name."""

    code = "KR287"


class Result(Protocol):
    """A place that is being written to."""

    def write(self, table: DataFrame, name: str = "") -> None:
        """Write the table; of several each has its name."""

    def tell(self, name: str, text: str) -> None:
        """Write that text beside the tables; a table of a catalogue has no room for it."""


@contextmanager
def replaced(spark: SparkSession, place: str, token: str, names: Sequence[str] = ("",)) -> Iterator[Result]:
    """Yield a result to write tables of these names to; at the end it takes the place of what was there.

    Where the block fails, the place is what it was. What another program wrote there is refused: a folder that holds
    anything, but no file `token`, a table that does not say so of itself.
    """
    local = as_local(place)
    if is_uri(local):
        with reachable(place), replaced_at_uri(spark, local, token) as result:
            yield result
    elif place_is_table(spark, local, has_to_be=False):
        yield _Table({name: _to_replace(spark, _named(local, name), token) for name in names}, token)
    else:
        with replaced_folder(Path(local), token) as folder:
            yield _Folder(folder)


def read_table(spark: SparkSession, place: str) -> DataFrame:
    """Return the table at that place; a Delta or Iceberg table by its own reader.

    Of a result at an object store only the files of its list count.

    Raises NothingThere where neither a file nor a table is there.
    """
    local = as_local(place)
    if place_is_table(spark, local):
        return spark.table(local)
    uri = local.rstrip("/") if is_uri(local) else as_hadoop(str(Path(local).absolute()))
    with reachable(place):
        files = files_at(spark, uri)
        if files is None:
            raise NothingThere(f"{place}: no such folder, file or table; check the name")
        is_folder = files != [uri]
        form = format_at(spark, uri) if is_folder else None
        if form is not None:
            return read_format(spark, uri, form)
        names = listed_files(spark, uri) if is_folder else None
        reader = spark.read.option(GLOB_PATHS, value=False)
        if names is not None:
            reader = reader.option("pathGlobFilter", f"{{{','.join(names)}}}")
        return reader.parquet(uri)


def place_is_table(spark: SparkSession, place: str, *, has_to_be: bool = True) -> bool:
    """Return whether it is a table of the session's catalogue, and no path.

    For one that need not be there yet it is enough that the catalogue has its namespace.
    """
    if not may_be_table(place):
        return False
    if "`" in place or _exists(spark, place):
        return True
    try:
        return not has_to_be and spark.catalog.databaseExists(place.rpartition(".")[0])
    except PySparkException:  # no such catalogue
        return False


def _exists(spark: SparkSession, table: str) -> bool:
    try:
        return spark.catalog.tableExists(table)
    except PySparkException:  # no such catalogue, or no name of a table
        return False


def read_format(spark: SparkSession, uri: str, form: str) -> DataFrame:
    """Return the table of that format at a URI; raise ReconcilerError where this Spark has no reader for it."""
    try:
        found = spark.read.format(form).load(uri)
        found.columns  # noqa: B018 - a remote session looks for the reader now
    except raised_by_spark() as error:
        if "DATA_SOURCE_NOT_FOUND" in str(error):
            raise ReconcilerError(f"{uri.removeprefix('file://')}: {no_reader(form)}", code=NO_READER) from None
        raise
    return found


def format_at(spark: SparkSession, uri: str) -> str | None:
    """Return the format of the table that stands at that URI; None for a mere folder."""
    if files_at(spark, f"{uri}/_delta_log"):
        return DELTA
    tables = iceberg_tables(files_at(spark, f"{uri}/metadata") or ())
    return ICEBERG if path_of(uri) in map(path_of, tables) else None


def iceberg_tables(files: Iterable[str]) -> set[str]:
    """Return the folders that are Iceberg tables: one of these files is the metadata of each."""
    return {found[1] for found in map(_ICEBERG_METADATA.fullmatch, files) if found}


@contextmanager
def reachable(place: str) -> Iterator[None]:
    """Tell in one sentence where Spark has no file system of a URI's scheme."""
    try:
        yield
    except raised_by_spark() as error:
        missing = _MISSING_CLASS.search(str(error))
        if missing is None:
            raise
        scheme = place.partition(":")[0]
        jar = " (s3a: org.apache.hadoop:hadoop-aws, of the version of Spark's Hadoop)" if scheme == "s3a" else ""
        message = f"{place}: Spark has no file system for {scheme}: give it one by spark.jars.packages{jar}"
        raise ReconcilerError(message, code=NO_FILE_SYSTEM) from error


@dataclass(frozen=True, slots=True)
class _Folder:
    """A new folder of this machine."""

    folder: Path

    def write(self, table: DataFrame, name: str = "") -> None:
        """Write the table there; raise ReconcilerError where executors wrote it to disks of their own."""
        write_parquet(table, self.folder / name)

    def tell(self, name: str, text: str) -> None:
        """Write the text there."""
        (self.folder / name).write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Table:
    """Tables of the catalogue, each of which is replaced by one commit."""

    tables: Mapping[str, tuple[str, str]]
    """By name: the whole name, and the format."""
    token: str

    def write(self, table: DataFrame, name: str = "") -> None:
        """Replace the table that has this name."""
        whole, form = self.tables[name]
        table.writeTo(whole).using(form).tableProperty(_OURS, self.token).createOrReplace()

    def tell(self, name: str, text: str) -> None:
        """Do nothing: a table has no room for a text."""


def _named(table: str, name: str) -> str:
    """Return the name of one of several tables."""
    if not name:
        return table
    return f"{table[:-1]}_{name}`" if table.endswith("`") else f"{table}_{name}"


def _to_replace(spark: SparkSession, table: str, token: str) -> tuple[str, str]:
    """Return the table and its format; raise ReconcilerError for one of others, or one that has no commit."""
    if _exists(spark, table):
        described = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
        told = {row["col_name"]: row["data_type"] or "" for row in described}
        form = told.get("Provider", "").lower()
        if f"{_OURS}={token}" not in told.get("Table Properties", "") and spark.table(table).take(1):
            message = f"{table}: is a table that this verb did not write: name an empty or a new one"
            raise ReconcilerError(message, code=NOT_OURS)
    else:
        form = _default_format(spark, table)
    if form not in (DELTA, ICEBERG):
        raise ReconcilerError(
            f"{table}: a table of {form} cannot be replaced whole: name one of Delta or Iceberg, or a folder or URI",
            code=NOT_WHOLE,
        )
    return table, form


def _default_format(spark: SparkSession, table: str) -> str:
    """Return the format in which that catalogue makes tables, by its class: Delta's and Iceberg's have one each."""
    first = table.partition(".")[0].strip("`")
    named = spark.conf.get(f"spark.sql.catalog.{first}", "")
    whose = (named or spark.conf.get("spark.sql.catalog.spark_catalog", "") or "").lower()
    default = spark.conf.get("spark.sql.sources.default", "parquet") or ""
    return next((form for form in (DELTA, ICEBERG) if form in whose), default)
