"""`loads`: samples from anywhere -> what each partition carries, as Parquet that `plan --loads` reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.balance.files.sample_files import find_sample_files
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.render.as_load_report import load_report_json
from reconciler.model.topic_partition import TopicPartition
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.balance.spark.loads_job import State


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
    from reconciler.balance.files.folders import refuse_foreign, refuse_uri
    from reconciler.balance.spark.loads_job import REPORT_FILE, SampleTask, run_loads
    from reconciler.balance.spark.session import spark_session

    refuse_uri(asked.out)
    refuse_foreign(Path(asked.out), REPORT_FILE)
    found = find_sample_files(asked.samples)
    state = _state(inputs)
    task = SampleTask(found.files, asked.bucket_seconds, asked.now, inputs.cluster, state, found.notes)
    with spark_session(asked.master, driver_memory=asked.driver_memory, has_progress=asked.has_progress) as spark:
        return run_loads(spark, task, Path(asked.out), load_report_json)


def _state(inputs: Inputs) -> "State | None":
    """Return what the snapshot says there is; None without one."""
    if not inputs.state:
        return None
    from reconciler.balance.spark.loads_job import State
    from reconciler.files.snapshot import read_snapshot

    cluster = read_snapshot(inputs.state)
    partitions = [
        TopicPartition(topic.name, each.partition) for topic in cluster.topics.values() for each in topic.partitions
    ]
    return State(tuple(cluster.brokers), tuple(partitions))
