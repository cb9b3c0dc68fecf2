"""Finds what the partitions of each disk are expected to do, and how the disk went before: a forecast is made of both.

Samples are reduced to one size for each partition and hour first; hours count back from the cluster's last one, which
is 0. A partition stands if its log was seen to fall and kept less than half of what came in during the last week, or if
it is compacted: then its level is the mean of whole weeks, so that it does not matter where in the saw tooth of deleted
segments the samples end. Everything else grows, by what it grew in its last week, up to what retention lets it be. What
it will be is summed over the replicas of a disk; `model.disk_forecast` makes the forecast of it.

All sums are of whole bytes, so that no order of rows can show.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import Level
from reconciler.balance.model.disk_forecast import AHEAD_DAYS, ENOUGH_DAYS
from reconciler.balance.model.history import HOURS_A_DAY, HOURS_A_WEEK
from reconciler.balance.spark.buckets import on_carriers
from reconciler.balance.spark.growth import GROWTH
from reconciler.balance.spark.normalise import HOUR
from reconciler.balance.spark.replica_load import KEYS, PARTITION, at_levels, by_carrier

WEEKS = 4
"""So many weeks of history are looked at: what was before tells more of what has changed since."""
AHEAD = tuple(f"ahead_{days}" for days in AHEAD_DAYS)
_FIRST = -WEEKS * HOURS_A_WEEK
_MS_AN_HOUR = 3_600_000.0
_DAMPED = 0.5  # of the trend of a level, which ends after two weeks: a trend carried on whole is off the furthest
_TREND_ENDS = 14 * HOURS_A_DAY
_MIDDLE = (HOURS_A_WEEK - 1) / 2  # how long ago the middle of the last week was
_EXACT = "decimal(38,0)"  # squares of bytes are more than a long holds


def clusters_with_history(spans: DataFrame) -> DataFrame:
    """Return the clusters whose samples reach far enough: cluster, last (its last hour, since 1970), start (0 or less).

    `spans` has each cluster's first and last bucket in microseconds.
    """
    first, last = (F.floor(F.col(name) / HOUR) for name in ("first", "last"))
    start = F.greatest(first - last, F.lit(_FIRST)).cast("int")
    known = spans.select("cluster", last.alias("last"), start.alias("start"))
    return known.where(F.col("start") <= -ENOUGH_DAYS * HOURS_A_DAY)


def has_history(first: int, last: int) -> bool:
    """Whether samples from one moment to another, in microseconds, reach far enough."""
    return last // HOUR - first // HOUR >= ENOUGH_DAYS * HOURS_A_DAY


def hourly(rows: DataFrame, clusters: DataFrame) -> DataFrame:
    """Return the last size of each partition in each hour: cluster, topic, partition, start, hour, size.

    `rows` have cluster, topic, partition, bucket in microseconds and size_bytes; those without one tell nothing.
    """
    sizes = rows.where(F.col("size_bytes").isNotNull() & F.col("partition").isNotNull())
    hour = (F.floor(F.col("bucket") / HOUR) - F.col("last")).cast("int")
    newest = F.max(F.struct("bucket", "size_bytes"))["size_bytes"]
    return (
        sizes.join(F.broadcast(clusters), on="cluster", how="inner")
        .select(*PARTITION, "start", hour.alias("hour"), "bucket", "size_bytes")
        .where(F.col("hour").between(F.col("start"), F.lit(0)))
        .groupBy(*PARTITION, "start", "hour")
        .agg(newest.alias("size"))
    )


def beside_the_next(hours: DataFrame) -> DataFrame:
    """Add what each hour's neighbours tell, and of the partition its `first` hour and when its log first `fell`."""
    in_order = Window.partitionBy(*PARTITION).orderBy("hour")
    whole = Window.partitionBy(*PARTITION)
    beside = hours.select(
        "*",
        F.lead("hour").over(in_order).alias("next_hour"),
        F.lead("size").over(in_order).alias("next_size"),
        F.lag("hour").over(in_order).isNull().alias("is_first"),
    )
    has_fallen = F.col("next_size") < F.col("size")
    return beside.select(
        "*",
        F.min("hour").over(whole).alias("first"),
        F.min(F.when(has_fallen, F.col("next_hour"))).over(whole).alias("fell"),
    )


def every_hour(beside: DataFrame) -> DataFrame:
    """Return each hour from the cluster's first to its last: cluster, topic, partition, first, fell, hour, size, grown.

    Between two samples a size is taken to go evenly from one to the other; before the first and after the last one it
    stays. `grown` is what came in until the next sample, and `grown_hours` how long it took, in one hour of those: not
    where the size fell.
    """
    gap = F.col("next_hour") - F.col("hour")
    begin = F.when(F.col("is_first"), F.col("start")).otherwise(F.col("hour"))
    end = F.coalesce(F.col("next_hour") - 1, F.lit(0))
    did_grow = (F.col("next_size") >= F.col("size")) & (F.col("next_hour") > -HOURS_A_WEEK)
    each = beside.select("*", F.explode(F.sequence(begin, end)).alias("at"))
    is_sample = F.col("at") == F.col("hour")
    since = F.greatest(F.col("at") - F.col("hour"), F.lit(0))
    between = F.coalesce(F.floor((F.col("next_size") - F.col("size")) * since / gap), F.lit(0))
    return each.select(
        *PARTITION,
        "first",
        "fell",
        F.col("at").alias("hour"),
        (F.col("size") + between).alias("size"),
        F.when(is_sample & did_grow, F.col("next_size") - F.col("size")).alias("grown"),
        F.when(is_sample & did_grow, gap).alias("grown_hours"),
    )


def expected(every: DataFrame, limits: DataFrame) -> DataFrame:
    """Return what each partition is expected to do.

    Columns: cluster, topic, partition, stands, first, fell, least (since it fell), level, rate (bytes an hour), and for
    each of AHEAD_DAYS how much one that grows will have grown by, or how large one that stands will be. `limits` are
    of topics, as `files.retention_table` tells them. Of a partition that is not a day old nobody knows how it goes on.
    """
    back = F.least(-F.col("first"), F.lit(HOURS_A_WEEK))
    told = (
        every.groupBy(*PARTITION)
        .agg(*_told())
        .withColumn("back", back)
        .join(F.broadcast(limits), on=["cluster", "topic"], how="left")
    )
    known = told.select(
        "*",
        (F.col("grown") / F.col("grown_hours")).alias("inflow"),
        ((F.col("size") - F.col("was")) / F.nullif("back", F.lit(0))).alias("growth"),
    )
    loses = F.coalesce(F.col("growth") < F.col("inflow") / 2, F.lit(col=True))
    is_compacted = F.coalesce("is_compacted", F.lit(col=False))
    stands = F.col("fell").isNotNull() & (is_compacted | loses)
    is_growing = (F.col("back") >= HOURS_A_DAY) & (F.col("growth") > 0)
    return (
        known.withColumns({"stands": stands, "rate": F.when(is_growing, F.col("growth")).otherwise(0.0)})
        .withColumn("weeks", F.least(F.lit(WEEKS), F.floor((1 - F.col("fell")) / HOURS_A_WEEK)))
        .withColumns({"level": _level(), "trend": _trend(), "room": F.when(~_has_outgrown(), _room())})
        .select(
            *PARTITION,
            *("stands", "first", "fell", "least"),
            F.floor("level").alias("level"),
            "rate",
            *(_ahead(days).alias(name) for days, name in zip(AHEAD_DAYS, AHEAD, strict=True)),
        )
    )


def _told() -> list[Column]:
    hour, size = F.col("hour"), F.col("size")
    a_week_ago = hour == F.greatest(F.col("first"), F.lit(-HOURS_A_WEEK))
    week = F.floor(-hour / HOURS_A_WEEK)
    since_fell = hour >= F.col("fell")
    return [
        F.max("first").alias("first"),
        F.max("fell").alias("fell"),
        F.min(F.when(since_fell, size)).alias("least"),
        F.max(F.when(hour == 0, size)).alias("size"),
        F.max(F.when(a_week_ago, size)).alias("was"),
        F.sum("grown").alias("grown"),
        F.sum("grown_hours").alias("grown_hours"),
        *(F.sum(F.when(week == back, size)).alias(f"week_{back}") for back in range(WEEKS)),
        (F.sum(F.when(since_fell, size)) / F.count_if(since_fell)).alias("since_fell"),
    ]


def _level() -> Column:
    """Return the mean of the last week, or since the log first fell where that is less: it was not full before."""
    return F.when(F.col("weeks") > 0, F.col("week_0") / HOURS_A_WEEK).otherwise(F.col("since_fell"))


def _trend() -> Column:
    """Return what the means of the weeks grow by an hour, by least squares, damped."""
    slopes = F.lit(0.0)
    for count in range(2, WEEKS + 1):
        middle, spread = (count - 1) / 2, count * (count * count - 1) / 12
        backwards = F.lit(0.0)
        for back in range(count):
            backwards += F.lit(back - middle) * F.col(f"week_{back}")
        slopes = F.when(F.col("weeks") == count, -backwards / (spread * HOURS_A_WEEK**2)).otherwise(slopes)
    return slopes * F.lit(_DAMPED)


def _room() -> Column:
    """Return how much it may still grow by until retention takes away what comes in; None where nothing bounds it.

    By time it is what comes in during the retention, and half of what a segment takes: one is deleted once its newest
    record is too old.
    """
    inflow = F.col("inflow")
    rolled = F.least(F.col("segment_ms") / _MS_AN_HOUR, F.col("segment_bytes") / F.nullif("inflow", F.lit(0.0)))
    by_time = inflow * (F.col("kept_ms") / _MS_AN_HOUR + F.coalesce(rolled, F.lit(0.0)) / 2)
    by_bytes = F.col("kept_bytes") + F.col("segment_bytes") / 2
    ceiling = F.least(by_time, by_bytes)
    return F.when(ceiling.isNotNull(), F.greatest(ceiling - F.col("size"), F.lit(0.0)))


def _has_outgrown() -> Column:
    """Return whether it never fell, for longer than retention and a segment take, or is above them: nothing holds it.

    So it is where records carry times to come. A disk that fills by them is not to be taken for one that does not.
    """
    age = -F.col("first") - HOURS_A_DAY
    is_old = age > (F.col("kept_ms") + F.col("segment_ms")) / _MS_AN_HOUR
    is_over = F.col("size") > F.col("kept_bytes") + 2 * F.col("segment_bytes")
    return F.col("fell").isNull() & (F.coalesce(is_old, F.lit(col=False)) | F.coalesce(is_over, F.lit(col=False)))


def _ahead(days: int) -> Column:
    """Return the figure of that day, whole."""
    hours = days * HOURS_A_DAY
    along = min(hours, _TREND_ENDS) + _MIDDLE
    level = F.greatest(F.col("level") + F.col("trend") * F.lit(along), F.lit(0.0))
    return F.floor(
        F.when(F.col("stands"), level).otherwise(F.least(F.col("rate") * F.lit(float(hours)), F.col("room")))
    )


def by_growth_alone(slopes: DataFrame, replicas: DataFrame, limits: DataFrame, known: DataFrame) -> DataFrame:
    """Return what each log dir, broker, rack and cluster grows by, of what partitions grow a day: the keys, ahead.

    What grows does so up to what retention lets it be, as far as that is known without a history; what shrinks does so
    until nothing is left.
    """
    slopes = slopes.where(F.col(GROWTH).isNotNull())
    each = (
        replicas.join(slopes, on=list(PARTITION), how="inner")
        .join(F.broadcast(limits), on=["cluster", "topic"], how="left")
        .withColumn("size", F.coalesce("size_bytes", F.lit(0)))
        .withColumn("inflow", F.greatest(F.col("growth"), F.lit(0)) / HOURS_A_DAY)
        .withColumn("room", _room())
    )
    after = {
        name: F.floor(F.greatest(F.least(F.col("growth") * days, F.col("room")), -F.col("size")))
        for days, name in zip(AHEAD_DAYS, AHEAD, strict=True)
    }
    placed = each.select("carriers", *(of.alias(name) for name, of in after.items()))
    return (
        by_carrier(placed, *_sums(AHEAD))
        .transform(at_levels, known.where(F.col("level") != Level.TOPIC.value))
        .groupBy(*KEYS)
        .agg(*_sums(AHEAD))
        .select(*KEYS, F.array(*(F.coalesce(name, F.lit(0)) for name in AHEAD)).alias("ahead"))
    )


def histories(every: DataFrame, expected: DataFrame, carried: DataFrame, known: DataFrame) -> DataFrame:
    """Return what there is to know of each log dir, broker, rack and cluster on each side.

    Columns: the keys, then hours, grown_first, grown_now, standing_now, grown_chance, standing_chance, by_slot, ahead,
    as `disk_forecast.DiskHistory` has them. `carried` is as `buckets` makes it, `known` as `replica_load`.
    """
    places = carried.where(~F.col("is_topic"))
    levels = known.where(F.col("level") != Level.TOPIC.value)
    ahead = expected.transform(_on_disks, places, AHEAD).groupBy("carrier").agg(*_sums(AHEAD))
    summed = ahead.transform(at_levels, levels).groupBy("key").agg(*_sums(AHEAD))
    parts = every.select(*PARTITION, "hour", "size").join(
        expected.select(*PARTITION, "stands", "first", "fell", "least", "level", "rate"),
        on=list(PARTITION),
        how="inner",
    )
    parts = parts.select(*PARTITION, "hour", *_past())
    names = ("grown", "standing")
    of_disks = parts.transform(_on_disks, places, ("hour", *names)).groupBy("carrier", "hour").agg(*_sums(names))
    each = of_disks.transform(at_levels, levels).groupBy("key", "hour").agg(*_sums(names))
    named = F.broadcast(levels.select("key", *KEYS).distinct())
    return (
        _chances(each)
        .join(_slots(each), on="key", how="inner")
        .join(summed, on="key", how="inner")
        .join(named, on="key", how="inner")
        .select(
            *KEYS,
            *("hours", "grown_first", "grown_now", "standing_now", "grown_chance", "standing_chance", "by_slot"),
            F.array(*AHEAD).alias("ahead"),
        )
    )


def _past() -> tuple[Column, Column]:
    """Return what of a size is `grown` and what is `standing`, in the past that a forecast is held against.

    A partition that stands was at its level before it was full, and one that grows grew before it was made: otherwise
    each new topic would count as chance, and as rhythm of the week.
    """
    hour, size, stands = F.col("hour"), F.col("size"), F.col("stands")
    was_filling = (hour < F.col("fell")) & (size < F.col("least"))
    standing = F.when(was_filling, F.col("level")).otherwise(size)
    made_later = F.floor(size + F.col("rate") * (hour - F.col("first")))
    grown = F.when(hour < F.col("first"), made_later).otherwise(size)
    return (
        F.when(stands, 0).otherwise(grown).alias("grown"),
        F.when(stands, standing).otherwise(0).alias("standing"),
    )


def _on_disks(rows: DataFrame, places: DataFrame, names: tuple[str, ...]) -> DataFrame:
    """Return the rows of partitions on each disk that holds them, as often as it does."""
    return rows.transform(on_carriers, places, "inner").select(
        "carrier", *(name if name == "hour" else (F.col(name) * F.col("weight")).alias(name) for name in names)
    )


def _sums(names: tuple[str, ...]) -> list[Column]:
    return [F.sum(name).alias(name) for name in names]


def _chances(each: DataFrame) -> DataFrame:
    """Return how far forecasts of one and of two weeks were off on this history, as variances, and its two ends.

    What grew was foretold by its week before, what stood by the mean of the same hour of two weeks.
    """
    in_order = Window.partitionBy("key").orderBy("hour")

    def before(name: str, weeks: int) -> Column:
        return F.lag(name, weeks * HOURS_A_WEEK).over(in_order)

    def errors(after: int) -> tuple[Column, Column]:
        was, earlier = (before("grown", weeks) for weeks in (after, after + 1))
        stood, stood_earlier = (before("standing", weeks) for weeks in (after, after + 1))
        grown = F.col("grown") - was - (was - earlier) * after
        return grown.alias(f"grown_{after}"), (2 * F.col("standing") - stood - stood_earlier).alias(f"standing_{after}")

    off = each.select("*", *errors(1), *errors(2))
    # By how many days' variance each is off, as `disk_forecast` has it: h * (1 + h / 7) for what grows. What stands was
    # foretold by two weeks, 10.5 and 17.5 days before in the middle; its error is taken twice.
    scaled = {"grown": (14.0, 42.0), "standing": (4 * 10.5, 4 * 17.5)}
    counted = F.count("grown_1") + F.count("grown_2")
    chances = [
        ((_squares(f"{name}_1") / one + _squares(f"{name}_2") / two) / counted).alias(f"{name}_chance")
        for name, (one, two) in scaled.items()
    ]
    return off.groupBy("key").agg(
        (-F.min("hour")).alias("hours"),
        F.min_by("grown", "hour").alias("grown_first"),
        F.max_by("grown", "hour").alias("grown_now"),
        F.max_by("standing", "hour").alias("standing_now"),
        *chances,
    )


def _squares(name: str) -> Column:
    """Return the sum of squares, exact until it is one number."""
    exact = F.col(name).cast("decimal(19,0)")
    return F.coalesce(F.sum((exact * exact).cast(_EXACT)).cast("double"), F.lit(0.0))


def _slots(each: DataFrame) -> DataFrame:
    """Return the mean of each hour of the week over the whole weeks, from now backwards: key, by_slot."""
    start = F.min("hour").over(Window.partitionBy("key"))
    weeks = F.floor((1 - start) / HOURS_A_WEEK)
    whole = each.select("*", weeks.alias("weeks")).where(F.col("hour") > -F.col("weeks") * HOURS_A_WEEK)
    slot = F.pmod(-F.col("hour"), F.lit(HOURS_A_WEEK)).alias("slot")
    means = whole.groupBy("key", slot).agg(
        F.floor(F.sum("grown") / F.count(F.lit(1))).alias("grown"),
        F.floor(F.sum("standing") / F.count(F.lit(1))).alias("standing"),
    )
    ordered = F.sort_array(F.collect_list(F.struct("slot", "grown", "standing")))
    return means.groupBy("key").agg(ordered.alias("by_slot"))
