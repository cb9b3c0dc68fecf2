"""Reads samples from what Kafka's JmxTool prints: a line for each moment, a column for each attribute of each object.

A file is one broker's. Brokers are not asked at the same instant, so moments are put on a grid, whose step is the usual
time from line to line in the slowest file of a cluster; then figures become samples as those of Prometheus do.
"""

from collections.abc import Sequence
from itertools import groupby

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use

from reconciler.balance.files.sample_files import SampleFile
from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.metric_names import is_used, measured
from reconciler.balance.spark.normalise import MICROS
from reconciler.balance.spark.prometheus import only_counted, samples_of, with_value
from reconciler.balance.spark.schemas import struct
from reconciler.balance.spark.session import as_hadoop
from reconciler.balance.spark.spellings import tried, united
from reconciler.balance.spark.uri_results import by_name

_HEADER = '^\ufeff?"time",'
_FILE = ("broker", "width")
"""A file stands for its broker, whose id nobody tells; it has one header for each number of columns."""
_MILLISECONDS = r"^\d{12,14}$"


def jmx_tool_samples(spark: SparkSession, files: Sequence[SampleFile], cluster: str | None) -> DataFrame:
    """Return a sample for each partition and moment, of the named cluster or the one that a folder names."""
    lines = _lines(spark, files)
    headers = lines.where(F.col("value").rlike(_HEADER)).transform(_headers)
    columns = headers.transform(_columns)
    told = (
        lines.where(~F.col("value").rlike(_HEADER))
        .withColumn("fields", F.split("value", ","))
        .withColumn("width", F.size("fields"))
        .join(F.broadcast(headers.select(*_FILE, F.lit(col=True).alias("has_header"))), on=[*_FILE], how="left")
        .withColumn("at", F.when(F.col("fields")[0].rlike(_MILLISECONDS), tried("fields[0]", "bigint") * 1000))
    )
    is_line = F.col("has_header").isNotNull() & F.col("at").isNotNull()
    points = told.where(is_line).transform(_on_grid).transform(_points, columns.where(is_used()))
    # A line that is cut short, or has no header of its width, is only counted; so is a column that is not used.
    unread = told.where(~is_line).transform(only_counted, Rule.UNREADABLE)
    unused = columns.where(~is_used()).transform(only_counted, Rule.UNUSED_SERIES)
    return samples_of(points, united((unused, unread)), cluster)


def _lines(spark: SparkSession, files: Sequence[SampleFile]) -> DataFrame:
    """Return one row for each line, with its file, whose broker nobody names."""
    alike = groupby(sorted(files, key=_form), key=_form)
    return united(_read(spark, list(group)) for _, group in alike)


def _form(file: SampleFile) -> tuple[str, tuple[str, ...]]:
    return file.root if file.folders else "", file.folders


def _read(spark: SparkSession, files: Sequence[SampleFile]) -> DataFrame:
    first = files[0]
    schema = struct({"value": "string"} | dict.fromkeys(first.folders, "string"))
    reader = spark.read.schema(schema)
    if first.folders:
        reader = reader.option("basePath", as_hadoop(first.root))
    name = F.col("cluster") if "cluster" in first.folders else F.lit(None).cast("string")
    return (
        reader.format("text")
        .load([by_name(as_hadoop(file.path)) for file in files])
        .select(
            "value",
            F.coalesce(name, F.lit("")).alias("cluster"),
            F.col("_metadata.file_path").alias("broker"),
            F.col("_metadata.file_modification_time").alias("written_at"),
        )
    )


def _headers(lines: DataFrame) -> DataFrame:
    """Return the names of columns, for each file and number of them.

    A file may have several headers, where JmxTool was started again: two of one width that differ tell nothing.
    """
    bare = F.regexp_replace("value", '^\ufeff?"|"$', "")
    return (
        lines.withColumn("names", F.split(bare, '","'))
        .withColumn("width", F.size("names"))
        .groupBy("cluster", *_FILE)
        .agg(F.collect_set("names").alias("spelt"), F.max("written_at").alias("written_at"))
        .where(F.size("spelt") == 1)
        .select("cluster", *_FILE, "written_at", F.col("spelt")[0].alias("names"))
    )


def _columns(headers: DataFrame) -> DataFrame:
    """Return what stands in each column of each file, but for the first, the time.

    Their names are such as `kafka.log:type=Log,name=Size,topic=t,partition=0:Value`.
    """

    def key(wanted: str) -> Column:
        return F.nullif(F.regexp_extract("name", f"[:,]{wanted}=([^,:]+)", 1), F.lit(""))

    domain, attribute = F.regexp_extract("name", "^([^:]+):", 1), F.regexp_extract("name", ":([^:]+)$", 1)
    named = headers.select("cluster", *_FILE, "written_at", F.posexplode("names").alias("place", "name")).where(
        "place > 0"
    )
    spelt = F.concat(domain, F.coalesce(key("type"), F.lit("")), F.coalesce(key("name"), F.lit("")), attribute)
    parts = named.withColumns({"spelt": spelt, "topic": key("topic")}).withColumn(
        "partition", tried(r"regexp_extract(name, '[:,]partition=([0-9]{1,9})[,:]', 1)", "int")
    )
    return measured(parts, F.col("spelt"), F.lit(None).cast("string"), "").drop("name", "spelt")


def _on_grid(told: DataFrame) -> DataFrame:
    """Add `ts`, the moment on the grid of the cluster."""
    spans = (
        told.groupBy("cluster", "broker")
        .agg(F.min("at").alias("first"), F.max("at").alias("last"), F.count("at").alias("lines"))
        .where("lines > 1")
        .withColumn("seconds", (F.col("last") - F.col("first")) / (F.col("lines") - 1) / MICROS)
    )
    steps = spans.groupBy("cluster").agg(F.greatest(F.lit(1), F.round(F.max("seconds"))).cast("bigint").alias("step"))
    # Where no file has two lines, there is nothing to put on a grid.
    step = F.coalesce("step", F.lit(1)) * MICROS
    on_grid = F.round(F.col("at") / step).cast("bigint") * step
    return told.join(F.broadcast(steps), on=["cluster"], how="left").withColumn("ts", F.timestamp_micros(on_grid))


def _points(told: DataFrame, columns: DataFrame) -> DataFrame:
    """Return one row for each figure of a partition's log or a topic's rate."""
    fields = told.select("cluster", *_FILE, "written_at", "ts", "at", F.posexplode("fields").alias("place", "field"))
    what = F.broadcast(columns.drop("cluster", "written_at"))
    figures = fields.join(what, on=[*_FILE, "place"], how="inner").transform(with_value, "field").drop("field")
    return figures.withColumn("named_by", F.lit("file"))
