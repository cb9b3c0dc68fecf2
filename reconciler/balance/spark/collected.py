"""Brings the job's tables to the driver as the report's values; nothing else of a balance comes there."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from reconciler.balance.model.balance_report import (
    Busiest,
    HourOfWeek,
    Level,
    Load,
    LoadRow,
    Measure,
    Rate,
    RateStatistic,
    Skew,
    Span,
    Traffic,
)
from reconciler.balance.spark.normalise import HOURS_A_DAY, MILLI, iso
from reconciler.balance.spark.replica_load import AFTER, BEFORE, KEYS, MOVED, NO_BROKER, NO_TEXT, PLACE
from reconciler.balance.spark.soundness import Told
from reconciler.model.evenness import Evenness

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_TOPICS = 1000
_MADE = {"bytes_in", "bytes_out"}  # of several columns
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
Key = tuple[str, int, str, str, str]


@dataclass(slots=True)
class Found:
    """What was found of one cluster."""

    rows: list[LoadRow] = field(default_factory=list)
    topic_count: int = 0
    skews: tuple[Skew, ...] = ()
    span: Span | None = None
    hours: tuple[HourOfWeek, ...] = ()
    samples: int = 0
    """Samples that count, or time buckets of partitions where samples had to be put in order."""

    def of(self, level: Level) -> tuple[LoadRow, ...]:
        """Return the rows of that level."""
        return tuple(row for row in self.rows if row.level is level)


def collected(
    figures: DataFrame, skews: DataFrame, moved: DataFrame | None, told: Told | None, hours: DataFrame | None = None
) -> Mapping[str, Found]:
    """Return what was found, by cluster: every row but those of topics after the first thousand of each cluster.

    Rows are sorted by what names them, topics by their traffic, the greatest first.
    """
    found: defaultdict[str, Found] = defaultdict(Found)
    copied = moved.collect() if moved is not None else []
    traffic = {(row.cluster, row.level, row.broker): Traffic(*(row[name] for name in MOVED)) for row in copied}
    loads: dict[tuple[str, Key], dict[str, Row]] = {}
    for row in sorted(figures.transform(_shown).collect(), key=_order):
        loads.setdefault((row.cluster, tuple(row[name] for name in ("level", *PLACE))), {})[row.side] = row
    for (cluster, key), sides in loads.items():
        found[cluster].rows.append(_load_row(key, sides, traffic.get((cluster, *key[:2]))))
        found[cluster].topic_count = max(found[cluster].topic_count, *(row.topics for row in sides.values()))
    for cluster, even in _skews(skews.collect()).items():
        found[cluster].skews = even
    for row in sorted(hours.collect(), key=lambda row: (row.cluster, row.hour)) if hours is not None else ():
        found[row.cluster].hours += (_hour(row),)
    for row in told.spans if told is not None else ():
        found[row.cluster].span = Span(row.buckets, row.step, iso(row["first"]), iso(row["last"]))
        found[row.cluster].samples = row.rows
    return dict(sorted(found.items()))


def _shown(figures: DataFrame) -> DataFrame:
    """Return the rows that are shown, with their rank: of topics the greatest by traffic, then size, on either side."""
    traffic = F.coalesce("in_average", F.lit(0.0)) + F.coalesce("out_average", F.lit(0.0))
    of_key = Window.partitionBy(*(key for key in KEYS if key != "side"))
    of_level = Window.partitionBy("cluster", "level")
    by_traffic = of_level.orderBy(F.desc("traffic"), F.desc("size"), "topic")
    is_topic = F.col("level") == Level.TOPIC.value
    size = F.coalesce("size_bytes", F.lit(0))
    return (
        figures.select("*", F.max(traffic).over(of_key).alias("traffic"), F.max(size).over(of_key).alias("size"))
        .select("*", F.when(is_topic, F.dense_rank().over(by_traffic)).otherwise(0).alias("rank"))
        .select("*", F.max("rank").over(of_level).alias("topics"))
        .where(F.col("rank") <= MOST_TOPICS)
    )


def _order(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in ("cluster", "level", "rank", *PLACE, "side"))


def _load_row(key: Key, sides: Mapping[str, Row], moved: Traffic | None) -> LoadRow:
    level, broker, rack, log_dir, topic = key
    before, after = sides.get(BEFORE), sides.get(AFTER)
    is_named = Level(level) in {Level.BROKER, Level.CLUSTER}
    return LoadRow(
        level=Level(level),
        broker=broker if broker != NO_BROKER else None,
        rack=rack if rack != NO_TEXT else None,
        log_dir=log_dir if log_dir != NO_TEXT else None,
        topic=topic if topic != NO_TEXT else None,
        before=_load(before) if before is not None else None,
        after=_load(after) if after is not None else None,
        moved=(moved or Traffic()) if is_named and after is not None else None,
    )


def _load(row: Row) -> Load:
    return Load(
        bytes_in=_rate(row, "in"),
        bytes_out=_rate(row, "out"),
        **{each.name: row[each.name] for each in fields(Load) if each.name not in _MADE},
    )


def _rate(row: Row, way: str) -> Rate:
    return Rate(*(row[f"{way}_{what}"] for what in ("average", "p95", "maximum", "peak", "coverage")))


def _skews(rows: "Iterable[Row]") -> Mapping[str, tuple[Skew, ...]]:
    """Return the skews of each cluster in the order in which measures and statistics are listed."""
    even: defaultdict[str, dict[tuple[str, str, str], Evenness]] = defaultdict(dict)
    for row in rows:
        figures = Evenness(row.max_over_mean, row.coefficient_of_variation, row.gini)
        even[row.cluster][row.measure, row.statistic, row.side] = figures
    return {cluster: tuple(_cluster_skews(found)) for cluster, found in even.items()}


def _cluster_skews(found: Mapping[tuple[str, str, str], Evenness]) -> "Iterable[Skew]":
    for measure in Measure:
        for statistic in (None, *RateStatistic):
            key = (measure.value, statistic.value if statistic is not None else "")
            before, after = found.get((*key, BEFORE)), found.get((*key, AFTER))
            if before is not None or after is not None:
                yield Skew(measure, statistic, before, after)


def _hour(row: Row) -> HourOfWeek:
    day, of_day = divmod(row.hour, HOURS_A_DAY)
    begins = f"{_DAYS[day]} {of_day:02}:00"
    return HourOfWeek(begins, _busiest(row.busiest_in), _busiest(row.busiest_out), row.room)


def _busiest(found: Row | None) -> Busiest | None:
    return None if found is None else Busiest(-found.turned, round(found[0] / MILLI, 3))
