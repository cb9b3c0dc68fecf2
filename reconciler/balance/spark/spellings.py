"""Spells what versions of PySpark spell differently in the one way that all have, from 3.5 on, Spark Connect too.

Of these the jobs use only the right side:

    column.try_cast(kind)                    tried("name, or SQL", kind)      3.5 has it in SQL alone
    spark.createDataFrame(an Arrow table)    in_spark(spark, table)           3.5 takes rows
    reduce(DataFrame.unionByName, tables)    united(tables)                   Connect has classes of its own in 3.5
    reduce(Column.__and__, conditions)       all_of(...), any_of(...)         the same
    Column.bitwiseOR(one, other)             one.bitwiseOR(other)             the same
    sparkContext, _jdf, _jvm, RDDs           nothing                          Connect has none
"""

from collections.abc import Iterable
from functools import reduce

import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.files.arrow_tables import ArrowTable

_TAKES_ARROW = 4


def tried(text: str, kind: str) -> Column:
    """Return what this SQL says as that type, such as `bigint`; null where it cannot be."""
    return F.expr(f"try_cast({text} AS {kind})")


def in_spark(spark: SparkSession, table: ArrowTable) -> DataFrame:
    """Return the Arrow table in Spark."""
    if int(pyspark.__version__.partition(".")[0]) >= _TAKES_ARROW:
        return spark.createDataFrame(table)
    from pyspark.sql.pandas.types import from_arrow_schema

    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return spark.createDataFrame(rows, from_arrow_schema(table.schema), verifySchema=False)


def united(tables: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all tables, of which there is at least one, by the names of their columns."""
    return reduce(lambda all_before, table: all_before.unionByName(table), tables)


def all_of(first: Column, *others: Column) -> Column:
    """Return whether all conditions hold."""
    return reduce(lambda one, other: one & other, others, first)


def any_of(first: Column, *others: Column) -> Column:
    """Return whether one of the conditions holds."""
    return reduce(lambda one, other: one | other, others, first)
