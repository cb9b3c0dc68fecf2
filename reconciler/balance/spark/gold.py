"""Makes gold of silver: the loads of each day, what was wrong with its samples, and the loads of a window of days.

    DIR/gold/loads/cluster=prod-eu/date=2026-11-21/part-….parquet    a row a partition, sorted by topic and partition
    DIR/gold/report/cluster=prod-eu/date=2026-11-21/part-….parquet   one row: each rule's count, coverage

The definitions are those of `load`, applied to the rows of silver: to each day as a cluster of its own, or to all days
of a window.
"""

from collections.abc import Mapping, Sequence

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

from reconciler.balance.files.ledger import Day
from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.load import HASH, Measured, measured, partitions_of_buckets
from reconciler.balance.spark.normalise import GROUP, MARKED, MICROS
from reconciler.balance.spark.schemas import KEYS, LOADS
from reconciler.balance.spark.silver import read_days, with_day, with_day_as_cluster, write_days

_RULES = {rule: rule.name.lower() for rule in Rule}
_MOMENTS = ("first_bucket", "last_bucket", "busiest_bucket")
REPORT = StructType(
    [
        StructField("partitions", LongType()),
        StructField("samples", LongType()),
        *(StructField(name, TimestampType()) for name in _MOMENTS),
        StructField("step_seconds", LongType()),
        StructField("coverage", DoubleType()),
        *(StructField(name, LongType()) for name in _RULES.values()),
        StructField("cluster", StringType()),
        StructField("date", StringType()),
    ]
)
"""What was seen of a cluster on a day, and how often each rule was broken, as the report of `loads` tells it."""

LOADS_OF_DAY = StructType(
    [
        *(field for field in LOADS.fields if field.name != "cluster"),
        StructField("cluster", StringType()),
        StructField("date", StringType()),
    ]
)


def make_gold(silver: DataFrame, loads: str, report: str, bucket_seconds: int) -> None:
    """Write the gold of all days that these rows of silver are of."""
    result = loads_of_rows(silver.transform(with_day_as_cluster), bucket_seconds)
    try:
        write_days(result.loads.transform(with_day).select(*LOADS_OF_DAY.fieldNames()), loads, ("topic", "partition"))
        write_days(result.found.transform(_report), report, ("partitions",))
    finally:
        for table in result.kept:
            table.unpersist()


def loads_of_rows(silver: DataFrame, bucket_seconds: int) -> Measured:
    """Return the loads over all these rows of silver; the partitions that they are made of are among what is kept."""
    partitions = _partitions(silver).persist(StorageLevel.DISK_ONLY)
    result = measured(partitions, bucket_seconds)
    return result._replace(kept=(partitions, *result.kept))


def _partitions(silver: DataFrame) -> DataFrame:
    """Return rows of silver as the rows of `load.PARTITIONS`."""
    columns = {
        HASH: F.xxhash64(*KEYS),
        "bucket_back": -F.unix_micros("ts"),
        "size_at": F.unix_micros("size_at"),
        **{rule.value: F.coalesce(F.col("defects")[rule.value], F.lit(0)) for rule in MARKED},
    }
    rows = silver.withColumns(columns).drop("ts", "date", "defects")
    newest_first = rows.repartition(HASH).sortWithinPartitions(*GROUP, "bucket_back")
    return newest_first.transform(partitions_of_buckets)


def days_without_loads(spark: SparkSession, report: str, days: Sequence[Day]) -> tuple[Day, ...]:
    """Return those of these days on which no partition has a sample that counts."""
    none = read_days(spark, report, days, REPORT).where(F.col("partitions") == 0)
    return tuple(Day(*row) for row in none.select("cluster", "date").collect())


def defects_of(spark: SparkSession, report: str, days: Sequence[Day]) -> Mapping[str | None, Mapping[Rule, int]]:
    """Return how many samples of these days broke each rule, by cluster."""
    counts = read_days(spark, report, days, REPORT)
    sums = counts.groupBy("cluster").agg(*(F.sum(_RULES[rule]).alias(_RULES[rule]) for rule in MARKED)).collect()
    return {row["cluster"]: {rule: row[_RULES[rule]] or 0 for rule in MARKED} for row in sums}


def _report(found: DataFrame) -> DataFrame:
    told = found.select(
        "cluster",
        "partitions",
        F.coalesce("samples", F.lit(0)).alias("samples"),
        *(F.timestamp_micros(name).alias(name) for name in _MOMENTS),
        F.floor(F.col("step") / MICROS).alias("step_seconds"),
        "coverage",
        *(F.coalesce(F.col(rule.value), F.lit(0)).alias(name) for rule, name in _RULES.items()),
    )
    return told.transform(with_day).select(*REPORT.fieldNames())
