"""Tells Delta and Iceberg tables from folders of Parquet: their files hold removed rows too, so they are no samples."""

from collections.abc import Iterable
from pathlib import Path

from reconciler.files.paths import expanded, is_folder

DELTA, ICEBERG = "delta", "iceberg"
"""The formats, by the names that Spark has for their readers."""
PART_OF_TABLE = "KR281"
NO_READER = "KR280"


def table_format(folder: Path) -> str | None:
    """Return the format of the table that this folder is; None where it is a mere folder."""
    if is_folder(folder / "_delta_log"):
        return DELTA
    return ICEBERG if any(expanded(folder, ("metadata", "*.metadata.json"))) else None


def tables_below(base: Path, files: Iterable[Path]) -> dict[Path, str]:
    """Return the tables at and below that folder, with their formats, as far as they hold these files."""
    folders = {file.parent for file in files}
    above = {folder for each in folders for folder in (each, *each.parents) if folder.is_relative_to(base)}
    formats = {folder: table_format(folder) for folder in sorted({base, *above})}
    return {folder: found for folder, found in formats.items() if found is not None}


def table_above(path: Path) -> Path | None:
    """Return the table that this file or folder is a part of, if any."""
    return next((folder for folder in path.parents if table_format(folder)), None)


def part_of_table(table: str) -> str:
    """Return in words why a part of a table is not read by itself."""
    return f"is a part of the table {table}, which alone knows whether its rows still count: name the table"


def no_reader(found: str) -> str:
    """Return in words what to do where Spark has no reader of that format."""
    package = "io.delta:delta-spark" if found == DELTA else "org.apache.iceberg:iceberg-spark-runtime"
    return (
        f"is {'a Delta' if found == DELTA else 'an Iceberg'} table, and this Spark has no reader for it: give it "
        f"{package} of its version by spark.jars.packages, or name an export of the table as Parquet"
    )
