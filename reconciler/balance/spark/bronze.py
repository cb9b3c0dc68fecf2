"""Takes files of samples into bronze: the samples as they came, with what silver needs to know of their files.

    DIR/bronze/taken=000012/cluster=prod-eu/date=2026-11-21/part-….parquet

Each run that takes files has a folder, named by its number. After a run that died, the next one has the same number
and writes that folder anew; at a URI, where runs cannot keep each other away, each has a number of its own, and the
ledger names those that count. Nothing else is ever written over: a later run takes a changed file again, and the ledger
says that the rows of its older version no longer count. Samples without a time or a cluster, and those from the future,
have no date.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import ArrayType, StringType, StructField, StructType, TimestampType

from reconciler.balance.files.ledger import Day, Ledger
from reconciler.balance.files.sample_files import Kind, SampleFile
from reconciler.balance.files.sample_writer import escaped
from reconciler.balance.model.load_report import Rule
from reconciler.balance.spark.normalise import MARKED, MARKS, MICROS, MICROS_PER_DAY, has, mark, marks
from reconciler.balance.spark.schemas import SAMPLES
from reconciler.balance.spark.sources import read_samples
from reconciler.balance.spark.spellings import any_of, united
from reconciler.balance.spark.uri_results import by_name

# How far a day looks back into the one before, so that its first rates from growth are known.
LOOK_BACK_SECONDS = 7200
# Above so many files a shuffle brings the rows of each day together; else each task would write a file for each day.
_FEW_FILES = 64
_NO_FOLDER = "__HIVE_DEFAULT_PARTITION__"
_DEFECTS, _SOURCE = "defects", "source"
OF_DAY = ("cluster", "date")
BRONZE = StructType(
    [
        *(field for field in SAMPLES.fields if field.name != "cluster"),
        StructField("written_at", TimestampType()),
        StructField(_DEFECTS, ArrayType(StringType())),
        StructField(_SOURCE, StringType()),
        StructField("cluster", StringType()),
        StructField("date", StringType()),
    ]
)
"""The columns of bronze; `defects` names the rules that a sample broke when it was read, null for none."""

Found = Mapping[str, Mapping[Day, bool]]
"""By source, the days that its samples lie in, and whether some are in the day's evening."""


def take(
    spark: SparkSession, bronze: str, number: int, files: Sequence[SampleFile], *, cluster: str | None, now: datetime
) -> Found:
    """Write the samples of these files into the folder of that taking; return which days each source has.

    `cluster` is that of samples that name none. Samples later than `now` are from the future.
    """
    folder = f"{bronze}/{_taken(number)}"
    rows = _together(spark, files, cluster).transform(_with_day, now)
    if len(files) > _FEW_FILES:
        by_day = rows.repartition(*OF_DAY)
        rows = by_day.sortWithinPartitions(*OF_DAY, _SOURCE, "ts", "topic", "partition")
    rows.write.partitionBy(*OF_DAY).parquet(folder, mode="overwrite", compression="zstd")
    seen = spark.read.schema(BRONZE).parquet(by_name(folder)).groupBy(_SOURCE, *OF_DAY)
    found: defaultdict[str, dict[Day, bool]] = defaultdict(dict)
    for row in seen.agg(F.coalesce(F.bool_or(is_evening()), F.lit(col=False)).alias("is_evening")).collect():
        found[row[_SOURCE]][Day(row["cluster"], row["date"])] = row["is_evening"]
    return found


def source_of(file: SampleFile) -> str:
    """Return what the rows of that file name as their source (`new_files.sources_of`): its path, or one name for all.

    An export of Prometheus or JmxTool may tell rates of topics, which others split over partitions: they go together.
    """
    return file.path if file.kind in _BY_ROWS else _TOGETHER


def is_evening() -> Column:
    """Return whether a sample lies in the part of its day that the next day looks back on."""
    return F.pmod(F.unix_micros("ts"), F.lit(MICROS_PER_DAY)) >= F.lit(MICROS_PER_DAY - LOOK_BACK_SECONDS * MICROS)


def _evening_of(day: Day) -> int:
    """Return when the evening of a day begins, in seconds since 1970."""
    begins = datetime.combine(date.fromisoformat(day.date or ""), time(), UTC)
    return int(begins.timestamp()) + MICROS_PER_DAY // MICROS - LOOK_BACK_SECONDS


def bronze_of(spark: SparkSession, bronze: str, ledger: Ledger, days: Iterable[Day]) -> DataFrame:
    """Return the samples of these days whose files still count, and those of the evening before each day.

    Columns: those of SAMPLES, `written_at`, `marks` and `date`. Of the day before more than its evening may come.
    """
    wanted = {*days}
    before = {day.before for day in wanted if day.before is not None} - wanted
    folders = {(number, day) for day in wanted for number in ledger.takings_of(day)}
    evenings = {(number, day) for day in before for number in ledger.takings_of(day, evening=True)}
    rows = _rows_of(spark, bronze, folders)
    if evenings:
        # Parquet keeps the times of each page: what lies before is not even read.
        first = F.timestamp_seconds(F.lit(min(_evening_of(day) for _, day in evenings)))
        rows = rows.unionByName(_rows_of(spark, bronze, evenings).where(F.col("ts") >= first))
    numbers = {number for number, _ in folders | evenings}
    replaced = sorted((number, source) for number, source in ledger.replaced if number in numbers)
    if replaced:
        rows = rows.where(~any_of(*map(_is_of, replaced)))
    names = {rule: F.array_contains(_DEFECTS, rule.value) for rule in MARKED}
    found = F.when(F.col(_DEFECTS).isNull(), 0).otherwise(marks(*(mark(rule, holds) for rule, holds in names.items())))
    return rows.select(*SAMPLES.fieldNames(), "written_at", found.alias(MARKS), "date")


def _rows_of(spark: SparkSession, bronze: str, folders: Iterable[tuple[int, Day]]) -> DataFrame:
    paths = [f"{bronze}/{_taken(number)}/{folder_of(day)}" for number, day in sorted(folders, key=_in_order)]
    return spark.read.schema(_READ).option("basePath", bronze).parquet(*map(by_name, paths))


def folder_of(day: Day) -> str:
    """Return the folder of a day's rows below that of their table, as Spark names it."""
    return "/".join(
        f"{name}={_NO_FOLDER if value is None else escaped(value)}"
        for name, value in zip(OF_DAY, (day.cluster, day.date), strict=True)
    )


# Each row of these is a sample, or a part of one file becomes one.
_BY_ROWS = {Kind.PARQUET, Kind.ORC, Kind.AVRO, Kind.CSV, Kind.JSON_LINES, Kind.SNAPSHOT}
_TOGETHER = "together"
_READ = StructType([*BRONZE.fields, StructField("taken", StringType())])


def _taken(number: int) -> str:
    return f"taken={number:06d}"


def _in_order(each: tuple[int, Day]) -> tuple[object, ...]:
    number, day = each
    return (*day.order, number)


def _is_of(replaced: tuple[int, str]) -> Column:
    number, source = replaced
    return (F.col("taken").cast("int") == number) & (F.col(_SOURCE) == source)


def _together(spark: SparkSession, files: Sequence[SampleFile], cluster: str | None) -> DataFrame:
    """Return the samples of all files and all clusters, with their source; `cluster` is that of samples without one."""
    # Snapshots and exports name a cluster only where none is named to them.
    alike = {
        "tables": ([file for file in files if file.kind in _BY_ROWS - {Kind.SNAPSHOT}], None),
        "snapshots": ([file for file in files if file.kind is Kind.SNAPSHOT], cluster),
        _TOGETHER: ([file for file in files if file.kind not in _BY_ROWS], cluster),
    }
    tables = []
    for name, (some, named) in alike.items():
        if some:
            source = F.lit(_TOGETHER) if name == _TOGETHER else F.input_file_name()
            tables.append(read_samples(spark, some, cluster=named).withColumn(_SOURCE, source))
    whole = united(tables)
    return whole if cluster is None else whole.withColumn("cluster", F.coalesce("cluster", F.lit(cluster)))


def _with_day(samples: DataFrame, now: datetime) -> DataFrame:
    moment = F.unix_micros("ts")
    is_future = moment > F.lit(int(now.timestamp() * MICROS))
    day = F.date_from_unix_date(F.floor(moment / F.lit(MICROS_PER_DAY)).cast("int")).cast("string")
    broken = marks(F.col(MARKS), mark(Rule.FUTURE, is_future))
    named = F.array(*(F.when(has(rule), F.lit(rule.value)) for rule in MARKED))
    return (
        samples.withColumn("cluster", F.nullif("cluster", F.lit("")))
        .withColumn("date", F.when(F.col("cluster").isNotNull() & (moment >= 0) & ~is_future, day))
        .withColumn(MARKS, broken)
        .withColumn(_DEFECTS, F.when(F.col(MARKS) != 0, F.array_compact(named)))
        .select(*BRONZE.fieldNames())
    )
