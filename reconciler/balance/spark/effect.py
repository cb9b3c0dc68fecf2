"""What a plan copies to each broker and takes away from it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level
from reconciler.balance.spark.replica_load import AFTER, BEFORE, NO_BROKER, PARTITION

MOVED = ("arriving_replicas", "arriving_bytes", "leaving_replicas", "leaving_bytes")


def moved(replicas: DataFrame) -> DataFrame:
    """Return what arrives at and leaves each broker, and each cluster in all: partitions that stand on both sides.

    Columns: cluster, level, broker, then arriving_replicas, arriving_bytes, leaving_replicas, leaving_bytes. An unknown
    size counts as 0 bytes.
    """
    stands = F.when(F.col("side") == BEFORE, F.struct("size_bytes"))
    reached = F.when(F.col("side") == AFTER, F.struct("size_bytes"))
    each = replicas.groupBy(*PARTITION, "broker").agg(F.max(stands).alias("was"), F.max(reached).alias("now"))
    lasting = (
        replicas.groupBy(*PARTITION).agg(F.count_distinct("side").alias("sides")).where(F.col("sides") > 1)
    ).select(*PARTITION)
    changed = each.where(F.col("was").isNull() | F.col("now").isNull()).join(lasting, on=list(PARTITION), how="inner")
    at = F.explode(F.array(_at(Level.BROKER, F.col("broker")), _at(Level.CLUSTER, F.lit(NO_BROKER)))).alias("at")
    arrives, leaves = F.col("was").isNull(), F.col("now").isNull()
    return (
        changed.select("cluster", at, "was", "now")
        .groupBy("cluster", "at.level", "at.broker")
        .agg(
            F.count_if(arrives).alias("arriving_replicas"),
            F.coalesce(F.sum(F.when(arrives, F.col("now.size_bytes"))), F.lit(0)).alias("arriving_bytes"),
            F.count_if(leaves).alias("leaving_replicas"),
            F.coalesce(F.sum(F.when(leaves, F.col("was.size_bytes"))), F.lit(0)).alias("leaving_bytes"),
        )
    )


def _at(level: Level, broker: Column) -> Column:
    return F.struct(F.lit(level.value).alias("level"), broker.cast("int").alias("broker"))
