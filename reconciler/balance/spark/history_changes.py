"""Tells what changed between two times: which topics, and which leaders or replicas that stand elsewhere, explain it.

A partition's rate in a time is its mean over what was seen of it, in hours that both times have; a partition that was
first seen in a time counts for the part that was left of it, and for nothing before. Loads are by the placement of
today, so that they change by topics alone. What brokers themselves measured changes by both: the difference is what
leaders brought that another broker had before.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.spark.buckets import sent_by_leader
from reconciler.balance.spark.history import period_of
from reconciler.balance.spark.normalise import HOUR, MILLI
from reconciler.balance.spark.replica_load import NO_BROKER, NO_TEXT, PARTITION

MOST_CAUSES, MOST_BROKERS = 10, 3
EARLIER, LATER = HALVES = ("earlier", "later")
FIGURES = tuple(f"{measure}_{half}" for measure in ("in", "out", "size", "lead_in", "lead_out") for half in HALVES)


def compared(periods: DataFrame, times: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return what each broker carries of each topic in both times: cluster, broker, topic, is_new, then FIGURES.

    Rates are whole thousandths a second; `lead_in` and `lead_out` are what producers send to its leaders and consumers
    take from them. A partition of which a figure is not known in both counts for nothing.
    """
    named = partitions.select(*PARTITION, "leader", "replicas")
    each = periods.transform(_halves, times).join(named, on=list(PARTITION), how="inner")
    leads = F.col("broker").eqNullSafe(F.col("leader"))
    spread = each.select("*", (F.size("replicas") - 1).alias("followers"), F.explode("replicas").alias("broker"))
    placed = spread.withColumn("leads", leads)
    values: dict[str, Column] = {}
    for half in HALVES:
        taken, sent = F.col(f"in_{half}"), F.col(f"out_{half}")
        values |= {
            f"in_{half}": taken,
            f"out_{half}": sent_by_leader(taken, sent),
            f"size_{half}": F.col(f"size_{half}"),
            f"lead_in_{half}": F.when(F.col("leads"), taken),
            f"lead_out_{half}": F.when(F.col("leads"), sent),
        }
    told = placed.select("cluster", "broker", "topic", "is_new", *(value.alias(name) for name, value in values.items()))
    return told.groupBy("cluster", "broker", "topic").agg(F.min("is_new").alias("is_new"), *map(_both, FIGURES))


def _both(name: str) -> Column:
    measure, _, half = name.rpartition("_")
    other = F.col(f"{measure}_{LATER if half == EARLIER else EARLIER}")
    return F.sum(F.when(other.isNotNull(), F.col(name))).alias(name)


def _halves(periods: DataFrame, times: DataFrame) -> DataFrame:
    """Return each partition's means and last sizes in the two times, and whether it is new in the later one."""
    of_half = {EARLIER: F.col("is_earlier"), LATER: F.col("is_later")}
    until = {EARLIER: ~F.col("is_later"), LATER: F.lit(col=True)}
    order = F.struct("at", "is_later", "is_earlier")
    summed = periods.groupBy(*PARTITION).agg(
        F.min("first").alias("seen"),
        *(
            F.sum(F.when(is_of, F.col(f"{way}_{what}"))).alias(f"{way}_{what}_{half}")
            for half, is_of in of_half.items()
            for way in ("in", "out")
            for what in ("sum", "count")
        ),
        *(
            F.max_by("size", F.when(is_of & F.col("size").isNotNull(), order)).alias(f"size_{half}")
            for half, is_of in until.items()
        ),
    )
    joined = summed.join(F.broadcast(times), on="cluster", how="inner").where(F.col("middle").isNotNull())
    is_new = F.col("seen") >= F.col("middle") * HOUR
    left = {EARLIER: _left("start", "middle"), LATER: _left("middle", "end")}
    rates = [_rate(way, half, left[half]) for half in HALVES for way in ("in", "out")]
    was = F.coalesce("size_earlier", F.when(is_new, F.lit(0)))
    return joined.select(*PARTITION, is_new.alias("is_new"), *rates, was.alias("size_earlier"), "size_later")


def _left(begins: str, ends: str) -> Column:
    """Return the part of that time, 0 to 1, which was left when the partition was first seen."""
    start = F.greatest(F.col(begins) * HOUR, F.col("first"))
    end = F.least(F.col(ends) * HOUR, F.col("last"))
    return F.greatest(F.lit(0.0), F.least(F.lit(1.0), (end - F.col("seen")) / (end - start)))


def _rate(way: str, half: str, left: Column) -> Column:
    """Return its mean in thousandths; 0 where it was first seen after that time, null where it is not known."""
    count = F.col(f"{way}_count_{half}")
    mean = F.when(count > 0, F.floor(F.col(f"{way}_sum_{half}") / count * left + 0.5))
    return F.coalesce(mean, F.when(left == 0, F.lit(0))).cast("long").alias(f"{way}_{half}")


def changes(each: DataFrame) -> DataFrame:
    """Return what changed, of `compared`: a row for each scope, and one for each of its first causes.

    Scopes are the cluster (NO_BROKER) and the brokers that carry most. Columns: cluster, broker, rank (of the scope),
    topic (NO_TEXT for the scope itself), place (of the cause), is_new, total (what all causes of the scope move, in and
    out), then FIGURES.
    """
    of_brokers = each.groupBy("cluster", "broker").agg(*_summed())
    busiest = Window.partitionBy("cluster").orderBy(F.desc("carried"), "broker")
    carried = F.coalesce("in_later", F.lit(0)) + F.coalesce("out_later", F.lit(0))
    ranked = of_brokers.withColumn("carried", carried).withColumn("rank", F.row_number().over(busiest))
    brokers = ranked.where(F.col("rank") <= MOST_BROKERS).drop("carried")
    clusters = of_brokers.groupBy("cluster").agg(*_summed())
    whole = clusters.select("cluster", F.lit(NO_BROKER).alias("broker"), *FIGURES, F.lit(0).alias("rank"))
    scopes = whole.unionByName(brokers)
    topics = each.groupBy("cluster", "topic").agg(F.min("is_new").alias("is_new"), *_summed())
    of_cluster = topics.withColumn("broker", F.lit(NO_BROKER)).withColumn("rank", F.lit(0))
    shown = F.broadcast(brokers.select("cluster", "broker", "rank"))
    on_brokers = each.join(shown, on=["cluster", "broker"], how="inner")
    causes = of_cluster.unionByName(on_brokers)
    first = causes.transform(_first, ("cluster", "broker"), "topic")
    names = ("cluster", "broker", "rank", "topic", "place", "is_new", "total", *FIGURES)
    head = scopes.select(
        "*",
        F.lit(NO_TEXT).alias("topic"),
        F.lit(0).alias("place"),
        F.lit(col=False).alias("is_new"),
        F.lit(0).cast("long").alias("total"),
    )
    return head.select(*names).unionByName(first.select(*names))


def by_broker(each: DataFrame) -> DataFrame:
    """Return the brokers that changed most, of `compared`: cluster, broker, place, total (of all), then FIGURES."""
    brokers = each.groupBy("cluster", "broker").agg(*_summed())
    return brokers.transform(_first, ("cluster",), "broker").select("cluster", "broker", "place", "total", *FIGURES)


def _first(causes: DataFrame, scope: Sequence[str], name: str) -> DataFrame:
    """Return the causes that move most of each scope, in and out, then in size; of equal ones the first by its name.

    With `place`, from 1 on, and `total`: what all causes of the scope move, in and out.
    """
    of_scope = Window.partitionBy(*scope)
    in_order = of_scope.orderBy(F.desc("weight"), F.desc("heft"), name)
    return (
        causes.withColumns({"weight": _moved("in") + _moved("out"), "heft": _moved("size")})
        .withColumns({"total": F.sum("weight").over(of_scope), "place": F.row_number().over(in_order)})
        .where((F.col("place") <= MOST_CAUSES) & (F.col("weight") + F.col("heft") > 0))
    )


def _summed() -> list[Column]:
    return [F.sum(name).alias(name) for name in FIGURES]


def _moved(measure: str) -> Column:
    change = F.col(f"{measure}_later") - F.col(f"{measure}_earlier")
    return F.abs(F.coalesce(change, F.lit(0)))


def led_elsewhere(measured: DataFrame, each: DataFrame, compared_hours: DataFrame, times: DataFrame) -> DataFrame:
    """Return by how much what each broker leads changed because it leads others: cluster, broker, lead_in, lead_out.

    `measured` are samples of brokers (`history_samples.broker_samples`): their own change, less that of the leaders of
    today. In thousandths a second; brokers that one of the times does not tell have no row.
    """
    hour = F.floor(F.unix_micros("ts") / HOUR)
    told = (
        measured.withColumn("hour", hour)
        .join(F.broadcast(compared_hours), on=["cluster", "hour"], how="inner")
        .join(F.broadcast(times.select("cluster", "middle")), on="cluster", how="inner")
    )
    halves = {EARLIER: F.col("hour") < F.col("middle"), LATER: F.col("hour") >= F.col("middle")}
    own = told.groupBy("cluster", "broker").agg(
        *(
            F.floor(F.avg(F.when(is_of, _milli(f"bytes_{way}"))) + 0.5).alias(f"own_{way}_{half}")
            for half, is_of in halves.items()
            for way in ("in", "out")
        )
    )
    led = each.groupBy("cluster", "broker").agg(*_summed())
    joined = own.join(led, on=["cluster", "broker"], how="left")
    changed = [
        (
            F.col(f"own_{way}_later")
            - F.col(f"own_{way}_earlier")
            - F.coalesce(F.col(f"lead_{way}_later") - F.col(f"lead_{way}_earlier"), F.lit(0))
        )
        .cast("long")
        .alias(f"lead_{way}")
        for way in ("in", "out")
    ]
    return joined.select("cluster", "broker", *changed).where(F.col("lead_in").isNotNull())


def _milli(name: str) -> Column:
    return F.floor(F.col(name) * MILLI + 0.5)


def moved_replicas(standing: DataFrame, partitions: DataFrame, periods: DataFrame, times: DataFrame) -> DataFrame:
    """Return what stood on another broker when the earlier time began, or was first seen in it.

    `standing`: where replicas stood (`history_samples.standing`). Columns: cluster, from_broker, to_broker, replicas,
    in (what they take in now, in thousandths a second), size.
    """
    begins, ends = (period_of(F.col(name)) for name in ("start", "middle"))
    stood = (
        standing.join(F.broadcast(times), on="cluster", how="inner")
        .where((F.col("at") >= begins) & (F.col("at") < ends))
        .groupBy(*PARTITION, "at")
        .agg(F.sort_array(F.collect_set("broker")).alias("brokers"))
        .groupBy(*PARTITION)
        .agg(F.min_by("brokers", "at").alias("then"))
    )
    now = periods.transform(_halves, times).select(*PARTITION, "in_later", "size_later")
    today = partitions.select(*PARTITION, F.sort_array("replicas").alias("today"))
    both = stood.join(today, on=list(PARTITION), how="inner").join(now, on=list(PARTITION), how="left")
    gone, come = F.array_except("then", "today"), F.array_except("today", "then")
    pair = F.explode(F.arrays_zip(gone.alias("gone"), come.alias("come"))).alias("pair")
    pairs = both.select("cluster", "in_later", "size_later", pair)
    return (
        pairs.where(F.col("pair.gone").isNotNull() & F.col("pair.come").isNotNull())
        .groupBy("cluster", F.col("pair.gone").alias("from_broker"), F.col("pair.come").alias("to_broker"))
        .agg(
            F.count(F.lit(1)).alias("replicas"),
            F.coalesce(F.sum("in_later"), F.lit(0)).alias("in"),
            F.coalesce(F.sum("size_later"), F.lit(0)).alias("size"),
        )
    )
