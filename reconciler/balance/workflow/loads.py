"""`loads`: samples from anywhere -> what each partition carries, as Parquet that `plan --loads` reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.render.as_load_report import load_report_json
from reconciler.workflow.inputs import Inputs


@dataclass(frozen=True, slots=True)
class LoadsAsked:
    """What `loads` is asked for beside its inputs."""

    samples: Sequence[str]
    out: str
    bucket_seconds: int
    now: datetime
    master: str | None = None
    driver_memory: str | None = None
    has_progress: bool = False


def make_loads(inputs: Inputs, asked: LoadsAsked) -> LoadReport:
    """Write the loads of these samples and return what was found in them.

    A snapshot in `inputs` says which brokers and partitions there are. Files are looked at before Spark is started.
    """
    from reconciler.balance.files.folders import LOADS_REPORT, refuse_foreign, refuse_uri
    from reconciler.balance.spark.session import require_spark, spark_session
    from reconciler.files.snapshot import read_snapshot

    refuse_uri(asked.out)
    refuse_foreign(Path(asked.out), LOADS_REPORT)
    found = find_sample_files(asked.samples)
    observed = read_snapshot(inputs.state) if inputs.state else None
    require_spark()
    from reconciler.balance.spark.loads_job import SampleTask, State, run_loads

    state = None
    if observed is not None:
        state = State(tuple(observed.brokers), tuple(key for key, _ in observed.partitions()))
    task = SampleTask(found.files, asked.bucket_seconds, asked.now, inputs.cluster, state, found.notes)
    with spark_session(asked.master, driver_memory=asked.driver_memory, has_progress=asked.has_progress) as spark:
        return run_loads(spark, task, Path(asked.out), load_report_json)
