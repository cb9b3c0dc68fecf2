"""Reads what `collect` writes beside samples of partitions: those of replicas and of brokers; tells who stood where."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from reconciler.balance.files.sample_files import BROKER_COLUMNS
from reconciler.balance.files.sample_writer import BROKERS_FOLDER, REPLICAS_FOLDER
from reconciler.balance.spark.history import period_of
from reconciler.balance.spark.normalise import HOUR
from reconciler.balance.spark.replica_load import PARTITION
from reconciler.balance.spark.schemas import REPLICA_SAMPLES, struct
from reconciler.balance.spark.session import as_hadoop
from reconciler.balance.spark.spellings import united

BROKER_SAMPLES = struct(BROKER_COLUMNS)


def replica_samples(spark: SparkSession, places: Sequence[str], cluster: str | None) -> DataFrame | None:
    """Return the replica samples beside those in these places; None where there are none."""
    return _together((_beside(spark, place, REPLICAS_FOLDER, REPLICA_SAMPLES) for place in places), cluster)


def broker_samples(spark: SparkSession, places: Sequence[str], cluster: str | None) -> DataFrame | None:
    """Return the samples of brokers beside those in these places, one a moment; None where there are none.

    A negative figure, and one that is no number, is unknown.
    """
    named = _together((_beside(spark, place, BROKERS_FOLDER, BROKER_SAMPLES) for place in places), cluster)
    if named is None:
        return None
    figures = [name for name, kind in BROKER_COLUMNS.items() if kind == "float64"]
    cleaned = {name: F.when((F.col(name) >= 0) & (F.col(name) < float("inf")), F.col(name)) for name in figures}
    return named.groupBy("ts", "cluster", "broker").agg(*(F.max(value).alias(name) for name, value in cleaned.items()))


def _beside(spark: SparkSession, place: str, folder: str, schema: StructType) -> DataFrame | None:
    is_uri = "://" in place
    if not is_uri and not any((Path(place) / folder).rglob("*.parquet")):
        return None
    # Folders name cluster and day a second time: the columns are in the files. A folder of this machine is read by its
    # very name, whatever stands in it.
    reader = spark.read.schema(schema).option("recursiveFileLookup", value=True)
    reader = reader if is_uri else reader.option("__globPaths__", value=False)
    path = f"{place.rstrip('/')}/{folder}" if is_uri else as_hadoop(Path(place).absolute() / folder)
    try:
        table = reader.parquet(path)
        table.columns  # noqa: B018 - Spark Connect looks for the folder only when it is asked for something
    except AnalysisException:
        return None
    return table


def _together(found: Iterable[DataFrame | None], cluster: str | None) -> DataFrame | None:
    """Return the rows that say when and of which broker they are, of that cluster if one is named."""
    tables = [table for table in found if table is not None]
    if not tables:
        return None
    named = united(tables).where(F.col("ts").isNotNull() & F.col("cluster").isNotNull() & (F.col("broker") >= 0))
    return named if cluster is None else named.where(F.col("cluster") == cluster)


def standing(replicas: DataFrame, times: DataFrame) -> DataFrame:
    """Return where replicas stood at the end of each period: PARTITION, at, broker, size.

    They are those of the partition's last round in the period: a broker that does not answer then carries nothing. A
    copy that a move between log dirs fills does not count.
    """
    micros = F.unix_micros("ts")
    period = period_of(F.floor(micros / HOUR))
    each = (
        replicas.where(F.col("topic").isNotNull() & F.col("partition").isNotNull())
        .where(~F.coalesce("is_future", F.lit(col=False)))
        .join(F.broadcast(times), on="cluster", how="inner")
        .where((micros >= F.col("first")) & (micros < F.col("last")))
        .select(*PARTITION, "broker", "ts", period.alias("at"), "size_bytes")
    )
    rounds = each.groupBy(*PARTITION, "at", "ts").agg(F.collect_set(F.struct("broker", "size_bytes")).alias("stood"))
    last = rounds.groupBy(*PARTITION, "at").agg(F.max_by("stood", "ts").alias("stood"))
    return (
        last.select(*PARTITION, "at", F.explode("stood").alias("one"))
        .groupBy(*PARTITION, "at", F.col("one.broker").alias("broker"))
        .agg(F.max("one.size_bytes").alias("size"))
    )
