"""Tells the history of clusters: what brokers carry hour by hour and day by day, and how evenly.

All of it comes from the sums of each bucket (`buckets.bucketed`), by the placement of today; sizes and what replica
samples tell come from each partition's periods (`partition_periods`). What goes to the driver is one row a broker, with
a list of figures, and one row a period: cells of their own would be a hundred times as heavy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import LONG, TEXT, ArrowTable, arrow_table
from reconciler.balance.model.balance_report import Level, Measure
from reconciler.balance.model.history import HOURS_A_DAY, HOURS_A_WEEK
from reconciler.balance.spark.normalise import HOUR, MICROS, MILLI, hour_of_week
from reconciler.balance.spark.replica_load import BEFORE, NO_BROKER, PARTITION
from reconciler.balance.spark.skew import WEIGHED_BY, even, weighed

if TYPE_CHECKING:
    from pyspark.sql import Row

TIMES = {"cluster": TEXT} | dict.fromkeys(
    ("unit", "origin", "periods", "first", "last", "start", "middle", "end"), LONG
)
_WAYS = ("in", "out")
_TWO_DAYS, _TWO_WEEKS = 2 * HOURS_A_DAY, 2 * HOURS_A_WEEK


@dataclass(frozen=True, slots=True)
class Times:
    """The time that one cluster's samples fill, in hours since 1970 where nothing else is said.

    `unit`: hours of a period. `origin`: the number of the first period. `first` and `last`: where buckets begin and
    end, in microseconds. `start` to `middle` is compared with `middle` to `end`; None where there is too little.
    """

    cluster: str
    unit: int
    origin: int
    periods: int
    first: int
    last: int
    start: int | None = None
    middle: int | None = None
    end: int | None = None


def times_of(spans: Iterable["Row"]) -> Mapping[str, Times]:
    """Return the times of each cluster that has samples (`soundness.SPANS`)."""
    return {row.cluster: _times(row.cluster, row["first"], row["last"] + row.step * MICROS) for row in spans}


def _times(cluster: str, first: int, last: int) -> Times:
    begins, ends = first // HOUR, -(-last // HOUR)
    hours = ends - begins
    unit = HOURS_A_DAY if hours >= _TWO_DAYS else 1
    origin = begins // unit
    told = Times(cluster, unit, origin, periods=(ends - 1) // unit - origin + 1, first=first, last=last)
    if hours < 2:  # noqa: PLR2004 - two halves
        return told
    half = HOURS_A_WEEK if hours >= _TWO_WEEKS else hours // 2 // HOURS_A_DAY * HOURS_A_DAY or hours // 2
    return replace(told, start=ends - 2 * half, middle=ends - half, end=ends)


def time_table(times: Iterable[Times]) -> ArrowTable:
    """Return the times as a table, TIMES."""
    return arrow_table(TIMES, (tuple(getattr(each, name) for name in TIMES) for each in times))


def period_of(hour: Column) -> Column:
    """Return the period, from 0 on, of an hour since 1970, in rows joined with TIMES."""
    return (F.floor(hour / F.col("unit")) - F.col("origin")).cast("int")


def fills_since_seen(fills: DataFrame, series: DataFrame) -> DataFrame:
    """Return what was filled of each partition (`holes`) from its first known rate on: before that it was not there."""
    first = series.groupBy(*PARTITION).agg(F.min(F.array_min("points.bucket")).alias("seen"))
    return fills.join(first, on=list(PARTITION), how="inner").where(F.col("bucket") >= F.col("seen")).drop("seen")


def hourly(by_bucket: DataFrame, known: DataFrame) -> DataFrame:
    """Return what each broker, and each cluster, carries in each hour, by the placement of today.

    Columns: cluster, broker (NO_BROKER for the cluster), hour (since 1970), then for in and out the sum of the buckets
    in which it is known, in thousandths a second, and their count.
    """
    is_told = (F.col("side") == BEFORE) & F.col("level").isin(Level.BROKER.value, Level.CLUSTER.value)
    keys = F.broadcast(known.where(is_told).select("key", "broker").distinct())
    return (
        by_bucket.where(F.col("bucket").isNotNull())
        .join(keys, on="key", how="inner")
        .groupBy("cluster", "broker", F.floor(F.col("bucket") / HOUR).alias("hour"))
        .agg(
            *(F.sum(f"bytes_{way}").alias(f"{way}_sum") for way in _WAYS),
            *(F.count(f"bytes_{way}").alias(f"{way}_count") for way in _WAYS),
        )
    )


def week(hours: DataFrame) -> DataFrame:
    """Return one row for each cluster and broker of `hourly`: in and out, lists of 168 means in bytes a second."""
    cells = _summed(hours, hour_of_week(F.col("hour") * HOUR), *(_whole_mean(way) for way in _WAYS))
    return _in_lists(cells, F.lit(HOURS_A_WEEK))


def by_period(hours: DataFrame, times: DataFrame) -> DataFrame:
    """Return the means of `hourly` by period: cluster, broker, at (from 0 on), in and out as exact doubles."""
    each = hours.join(F.broadcast(times), on="cluster", how="inner")
    return _summed(each, period_of(F.col("hour")), *(_mean(way) for way in _WAYS))


def series(periods: DataFrame, times: DataFrame) -> DataFrame:
    """Return one row for each cluster and broker of `by_period`: in and out, lists of a figure a period."""
    rounded = periods.select("cluster", "broker", "at", *(F.floor(F.col(way) + 0.5).alias(way) for way in _WAYS))
    counted = rounded.join(F.broadcast(times.select("cluster", "periods")), on="cluster", how="inner")
    return _in_lists(counted, F.first("periods"))


def _summed(hours: DataFrame, at: Column, *figures: Column) -> DataFrame:
    sums = [F.sum(f"{way}_{what}").alias(f"{way}_{what}") for way in _WAYS for what in ("sum", "count")]
    return hours.groupBy("cluster", "broker", at.alias("at")).agg(*sums).select("cluster", "broker", "at", *figures)


def _mean(way: str) -> Column:
    return F.when(F.col(f"{way}_count") > 0, F.col(f"{way}_sum") / F.col(f"{way}_count") / MILLI).alias(way)


def _whole_mean(way: str) -> Column:
    return F.floor(_mean(way) + 0.5).alias(way)


def _in_lists(cells: DataFrame, length: Column) -> DataFrame:
    """Return the cells of each broker in lists, in their order; null where there is no cell."""
    maps = {way: F.map_from_entries(F.collect_list(F.struct("at", way))) for way in _WAYS}
    each = cells.groupBy("cluster", "broker").agg(
        *(cell.alias(way) for way, cell in maps.items()), length.cast("int").alias("length")
    )
    places = F.sequence(F.lit(0), F.col("length") - 1)

    def listed(way: str) -> Column:
        return F.transform(places, lambda at: F.element_at(F.col(way), at)).alias(way)

    return each.select("cluster", "broker", *map(listed, _WAYS))


def partition_periods(rows: DataFrame, times: DataFrame, compared: DataFrame) -> DataFrame:
    """Return each partition's figures in each period, before the middle of what is compared and after it.

    `compared` has the hours (`compared_hours`) of which means are compared. Columns: PARTITION, at, is_later (whether
    it is of the later time), is_earlier, first (its first bucket), size (the last), `all_sum` and `all_count` of what
    comes in, and sums and counts of in and out in the hours that are compared. Rates are whole thousandths.
    """
    hour = F.floor(F.col("bucket") / HOUR)
    each = (
        rows.where(F.col("partition").isNotNull())
        .select(*PARTITION, "bucket", hour.alias("hour"), "bytes_in", "bytes_out", "size_bytes")
        .join(F.broadcast(times), on="cluster", how="inner")
        .join(F.broadcast(compared), on=["cluster", "hour"], how="left")
    )
    sized = F.when(F.col("size_bytes").isNotNull(), F.col("bucket"))
    counted = {way: F.when(F.col("is_compared"), F.col(f"bytes_{way}")) for way in _WAYS}
    return each.groupBy(
        *PARTITION,
        period_of(F.col("hour")).alias("at"),
        F.coalesce(F.col("hour") >= F.col("middle"), F.lit(col=False)).alias("is_later"),
        F.coalesce((F.col("hour") >= F.col("start")) & (F.col("hour") < F.col("middle")), F.lit(col=False)).alias(
            "is_earlier"
        ),
    ).agg(
        F.min("bucket").alias("first"),
        F.max_by("size_bytes", sized).alias("size"),
        F.sum("bytes_in").alias("all_sum"),
        F.count("bytes_in").alias("all_count"),
        *(F.sum(value).alias(f"{way}_sum") for way, value in counted.items()),
        *(F.count(value).alias(f"{way}_count") for way, value in counted.items()),
    )


def compared_hours(hours: DataFrame, times: DataFrame) -> DataFrame:
    """Return the hours in which both times that are compared have samples: cluster, hour, is_compared (true)."""
    half = F.col("middle") - F.col("start")
    of_cluster = hours.where(F.col("broker") == NO_BROKER).join(F.broadcast(times), on="cluster", how="inner")
    both = (
        of_cluster.where((F.col("hour") >= F.col("start")) & (F.col("in_count") + F.col("out_count") > 0))
        .groupBy("cluster", F.pmod(F.col("hour") - F.col("start"), half).alias("place"), "start", half.alias("half"))
        .agg(F.count_distinct("hour").alias("times"))
        .where(F.col("times") == 2)  # noqa: PLR2004 - one in each half
    )
    earlier = F.col("start") + F.col("place")
    hour = F.explode(F.array(earlier, earlier + F.col("half"))).alias("hour")
    return both.select("cluster", hour, F.lit(col=True).alias("is_compared"))


def sizes_by_period(periods: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return by how much what each broker holds grows in each period, by the placement of today.

    Columns: cluster, broker, at, grown. A partition counts from its first known size on, with the last one known.
    """
    ends = periods.where(F.col("size").isNotNull()).groupBy(*PARTITION, "at")
    sizes = ends.agg(F.max_by("size", F.struct("is_later", "is_earlier")).alias("size"))
    before = F.lag("size", 1, 0).over(Window.partitionBy(*PARTITION).orderBy("at"))
    grown = sizes.select(*PARTITION, "at", (F.col("size") - before).alias("grown"))
    return (
        grown.join(partitions.select(*PARTITION, "replicas"), on=list(PARTITION), how="inner")
        .select("cluster", F.explode("replicas").alias("broker"), "at", "grown")
        .groupBy("cluster", "broker", "at")
        .agg(F.sum("grown").alias("grown"))
    )


def skews_today(
    periods: DataFrame, sizes: DataFrame, holding: DataFrame, brokers: DataFrame, times: DataFrame
) -> DataFrame:
    """Return how even in, out and sizes were over the brokers in each period, by the placement of today.

    `holding`: cluster, broker, leads, of brokers that hold replicas today. Columns: cluster, at, measure, then the
    three figures.
    """
    grid = _grid(brokers, times).join(holding, on=["cluster", "broker"], how="left")
    in_order = Window.partitionBy("cluster", "broker").orderBy("at")
    told = grid.join(periods, on=["cluster", "broker", "at"], how="left").join(
        sizes, on=["cluster", "broker", "at"], how="left"
    )
    is_idle = {"in": F.col("leads").isNull(), "out": ~F.coalesce("leads", F.lit(col=False))}
    values = {
        Measure.IN: F.when(is_idle["in"], F.lit(0.0)).otherwise(F.col("in")),
        Measure.OUT: F.when(is_idle["out"], F.lit(0.0)).otherwise(F.col("out")),
        Measure.SIZE: (F.sum(F.coalesce("grown", F.lit(0))).over(in_order) + F.col("foreign_bytes")).cast("double"),
    }
    return _even_by_period(told, values)


def skews_then(standing: DataFrame, periods: DataFrame, brokers: DataFrame, times: DataFrame) -> DataFrame:
    """Return how even replicas, sizes and what comes in were in each period, by the placement of then.

    `standing`: where replicas stood (`history_samples.standing`). Columns as those of `skews_today`. Periods without
    replica samples have no row.
    """
    rates = periods.groupBy(*PARTITION, "at").agg(F.sum("all_sum").alias("sum"), F.sum("all_count").alias("count"))
    mean = F.when(F.col("count") > 0, F.floor(F.col("sum") / F.col("count")))
    each = standing.join(rates, on=[*PARTITION, "at"], how="left").withColumn("in", mean)
    held = each.groupBy("cluster", "broker", "at").agg(
        F.count(F.lit(1)).alias("replicas"),
        F.sum("size").alias("size"),
        F.count_if(F.col("size").isNull()).alias("unknown"),
        F.sum("in").alias("in"),
    )
    has_samples = held.groupBy("cluster", "at").agg(F.count("in").alias("told"))
    grid = _grid(brokers, times).join(has_samples, on=["cluster", "at"], how="inner")
    told = grid.join(held, on=["cluster", "broker", "at"], how="left")
    is_idle = F.col("replicas").isNull()
    values = {
        Measure.REPLICAS: F.coalesce("replicas", F.lit(0)).cast("double"),
        Measure.SIZE: F.when(is_idle, F.lit(0)).when(F.col("unknown") == 0, F.col("size")) + F.col("foreign_bytes"),
        Measure.IN: F.when(is_idle & (F.col("told") > 0), F.lit(0.0)).otherwise(F.col("in") / MILLI),
    }
    return _even_by_period(told, values)


def _grid(brokers: DataFrame, times: DataFrame) -> DataFrame:
    """Return every broker that has a capacity in every period of its cluster."""
    at = F.explode(F.sequence(F.lit(0), (F.col("periods") - 1).cast("int"))).alias("at")
    weighed = brokers.where(F.col("capacity") > 0)
    return weighed.join(F.broadcast(times.select("cluster", "periods")), on="cluster", how="inner").select(
        "cluster", "broker", "foreign_bytes", *sorted({*WEIGHED_BY.values()}), at
    )


def _even_by_period(told: DataFrame, values: Mapping[Measure, Column]) -> DataFrame:
    each = F.array(*(weighed(measure, value) for measure, value in values.items()))
    flat = told.select("cluster", "broker", "at", each.alias("each"))
    measured = flat.select("cluster", "broker", "at", F.explode("each").alias("one"))
    return measured.select("cluster", "broker", "at", "one.*").transform(even, ("cluster", "at", "measure"))
