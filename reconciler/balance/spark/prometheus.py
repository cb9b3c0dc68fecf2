"""Reads samples from a Prometheus range-query answer with the JMX exporter's metrics.

Sizes and end offsets are per partition and broker: the largest over the brokers counts, which is the leader's. Bytes in
and out are per topic and broker only: a topic's sum over brokers is split over its partitions by growth of offsets, of
sizes where there are none, evenly where none grew, and marked as estimated; where growth is unknown, so is the share.
Counters begin anew with their broker. Where a broker's answer is missing between two that are there, the topic's rate
is unknown. What several files or several names tell of one thing and moment counts once: as the file that was written
last tells it, of equally old ones the larger. Ranges include both ends, so exports of two in a row share a moment.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import ArrayType, MapType, StringType

from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.growth import grown
from reconciler.balance.spark.normalise import MARKS, has, mark, marks
from reconciler.balance.spark.schemas import RATES, SAMPLES, struct
from reconciler.balance.spark.spellings import tried, united

_SERIES = struct({"metric": MapType(StringType(), StringType()), "values": ArrayType(ArrayType(StringType()))})
_ANSWER = struct({"data": struct({"result": ArrayType(_SERIES)})})
# Names without case and separators, the label `name` behind them: exporters' rules spell them in all of these ways.
_LOG = r"^kafkalog(?:log)?(?:value)?(size|logendoffset)(?:value)?$"
_FORM = "total|count|oneminuterate"
_TOPIC_RATE = rf"^kafkaserverbrokertopicmetrics({_FORM})?(bytesin|bytesout|messagesin)(?:persec)?({_FORM})?$"
_RATE_OF = {"bytesin": "bytes_in", "bytesout": "bytes_out", "messagesin": "messages_in"}
_BROKER_LABELS = ("broker_id", "broker", "kafka_broker_id", "node_id", "instance", "pod", "host")
_CLUSTER_LABELS = ("cluster", "kafka_cluster", "strimzi_io_cluster")
_TOPIC = ("cluster", "topic")


def prometheus_samples(spark: SparkSession, paths: Sequence[str], cluster: str | None) -> DataFrame:
    """Return a sample for each partition and moment, of the named cluster or else of the one a label names."""
    reader = spark.read.schema(_ANSWER)
    series = reader.json(list(paths), multiLine=True, mode="FAILFAST").transform(_series)
    points = series.transform(_points).transform(_told_once)
    once = points.where(~has(Rule.DUPLICATE))
    logs = once.transform(_logs).transform(_shares)
    rates = once.transform(_rates).transform(_of_topics)
    samples = logs.join(rates, on=[*_TOPIC, "ts"], how="full").transform(_split)
    counted = (
        points.where(has(Rule.DUPLICATE)).transform(_repeated),
        series.where(~_is_used()).transform(_left_unused),
    )
    samples = united((samples, *counted))
    name = F.nullif("cluster", F.lit("")) if cluster is None else F.lit(cluster)
    return samples.withColumn("cluster", name).select(*SAMPLES.fieldNames(), "written_at", MARKS)


def _series(answers: DataFrame) -> DataFrame:
    """One row for each series: what it measures, of what, and its values."""
    named = F.concat(_label("__name__"), F.coalesce(_label("name"), F.lit("")))
    plain = F.lower(F.regexp_replace(named, "[^A-Za-z0-9]", ""))
    form = F.concat(F.regexp_extract("plain", _TOPIC_RATE, 1), F.regexp_extract("plain", _TOPIC_RATE, 3))
    return (
        answers.select(F.explode("data.result").alias("series"), "_metadata.file_modification_time")
        .withColumn("plain", F.coalesce(plain, F.lit("")))
        .select(
            F.coalesce(*(_label(name) for name in _CLUSTER_LABELS), F.lit("")).alias("cluster"),
            _label("topic").alias("topic"),
            tried("series.metric['partition']", "int").alias("partition"),
            F.coalesce(*(_label(name) for name in _BROKER_LABELS), F.lit("")).alias("broker"),
            F.nullif(F.regexp_extract("plain", _LOG, 1), F.lit("")).alias("log"),
            F.nullif(F.regexp_extract("plain", _TOPIC_RATE, 2), F.lit("")).alias("rate"),
            form.rlike("total|count").alias("is_counter"),
            F.col("series.values").alias("values"),
            F.col("file_modification_time").alias("written_at"),
        )
    )


def _label(name: str) -> Column:
    return F.col("series.metric")[name]


def _is_used() -> Column:
    is_log = F.col("log").isNotNull() & F.col("partition").isNotNull()
    return F.col("topic").isNotNull() & F.col("values").isNotNull() & (is_log | F.col("rate").isNotNull())


def _points(series: DataFrame) -> DataFrame:
    """One row for each value: unknown, and marked, where it is no number or negative."""
    micros = tried("try_cast(point[0] AS decimal(20,6)) * 1000000", "bigint")
    is_number = ~F.isnan("read") & (F.abs("read") != F.lit(float("inf")))
    found = marks(
        mark(Rule.UNREADABLE, F.col("read").isNull()),
        mark(Rule.NOT_A_NUMBER, ~is_number),
        mark(Rule.NEGATIVE, is_number & (F.col("read") < 0)),
    )
    return (
        series.where(_is_used())
        .withColumn("point", F.explode("values"))
        .withColumn("ts", F.timestamp_micros(micros))
        .withColumn("read", tried("point[1]", "double"))
        .withColumns({"value": F.when(is_number & (F.col("read") >= 0), F.col("read")), MARKS: found})
        .drop("values", "point", "read")
    )


def _told_once(points: DataFrame) -> DataFrame:
    """Mark all but one of the values that tell the same of the same moment; the partition is that of logs only."""
    same = Window.partitionBy(*_TOPIC, "partition", "broker", "log", "rate", "is_counter", "ts")
    best = same.orderBy(*(F.col(name).desc_nulls_last() for name in ("written_at", "value", MARKS)))
    is_repeated = F.col("ts").isNotNull() & (F.row_number().over(best) > 1)
    return points.withColumn("partition", F.when(F.col("log").isNotNull(), F.col("partition"))).withColumn(
        MARKS, marks(F.col(MARKS), mark(Rule.DUPLICATE, is_repeated))
    )


def _logs(points: DataFrame) -> DataFrame:
    """One row for each partition and moment: the largest size and end offset over the brokers."""
    return (
        points.where(F.col("log").isNotNull())
        .groupBy(*_TOPIC, "partition", "ts")
        .agg(
            F.max(F.when(F.col("log") == "size", F.col("value"))).cast("bigint").alias("size_bytes"),
            F.max(F.when(F.col("log") == "logendoffset", F.col("value"))).cast("bigint").alias("end_offset"),
            F.max("written_at").alias("log_written_at"),
            F.bit_or(MARKS).alias("log_marks"),
        )
    )


def _shares(logs: DataFrame) -> DataFrame:
    """Add `share`, a partition's part of its topic's traffic since the moment before."""
    newest_first = Window.partitionBy(*_TOPIC, "partition").orderBy(F.desc("ts"))
    at_once = Window.partitionBy(*_TOPIC, "ts")
    told = logs.withColumn("at", F.unix_micros("ts")).transform(grown, newest_first, F.lit(col=True))
    # A size that fell has not grown. Messages and bytes have no share in each other: sizes count where no offset does.
    has_sizes = (F.col("size_bytes") - F.col("before.size_bytes")).isNotNull() & F.col("seconds").isNotNull()
    by_size = F.when(has_sizes & (F.count("messages").over(at_once) == 0), F.coalesce("bytes", F.lit(0)))
    told = told.withColumn("a_second", F.coalesce("messages", by_size) / F.col("seconds"))
    total, partitions = F.sum("a_second").over(at_once), F.count("a_second").over(at_once)
    share = F.when(total > 0, F.col("a_second") / total).otherwise(F.lit(1.0) / partitions)
    return told.select(*logs.columns, F.when(F.col("a_second").isNotNull(), share).alias("share"))


def _rates(points: DataFrame) -> DataFrame:
    """One row for each topic, broker, measure and moment: the rate that its counter tells, else its gauge."""
    series = Window.partitionBy(*_TOPIC, "broker", "rate", "is_counter").orderBy("ts")
    before, ts_before = F.lag("value").over(series), F.lag("ts").over(series)
    seconds = (F.unix_micros("ts") - F.unix_micros(ts_before)) / F.lit(1_000_000)
    is_reset = F.col("is_counter") & (F.col("value") < before)
    of_counter = F.when(is_reset, F.col("value")).otherwise(F.col("value") - before) / seconds
    has_counter = F.max("is_counter").over(Window.partitionBy(*_TOPIC, "rate"))
    return (
        points.where(F.col("rate").isNotNull())
        .withColumn("per_second", F.when(F.col("is_counter"), of_counter).otherwise(F.col("value")))
        .withColumn(MARKS, marks(F.col(MARKS), mark(Rule.COUNTER_RESET, is_reset)))
        .withColumn("has_counter", has_counter)
        .where(F.col("is_counter") == F.col("has_counter"))
        .withColumn(
            "measure", F.create_map(*(F.lit(each) for pair in _RATE_OF.items() for each in pair))[F.col("rate")]
        )
        .select(*_TOPIC, "broker", "measure", "ts", "per_second", "written_at", MARKS)
    )


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
    """Give each partition its share; bytes always, messages only where there are no offsets to count them by."""
    split: dict[str, Column] = {rate: F.col(f"topic_{rate}") * F.col("share") for rate in RATES}
    split["messages_in"] = F.when(F.col("end_offset").isNull(), split["messages_in"])
    is_split = F.coalesce(*split.values()).isNotNull()
    is_homeless = F.col("partition").isNull()
    # What a topic's counter had counts once, not once for each partition.
    is_first = F.row_number().over(Window.partitionBy(*_TOPIC, "ts").orderBy("partition")) == 1
    of_rate = F.when(is_homeless | is_first, F.col("rate_marks"))
    return joined.withColumns(split).select(
        "ts",
        *_TOPIC,
        "partition",
        *RATES,
        "size_bytes",
        "end_offset",
        F.greatest("log_written_at", "rate_written_at").alias("written_at"),
        marks(
            F.coalesce("log_marks", F.lit(0)),
            F.coalesce(of_rate, F.lit(0)),
            mark(Rule.ESTIMATED, is_split),
            mark(Rule.NOT_SPLIT, is_homeless),
        ).alias(MARKS),
    )


def _repeated(points: DataFrame) -> DataFrame:
    """One row for each partition, or topic, and moment of which something was told again: it is only counted."""
    keys = (*_TOPIC, "partition", "ts")
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in SAMPLES if field.name not in keys]
    again = points.groupBy(*keys).agg(F.max("written_at").alias("written_at"), F.bit_or(MARKS).alias(MARKS))
    return again.select(*keys, *nothing, "written_at", MARKS)


def _left_unused(series: DataFrame) -> DataFrame:
    """One row, without a time, for each series that tells nothing of a partition or topic: it is only counted."""
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in SAMPLES if field.name != "cluster"]
    return series.select("cluster", *nothing, "written_at", mark(Rule.UNUSED_SERIES, F.lit(col=True)).alias(MARKS))
