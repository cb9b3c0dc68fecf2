"""Keeps a lake of samples, silver and gold up to date, and makes loads of its days."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.balance.model.lake_report import LakeReport
from reconciler.balance.model.load_report import LoadReport
from reconciler.balance.workflow.loads import SparkJob
from reconciler.files.places import as_local, is_uri
from reconciler.render.as_json import document
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from reconciler.balance.files.sample_files import Found
    from reconciler.balance.spark.lake import DaysOfLake


@dataclass(frozen=True, slots=True)
class LakeDays:
    """The last days of a lake, as a person names them."""

    lake: str
    """A folder, or the URI of one."""
    days: int
    bucket_seconds: int | None = None
    """None: as the lake has it."""

    def task(self, job: SparkJob, only: str | None) -> "DaysOfLake":
        """Return what Spark is to read: the days of that cluster, or of all."""
        from reconciler.balance.spark.lake import DaysOfLake, LakeTask

        return DaysOfLake(LakeTask(place_of(self.lake), job.now, self.bucket_seconds), self.days, only)


def update_lake(
    inputs: Inputs, job: SparkJob, lake: str, *, days: int, out: str | None, bucket_seconds: int | None
) -> tuple[LakeReport, LoadReport | None]:
    """Take the job's samples that the lake does not have, make the days that this changes, and return what was done.

    With `out`, the loads of its last `days` are written there, and their report is the second result.
    """
    from reconciler.balance.files.folders import LOADS_REPORT, refuse_foreign_at
    from reconciler.balance.files.ledger import refuse_no_lake
    from reconciler.balance.spark.session import require_spark, spark_session

    place = place_of(lake)
    if not is_uri(place):
        refuse_no_lake(Path(place))
    if out is not None:
        refuse_foreign_at(out, LOADS_REPORT)
    require_spark(job.spark)
    from reconciler.balance.spark.lake import LakeTask, loads_of_window, update, window_of

    find = partial(_find, job) if job.samples else None
    task = LakeTask(place, job.now, bucket_seconds, inputs.cluster, find)
    with spark_session(job.spark) as spark:
        ledger, brought = update(spark, task)
        if out is None:
            return brought, None
        window = window_of(ledger, task.place, inputs.cluster, days)
        return brought, loads_of_window(spark, window, out, document, brought.notes)


def place_of(lake: str) -> str:
    """Return the place of a lake as Spark takes it, wherever its workers stand."""
    local = as_local(lake)
    return local if is_uri(local) else str(Path(local).absolute())


def _find(job: SparkJob, is_taken: "Callable[[Path], bool]") -> "Found":
    from reconciler.balance.files.sample_files import find_sample_files

    return find_sample_files(job.samples, job.measure, is_taken=is_taken)
