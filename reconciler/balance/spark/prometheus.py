"""Reads samples from Prometheus range-query answers: exporters' metrics, recorded rules, what `rate()` answers.

Sizes and end offsets are per partition and broker: the largest over the brokers counts, which is the leader's. Bytes in
and out are per topic and broker only: a topic's sum over brokers is split over its partitions by growth of offsets, of
sizes where there are none, evenly where none grew, and marked as estimated; where growth is unknown, so is the share.
A rate that names a partition is that partition's, and nothing of its topic's rate goes to it.
Counters begin anew with their broker. Where a broker's answer is missing between two that are there, the topic's rate
is unknown. What several files or several names tell of one thing and moment counts once: as the file that was written
last tells it, of equally old ones the larger. Ranges include both ends, so exports of two in a row share a moment.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import ArrayType, MapType, StringType

from reconciler.balance.files.sample_files import SampleFile
from reconciler.balance.model.exported import BROKER_LABELS
from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.growth import grown
from reconciler.balance.spark.metric_names import END_OFFSET, SIZE, is_used, measured
from reconciler.balance.spark.normalise import MARKS, has, mark, marks
from reconciler.balance.spark.schemas import LOG_START, RATES, SAMPLES, struct, unknown_but
from reconciler.balance.spark.session import as_hadoop
from reconciler.balance.spark.spellings import tried, united
from reconciler.balance.spark.uri_results import by_name

_SERIES = struct({"metric": MapType(StringType(), StringType()), "values": ArrayType(ArrayType(StringType()))})
_ANSWER = struct({"data": struct({"result": ArrayType(_SERIES)})})
_TOPIC_LABELS = ("topic", "topic_name")
_CLUSTER_LABELS = ("cluster", "kafka_cluster", "strimzi_io_cluster")
_TOPIC = ("cluster", "topic")


def prometheus_samples(spark: SparkSession, files: Sequence[SampleFile], cluster: str | None) -> DataFrame:
    """Return a sample for each partition and moment, of the named cluster or else of the one a label names.

    A point of a series has `cluster, topic, partition, broker, named_by, log, rate, is_counter, ts, at, value,
    written_at, marks`: `log` is a size or an end offset, `rate` a rate or a counter, of the partition or, if that is
    None, of the topic. Brokers that are `named_by` one label have names of one kind. `at` is `ts` in microseconds.
    """
    reader = spark.read.schema(_ANSWER)
    by_measure: dict[str, list[str]] = {}
    for file in files:
        by_measure.setdefault(file.measure, []).append(by_name(as_hadoop(file.path)))
    answers = (
        reader.json(paths, multiLine=True, mode="FAILFAST").transform(_series, measure)
        for measure, paths in sorted(by_measure.items())
    )
    series = united(answers)
    points = series.transform(_points).transform(_told_once)
    once = points.where(~has(Rule.DUPLICATE))
    rates = once.transform(_rates)
    own = rates.where(F.col("partition").isNotNull()).transform(_as_logs)
    logs = once.where(F.col("log").isNotNull()).select(*own.columns).unionByName(own).transform(_logs)
    topics = rates.where(F.col("partition").isNull()).transform(_of_topics)
    samples = logs.transform(_shares).join(topics, on=[*_TOPIC, "ts"], how="full").transform(_split)
    unused = series.where(~_has_values()).transform(_unused)
    samples = united((samples, points.where(has(Rule.DUPLICATE)).transform(_repeated), unused))
    name = F.nullif("cluster", F.lit("")) if cluster is None else F.lit(cluster)
    return samples.withColumn("cluster", name).select(*SAMPLES.fieldNames(), "written_at", MARKS)


def _series(answers: DataFrame, measure: str) -> DataFrame:
    """One row for each series: what it measures, of what, and its values; without a name it is that measure."""
    series = answers.select(F.explode("data.result").alias("series"), "_metadata.file_modification_time")
    return measured(series, _label("__name__"), _label("name"), measure).select(
        F.coalesce(*map(_label, _CLUSTER_LABELS), F.lit("")).alias("cluster"),
        F.coalesce(*map(_label, _TOPIC_LABELS)).alias("topic"),
        tried("coalesce(series.metric['partition'], series.metric['partition_id'])", "int").alias("partition"),
        F.coalesce(*map(_label, BROKER_LABELS), F.lit("")).alias("broker"),
        F.coalesce(*(F.when(_label(name).isNotNull(), F.lit(name)) for name in BROKER_LABELS)).alias("named_by"),
        "log",
        "rate",
        "is_counter",
        F.col("series.values").alias("values"),
        F.col("file_modification_time").alias("written_at"),
    )


def _label(name: str) -> Column:
    return F.col("series.metric")[name]


def _has_values() -> Column:
    return is_used() & F.col("values").isNotNull()


def _points(series: DataFrame) -> DataFrame:
    """One row for each value of the series that tell something."""
    return (
        series.where(_has_values())
        .withColumn("point", F.explode("values"))
        .withColumn("at", tried("try_cast(point[0] AS decimal(20,6)) * 1000000", "bigint"))
        .withColumn("ts", F.timestamp_micros("at"))
        .transform(_with_value)
        .drop("values", "point")
    )


def _with_value(points: DataFrame) -> DataFrame:
    """Add the `value` of a point: unknown, and marked, if it is no number or negative."""
    is_number = ~F.isnan("read") & (F.abs("read") != F.lit(float("inf")))
    found = marks(
        mark(Rule.UNREADABLE, F.col("read").isNull()),
        mark(Rule.NOT_A_NUMBER, ~is_number),
        mark(Rule.NEGATIVE, is_number & (F.col("read") < 0)),
    )
    return (
        points.withColumn("read", tried("point[1]", "double"))
        .withColumns({"value": F.when(is_number & (F.col("read") >= 0), F.col("read")), MARKS: found})
        .drop("read")
    )


def _told_once(points: DataFrame) -> DataFrame:
    """Mark all but one of the values that tell the same of the same moment."""
    same = Window.partitionBy(*_TOPIC, "partition", "broker", "log", "rate", "is_counter", "ts")
    best = same.orderBy(*(F.col(name).desc_nulls_last() for name in ("written_at", "value", MARKS)))
    is_repeated = F.col("ts").isNotNull() & (F.row_number().over(best) > 1)
    return points.withColumn(MARKS, marks(F.col(MARKS), mark(Rule.DUPLICATE, is_repeated)))


def _logs(points: DataFrame) -> DataFrame:
    """One row for each partition and moment: the largest size, end offset and rates of its own over the brokers."""

    def largest(measure: str) -> Column:
        return F.max(F.when(F.col("log") == measure, F.col("value")))

    return points.groupBy(*_TOPIC, "partition", "ts").agg(
        *(largest(name).cast("bigint").alias(name) for name in (SIZE, END_OFFSET)),
        *(largest(rate).alias(f"own_{rate}") for rate in RATES),
        F.max("written_at").alias("log_written_at"),
        F.bit_or(MARKS).alias("log_marks"),
    )


def _shares(logs: DataFrame) -> DataFrame:
    """Add `share`, a partition's part of its topic's traffic since the moment before."""
    newest_first = Window.partitionBy(*_TOPIC, "partition").orderBy(F.desc("ts"))
    at_once = Window.partitionBy(*_TOPIC, "ts")
    told = logs.withColumns({"at": F.unix_micros("ts"), LOG_START: F.lit(None).cast("long")})
    told = told.transform(grown, newest_first, F.lit(col=True))
    # A size that fell has not grown. Messages and bytes have no share in each other: sizes count where no offset does.
    has_sizes = (F.col("size_bytes") - F.col("before.size_bytes")).isNotNull() & F.col("seconds").isNotNull()
    by_size = F.when(has_sizes & (F.count("messages").over(at_once) == 0), F.coalesce("bytes", F.lit(0)))
    told = told.withColumn("a_second", F.coalesce("messages", by_size) / F.col("seconds"))
    total, partitions = F.sum("a_second").over(at_once), F.count("a_second").over(at_once)
    share = F.when(total > 0, F.col("a_second") / total).otherwise(F.lit(1.0) / partitions)
    return told.select(*logs.columns, F.when(F.col("a_second").isNotNull(), share).alias("share"))


def _rates(points: DataFrame) -> DataFrame:
    """One row for each topic or partition, broker, rate and moment: what its counter tells, else its gauge.

    Beside counters of other brokers a gauge counts where they are named alike: else it may be theirs, or their sum.
    """
    series = Window.partitionBy(*_TOPIC, "partition", "broker", "rate", "is_counter").orderBy("ts")
    before, at_before = F.lag("value").over(series), F.lag("at").over(series)
    seconds = (F.col("at") - at_before) / F.lit(1_000_000)
    is_reset = F.col("is_counter") & (F.col("value") < before)
    of_counter = F.when(is_reset, F.col("value")).otherwise(F.col("value") - before) / seconds
    alike = (*_TOPIC, F.col("partition").isNull(), "rate")

    def has_counter(*keys: str) -> Column:
        return F.max("is_counter").over(Window.partitionBy(*alike, *keys))

    return (
        points.where(F.col("rate").isNotNull())
        .withColumn("per_second", F.when(F.col("is_counter"), of_counter).otherwise(F.col("value")))
        .withColumn(MARKS, marks(F.col(MARKS), mark(Rule.COUNTER_RESET, is_reset)))
        .withColumn("is_alone", ~has_counter())
        .withColumn("is_beside", has_counter("named_by") & ~has_counter("named_by", "broker"))
        .where(F.col("is_counter") | F.col("is_alone") | F.col("is_beside"))
        .select(*_TOPIC, "partition", "broker", F.col("rate").alias("measure"), "ts", "per_second", "written_at", MARKS)
    )


def _as_logs(rates: DataFrame) -> DataFrame:
    """Return the rates of partitions in the form of what is told of their logs."""
    return rates.select(
        *_TOPIC, "partition", "ts", F.col("measure").alias("log"), F.col("per_second").alias("value"), "written_at",
        MARKS,
    )  # fmt: skip


def _of_topics(rates: DataFrame) -> DataFrame:
    """One row for each topic and moment: the sum over brokers of each measure, unknown where a broker's is missing."""
    of_series = Window.partitionBy(*_TOPIC, "broker", "measure")
    of_topic = Window.partitionBy(*_TOPIC, "measure")
    moment = F.when(F.col("per_second").isNotNull(), F.col("ts"))
    first, last = F.min(moment).over(of_series), F.max(moment).over(of_series)
    spans = F.collect_set(F.struct("broker", "first", "last")).over(of_topic)
    expected = F.size(F.filter("spans", lambda span: F.col("ts").between(span["first"], span["last"])))
    return (
        rates.withColumns({"first": first, "last": last})
        .withColumn("spans", spans)
        .groupBy(*_TOPIC, "measure", "ts")
        .agg(
            F.sum("per_second").alias("sum"),
            F.count("per_second").alias("brokers"),
            F.max(expected).alias("expected"),
            F.max("written_at").alias("written_at"),
            F.bit_or(MARKS).alias(MARKS),
        )
        .withColumn("whole", F.when(F.col("brokers") >= F.col("expected"), F.col("sum")))
        .groupBy(*_TOPIC, "ts")
        .agg(
            *(F.max(F.when(F.col("measure") == rate, F.col("whole"))).alias(f"topic_{rate}") for rate in RATES),
            F.max("written_at").alias("rate_written_at"),
            F.bit_or(MARKS).alias("rate_marks"),
        )
    )


def _split(joined: DataFrame) -> DataFrame:
    """Give each partition its share; bytes always, messages only where there are no offsets to count them by.

    What is told of a partition's own rate counts instead, and where any partition of the topic has one, no other gets a
    share: the topic's rate is theirs already.
    """
    split: dict[str, Column] = {rate: F.col(f"topic_{rate}") * F.col("share") for rate in RATES}
    split["messages_in"] = F.when(F.col("end_offset").isNull(), split["messages_in"])
    of_topic = Window.partitionBy(*_TOPIC)
    has_own = {rate: F.count(f"own_{rate}").over(of_topic) > 0 for rate in RATES}
    split = {rate: F.when(~has_own[rate], value) for rate, value in split.items()}
    is_split = F.coalesce(*split.values()).isNotNull()
    is_homeless = F.col("partition").isNull()
    # What a topic's counter had counts once, not once for each partition.
    is_first = F.row_number().over(Window.partitionBy(*_TOPIC, "ts").orderBy("partition")) == 1
    of_rate = F.when(is_homeless | is_first, F.col("rate_marks"))
    rates = {rate: F.coalesce(f"own_{rate}", value) for rate, value in split.items()}
    return joined.withColumns({**rates, "is_split": is_split}).select(
        "ts",
        *_TOPIC,
        "partition",
        *RATES,
        "size_bytes",
        "end_offset",
        F.lit(None).cast("long").alias(LOG_START),
        F.greatest("log_written_at", "rate_written_at").alias("written_at"),
        marks(
            F.coalesce("log_marks", F.lit(0)),
            F.coalesce(of_rate, F.lit(0)),
            mark(Rule.ESTIMATED, F.col("is_split")),
            mark(Rule.NOT_SPLIT, is_homeless),
        ).alias(MARKS),
    )


def _repeated(points: DataFrame) -> DataFrame:
    """One row for each partition, or topic, and moment of which something was told again: it is only counted."""
    keys = (*_TOPIC, "partition", "ts")
    again = points.groupBy(*keys).agg(F.max("written_at").alias("written_at"), F.bit_or(MARKS).alias(MARKS))
    return again.select(*keys, *unknown_but(*keys), "written_at", MARKS)


def _unused(series: DataFrame) -> DataFrame:
    """Return a row without a time and a partition for each of these series: it is only counted."""
    broken = mark(Rule.UNUSED_SERIES, F.lit(col=True)).alias(MARKS)
    return series.select("cluster", *unknown_but("cluster"), "written_at", broken)
