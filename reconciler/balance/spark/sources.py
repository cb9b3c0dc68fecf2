"""Reads files of every kind as one table of samples: the columns of SAMPLES, when their file was written, first marks.

Schemas are given, never inferred: a file is read by the columns that its own header names, and each is converted to the
sample's type. What a text does not tell stays unknown and is marked. Of snapshots there are sizes and end offsets at
some moments; their rates come from growth.
"""

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import groupby
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's own examples use
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from reconciler.balance.files.sample_files import ESTIMATED, MEASURES, ROWS, TABLES, Kind, SampleFile
from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.normalise import MARKS, mark, marks
from reconciler.balance.spark.prometheus import prometheus_samples
from reconciler.balance.spark.schemas import LOG_START, RATES, SAMPLES, struct
from reconciler.balance.spark.session import as_hadoop
from reconciler.balance.spark.spellings import tried, united
from reconciler.balance.spark.tables import read_format
from reconciler.balance.spark.uri_results import by_name

_CORRUPT = "unreadable_line"
_FILE_TIME = "_metadata.file_modification_time"
_IN_PARQUET: dict[str, DataType] = {
    "bool": BooleanType(),
    "int8": IntegerType(),
    "int16": IntegerType(),
    "int32": IntegerType(),
    "uint8": IntegerType(),
    "uint16": IntegerType(),
    "uint32": LongType(),
    "int64": LongType(),
    "uint64": DecimalType(20, 0),
    "float": FloatType(),
    "double": DoubleType(),
}
_DECIMAL = re.compile(r"decimal\d+[(](\d+), (\d+)[)]")
# Programs may write a number with an exponent: 1.7E9 for 1700000000.0.
_SECONDS = r"^(\d{9,11}([.]\d+)?|\d([.]\d+)?E([89]|10))$"
_MILLISECONDS = r"^(\d{12,14}|\d([.]\d+)?E1[123])$"
# Spark would take a time without its day for one of today.
_DATED = r"^\d{4}-"


def read_samples(spark: SparkSession, files: Sequence[SampleFile], *, cluster: str | None = None) -> DataFrame:
    """Return all samples: the columns of SAMPLES, `written_at` and `marks`.

    `cluster` names what names none, and of samples that do name one keeps that cluster's only.
    """
    tables = [_table(spark, group) for group in _alike(files)]
    for kind, read in ((Kind.PROMETHEUS, prometheus_samples), (Kind.SNAPSHOT, snapshot_samples)):
        of_kind = [file for file in files if file.kind is kind]
        tables += [read(spark, of_kind, cluster)] if of_kind else []
    together = united(tables)
    if cluster is None:
        return together
    named = F.coalesce(F.col("cluster"), F.lit(cluster))
    return together.withColumn("cluster", named).where(F.col("cluster") == cluster)


def _path(file: SampleFile) -> str:
    return as_hadoop(file.path) if file.is_pattern else by_name(as_hadoop(file.path))


def _alike(files: Iterable[SampleFile]) -> list[list[SampleFile]]:
    """Return tables' files in groups that one reader can take: of one kind, with the same columns.

    Each group is a table of its own in every query, so their number is what a fleet of many folders costs.
    """
    tabular = (file for file in files if file.kind in ROWS)
    ordered = sorted(tabular, key=lambda file: (*_form(file), file.path))
    return [list(group) for _, group in groupby(ordered, key=_form)]


def _form(file: SampleFile) -> tuple[str, str, tuple[str, ...], str, tuple[tuple[str, str], ...]]:
    # A reader has one base, and reads one table.
    base = file.root if file.folders or file.kind in TABLES else ""
    # A line of JSON need not have every column: what the first one has says nothing about the others.
    columns = () if file.kind is Kind.JSON_LINES else file.columns
    return file.kind, base, file.folders, file.separator, columns


def _table(spark: SparkSession, files: Sequence[SampleFile]) -> DataFrame:
    """Read files that are alike as the columns of SAMPLES, with `written_at` and `marks`."""
    first = files[0]
    if first.kind in TABLES:
        return _of_table(spark, first)
    schema = _schema_in_file(first)
    # Without pruning a line with too many or too few fields shows as such, whatever is asked of it.
    reader = (
        spark.read.schema(schema).option("columnNameOfCorruptRecord", _CORRUPT).option("columnPruning", value=False)
    )
    if first.folders:
        reader = reader.option("basePath", as_hadoop(first.root))
    paths = list(map(_path, files))
    if first.kind is Kind.PARQUET:
        raw = reader.parquet(*paths)
    elif first.kind is Kind.CSV:
        # A quote within quotes is doubled, as RFC 4180 has it; Spark would want a backslash.
        raw = reader.csv(paths, header=True, sep=first.separator, escape='"', enforceSchema=bool(first.columns))
    else:
        raw = reader.json(paths)
    corrupt = F.col(_CORRUPT) if _CORRUPT in schema.names else F.lit(None)
    wanted = StructType([field for field in schema.fields if field.name in SAMPLES.names])
    is_estimated = F.col(ESTIMATED) if ESTIMATED in schema.names else F.lit(col=False)
    written = raw.select(
        *wanted.names, F.col(_FILE_TIME).alias("written_at"), corrupt.alias("corrupt"), is_estimated.alias(ESTIMATED)
    )
    if first.separator == ";":
        # A comma may stand before the fraction there.
        measures = [name for name in wanted.names if name in {*MEASURES, LOG_START}]
        written = written.withColumns({name: F.translate(F.col(name), ",", ".") for name in measures})
    return _converted(written, wanted)


def _of_table(spark: SparkSession, table: SampleFile) -> DataFrame:
    """Read a table, which does not tell when its rows were written: none of them is late."""
    is_named = table.kind is Kind.TABLE
    found = spark.table(table.path) if is_named else read_format(spark, as_hadoop(table.path), table.kind)
    wanted = StructType([field for field in found.schema.fields if field.name in SAMPLES.names])
    has_estimated = ESTIMATED in found.columns and found.schema[ESTIMATED].dataType == BooleanType()
    written = found.select(
        *wanted.names,
        F.timestamp_micros(F.lit(0)).alias("written_at"),
        F.lit(None).alias("corrupt"),
        (F.col(ESTIMATED) if has_estimated else F.lit(col=False)).alias(ESTIMATED),
    )
    return _converted(written, wanted)


def _schema_in_file(file: SampleFile) -> StructType:
    """Return the schema to read with: Parquet's own types, and texts of a CSV in the order of its header.

    A column of a CSV that no sample has is there, for its place, but under a name that means nothing.
    """
    wanted = set(SAMPLES.fieldNames())
    if file.kind is Kind.CSV and file.columns:
        names = (name if name in wanted else f"_c{place}" for place, (name, _) in enumerate(file.columns))
        columns = [StructField(name, StringType()) for name in names]
    elif file.kind in {Kind.JSON_LINES, Kind.CSV}:
        columns = [StructField(name, StringType()) for name in SAMPLES.fieldNames()]
    else:
        columns = [StructField(name, _parquet_type(found)) for name, found in file.columns if name in wanted]
        if dict(file.columns).get(ESTIMATED) == "bool":
            columns.append(StructField(ESTIMATED, BooleanType()))
    have = {column.name for column in columns}
    folders = [StructField(name, StringType()) for name in file.folders if name not in have]
    corrupt = [] if file.kind is Kind.PARQUET else [StructField(_CORRUPT, StringType())]
    return StructType([*columns, *folders, *corrupt])


def _parquet_type(found: str) -> DataType:
    if found.startswith("timestamp"):
        return TimestampType()
    if decimal := _DECIMAL.fullmatch(found):
        return DecimalType(int(decimal[1]), int(decimal[2]))
    return _IN_PARQUET.get(found, StringType())


def _converted(raw: DataFrame, schema: StructType) -> DataFrame:
    types = {field.name: field.dataType for field in schema.fields}
    told = {
        name: f"nullif(trim(`{name}`), '')" if kind == StringType() else f"`{name}`" for name, kind in types.items()
    }
    values = {
        field.name: _as(field, told[field.name], types[field.name])
        if field.name in types
        else F.lit(None).cast(field.dataType)
        for field in SAMPLES.fields
    }
    lost = [
        F.expr(told[name]).isNotNull() & values[name].isNull()
        for name, kind in types.items()
        if kind != SAMPLES[name].dataType
    ]
    is_unreadable = reduce(or_, lost, F.col("corrupt").isNotNull())
    return raw.select(
        *(value.alias(name) for name, value in values.items()),
        "written_at",
        marks(mark(Rule.UNREADABLE, is_unreadable), mark(Rule.ESTIMATED, F.col(ESTIMATED))).alias(MARKS),
    )


def _as(field: StructField, value: str, found: DataType) -> Column:
    """Return what this SQL says as the field's type; None where it cannot be."""
    if found == field.dataType:
        return F.expr(value)
    if field.dataType == TimestampType():
        return _moment(f"cast({value} AS string)")
    if field.dataType == LongType():
        return F.coalesce(tried(value, "bigint"), tried(f"try_cast({value} AS double)", "bigint"))
    return tried(value, field.dataType.simpleString())


def _moment(text: str) -> Column:
    """Return the time that a text tells: ISO 8601, of UTC without a zone, or seconds or milliseconds since 1970."""
    value, number = F.expr(text), f"try_cast({text} AS decimal(20,6))"
    of_seconds, of_milliseconds = (tried(f"{number} * {micros}", "bigint") for micros in (1_000_000, 1_000))
    micros = F.when(value.rlike(_SECONDS), of_seconds).when(value.rlike(_MILLISECONDS), of_milliseconds)
    return F.coalesce(F.timestamp_micros(micros), F.when(value.rlike(_DATED), tried(text, "timestamp")))


_PARTITION = struct(
    {
        "partition": "int32",
        "leader": "int32",
        "replicas": ArrayType(IntegerType()),
        "sizes": ArrayType(LongType()),
        "endOffset": "int64",
    }
)
_TOPIC = struct({"name": "string", "partitions": ArrayType(_PARTITION)})
_SNAPSHOT = struct({"clusterId": "string", "observedAt": "string", "topics": ArrayType(_TOPIC)})


def snapshot_samples(spark: SparkSession, files: Sequence[SampleFile], cluster: str | None) -> DataFrame:
    """Return one sample for each partition of each snapshot, of the named cluster or else of its cluster id.

    A partition's size is its leader's, the largest replica's where that is not known.
    """
    name = F.col("clusterId") if cluster is None else F.lit(cluster)
    leader_at = F.array_position(F.col("each.replicas"), F.col("each.leader")).cast("int")
    of_leader = F.when(leader_at > 0, F.try_element_at("each.sizes", leader_at))
    return (
        spark.read.schema(_SNAPSHOT)
        .json(list(map(_path, files)), multiLine=True, mode="FAILFAST")
        .select("*", F.col(_FILE_TIME).alias("written_at"))
        .withColumn("topic", F.explode("topics"))
        .withColumn("each", F.explode("topic.partitions"))
        .select(
            tried("observedAt", "timestamp").alias("ts"),
            name.alias("cluster"),
            F.col("topic.name").alias("topic"),
            F.col("each.partition").alias("partition"),
            *(F.lit(None).cast("double").alias(rate) for rate in RATES),
            F.coalesce(of_leader, F.array_max("each.sizes")).alias("size_bytes"),
            F.col("each.endOffset").alias("end_offset"),
            F.lit(None).cast("long").alias(LOG_START),
            "written_at",
            F.lit(0).alias(MARKS),
        )
    )
