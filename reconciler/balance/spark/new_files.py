"""Finds the files of samples, at paths and at URIs, that are new to a lake or have changed since it took them.

A lake knows a file again by its size and the time of its last change. Spark lists the files at a URI. A table has
neither size nor time, and is refused.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.ledger import Ledger, Version
from reconciler.balance.files.sample_files import Found, Kind, SampleFile, kind_by_name
from reconciler.balance.spark.bronze import source_of
from reconciler.balance.spark.places import looked_up
from reconciler.model.problem import ReconcilerError

NOT_KNOWN, LEFT_OUT = "KR299", "KR288"
_LOCAL = re.compile("^file:/+")

Find = Callable[[Callable[[Path], bool]], Found]
"""Returns the files of samples, except those that its argument says are taken; for a URI the place."""


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Files to take, as they are now, and notes on what was passed over."""

    files: Mapping[SampleFile, Version]
    notes: tuple[str, ...] = ()


def new_files(spark: SparkSession, find: Find, ledger: Ledger, cluster: str | None) -> NewFiles:
    """Return the files that are new or have changed, and all that make samples together with one of these.

    `cluster` is that of samples that name none; under another name their files are taken anew.
    Raises ReconcilerError where one of these is not among the samples: its own in the lake would no longer count.
    """
    named = cluster or ""
    again: frozenset[str] = frozenset()

    def is_taken(path: str, version: Version) -> bool:
        return path not in again and ledger.has(path, version.size, version.modified, named)

    found = _found(spark, find, is_taken)
    again = ledger.beside(file.path for file in found.files)
    # A file that makes its samples alone has only itself beside it.
    if again - {file.path for file in found.files}:
        found = _found(spark, find, is_taken)
    _refuse_left_out(ledger, again, {file.path for file in found.files})
    notes = [
        *found.notes,
        *(
            f"{file.path}: holds replicas, which a lake does not take; passed over"
            for file in found.files
            if file.has_replicas
        ),
    ]
    files = {
        file: version if "cluster" in file.names else replace(version, named=named)
        for file, version in found.files.items()
        if not file.has_replicas
    }
    return NewFiles(files, tuple(notes))


def _refuse_left_out(ledger: Ledger, again: frozenset[str], found: Collection[str]) -> None:
    left_out = sorted(again.difference(found))
    if left_out:
        changed = min(ledger.beside(left_out[:1]).intersection(found))
        more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        raise ReconcilerError(
            f"{changed}: has changed, and was taken together with {left_out[0]}{more}, not among the samples now: name "
            "these too; where they are gone, give the changed file a new name, so that the older samples stay",
            code=LEFT_OUT,
        )


def _found(spark: SparkSession, find: Find, is_taken: Callable[[str, Version], bool]) -> NewFiles:
    versions: dict[str, Version] = {}

    def is_old(path: Path) -> bool:
        told = path.stat()
        versions[str(path)] = Version(told.st_size, told.st_mtime_ns // 1000)
        return is_taken(str(path), versions[str(path)])

    found = find(is_old)
    files = [file for file in found.files if file.path in versions]
    notes = [*found.notes]
    for place in found.files:
        if place.path in versions:
            continue
        if not place.is_uri:
            message = f"{place.path}: a lake knows files again by size and time, which a table does not have"
            raise ReconcilerError(f"{message}: name the files that it is made of", code=NOT_KNOWN)
        listed = {path: version for path, version in _listed(spark, place.path).items() if not is_taken(path, version)}
        held = looked_up(
            spark, [SampleFile(path, Kind.PLACE, root=path, measure=place.measure) for path in sorted(listed)]
        )
        files += [_below(place, file) for file in held.files]
        notes += held.notes
        versions |= listed
    return NewFiles({file: versions[file.path] for file in files}, tuple(notes))


def _listed(spark: SparkSession, uri: str) -> dict[str, Version]:
    """Return the files of samples at and below a URI, patterns included."""
    files = spark.read.format("binaryFile").option("recursiveFileLookup", value=True).load(uri)
    modified = F.unix_micros("_metadata.file_modification_time").alias("modified")
    told = files.select("_metadata.file_path", "_metadata.file_size", modified).collect()
    every = {unquote(row["file_path"]): Version(row["file_size"], row["modified"]) for row in told}
    return {path: version for path, version in every.items() if kind_by_name(path.rpartition("/")[2]) is not None}


def _below(place: SampleFile, file: SampleFile) -> SampleFile:
    """Return the file with the folders `name=value` between it and its place as columns."""
    root = place.path.rstrip("/")
    folders = file.path.removeprefix(f"{root}/").split("/")[:-1] if file.path.startswith(f"{root}/") else ()
    named = tuple(part.partition("=")[0] for part in folders if "=" in part)
    return replace(file, root=root, folders=named) if named else file


def sources_of(files: Iterable[SampleFile], told: Iterable[str]) -> Mapping[SampleFile, str]:
    """Return the source that Spark names for each file's samples; the file's own name where it has no sample.

    Raises ReconcilerError where Spark names a source that is none of these files: its samples would be lost.
    """
    as_told = {_plain(unquote(source)): source for source in told}
    found = {file: as_told.get(_plain(source_of(file)), file.path) for file in files}
    strange = set(as_told.values()) - set(found.values())
    if strange:
        raise ReconcilerError(f"{min(strange)}: is not the name of a file that was to be taken", code=NOT_KNOWN)
    return found


def _plain(name: str) -> str:
    """Return the path of a file on this machine, however many slashes Spark puts before it."""
    return _LOCAL.sub("/", name)
