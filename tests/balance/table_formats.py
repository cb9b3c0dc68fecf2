"""Reads and replaces Delta and Iceberg tables, in a PySpark that has their readers; prints what came of it as JSON.

    python -m balance.table_formats FOLDER

A program of its own: the PySpark of all other tests is newer than those that the formats support.
"""

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.model.problem import InvalidInput, ReconcilerError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 4, 1, tzinfo=UTC)
COLUMNS = "ts timestamp, cluster string, topic string, partition int, bytes_in double"
CATALOGUES = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.lake.type": "hadoop",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


def main(home: Path) -> dict[str, object]:
    """Return what each place gave: rows, or the code of what was wrong."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.sql.warehouse.dir", str(home / "warehouse"))
    for name, value in {**CATALOGUES, "spark.sql.catalog.lake.warehouse": str(home / "lake")}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _make(spark, home)
    told: dict[str, object] = {}
    delta, iceberg = str(home / "delta ö"), str(home / "lake" / "kafka" / "samples")
    to_path = f"delta.`{home}/by path`"
    for name, samples, out in (
        ("Delta folder", delta, str(home / "a")),
        ("Delta URI", f"file:{delta}", str(home / "b")),
        ("Iceberg folder", iceberg, str(home / "c")),
        ("Iceberg table to Iceberg", "lake.kafka.samples", "lake.kafka.loads"),
        ("Iceberg again", "lake.kafka.samples", "lake.kafka.loads"),
        ("Delta to Delta", delta, "kafka.loads"),
        ("Delta again", delta, "kafka.loads"),
        ("to a path of Delta", delta, to_path),
        ("part of Delta", f"{delta}/cluster=east", str(home / "d")),
        ("over another's Iceberg", "lake.kafka.samples", "lake.kafka.samples"),
        ("over another's Delta", delta, f"delta.`{delta}`"),
    ):
        told[name] = _code_or(lambda samples=samples, out=out: _loads(spark, samples, out))  # type: ignore[misc]
    told["rows"] = {
        place: _rows(spark, place) for place in ("lake.kafka.loads", "kafka.loads", to_path, str(home / "by path"))
    }
    told["commits"] = [
        spark.sql("SELECT * FROM lake.kafka.loads.snapshots").count(),
        spark.sql("DESCRIBE HISTORY kafka.loads").count(),
    ]
    spark.stop()
    return told


def _make(spark: "SparkSession", home: Path) -> None:
    """Write four partitions, of which one is removed again: its rows stay in the files."""
    rows = [(datetime(2026, 3, 29, 0, m, tzinfo=UTC), "east", "t", part, 10.0) for m in range(3) for part in range(4)]
    samples = spark.createDataFrame(rows, COLUMNS)
    samples.write.format("delta").partitionBy("cluster").save(str(home / "delta ö"))
    spark.sql(f"DELETE FROM delta.`{home}/delta ö` WHERE partition = 3")  # noqa: S608 - the test's own folder
    spark.sql("CREATE NAMESPACE lake.kafka")
    samples.writeTo("lake.kafka.samples").using("iceberg").create()
    spark.sql("DELETE FROM lake.kafka.samples WHERE partition = 3")
    spark.sql("CREATE DATABASE kafka")


def _code_or(made: Callable[[], int]) -> int | str:
    try:
        return made()
    except InvalidInput as error:
        return error.problems[0].code
    except ReconcilerError as error:
        return error.code


def _loads(spark: "SparkSession", samples: str, out: str) -> int:
    from reconciler.balance.files.sample_files import find_sample_files
    from reconciler.balance.spark.loads_job import SampleTask, run_loads
    from reconciler.balance.spark.places import looked_up
    from reconciler.render.as_json import document

    files = looked_up(spark, find_sample_files([samples]).files).files
    return run_loads(spark, SampleTask(files, 60, NOW), out, document).partitions


def _rows(spark: "SparkSession", place: str) -> int:
    from reconciler.balance.spark.tables import read_table

    return read_table(spark, place).count()


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))  # noqa: T201 - what its caller reads
