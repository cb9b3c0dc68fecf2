"""Makes silver of bronze, by cluster and day: one row for each partition and time bucket, cleaned, rates made.

    DIR/silver/cluster=prod-eu/date=2026-11-21/part-….parquet      sorted by topic, partition, ts

A day follows from its own samples and from those of the last hours before it, which only tell what grew since. So each
day of a cluster goes through `normalise`, `growth` and `load` as a cluster of its own, and one job makes all days.
Neither the order in which samples came, nor the number of runs that brought them, changes the result.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from reconciler.balance.files.ledger import Day
from reconciler.balance.spark.bronze import OF_DAY, folder_of, is_evening
from reconciler.balance.spark.growth import with_growth
from reconciler.balance.spark.load import buckets_of
from reconciler.balance.spark.normalise import MARKED, MICROS_PER_DAY, normalised
from reconciler.balance.spark.schemas import RATES
from reconciler.balance.spark.spellings import tried
from reconciler.balance.spark.uri_results import by_name

SILVER = StructType(
    [
        StructField("ts", TimestampType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        *(StructField(rate, DoubleType()) for rate in RATES),
        StructField("size_bytes", LongType()),
        StructField("size_at", TimestampType()),
        StructField("samples", LongType()),
        StructField("defects", MapType(StringType(), LongType())),
        StructField("cluster", StringType()),
        StructField("date", StringType()),
    ]
)
"""`ts` is the start of the bucket. Rates are means of the bucket's samples; `size_bytes` is the last size, seen at
`size_at`. `samples` is how many samples count, `defects` how many broke each rule (null: none did). A row may have only
defects."""

_MOST_ROWS_A_FILE = 20_000_000
# Bronze has marked what is from the future, as it was when it came.
_NO_FUTURE = datetime(9999, 12, 31, tzinfo=UTC)
_NO_DATE = " " * 10


def silver_of(samples: DataFrame, days: Sequence[Day], bucket_seconds: int) -> DataFrame:
    """Return the silver of these days, of samples of bronze (`bronze.bronze_of`)."""
    wanted = [day_name(day) for day in days]
    day_before = F.date_add(tried("date", "date"), 1).cast("string")
    each = F.when(is_evening(), F.array("date", day_before)).otherwise(F.array("date"))
    by_day = samples.withColumn("date", F.explode(each)).transform(with_day_as_cluster)
    of_days = by_day.where(F.coalesce("cluster", F.lit(_NO_DATE)).isin(wanted)).drop("date")
    whole = normalised(of_days, bucket_seconds=bucket_seconds, now=_NO_FUTURE).transform(with_growth)
    return whole.where(_is_of_the_day()).transform(buckets_of).transform(_silver)


def with_day_as_cluster(rows: DataFrame) -> DataFrame:
    """Return the rows with date and cluster together as the cluster; rows of no cluster stay so."""
    return rows.withColumn("cluster", F.concat(F.coalesce("date", F.lit(_NO_DATE)), "cluster"))


def with_day(rows: DataFrame) -> DataFrame:
    """Return the rows with `cluster` and `date` as they were."""
    named = F.substring("cluster", 1, len(_NO_DATE))
    return rows.withColumns(
        {"date": F.nullif(named, F.lit(_NO_DATE)), "cluster": F.expr(f"substring(cluster, {len(_NO_DATE) + 1})")}
    )


def day_name(day: Day) -> str:
    """Return the cluster's name that the day has in `with_day_as_cluster`."""
    return f"{day.date or _NO_DATE}{day.cluster or ''}"


def write_days(table: DataFrame, place: str, order: Sequence[str]) -> None:
    """Write the rows of their days in place of those that are there; no other day is touched.

    A day is one file, in that order, or a few where it is large.
    """
    whole = table.repartition(*OF_DAY).sortWithinPartitions(*OF_DAY, *order)
    writer = whole.write.partitionBy(*OF_DAY).option("maxRecordsPerFile", _MOST_ROWS_A_FILE)
    writer.option("partitionOverwriteMode", "dynamic").parquet(place, mode="overwrite", compression="zstd")


def read_days(spark: SparkSession, place: str, days: Sequence[Day], schema: StructType) -> DataFrame:
    """Return the rows of these days, all of which are there."""
    paths = [f"{place}/{folder_of(day)}" for day in days]
    return spark.read.schema(schema).option("basePath", place).parquet(*map(by_name, paths))


def empty_day(spark: SparkSession, place: str, day: Day, schema: StructType) -> None:
    """Leave no row of that day."""
    columns = [F.lit(None).cast(each.dataType).alias(each.name) for each in schema.fields if each.name not in OF_DAY]
    spark.range(0).select(*columns).write.parquet(f"{place}/{folder_of(day)}", mode="overwrite", compression="zstd")


def _is_of_the_day() -> Column:
    """Return whether a sample is not from the evening before, or has no time."""
    starts = F.unix_date(tried(f"substring(cluster, 1, {len(_NO_DATE)})", "date"))
    is_before = -F.col("moment_back") < starts.cast("long") * F.lit(MICROS_PER_DAY)
    return ~F.coalesce(is_before, F.lit(col=False))


def _silver(buckets: DataFrame) -> DataFrame:
    """Return buckets (`load.buckets_of`) as rows of silver."""
    broken = F.array(
        *(
            F.when(F.col(rule.value) > 0, F.struct(F.lit(rule.value).alias("key"), F.col(rule.value).alias("value")))
            for rule in MARKED
        )
    )
    is_any = F.greatest(*(F.col(rule.value) for rule in MARKED)) > 0
    defects = F.when(is_any, F.map_from_entries(F.array_compact(broken)))
    return (
        buckets.withColumns(
            {
                "ts": F.timestamp_micros(-F.col("bucket_back")),
                "size_at": F.timestamp_micros("size_at"),
                "defects": defects,
            }
        )
        .transform(with_day)
        .select(*SILVER.fieldNames())
    )
