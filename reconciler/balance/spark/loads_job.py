"""The job of `loads`: samples in, a folder of Parquet out, and the report of what was found in them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.balance.files.folders import replaced_folder
from reconciler.balance.files.sample_files import SampleFile
from reconciler.balance.model.load_report import ClusterSamples, LoadReport, Rule
from reconciler.balance.spark.errors import spark_errors
from reconciler.model.problem import ReconcilerError
from reconciler.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

REPORT_FILE = "_report.json"
NO_SAMPLES = "KR251"
MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class State:
    """What the cluster is known to have, for the rules about strangers: its brokers and partitions."""

    brokers: Sequence[int]
    partitions: Sequence[TopicPartition]


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Which samples to take, in which buckets; `now` decides what is the future."""

    files: Sequence[SampleFile]
    bucket_seconds: int
    now: datetime
    cluster: str | None = None
    state: State | None = None
    notes: Sequence[str] = ()


def rows_of_samples(spark: "SparkSession", task: SampleTask) -> "DataFrame | None":
    """Return each sample as a row of its own (`rows.alone`); None where it is plain that samples want neighbours."""
    from reconciler.balance.spark.normalise import cleaned
    from reconciler.balance.spark.rows import alone
    from reconciler.balance.spark.sources import read_samples

    if not all(file.may_stand_alone for file in task.files):
        return None
    samples = read_samples(spark, task.files, cluster=task.cluster)
    return alone(cleaned(samples, now=task.now, rates=("bytes_in", "bytes_out")), task.bucket_seconds)


def rows_of_buckets(spark: "SparkSession", task: SampleTask) -> "DataFrame":
    """Return the samples as rows of one partition and bucket each (`rows.beside_others`)."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    from reconciler.balance.spark.growth import with_bytes_grown
    from reconciler.balance.spark.normalise import normalised
    from reconciler.balance.spark.rows import beside_others
    from reconciler.balance.spark.sources import read_samples

    samples = read_samples(spark, task.files, cluster=task.cluster)
    # What nobody asks for must not be found wrong.
    asked = samples.withColumn("messages_in", F.lit(None).cast("double"))
    in_order = normalised(asked, bucket_seconds=task.bucket_seconds, now=task.now)
    return beside_others(with_bytes_grown(in_order))


def run_loads(
    spark: "SparkSession", task: SampleTask, out: Path, report_text: Callable[[LoadReport], str]
) -> LoadReport:
    """Write the loads and, beside them, the report; return it. A failure leaves what was there before.

    Raises ReconcilerError where no sample counts, a file is damaged, or the folder cannot be written.
    """
    from reconciler.balance.spark.load import measured
    from reconciler.balance.spark.local_files import write_parquet

    known = None if task.state is None else _known(spark, task.state.partitions)
    with spark_errors(), replaced_folder(out, REPORT_FILE) as folder:
        partitions, kept = _partitions(spark, task, known)
        result = measured(partitions, task.bucket_seconds, known)
        try:
            write_parquet(result.loads, folder)
            report = _report(result.found.collect(), task)
        finally:
            for table in (*kept, result.clusters):
                table.unpersist()
        if not report.partitions:
            raise ReconcilerError(_nothing_counts(report), code=NO_SAMPLES)
        (folder / REPORT_FILE).write_text(report_text(report), encoding="utf-8")
    return report


def _partitions(
    spark: "SparkSession", task: SampleTask, known: "DataFrame | None"
) -> "tuple[DataFrame, tuple[DataFrame, ...]]":
    """Return one row a partition (`load.PARTITIONS`), and what is kept on disk for it."""
    from pyspark import StorageLevel

    from reconciler.balance.spark.growth import with_growth
    from reconciler.balance.spark.load import partitions_of
    from reconciler.balance.spark.normalise import cleaned, normalised
    from reconciler.balance.spark.series import checked
    from reconciler.balance.spark.sources import read_samples

    def beside_others(samples: "DataFrame") -> "DataFrame":
        in_order = normalised(samples, bucket_seconds=task.bucket_seconds, now=task.now, known=known)
        return partitions_of(with_growth(in_order))

    brokers = None if task.state is None else task.state.brokers
    samples = read_samples(spark, task.files, cluster=task.cluster, brokers=brokers)
    if all(file.may_stand_alone and file.has_messages for file in task.files):
        return checked(
            samples, lambda some: cleaned(some, now=task.now, known=known), task.bucket_seconds, beside_others
        )
    partitions = beside_others(samples).persist(StorageLevel.DISK_ONLY)
    return partitions, (partitions,)


def _known(spark: "SparkSession", partitions: Iterable[TopicPartition]) -> "DataFrame":
    return spark.createDataFrame(list(partitions), "topic string, partition int")


def _report(found: Iterable["Row"], task: SampleTask) -> LoadReport:
    return LoadReport(task.bucket_seconds, tuple(_cluster(row) for row in found), tuple(task.notes))


def _cluster(row: "Row") -> ClusterSamples:
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
    return None if micros is None else f"{datetime.fromtimestamp(micros / MICROS, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _nothing_counts(report: LoadReport) -> str:
    totals = {rule: sum(cluster.defects[rule] for cluster in report.clusters) for rule in Rule}
    reasons = "; ".join(f"{count} {rule.treatment}" for rule, count in totals.items() if count)
    return f"no sample counts, so there are no loads to write: {reasons or 'the files hold none of this cluster'}"
