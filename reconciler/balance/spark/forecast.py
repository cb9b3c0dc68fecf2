"""Computes the days until each disk is full: its partitions grow on as they did, up to what retention lets them keep.

What partitions will have grown by is summed over the replicas of a disk for a list of days, in whole bytes, so that no
order of rows can show. One row a disk comes to the driver, and goes back to the figures.
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
    """Return what each log dir, broker, rack and cluster grows by, of what partitions grow a day: the keys, `ahead`.

    `ahead` has a figure for each of AHEAD_DAYS. `limits` are of topics, as `files.retention_table` makes them. A
    partition that grows does so up to what retention lets it keep; one that shrinks does so until nothing is left.
    """
    slopes = slopes.where(F.col(GROWTH).isNotNull())
    each = (
        replicas.join(slopes, on=list(PARTITION), how="inner")
        .join(F.broadcast(limits), on=["cluster", "topic"], how="left")
        .withColumn("size", F.coalesce("size_bytes", F.lit(0)))
        .withColumn("inflow", F.greatest(F.col("growth"), F.lit(0)) / HOURS_A_DAY)
        .withColumn("room", _room())
    )
    after = [
        F.floor(F.greatest(F.least(F.col("growth") * days, F.col("room")), -F.col("size"))).alias(name)
        for days, name in zip(AHEAD_DAYS, _AHEAD, strict=True)
    ]
    sums = [F.sum(name).alias(name) for name in _AHEAD]
    return (
        by_carrier(each.select("carriers", *after), *sums)
        .transform(at_levels, known.where(F.col("level") != Level.TOPIC.value))
        .groupBy(*KEYS)
        .agg(*sums)
        .select(*KEYS, F.array(*(F.coalesce(name, F.lit(0)) for name in _AHEAD)).alias("ahead"))
    )


def _room() -> Column:
    """Return how much a partition may still grow until retention deletes what comes in; None where nothing bounds it.

    By time it is what comes in during the retention, and half of what a segment takes: Kafka deletes a segment once its
    newest record is too old.
    """
    inflow = F.col("inflow")
    rolled = F.least(F.col("segment_ms") / _MS_AN_HOUR, F.col("segment_bytes") / F.nullif("inflow", F.lit(0.0)))
    by_time = inflow * (F.col("kept_ms") / _MS_AN_HOUR + F.coalesce(rolled, F.lit(0.0)) / 2)
    by_bytes = F.col("kept_bytes") + F.col("segment_bytes") / 2
    ceiling = F.least(by_time, by_bytes)
    return F.when(ceiling.isNotNull(), F.greatest(ceiling - F.col("size"), F.lit(0.0)))


def disk_forecasts(ahead: DataFrame, figures: DataFrame) -> DataFrame:
    """Return the keys of each row of `ahead`, FORECAST_DAYS and HAS_FORECAST (true).

    Log dirs and brokers alone have days: those of racks and clusters follow from them. `figures` say what is free.
    """

    def key(row: Row) -> tuple[object, ...]:
        return tuple(row[name] for name in KEYS)

    sizes = figures.where(F.col("level").isin(*_DISKS)).select(*KEYS, "free_bytes").collect()
    free = {key(row): row.free_bytes for row in sizes}
    rows = [(*key(row), days_until_full(row.ahead, free.get(key(row))), True) for row in ahead.collect()]
    return figures.sparkSession.createDataFrame(arrow_table(_COLUMNS, sorted(rows)))


def days_until_full(ahead: Sequence[int], free: int | None) -> float | None:
    """Return after how many days a disk with so many bytes free is full, by what it grows until each of AHEAD_DAYS.

    None where what is free is unknown, or where the disk is not full by the last of these days.
    """
    if free is None:
        return None
    if free <= 0:
        return 0.0
    for (first, here), (then, there) in pairwise(zip(AHEAD_DAYS, ahead, strict=True)):
        if there >= free:
            share = (free - here) / (there - here)
            hours = first * HOURS_A_DAY + share * ((then - first) * HOURS_A_DAY)
            return round(hours / HOURS_A_DAY, _DECIMALS)
    return None
