"""Spells what PySpark and Spark Connect spell differently in the one way that both have, from 4.0 on.

Of these the jobs use only the right side:

    column.try_cast(kind)                    tried("name, or SQL", kind)      its argument is SQL
    spark.createDataFrame(a list)            createDataFrame(an Arrow table)  a list wants Python on executors
    table.localCheckpoint()                  settled(table)                   Connect takes no deep plan
    sparkContext, _jdf, _jvm, RDDs           nothing                          Connect has none
"""

from collections.abc import Iterable
from functools import reduce
from uuid import uuid4

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.spark.connect import is_connected


def tried(text: str, kind: str) -> Column:
    """Return what this SQL says as that type, such as `bigint`; null where it cannot be."""
    return F.expr(f"try_cast({text} AS {kind})")


def united(tables: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all tables, of which there is at least one, by the names of their columns."""
    return reduce(lambda all_before, table: all_before.unionByName(table), tables)


def settled(table: DataFrame) -> DataFrame:
    """Compute the rows of the table now, once, and return them; they stay while it is held, and until `unpersist`.

    What follows is planned without all that they came from, which Spark looks through again at every join.
    """
    if not is_connected():
        return table.localCheckpoint()
    # The client checkpoints few steps only, as protobuf reads no message nested deeper than 100: so those of a view.
    name, session = f"settled_{uuid4().hex}", table.sparkSession
    table.createOrReplaceTempView(name)
    try:
        return session.table(name).localCheckpoint()
    finally:
        session.catalog.dropTempView(name)
