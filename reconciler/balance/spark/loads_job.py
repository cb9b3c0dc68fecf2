"""Runs the job of `loads`: samples in, a folder of Parquet out, and the report of what was found in them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession

from reconciler.balance.files.arrow_tables import INT, TEXT, arrow_table
from reconciler.balance.files.folders import LOADS_REPORT
from reconciler.balance.files.sample_files import SampleFile
from reconciler.balance.model.load_report import ClusterSamples, LoadReport, Rule
from reconciler.balance.spark.growth import with_growth
from reconciler.balance.spark.load import checked, measured, partitions_of
from reconciler.balance.spark.normalise import MICROS, cleaned, iso, normalised
from reconciler.balance.spark.session import spark_errors
from reconciler.balance.spark.sources import read_samples
from reconciler.balance.spark.tables import replaced
from reconciler.model.problem import ReconcilerError
from reconciler.model.topic_partition import TopicPartition

NO_SAMPLES = "KR251"


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Which samples to take, in which time buckets."""

    files: Sequence[SampleFile]
    bucket_seconds: int
    now: datetime
    """What is later than this is from the future, and left out."""
    cluster: str | None = None
    """Names what names no cluster, and picks that cluster of what does; None: every cluster."""
    partitions: Sequence[TopicPartition] | None = None
    """The partitions of the cluster: samples of any other partition are left out. None: they are not known."""
    notes: Sequence[str] = ()
    """What was told of the files before they were read; the report repeats it."""


def run_loads(spark: SparkSession, task: SampleTask, out: str, report_text: Callable[[LoadReport], str]) -> LoadReport:
    """Write the loads to a place and, beside them, the report; return it. A failure leaves what was there before.

    Raises ReconcilerError where no sample counts, a file is damaged, or the place cannot be written.
    """
    known = None
    if task.partitions is not None:
        known = spark.createDataFrame(arrow_table({"topic": TEXT, "partition": INT}, task.partitions))
    with spark_errors(), replaced(spark, out, LOADS_REPORT) as result_at:
        partitions, kept = _partitions(spark, task, known)
        result = measured(partitions, task.bucket_seconds, known)
        try:
            result_at.write(result.loads)
            clusters = tuple(cluster_samples(row) for row in result.found.collect())
        finally:
            for table in (*kept, *result.kept):
                table.unpersist()
        report = LoadReport(task.bucket_seconds, clusters, tuple(task.notes))
        if not report.partitions:
            raise ReconcilerError(_nothing_counts(report), code=NO_SAMPLES)
        result_at.tell(LOADS_REPORT, report_text(report))
    return report


def _partitions(
    spark: SparkSession, task: SampleTask, known: DataFrame | None
) -> tuple[DataFrame, tuple[DataFrame, ...]]:
    """Return one row a partition (`load.PARTITIONS`), and what is kept on disk for it."""

    def beside_others(samples: DataFrame) -> DataFrame:
        in_order = normalised(samples, bucket_seconds=task.bucket_seconds, now=task.now, known=known)
        return partitions_of(with_growth(in_order))

    samples = read_samples(spark, task.files, cluster=task.cluster)
    if all(file.may_stand_alone and file.has_messages for file in task.files):
        return checked(
            samples, lambda some: cleaned(some, now=task.now, known=known), task.bucket_seconds, beside_others
        )
    partitions = beside_others(samples).persist(StorageLevel.DISK_ONLY)
    return partitions, (partitions,)


def cluster_samples(row: Row) -> ClusterSamples:
    """Return a row of `load.Measured.found` as a value."""
    return ClusterSamples(
        cluster=row["cluster"],
        partitions=row["partitions"],
        samples=row["samples"],
        first_bucket=_iso(row["first_bucket"]),
        last_bucket=_iso(row["last_bucket"]),
        step_seconds=None if row["step"] is None else row["step"] // MICROS,
        busiest_bucket=_iso(row["busiest_bucket"]),
        coverage=row["coverage"],
        defects={rule: row[rule.value] or 0 for rule in Rule},
    )


def _iso(micros: int | None) -> str | None:
    return None if micros is None else iso(micros)


def _nothing_counts(report: LoadReport) -> str:
    totals = {rule: sum(cluster.defects[rule] for cluster in report.clusters) for rule in Rule}
    reasons = "; ".join(f"{count} {rule.treatment}" for rule, count in totals.items() if count)
    return f"no sample counts, so there are no loads to write: {reasons or 'the files hold none of this cluster'}"
