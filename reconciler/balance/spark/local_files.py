"""Files of this machine as Spark takes them: by their very names, whatever stands in these.

Hadoop decodes nothing in a path, so the `%20` of a file URI is taken for itself; without a scheme it looks in the
cluster's own file system. In what it reads, brackets and stars are patterns, which `files.sample_files` keeps out.
"""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from reconciler.balance.files.folders import UNWRITTEN
from reconciler.model.problem import ReconcilerError


def as_hadoop(path: Path | str) -> str:
    """Return an absolute path with the scheme of this machine's files."""
    return f"file://{path}"


def read_parquet(spark: SparkSession, folder: str) -> DataFrame:
    """Return the table in that folder."""
    # Turned off for several paths at once, Spark reads each of them as often as there are.
    return spark.read.option("__globPaths__", value=False).parquet(as_hadoop(folder))


def write_parquet(table: DataFrame, folder: Path) -> None:
    """Write the table into that folder; raise ReconcilerError where it went to another machine's disk."""
    table.write.parquet(as_hadoop(folder), mode="append", compression="zstd")
    if not any(folder.glob("*.parquet")):
        message = "Spark's workers wrote the result to disks of their own, and nothing arrived on this machine's"
        raise ReconcilerError(f"{message}: let --out name a folder that all of them share", code=UNWRITTEN)
