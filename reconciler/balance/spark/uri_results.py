"""Lists and replaces what lies at a URI: results that executors write, and that are whole or not there.

Where a file system renames folders, a result is written beside its place and renamed. An object store does not: there
files come under their place one by one, and a list, written last, names those of the result and has its texts. Our
readers go by it.
Without Spark's Java, which alone can rename, Spark's own overwrite has to do.
"""

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from reconciler.balance.files.folders import NOT_OURS, UNWRITTEN
from reconciler.files.places import MARK_FILE, MARK_FOLDER
from reconciler.model.problem import ReconcilerError

OBJECT_STORES = frozenset({"s3", "s3a", "s3n", "gs", "oss", "obs", "cosn", "wasb", "wasbs"})
"""Schemes of file systems whose rename copies file by file."""
_PATTERN = re.compile(r"([*?\[\]{}\\])")
GLOB_PATHS = "__globPaths__"
"""An option of Spark's readers. Off, a path is a name and no pattern. Only for one path: Spark would read
each of several as often as there are."""
_HIDDEN = ("_", ".")
_NEW = "_new-"
"""How a folder begins in which a result at an object store is staged; a run that died leaves it behind."""
_DIED_MS = 24 * 3_600_000
"""A run that has written nothing for so long is taken for dead; many times what a write takes."""
_YES = (True,)  # of Java, whose arguments have no names


def files_at(spark: SparkSession, uri: str, *, is_pattern: bool = False) -> list[str] | None:
    """Return the files at and below a URI, hidden ones left out; None where nothing is there."""
    reader = spark.read.format("binaryFile").options(recursiveFileLookup=True, __globPaths__=is_pattern)
    try:
        # Spark tells them as URIs proper, in which a space is %20. Hadoop's own are not.
        return sorted(map(unquote, reader.load(uri).inputFiles()))
    except AnalysisException as error:
        if "PATH_NOT_FOUND" in str(error):
            return None
        raise


def by_name(uri: str) -> str:
    """Return the pattern that matches that name alone."""
    return _PATTERN.sub(r"\\\1", uri)


def listed_files(spark: SparkSession, uri: str) -> list[str] | None:
    """Return the files that a result at an object store names as its own; None where it names none."""
    mark = f"{uri}/{MARK_FOLDER}"
    if not files_at(spark, mark):
        return None
    (row,) = spark.read.option(GLOB_PATHS, value=False).text(mark, wholetext=True).collect()
    return list(json.loads(row["value"])["files"])


@dataclass(frozen=True, slots=True)
class Staged:
    """A result that is being written beside its place."""

    uri: str
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, table: DataFrame, name: str = "") -> None:
        """Write the table there."""
        _write_parquet(table, f"{self.uri}/{name}".rstrip("/"), "append")

    def tell(self, name: str, text: str) -> None:
        """Keep the text until the tables are there."""
        self.texts[name] = text


@dataclass(frozen=True, slots=True)
class Kept:
    """A result that is computed, and kept until all of it is there."""

    tables: dict[str, DataFrame] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)

    def write(self, table: DataFrame, name: str = "") -> None:
        """Compute the table."""
        self.tables[name] = table.persist()
        self.tables[name].count()

    def tell(self, name: str, text: str) -> None:
        """Keep the text until the tables are there."""
        self.texts[name] = text


@contextmanager
def replaced_at_uri(spark: SparkSession, uri: str, token: str) -> Iterator[Staged | Kept]:
    """Yield what is to be written to; at the end, and not before, it takes the place of what was there.

    Raises ReconcilerError for a file, and for a folder that holds something but no `token`.
    """
    uri = uri.rstrip("/")
    if not hasattr(spark, "_jvm"):
        with _replaced_by_spark(spark, uri, token) as kept:
            yield kept
        return
    files = _JavaFiles(spark, uri)
    files.refuse_foreign(token)
    is_store = uri.partition(":")[0].lower() in OBJECT_STORES
    above, _, name = uri.rpartition("/")
    mark = uuid4().hex[:8]
    staged = Staged(f"{uri}/{_NEW}{mark}" if is_store else f"{above}/.{name}.new-{mark}")
    try:
        yield staged
        if is_store:
            _publish(files, staged, uri)
        else:
            _take_place(files, staged, uri, f"{above}/.{name}.old-{mark}")
    finally:
        files.delete(staged.uri)


def _take_place(files: "_JavaFiles", staged: Staged, uri: str, old: str) -> None:
    """Two renames: between them a crash leaves both folders whole, beside their place."""
    for name, text in staged.texts.items():
        files.write(f"{staged.uri}/{name}", text)
    if files.exists(uri):
        files.rename(uri, old)
    try:
        files.rename(staged.uri, uri)
    except BaseException:
        if files.exists(old):
            files.rename(old, uri)
        raise
    files.delete(old)


def _publish(files: "_JavaFiles", staged: Staged, uri: str) -> None:
    """Let what was staged be the result: at each moment the list names whole files, and has the texts, of one result.

    The texts come beside it for readers that know of no list.
    """
    mark = f"{uri}/{MARK_FOLDER}/{MARK_FILE}"
    older = [name for name in files.below(uri) if not name.startswith(_HIDDEN)]
    if not files.exists(mark):
        files.write(mark, json.dumps({"files": older}))
    newer = [name for name in files.below(staged.uri) if not name.rpartition("/")[2].startswith(_HIDDEN)]
    for name in newer:
        files.rename(f"{staged.uri}/{name}", f"{uri}/{name}")
    files.write(mark, json.dumps({"files": sorted(newer), "texts": staged.texts}))
    for name, text in staged.texts.items():
        files.write(f"{uri}/{name}", text)
    for name in older:
        files.delete(f"{uri}/{name}")
    for name in _left_behind(files.below(uri), int(time.time() * 1000)):
        files.delete(f"{uri}/{name}")


def _left_behind(changed: Mapping[str, int], now: int) -> list[str]:
    """Return the folders in which runs that died have staged a result, of files with the times of their last change."""
    newest: dict[str, int] = {}
    for name, at in changed.items():
        folder = name.partition("/")[0]
        if folder.startswith(_NEW):
            newest[folder] = max(at, newest.get(folder, 0))
    return [folder for folder, at in newest.items() if now - at > _DIED_MS]


@contextmanager
def _replaced_by_spark(spark: SparkSession, uri: str, token: str) -> Iterator[Kept]:
    """Yield what is computed first; then Spark's own overwrite puts it there, the texts last.

    A failure meanwhile leaves no result, and never half of one.
    """
    if files_at(spark, uri) and files_at(spark, f"{uri}/{token}") is None:
        raise _not_ours(uri, token)
    kept = Kept()
    try:
        yield kept
        for name, table in kept.tables.items():
            _write_parquet(table, f"{uri}/{name}".rstrip("/"), "overwrite")
        for name, text in kept.texts.items():
            lines = spark.createDataFrame([(text.removesuffix("\n"),)], "value string")
            lines.coalesce(1).write.mode("overwrite").text(f"{uri}/{name}")
    finally:
        for table in kept.tables.values():
            table.unpersist()


def _write_parquet(table: DataFrame, uri: str, mode: str) -> None:
    table.write.parquet(uri, mode=mode, compression="zstd")


def _not_ours(uri: str, token: str) -> ReconcilerError:
    message = f"{uri}: holds other things (it has no {token}): name an empty or a new folder"
    return ReconcilerError(message, code=NOT_OURS)


class _JavaFiles:
    """The file system of a URI, as Hadoop has it in Spark's own Java."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        java: Any = spark._jvm  # noqa: SLF001 - Spark has no other way to rename
        session: Any = spark._jsparkSession  # noqa: SLF001 - which knows the settings of the file system
        self._path = java.org.apache.hadoop.fs.Path
        self._uri = uri
        self._system = self._path(uri).getFileSystem(session.sessionState().newHadoopConf())

    def refuse_foreign(self, token: str) -> None:
        """Raise ReconcilerError where the place is a file, or a folder that holds something but no `token`."""
        path = self._path(self._uri)
        if not self._system.exists(path):
            return
        if not self._system.getFileStatus(path).isDirectory():
            raise ReconcilerError(f"{self._uri}: is a file; name a folder to write to", code=NOT_OURS)
        names = {status.getPath().getName() for status in self._system.listStatus(path)}
        names = {name for name in names if not name.startswith(_NEW)}
        if names and names.isdisjoint((token, MARK_FOLDER)):
            raise _not_ours(self._uri, token)

    def exists(self, uri: str) -> bool:
        return bool(self._system.exists(self._path(uri)))

    def below(self, uri: str) -> Mapping[str, int]:
        """Return the files at any depth, named from there, in order, with when each was changed, in ms since 1970."""
        path = self._path(uri)
        if not self._system.exists(path):
            return {}
        above = len(self._system.makeQualified(path).toUri().getPath().rstrip("/")) + 1
        found, files = {}, self._system.listFiles(path, *_YES)
        while files.hasNext():
            status = files.next()
            found[status.getPath().toUri().getPath()[above:]] = int(status.getModificationTime())
        return dict(sorted(found.items()))

    def rename(self, uri: str, to: str) -> None:
        path = self._path(to)
        self._system.mkdirs(path.getParent())
        if not self._system.rename(self._path(uri), path):
            message = f"{self._uri}: cannot be replaced: its file system does not rename {uri} to {to}"
            raise ReconcilerError(message, code=UNWRITTEN)

    def write(self, uri: str, text: str) -> None:
        path = self._path(uri)
        # Spark Connect writes a text as a folder, over which no file can be written.
        if self._system.exists(path) and self._system.getFileStatus(path).isDirectory():
            self._system.delete(path, *_YES)
        stream = self._system.create(path, *_YES)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def delete(self, uri: str) -> None:
        self._system.delete(self._path(uri), *_YES)
