"""Runs `loads`: makes of samples what each partition carries, as Parquet that `plan --loads` reads."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.spark.settings import SparkChoice
from reconciler.render.as_json import document
from reconciler.workflow.inputs import Inputs


@dataclass(frozen=True, slots=True)
class SparkJob:
    """What `loads` and `balance` are asked alike: which samples, in which time buckets, on which Spark."""

    now: datetime
    """Samples that are later are from the future, and left out."""
    samples: Sequence[str] = ()
    """Files, folders and URIs."""
    bucket_seconds: int = 60
    spark: SparkChoice = field(default_factory=SparkChoice)
    """The Spark that the job runs on."""


def make_loads(inputs: Inputs, job: SparkJob, out: str) -> LoadReport:
    """Write the loads of these samples and return what was found in them.

    A snapshot in `inputs` says which brokers and partitions there are. Files are looked at before Spark is started.
    """
    from reconciler.balance.files.folders import LOADS_REPORT, refuse_foreign, refuse_uri
    from reconciler.balance.spark.session import require_spark, spark_session
    from reconciler.files.snapshot import read_snapshot

    refuse_uri(out)
    refuse_foreign(Path(out), LOADS_REPORT)
    found = find_sample_files(job.samples)
    observed = read_snapshot(inputs.state) if inputs.state else None
    require_spark(job.spark)
    from reconciler.balance.spark.loads_job import SampleTask, State, run_loads

    state = None
    if observed is not None:
        state = State(tuple(observed.brokers), tuple(key for key, _ in observed.partitions()))
    task = SampleTask(found.files, job.bucket_seconds, job.now, inputs.cluster, state, found.notes)
    with spark_session(job.spark) as spark:
        return run_loads(spark, task, Path(out), document)
