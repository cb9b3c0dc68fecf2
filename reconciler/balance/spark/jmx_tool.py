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
from reconciler.balance.spark.metric_names import measured
from reconciler.balance.spark.normalise import MARKS, MICROS, mark
from reconciler.balance.spark.prometheus import samples_of, with_value
from reconciler.balance.spark.schemas import SAMPLES, struct
from reconciler.balance.spark.session import as_hadoop
from reconciler.balance.spark.spellings import tried, united

_HEADER = '^\ufeff?"time",'
_MILLISECONDS = r"^\d{12,14}$"


def jmx_tool_samples(spark: SparkSession, files: Sequence[SampleFile], cluster: str | None) -> DataFrame:
    """Return a sample for each partition and moment, of the named cluster or the one that a folder names."""
    lines = _lines(spark, files)
    columns = lines.where(F.col("value").rlike(_HEADER)).transform(_columns)
    told = (
        lines.where(~F.col("value").rlike(_HEADER))
        .withColumn("fields", F.split("value", ","))
        .withColumn("width", F.size("fields"))
        .join(F.broadcast(columns.drop("cluster", "written_at")), on=["broker", "width"], how="left")
        .withColumn("at", F.when(F.col("fields")[0].rlike(_MILLISECONDS), tried("fields[0]", "bigint") * 1000))
    )
    is_line = F.col("columns").isNotNull() & F.col("at").isNotNull()
    points = told.where(is_line).transform(_on_grid).transform(_points)
    behind_time = F.slice("columns", 2, F.size("columns"))
    unused = columns.select("cluster", "written_at", F.explode(behind_time).alias("column")).where(~_is_used("column"))
    samples = samples_of(points, unused, cluster)
    return samples.unionByName(told.where(~is_line).transform(_unreadable, cluster))


def _lines(spark: SparkSession, files: Sequence[SampleFile]) -> DataFrame:
    """Return one row for each line, with its file, whose broker nobody names."""
    by_root = groupby(sorted(files, key=_form), key=_form)
    return united(_read(spark, list(group)) for _, group in by_root)


def _form(file: SampleFile) -> tuple[str, tuple[str, ...], str]:
    return file.root, file.folders, file.path


def _read(spark: SparkSession, files: Sequence[SampleFile]) -> DataFrame:
    first = files[0]
    schema = struct({"value": "string"} | dict.fromkeys(first.folders, "string"))
    reader = spark.read.schema(schema)
    if first.folders:
        reader = reader.option("basePath", as_hadoop(first.root))
    name = F.col("cluster") if "cluster" in first.folders else F.lit(None).cast("string")
    return (
        reader.format("text")
        .load([as_hadoop(file.path) for file in files])
        .select(
            "value",
            F.coalesce(name, F.lit("")).alias("cluster"),
            F.col("_metadata.file_path").alias("broker"),
            F.col("_metadata.file_modification_time").alias("written_at"),
        )
    )


def _columns(headers: DataFrame) -> DataFrame:
    """Return what each column is, for each file and number of columns.

    A file may have several headers, where JmxTool was started again: two of one width that differ tell nothing.
    """
    bare = F.regexp_replace("value", '^\ufeff?"|"$', "")
    names = F.split(bare, '","')
    return (
        headers.withColumn("names", names)
        .withColumn("width", F.size("names"))
        .groupBy("cluster", "broker", "width")
        .agg(F.collect_set("names").alias("spelt"), F.max("written_at").alias("written_at"))
        .where(F.size("spelt") == 1)
        .select("cluster", "broker", "width", "written_at", F.transform(F.col("spelt")[0], _column).alias("columns"))
    )


def _column(name: Column) -> Column:
    """Return what stands in the column of that name: `kafka.log:type=Log,name=Size,topic=t,partition=0:Value`."""

    def key(wanted: str) -> Column:
        return F.nullif(F.regexp_extract(name, f"[:,]{wanted}=([^,:]+)", 1), F.lit(""))

    domain, attribute = F.regexp_extract(name, "^([^:]+):", 1), F.regexp_extract(name, ":([^:]+)$", 1)
    found = measured(F.concat(domain, key("type"), key("name"), attribute), F.lit(None).cast("string"), "")
    partition = F.when(key("partition").rlike(r"^\d{1,9}$"), key("partition").cast("int"))
    return F.struct(
        key("topic").alias("topic"), partition.alias("partition"), found.log.alias("log"), found.rate.alias("rate"),
        found.is_counter.alias("is_counter"),
    )  # fmt: skip


def _is_used(column: str) -> Column:
    what = F.col(column)
    is_log = what["log"].isNotNull() & what["partition"].isNotNull()
    return what["topic"].isNotNull() & (is_log | what["rate"].isNotNull())


def _on_grid(told: DataFrame) -> DataFrame:
    """Add `ts`, the moment on the grid of the cluster."""
    spans = told.groupBy("cluster", "broker").agg(
        ((F.max("at") - F.min("at")) / F.nullif(F.countDistinct("at") - 1, F.lit(0)) / MICROS).alias("seconds")
    )
    steps = spans.groupBy("cluster").agg(F.greatest(F.lit(1), F.round(F.max("seconds"))).cast("bigint").alias("step"))
    step = F.col("step") * MICROS
    on_grid = F.round(F.col("at") / step).cast("bigint") * step
    return told.join(F.broadcast(steps), on=["cluster"], how="inner").withColumn("ts", F.timestamp_micros(on_grid))


def _points(told: DataFrame) -> DataFrame:
    """Return one row for each figure of a partition's log or a topic's rate."""
    return (
        told.withColumn("each", F.explode(F.arrays_zip("fields", "columns")))
        .withColumn("column", F.col("each")["columns"])
        .where(_is_used("column"))
        .select(
            "cluster", "column.topic", "column.partition", "broker", "column.log", "column.rate", "column.is_counter",
            "written_at", "ts", "at", F.col("each")["fields"].alias("field"),
        )
        .transform(with_value, "field")
        .drop("field")
    )  # fmt: skip


def _unreadable(lines: DataFrame, cluster: str | None) -> DataFrame:
    """Return one row for each line that is cut short, or has no header of its width: it is only counted."""
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in SAMPLES if field.name != "cluster"]
    name = F.nullif("cluster", F.lit("")) if cluster is None else F.lit(cluster)
    return lines.select(
        name.alias("cluster"), *nothing, "written_at", mark(Rule.UNREADABLE, F.lit(col=True)).alias(MARKS)
    ).select(*SAMPLES.fieldNames(), "written_at", MARKS)
