"""A folder of snapshots -> samples: sizes and end offsets at some moments; the rates come from their growth."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from reconciler.balance.spark.local_files import as_hadoop
from reconciler.balance.spark.marks import MARKS
from reconciler.balance.spark.schemas import RATES

_PARTITION = StructType(
    [
        StructField("partition", IntegerType()),
        StructField("leader", IntegerType()),
        StructField("replicas", ArrayType(IntegerType())),
        StructField("sizes", ArrayType(LongType())),
        StructField("endOffset", LongType()),
    ]
)
_TOPIC = StructType([StructField("name", StringType()), StructField("partitions", ArrayType(_PARTITION))])
_SNAPSHOT = StructType(
    [
        StructField("clusterId", StringType()),
        StructField("observedAt", StringType()),
        StructField("topics", ArrayType(_TOPIC)),
    ]
)


def snapshot_samples(spark: SparkSession, paths: Sequence[str], cluster: str | None) -> DataFrame:
    """Return one sample for each partition of each snapshot, of the named cluster or else of its cluster id.

    A partition's size is its leader's, the largest replica's where that is not known.
    """
    name = F.col("clusterId") if cluster is None else F.lit(cluster)
    leader_at = F.array_position("each.replicas", F.col("each.leader")).cast("int")
    of_leader = F.when(leader_at > 0, F.try_element_at("each.sizes", leader_at))
    return (
        spark.read.schema(_SNAPSHOT)
        .json(list(map(as_hadoop, paths)), multiLine=True, mode="FAILFAST")
        .select("*", F.col("_metadata.file_modification_time").alias("written_at"))
        .withColumn("topic", F.explode("topics"))
        .withColumn("each", F.explode("topic.partitions"))
        .select(
            F.col("observedAt").try_cast("timestamp").alias("ts"),
            name.alias("cluster"),
            F.col("topic.name").alias("topic"),
            F.col("each.partition").alias("partition"),
            *(F.lit(None).cast("double").alias(rate) for rate in RATES),
            F.coalesce(of_leader, F.array_max("each.sizes")).alias("size_bytes"),
            F.col("each.endOffset").alias("end_offset"),
            "written_at",
            F.lit(0).alias(MARKS),
        )
    )
