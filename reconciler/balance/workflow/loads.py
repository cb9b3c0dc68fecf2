"""Runs `loads`: makes of samples what each partition carries, as Parquet that `plan --loads` reads, or as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.spark.settings import SparkChoice
from reconciler.model.gates import Gate, Seen, age_of, failures
from reconciler.model.problem import Problem
from reconciler.render.as_json import document
from reconciler.workflow.inputs import Inputs

ADVICE = "look at the gaps and the rules that the report tells, measure longer, or lower the gate"


@dataclass(frozen=True, slots=True)
class SparkJob:
    """What `loads` and `balance` are asked alike: which samples, in which time buckets, on which Spark."""

    now: datetime
    """Samples that are later are from the future, and left out."""
    samples: Sequence[str] = ()
    """Files, folders, URIs and tables."""
    bucket_seconds: int = 60
    spark: SparkChoice = field(default_factory=SparkChoice)
    """The Spark that the job runs on."""
    measure: str | None = None
    """What series of Prometheus measure that have no name; None: their file's name says it."""


def make_loads(inputs: Inputs, job: SparkJob, out: str) -> LoadReport:
    """Write the loads of these samples and return what was found in them.

    A snapshot in `inputs` says which partitions there are. Files are looked at before Spark is started.
    """
    from reconciler.balance.files.folders import LOADS_REPORT, refuse_foreign_at
    from reconciler.balance.spark.session import require_spark, spark_session
    from reconciler.files.snapshot import read_snapshot

    refuse_foreign_at(out, LOADS_REPORT)
    found = find_sample_files(job.samples, job.measure)
    observed = read_snapshot(inputs.state) if inputs.state else None
    require_spark(job.spark)
    from reconciler.balance.spark.loads_job import SampleTask, run_loads
    from reconciler.balance.spark.places import looked_up

    partitions = None if observed is None else tuple(key for key, _ in observed.partitions())
    with spark_session(job.spark) as spark:
        seen = looked_up(spark, found.files)
        notes = (*found.notes, *seen.notes)
        task = SampleTask(seen.files, job.bucket_seconds, job.now, inputs.cluster, partitions, notes)
        return run_loads(spark, task, out, document)


def failed_gates(report: LoadReport, gates: Sequence[Gate], now: datetime, but: str) -> tuple[Problem, ...]:
    """Return a problem for each cluster and gate that fails; `but` says what was done all the same."""
    found = [
        Seen(cluster.cluster, cluster.coverage, age_of(cluster.last_bucket, now), cluster.samples, cluster.all_defects)
        for cluster in report.clusters
        if cluster.cluster is not None
    ]
    return tuple(problem for seen in found for problem in failures(gates, seen, but=but, advice=ADVICE))
