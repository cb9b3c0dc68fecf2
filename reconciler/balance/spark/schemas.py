"""Declares the tables that go in and out of the Spark jobs, as constants: nothing is inferred from data.

Times are UTC with microseconds, rates are per second, sizes are bytes. A key (`ts, cluster, topic, partition`) is never
null in a sample that counts; any measure may be null, which is unknown and never 0. The columns themselves are those of
`files.sample_files` and `files.loads`.
"""

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import (
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from reconciler.balance.files.sample_files import KEYS, LOG_START, SAMPLE_COLUMNS
from reconciler.balance.model.shares import RATES
from reconciler.files.loads import LOAD_COLUMNS

__all__ = ["KEYS", "LOADS", "LOG_START", "RATES", "SAMPLES", "struct", "unknown_but"]

_TYPES: Mapping[str, DataType] = {
    "timestamp": TimestampType(),
    "string": StringType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "float64": DoubleType(),
}


def struct(columns: Mapping[str, DataType | str]) -> StructType:
    """Return a schema of these columns; a type may be told as Arrow names it."""
    return StructType(
        [StructField(name, _TYPES[kind] if isinstance(kind, str) else kind) for name, kind in columns.items()]
    )


SAMPLES = struct({**SAMPLE_COLUMNS, LOG_START: "int64"})
LOADS = struct(LOAD_COLUMNS)


def unknown_but(*names: str) -> list[Column]:
    """Return the columns of SAMPLES but these, each null."""
    return [F.lit(None).cast(field.dataType).alias(field.name) for field in SAMPLES if field.name not in names]
