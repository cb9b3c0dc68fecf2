"""Spells what versions of PySpark spell differently in the one way that all have, from 3.5 on, Spark Connect too.

Of these the jobs use only the right side:

    column.try_cast(kind)                    tried("name, or SQL", kind)      3.5 has it in SQL alone
    spark.createDataFrame(an Arrow table)    in_spark(spark, table)           3.5 takes none, and a list
    spark.createDataFrame(a list)            the same                        wants Python on executors
    reduce(DataFrame.unionByName, tables)    united(tables)                   Connect has classes of its own in 3.5
    reduce(Column.__and__, conditions)       all_of(...), any_of(...)         the same
    Column.bitwiseOR(one, other)             one.bitwiseOR(other)             the same
    table.localCheckpoint()                  settled(table)                   Connect's 3.5 has none, 4.x no deep plan
    F.array_position("names", a column)      F.call_function("array_position", ...)    3.5 takes a value
    one[a column]                            F.try_element_at(one, a column)  Connect's 3.5 takes a value
    sparkContext, _jdf, _jvm, RDDs           nothing                          Connect has none
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any
from uuid import uuid4

import pyspark
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import StructType

from reconciler.balance.files.arrow_tables import ArrowTable
from reconciler.balance.spark.connect import is_connected

_NEW = 4
"""The first version that takes Arrow tables, and whose Spark Connect settles some."""


def tried(text: str, kind: str) -> Column:
    """Return what this SQL says as that type, such as `bigint`; null where it cannot be."""
    return F.expr(f"try_cast({text} AS {kind})")


def in_spark(spark: SparkSession, table: ArrowTable) -> DataFrame:
    """Return the Arrow table in Spark. No Python runs beside executors for it, as it would for a list of rows."""
    if _is_new():
        return spark.createDataFrame(table)
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema)
    if not table.num_rows:
        return spark.range(0).select(*(F.lit(None).cast(each.dataType).alias(each.name) for each in schema))
    if is_connected():
        rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return spark.createDataFrame(rows, schema)
    return _by_java(spark, table, schema)


def _by_java(spark: Any, table: ArrowTable, schema: StructType) -> DataFrame:  # noqa: ANN401 - its insides
    """Return the table as 3.5 itself takes one of pandas: as a stream of Arrow."""
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer

    java = spark._jvm  # noqa: SLF001 - 3.5 has no other way
    batches = spark.sparkContext._serialize_to_jvm(  # noqa: SLF001
        table.to_batches(),
        ArrowStreamSerializer(),
        java.PythonSQLUtils.readArrowStreamFromFile,
        java.ArrowIteratorServer,
    )
    return DataFrame(java.PythonSQLUtils.toDataFrame(batches, schema.json(), spark._jsparkSession), spark)  # noqa: SLF001


def united(tables: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all tables, of which there is at least one, by the names of their columns."""
    return reduce(lambda all_before, table: all_before.unionByName(table), tables)


def settled(table: DataFrame) -> DataFrame:
    """Compute the rows of the table now, once, and return them; they stay while it is held, and until `unpersist`.

    What follows is planned without all that they came from, which Spark looks through again at every join; but for
    Spark Connect of 3.5 (`settles`).
    """
    if not settles():
        return table.persist(StorageLevel.DISK_ONLY)
    if not is_connected():
        return table.localCheckpoint()
    # The client checkpoints few steps only, as protobuf reads no message nested deeper than 100: so those of a view.
    name, session = f"settled_{uuid4().hex}", table.sparkSession
    table.createOrReplaceTempView(name)
    try:
        return session.table(name).localCheckpoint()
    finally:
        session.catalog.dropTempView(name)


def settles() -> bool:
    """Return whether tables are settled here: where not, they are only kept, and what follows is planned with them."""
    return _is_new() or not is_connected()


def _is_new() -> bool:
    return int(pyspark.__version__.partition(".")[0]) >= _NEW


def all_of(first: Column, *others: Column) -> Column:
    """Return whether all conditions hold."""
    return reduce(lambda one, other: one & other, others, first)


def any_of(first: Column, *others: Column) -> Column:
    """Return whether one of the conditions holds."""
    return reduce(lambda one, other: one | other, others, first)
