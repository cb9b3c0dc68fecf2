"""Reads samples in forms that Spark reads only under conditions, and refuses what it would read wrongly or not at all.

These are Avro, times in ORC, and decimal commas in CSV.
"""

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.files.sample_files import SampleFile
from reconciler.model.problem import ReconcilerError

NO_AVRO, ORC_TIMES = "KR442", "KR443"
_READS_ZONES = (4, 3)
_UTC = ("UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "UCT", "Etc/UCT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal")


def avro(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """Return the table in these Avro files; raise ReconcilerError where this Spark has no reader for them."""
    try:
        return reader.format("avro").load(list(paths))
    except AnalysisException as error:
        # Connect looks for the reader later: what it says then is told as any failure of Spark's.
        if "avro" not in str(error).lower():
            raise
        raise ReconcilerError(
            "Spark reads Avro with a package of its own, which is not there: give it one of its version, "
            "org.apache.spark:spark-avro_2.13, in spark.jars.packages, or write the samples as Parquet",
            code=NO_AVRO,
        ) from error


def refuse_local_times(spark: SparkSession, file: SampleFile) -> None:
    """Raise ReconcilerError for times in ORC that Spark would read wrongly, or not at all.

    Spark reads those without a zone in Java's zone, which is right in UTC alone, and those with a zone from 4.3 on.
    """
    kind = dict(file.columns).get("ts", "")
    if kind.startswith("timestamp") and "tz=" in kind and _version(spark) < _READS_ZONES:
        raise ReconcilerError(
            f"{file.path}: has times with a zone, which Spark {spark.version} cannot read in ORC: write ts as text, or "
            "as milliseconds since 1970, or run the job on Spark 4.3",
            code=ORC_TIMES,
        )
    if kind != "timestamp[us]":
        return
    (row,) = spark.range(1).select(F.expr("reflect('java.time.ZoneId', 'systemDefault')").alias("zone")).collect()
    if row["zone"] not in _UTC:
        raise ReconcilerError(
            f"{file.path}: has times without a zone, which Spark takes in ORC for those of its Java's zone, "
            f"{row['zone']}: start it with TZ=UTC, or write ts with a zone, as text, or as milliseconds since 1970",
            code=ORC_TIMES,
        )


def _version(spark: SparkSession) -> tuple[int, int]:
    major, minor = spark.version.split(".")[:2]
    return int(major), int(minor)


def with_decimal_points(samples: DataFrame, measures: Sequence[str]) -> DataFrame:
    """Return texts of numbers with a point where a comma stood before the fraction, as CSVs with semicolons have it."""
    return samples.withColumns({name: F.translate(F.col(name), ",", ".") for name in measures})
