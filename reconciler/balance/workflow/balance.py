"""Runs `balance`: tells who carries what, in one cluster or in all, now and after a plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.admin.port import ProgressHook
from reconciler.balance.model.balance_report import BalanceReport, ClusterBalance, Headroom, Level, LoadRow
from reconciler.balance.workflow.loads import SparkJob
from reconciler.balance.workflow.sides import ObservedCluster, observed_clusters, sides_of
from reconciler.model.cluster import Broker
from reconciler.model.problem import Problem, Severity
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.balance.files.assignment_table import Side
    from reconciler.balance.spark.balance_job import BalanceTask
    from reconciler.balance.spark.collected import Found
    from reconciler.balance.spark.loads_job import SampleTask

NO_MEASURES = "KR261"
OUT_UNKNOWN = "KR262"
SIZES_UNKNOWN = "KR263"
ON_THE_WAY = "KR264"
NOT_USED = "KR267"


def make_balance(
    inputs: Inputs,
    job: SparkJob,
    *,
    loads: str | None = None,
    plans: Sequence[str] = (),
    out: str | None = None,
    headroom: Headroom | None = None,
    has_history: bool = False,
    progress: ProgressHook | None = None,
) -> BalanceReport:
    """Return the balance of the cluster that is named, or with `*` of every cluster of the root that answers.

    Rates are those of the job's samples or, with a folder of `loads`, of these. Each of the `plans` is compared with
    its cluster. With `headroom` each hour of the week is told, and the throttle that leaves so much; with `has_history`
    what the time of the samples tells, and samples of brokers and replicas beside them.
    With `out`, the tables are written there as Parquet. Files are looked at, and clusters asked, before
    Spark starts.
    Raises InvalidInput for a plan of another cluster, StalePlan for one that the cluster has moved on from.
    """
    from reconciler.balance.spark.session import require_spark, spark_session

    require_spark(job.spark)  # before pyarrow, which the same extra brings, is imported
    from reconciler.balance.files.assignment_table import brokers_of
    from reconciler.balance.files.folders import TABLES_MARK, refuse_foreign, refuse_uri
    from reconciler.files.plan_file import read_plan

    if out is not None:
        refuse_uri(out)
        refuse_foreign(Path(out), TABLES_MARK)
    observed, unread = observed_clusters(inputs, [read_plan(path) for path in plans], progress)
    sides = sides_of(observed)
    task, told = _task(job, loads, out, observed, sides)
    task = replace(task, headroom=headroom, beside=tuple(job.samples) if has_history else None)
    from reconciler.balance.spark.balance_job import run_balance

    with spark_session(job.spark) as spark:
        found, defects = run_balance(spark, task)
    brokers = brokers_of(sides)
    clusters = tuple(
        _cluster(one, found[one.name], brokers[one.name], from_samples=loads is None)
        for one in sorted(observed, key=lambda one: one.name)
    )
    return BalanceReport(
        source=loads if loads is not None else ", ".join(job.samples),
        from_samples=loads is None,
        clusters=clusters,
        defects=defects,
        warnings=(*unread, *told),
    )


def _task(
    job: SparkJob,
    loads: str | None,
    out: str | None,
    observed: Sequence[ObservedCluster],
    sides: "Sequence[Side]",
) -> "tuple[BalanceTask, tuple[Problem, ...]]":
    """Return what Spark is to do, and what there is to tell of what was measured."""
    from reconciler.balance.files.assignment_table import Weighed, broker_table, partition_table, place_table
    from reconciler.balance.files.retention_table import retention_table
    from reconciler.balance.spark.balance_job import BalanceTask

    measured, told = _measured(job, loads, observed)
    task = BalanceTask(
        partitions=partition_table(sides),
        places=place_table(sides),
        brokers=broker_table(sides, {one.name: Weighed(one.capacities, one.weights, one.foreign) for one in observed}),
        measured=measured,
        retention=retention_table(sides),
        out=Path(out) if out is not None else None,
        has_plan=any(one.plan is not None for one in observed),
        has_all_sizes=all(
            partition.size_on(broker_id) is not None
            for one in observed
            for _, partition in one.cluster.partitions()
            for broker_id in partition.target_replicas
        ),
    )
    return task, told


def _measured(
    job: SparkJob, loads: str | None, observed: Sequence[ObservedCluster]
) -> "tuple[SampleTask | str, tuple[Problem, ...]]":
    if loads is not None:
        return str(Path(loads).absolute()), _check_loads(loads, observed)
    from reconciler.balance.files.sample_files import find_sample_files
    from reconciler.balance.spark.loads_job import SampleTask

    found = find_sample_files(job.samples)
    only = observed[0].name if len(observed) == 1 else None
    notes = tuple(_warning(NOT_USED, note) for note in found.notes)
    return SampleTask(found.files, job.bucket_seconds, job.now, only), notes


def _check_loads(folder: str, observed: Sequence[ObservedCluster]) -> tuple[Problem, ...]:
    """Refuse loads that mean nothing, as `plan` does; of many clusters, those without any are told."""
    from reconciler.files.loads import NoLoadsOfCluster, read_loads

    told = []
    for one in observed:
        try:
            read_loads(folder, one.name)
        except NoLoadsOfCluster as error:
            if len(observed) == 1:
                raise
            told.append(_warning(NO_MEASURES, str(error)))
    return tuple(told)


def _cluster(
    one: ObservedCluster, found: "Found", brokers: Mapping[int, Broker], *, from_samples: bool
) -> ClusterBalance:
    capacities, of_measures = one.capacities, one.weights

    def with_broker(row: LoadRow) -> LoadRow:
        broker = brokers[row.broker or 0]
        capacity, weights = capacities.get(broker.id, 1), of_measures.get(broker.id, {})
        return replace(row, rack=broker.rack, capacity=capacity, weights=weights, is_alive=not broker.is_fenced)

    total = found.of(Level.CLUSTER)[0]
    return ClusterBalance(
        name=one.name,
        total=total,
        brokers=tuple(map(with_broker, found.of(Level.BROKER))),
        racks=found.of(Level.RACK),
        log_dirs=found.of(Level.LOG_DIR),
        topics=found.of(Level.TOPIC),
        topic_count=found.topic_count,
        partition_count=sum(len(topic.partitions) for topic in one.cluster.topics.values()),
        skews=found.skews,
        span=found.span,
        hours=found.hours,
        history=found.history,
        cluster_id=one.cluster.cluster_id,
        observed_at=one.cluster.observed_at,
        plan_id=one.plan.id if one.plan is not None else None,
        warnings=tuple(_warnings(one, total, from_samples=from_samples)),
    )


def _warnings(one: ObservedCluster, total: LoadRow, *, from_samples: bool) -> Iterator[Problem]:
    """Yield what is not known, and so does not show in the figures."""
    load = total.before
    if load is None or load.replicas == 0:
        return
    what = "samples" if from_samples else "loads"
    if load.bytes_in.average is None and load.bytes_out.average is None:
        yield _warning(NO_MEASURES, f"{one.name}: the {what} tell no rate of it, so only counts and sizes are compared")
    elif load.bytes_out.average is None:
        yield _warning(
            OUT_UNKNOWN, f"{one.name}: the {what} do not tell what consumers take, so what goes out is unknown"
        )
    if load.unknown_sizes:
        message = f"{one.name}: the size of {load.unknown_sizes} of {load.replicas} replicas is unknown"
        yield _warning(SIZES_UNKNOWN, f"{message}; sizes and free space leave them out")
    moving = sum(partition.is_reassigning for _, partition in one.cluster.partitions())
    if moving:
        yield _warning(
            ON_THE_WAY, f"{one.name}: {moving} partitions are being reassigned; they count where they are going"
        )


def _warning(code: str, message: str) -> Problem:
    return Problem(code, message, severity=Severity.WARNING)
