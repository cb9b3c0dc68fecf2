"""Computes the days until each disk is full: its partitions grow on as they did, and retention ends their growth.

For each of AHEAD_DAYS the growth of a disk's replicas is summed in whole bytes, so the order of rows does not show. One
row a disk comes to the driver, and goes back to the figures.
"""

from collections.abc import Sequence
from itertools import pairwise

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import DOUBLE, INT, TEXT, YES_NO, arrow_table
from reconciler.balance.model.balance_report import Level
from reconciler.balance.spark.growth import GROWTH
from reconciler.balance.spark.normalise import HOURS_A_DAY
from reconciler.balance.spark.replica_load import KEYS, PARTITION, at_levels, by_carrier

DAYS_UNTIL_FULL, FORECAST_DAYS, HAS_FORECAST = "days_until_full", "forecast_days", "has_forecast"
SOON_DAYS = 14
"""A disk that growth fills within so many days is worth a second look at what retention lets partitions keep."""
AHEAD_DAYS: tuple[int, ...] = (*range(15), 21, 28, 42, 60, 90, 120, 180, 270, 365, 730, 1825, 3650)
"""The days for which growth is summed; between two of them it is taken to be even."""
_AHEAD = tuple(f"ahead_{days}" for days in AHEAD_DAYS)
_DISKS = (Level.LOG_DIR.value, Level.BROKER.value)
_COLUMNS = {**{key: INT if key == "broker" else TEXT for key in KEYS}, FORECAST_DAYS: DOUBLE, HAS_FORECAST: YES_NO}
_MS_AN_HOUR = 3_600_000.0
_DECIMALS = 1


def by_growth_alone(slopes: DataFrame, replicas: DataFrame, limits: DataFrame, known: DataFrame) -> DataFrame:
    """Return the growth of each log dir, broker, rack and cluster, given the daily growth of partitions.

    Columns: the keys, and `growths`, the bytes for each of AHEAD_DAYS. `limits` is a `files.retention_table`. A
    partition grows up to the size that retention lets it keep, and shrinks until it is empty.
    """
    slopes = slopes.where(F.col(GROWTH).isNotNull())
    each = (
        replicas.join(slopes, on=list(PARTITION), how="inner")
        .join(F.broadcast(limits), on=["cluster", "topic"], how="left")
        .withColumn("size", F.coalesce("size_bytes", F.lit(0)))
        .withColumn("inflow", F.greatest(F.col("growth"), F.lit(0)) / HOURS_A_DAY)
        .withColumn("room", _room())
    )
    growths = [
        F.floor(F.greatest(F.least(F.col("growth") * days, F.col("room")), -F.col("size"))).alias(name)
        for days, name in zip(AHEAD_DAYS, _AHEAD, strict=True)
    ]
    sums = [F.sum(name).alias(name) for name in _AHEAD]
    return (
        by_carrier(each.select("carriers", *growths), *sums)
        .transform(at_levels, known.where(F.col("level") != Level.TOPIC.value))
        .groupBy(*KEYS)
        .agg(*sums)
        .select(*KEYS, F.array(*(F.coalesce(name, F.lit(0)) for name in _AHEAD)).alias("growths"))
    )


def _room() -> Column:
    """Return the bytes that a partition may still grow until retention deletes as much as arrives; None: no limit.

    The time limit keeps the inflow of the retention time and half of a segment, because Kafka deletes a whole segment
    once its newest record is too old.
    """
    inflow = F.col("inflow")
    rolled = F.least(F.col("segment_ms") / _MS_AN_HOUR, F.col("segment_bytes") / F.nullif("inflow", F.lit(0.0)))
    by_time = inflow * (F.col("kept_ms") / _MS_AN_HOUR + F.coalesce(rolled, F.lit(0.0)) / 2)
    by_bytes = F.col("kept_bytes") + F.col("segment_bytes") / 2
    ceiling = F.least(by_time, by_bytes)
    return F.when(ceiling.isNotNull(), F.greatest(ceiling - F.col("size"), F.lit(0.0)))


def disk_forecasts(growths: DataFrame, figures: DataFrame) -> DataFrame:
    """Return the keys of each row of `by_growth_alone`, FORECAST_DAYS and HAS_FORECAST (true).

    Only log dirs and brokers have days; racks and clusters take the days of their disks. `figures` have the free bytes.
    """

    def key(row: Row) -> tuple[object, ...]:
        return tuple(row[name] for name in KEYS)

    sizes = figures.where(F.col("level").isin(*_DISKS)).select(*KEYS, "free_bytes").collect()
    free = {key(row): row.free_bytes for row in sizes}
    rows = [(*key(row), days_until_full(row.growths, free.get(key(row))), True) for row in growths.collect()]
    return figures.sparkSession.createDataFrame(arrow_table(_COLUMNS, sorted(rows)))


def days_until_full(growths: Sequence[int], free: int | None) -> float | None:
    """Return after how many days a disk with so many free bytes is full, given its growth for each of AHEAD_DAYS.

    None if the free bytes are unknown, or if the disk is not full by the last of these days.
    """
    if free is None:
        return None
    if free <= 0:
        return 0.0
    for (day, grown), (next_day, next_grown) in pairwise(zip(AHEAD_DAYS, growths, strict=True)):
        if next_grown >= free:
            share = (free - grown) / (next_grown - grown)
            hours = day * HOURS_A_DAY + share * ((next_day - day) * HOURS_A_DAY)
            return round(hours / HOURS_A_DAY, _DECIMALS)
    return None
