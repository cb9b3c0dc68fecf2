"""The job of `balance`: tables of clusters, and samples or loads, in; what was found of each cluster out."""

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.balance.files.folders import refuse_foreign, refuse_uri
from reconciler.balance.spark.errors import spark_errors
from reconciler.balance.spark.loads_job import SampleTask, rows_of_buckets, rows_of_samples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from reconciler.balance.files.arrow_tables import ArrowTable
    from reconciler.balance.spark.collected import Found
    from reconciler.balance.spark.jobs_balance import Balance

MARK = "_balance"


@dataclass(frozen=True, slots=True)
class BalanceTask:
    """The tables of `files.assignment_table`, what was measured (samples, or a folder of loads), and where tables go.

    `has_plan`: there is a side `after`. `has_all_sizes`: no replica's size is unknown.
    """

    partitions: "ArrowTable"
    places: "ArrowTable"
    brokers: "ArrowTable"
    measured: SampleTask | str
    out: str | None = None
    has_plan: bool = False
    has_all_sizes: bool = True


def refuse_foreign_tables(out: str) -> None:
    """Raise ReconcilerError where that is a URI, or a folder that holds what `balance` did not write."""
    refuse_uri(out)
    refuse_foreign(Path(out), MARK)


def run_balance(spark: "SparkSession", task: BalanceTask) -> "tuple[Mapping[str, Found], Mapping[str, int]]":
    """Return what was found, by cluster, and how often each rule about samples was broken, by its name.

    The tables are written where a folder for them is named. Loads have no samples, hence no rules.
    """
    from reconciler.balance.spark.collected import collected
    from reconciler.balance.spark.tables import write_tables

    with spark_errors(), _balance(spark, task) as balance:
        found = collected(balance)
        if task.out is not None:
            write_tables(balance, Path(task.out), MARK)
        defects = balance.told.defects if balance.told is not None else {}
    return found, {rule.value: count for rule, count in defects.items()}


@contextmanager
def _balance(spark: "SparkSession", task: BalanceTask) -> "Iterator[Balance]":
    from reconciler.balance.spark.jobs_balance import assignments, balance_of_loads, balance_of_samples, loads_of

    assigned = assignments(spark, task.partitions, task.places, task.brokers, has_plan=task.has_plan)
    if isinstance(task.measured, str):
        with balance_of_loads(assigned, loads_of(spark, task.measured)) as balance:
            yield balance
        return
    samples = task.measured
    alone = rows_of_samples(spark, samples)
    rows = rows_of_buckets(spark, samples) if alone is None else alone
    in_need = None if alone is None else partial(rows_of_buckets, spark, samples)
    seconds, has_all_sizes = samples.bucket_seconds, task.has_all_sizes
    with balance_of_samples(assigned, rows, seconds, in_need=in_need, has_all_sizes=has_all_sizes) as balance:
        yield balance
