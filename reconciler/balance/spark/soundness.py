"""Reads from the sums what samples are worth: the time they fill, what was wrong, whether they have to be sorted."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.files.arrow_tables import LONG, TEXT
from reconciler.balance.model.load_report import FILLED, Rule
from reconciler.balance.spark.buckets import RULES, STRAYS, UNSIZED, seen_with
from reconciler.balance.spark.holes import rung_counts
from reconciler.balance.spark.load import MEDIAN_STEP
from reconciler.balance.spark.normalise import LEFT_OUT, MARKED, MARKS, MICROS, rules_of

if TYPE_CHECKING:
    from pyspark.sql import Row

_SEEN = {"seen_in": "in", "seen_out": "out"}
SPANS = {"cluster": TEXT} | dict.fromkeys(("busiest", "first", "last", "buckets", "step", "expected"), LONG)


@dataclass(frozen=True, slots=True)
class Told:
    """`spans`: one row a cluster, as in SPANS, times in microseconds, `step` in seconds. `defects`: each rule's count.

    `busiest` is the bucket in which most bytes come in from producers and go out to consumers, the first of equals.
    `step` is the usual time from one bucket to the next, `expected` how many there would be without gaps. `is_sound`:
    no sample had another one in its bucket, or was written after a newer one, or wanted a rate. `with_holes`: clusters
    of which a partition has no sample in a bucket, or not as many have a rate in each bucket that has it.
    `with_slopes`: clusters whose growth is the sum of what each partition grows. In others it is the slope of the sum
    of sizes.
    """

    spans: tuple["Row", ...]
    is_sound: bool
    defects: Mapping[Rule, int] = field(default_factory=dict)
    with_holes: tuple[str, ...] = ()
    with_slopes: tuple[str, ...] = ()


def told(sums: DataFrame, carriers: DataFrame, partitions: Mapping[str, int], bucket_seconds: int) -> Told:
    """Return what the sums (`buckets.sums`) tell; `partitions`: how many each cluster has.

    Two small jobs, the second only where something was wrong: what comes to the driver is a few rows a cluster.
    """
    found = _clusters(sums, carriers, bucket_seconds).collect()
    spans = tuple(sorted((row for row in found if row.cluster is not None), key=lambda row: row.cluster))
    seen = {row.cluster: row.partitions for row in spans}
    defects = _marked(sums) if any(row.is_marked or row.cluster is None for row in found) else {}
    absent = {
        Rule.GAP: sum(row.partitions * row.expected - row.rows for row in spans),
        Rule.MISSING_PARTITION: sum(count - seen.get(name, 0) for name, count in partitions.items()),
    }
    with_holes = tuple(row.cluster for row in spans if row.is_uneven or row.rows < row.partitions * row.buckets)
    return Told(
        spans,
        not any(row.is_unsound for row in spans),
        {rule: {**defects, **absent}.get(rule, 0) for rule in Rule},
        with_holes,
        tuple(row.cluster for row in spans if row.unsized or row.cluster in with_holes),
    )


def filled(told: Told, sums: DataFrame, carriers: DataFrame, fills: DataFrame) -> Told:
    """Return the same of sums with fills (`buckets.with_fills`): the busiest buckets, and how often each was filled."""
    totals = F.broadcast(carriers.where("is_total").select("carrier", "cluster"))
    by_bucket = (
        sums.join(totals, on="carrier", how="inner").groupBy("cluster", "bucket").agg(F.sum("total").alias("total"))
    )
    found = by_bucket.where(F.col("bucket").isNotNull()).groupBy("cluster").agg(_busiest()).collect()
    busiest = {row.cluster: row.busiest for row in found}
    counts = fills.agg(*rung_counts()).collect()[0]
    spans = tuple(type(row)(**row.asDict() | {"busiest": busiest[row.cluster]}) for row in told.spans)
    return replace(told, spans=spans, defects={**told.defects, **{rule: counts[rule.value] or 0 for rule in FILLED}})


def _clusters(sums: DataFrame, carriers: DataFrame, bucket_seconds: int) -> DataFrame:
    """Return one row a cluster, null for rows that nothing carries.

    Columns: SPANS, rows, unsized (those without a size), partitions (how many were seen), is_unsound, is_marked,
    is_uneven: not as many partitions have a rate in each bucket in which any has it.
    """
    return (
        sums.transform(_parts, carriers)
        .transform(_checked)
        .groupBy("cluster", "bucket")
        .agg(*(F.sum(name).alias(name) for name in ("total", "fresh", *_SEEN)), *_rows_and_flags())
        .transform(_spans, bucket_seconds)
    )


def _parts(sums: DataFrame, carriers: DataFrame) -> DataFrame:
    """Return one row for each topic of before, in its parts, and bucket, whatever the marks."""
    totals = F.broadcast(carriers.where("is_total").select("carrier", "cluster"))
    is_marked = F.col(MARKS) != 0
    if RULES[0] in sums.columns:
        is_marked = F.greatest(*(F.coalesce(F.col(name), F.lit(0)) for name in RULES)) > 0
    return (
        sums.where(F.col("rows") > 0)
        .select("*", is_marked.alias("is_marked"))
        .join(totals, on="carrier", how="left")
        # One shuffle for these sums and for the order in time that is looked at next.
        .repartition("carrier")
        .groupBy("cluster", "carrier", "bucket")
        .agg(
            F.sum("total").alias("total"),
            F.sum("rows").alias("rows"),
            (F.sum(UNSIZED) if UNSIZED in sums.columns else F.sum("rows")).alias(UNSIZED),
            F.coalesce(F.bit_or("partitions"), F.lit(0)).alias("partitions"),
            F.min("oldest").alias("oldest"),
            F.max("newest").alias("newest"),
            F.bool_or("is_marked").alias("is_marked"),
            *(F.sum(seen_with(way)).alias(name) for name, way in _SEEN.items()),
        )
    )


def _checked(parts: DataFrame) -> DataFrame:
    """Add whether a part `is_unsound`, and how many of its partitions are `fresh`: not seen in later buckets."""
    later = Window.partitionBy("carrier").orderBy(F.desc("bucket")).rowsBetween(Window.unboundedPreceding, -1)
    is_late = F.coalesce(F.min("oldest").over(later) < F.col("newest"), F.lit(col=False))
    seen_later = F.coalesce(F.bit_or("partitions").over(later), F.lit(0))
    return parts.select(
        "*",
        (is_late | (F.bit_count("partitions") != F.col("rows"))).alias("is_unsound"),
        F.bit_count(F.col("partitions").bitwiseAND(F.bitwise_not(seen_later))).alias("fresh"),
    )


def _spans(by_bucket: DataFrame, bucket_seconds: int) -> DataFrame:
    before = F.lag("bucket").over(Window.partitionBy("cluster").orderBy("bucket"))
    seen = (
        by_bucket.withColumn("step", F.floor((F.col("bucket") - before) / MICROS))
        .groupBy("cluster")
        .agg(
            _busiest(),
            F.min("bucket").alias("first"),
            F.max("bucket").alias("last"),
            F.count(F.lit(1)).alias("buckets"),
            F.coalesce(F.expr(MEDIAN_STEP), F.lit(bucket_seconds)).cast("long").alias("step"),
            F.sum("fresh").alias("partitions"),
            (_is_uneven("seen_in") | _is_uneven("seen_out")).alias("is_uneven"),
            *_rows_and_flags(),
        )
    )
    length = F.floor((F.col("last") - F.col("first")) / MICROS)
    expected = F.greatest(F.floor(length / F.col("step")) + 1, F.col("buckets"))
    return seen.withColumn("expected", expected)


def _busiest() -> Column:
    return F.min_by("bucket", F.struct(-F.col("total"), F.col("bucket"))).alias("busiest")


def _is_uneven(seen: str) -> Column:
    fewest = F.min(F.when(F.col(seen) > 0, F.col(seen)))
    return F.coalesce(fewest < F.max(seen), F.lit(col=False))


def _rows_and_flags() -> tuple[Column, ...]:
    return (
        *(F.sum(name).alias(name) for name in ("rows", UNSIZED)),
        F.bool_or("is_unsound").alias("is_unsound"),
        F.bool_or("is_marked").alias("is_marked"),
    )


def _marked(sums: DataFrame) -> Mapping[Rule, int]:
    """Return how many samples broke each rule; one that counts, of a partition that is not known, breaks one more."""
    of_rules = [F.sum(name).alias(name) for name in (*RULES, STRAYS) if name in sums.columns]
    each = sums.where(F.col("rows") > 0).groupBy(MARKS, F.col("carrier").isNull().alias("is_stray"))
    return _counted(each.agg(F.sum("rows").alias("rows"), *of_rules).collect())


def _counted(rows: Iterable["Row"]) -> Mapping[Rule, int]:
    counts: Counter[Rule] = Counter()
    for row in rows:
        for rule in rules_of(row[MARKS]):
            counts[rule] += row.rows
        for rule in MARKED:
            if rule.value in row:
                counts[rule] += row[rule.value] or 0
        if row.is_stray:
            counts[Rule.UNKNOWN_PARTITION] += _strays(row)
    return counts


def _strays(row: "Row") -> int:
    """Return how many of these rows' samples count but for their partition, which no cluster has."""
    if STRAYS in row:
        return row[STRAYS] or 0
    return 0 if set(LEFT_OUT) & set(rules_of(row[MARKS])) else row.rows
