"""Runs `balance`: tells who carries what, in one cluster or in all, now and after a plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.admin.port import ProgressHook
from reconciler.balance.model.balance_report import BalanceReport, ClusterBalance, Headroom, Level, LoadRow
from reconciler.balance.workflow.loads import ADVICE, SparkJob
from reconciler.balance.workflow.sides import ObservedCluster, observed_clusters, sides_of
from reconciler.files.places import as_local, is_for_spark
from reconciler.model.cluster import Broker
from reconciler.model.gates import AGE, COVERAGE, Gate, Seen, age_of, failures
from reconciler.model.problem import InvalidInput, Problem, Severity
from reconciler.model.table_maker import table_of
from reconciler.workflow.inputs import Inputs

if TYPE_CHECKING:
    from reconciler.balance.files.assignment_table import Side
    from reconciler.balance.spark.balance_job import BalanceTask, Looked
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
    progress: ProgressHook | None = None,
) -> BalanceReport:
    """Return the balance of the cluster that is named, or with `*` of every cluster of the root that answers.

    Rates are those of the job's samples or, with a folder of `loads`, of these. Each of the `plans` is compared with
    its cluster. With `headroom` each hour of the week is told, and the throttle that leaves so much.
    With `out`, the tables are written there as Parquet. Files are looked at, and clusters asked, before
    Spark starts.
    Raises InvalidInput for a plan of another cluster, StalePlan for one that the cluster has moved on from.
    """
    from reconciler.balance.spark.session import require_spark, spark_session

    require_spark(job.spark)  # before pyarrow, which the same extra brings, is imported
    from reconciler.balance.files.assignment_table import brokers_of
    from reconciler.balance.files.folders import TABLES_MARK, refuse_foreign_at
    from reconciler.files.plan_file import read_plan

    if out is not None:
        refuse_foreign_at(out, TABLES_MARK)
    observed, unread = observed_clusters(inputs, [read_plan(path) for path in plans], progress)
    sides = sides_of(observed)
    task, told = _task(job, loads, out, observed, sides)
    task = replace(task, headroom=headroom)
    from reconciler.balance.spark.balance_job import looked_at, run_balance

    with spark_session(job.spark) as spark:
        looked = looked_at(spark, task, has_unread_loads=loads is not None and _is_for_spark(loads))
        more = _told_of_places(looked, observed)
        found, defects = run_balance(spark, looked.task)
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
        samples=sum(found[one.name].samples for one in observed),
        warnings=(*unread, *told, *more),
    )


def failed_gates(report: BalanceReport, gates: Sequence[Gate], now: datetime, loads: str | None) -> tuple[Problem, ...]:
    """Return a problem for each cluster and gate that fails: rules are held against the samples of all clusters."""
    if not gates:
        return ()
    if loads is not None and _is_for_spark(loads):
        # What Spark alone reads tells its coverage beside its rates, and has no report.
        found = [(gates, _seen(cluster, now)) for cluster in report.clusters]
    elif loads is not None:
        from reconciler.files.loads import seen_of_loads

        found = [(gates, seen_of_loads(loads, cluster.name, now)) for cluster in report.clusters]
    else:
        of_clusters = [gate for gate in gates if gate.name in {COVERAGE, AGE}]
        of_rules = [gate for gate in gates if gate not in of_clusters]
        names = [cluster.name for cluster in report.clusters]
        whole = Seen(names[0] if len(names) == 1 else "all clusters", samples=report.samples, counts=report.defects)
        found = [*((of_clusters, _seen(cluster, now)) for cluster in report.clusters), (of_rules, whole)]
    but = "the report is written all the same"
    return tuple(problem for some, seen in found for problem in failures(some, seen, but=but, advice=ADVICE))


def _seen(cluster: ClusterBalance, now: datetime) -> Seen:
    load = cluster.total.before
    rates = (load.bytes_in, load.bytes_out) if load is not None else ()
    known = [rate.coverage for rate in rates if rate.average is not None and rate.coverage is not None]
    last = cluster.span.last if cluster.span is not None else None
    return Seen(cluster.name, max(known, default=None), age_of(last, now))


def _task(
    job: SparkJob, loads: str | None, out: str | None, observed: Sequence[ObservedCluster], sides: "Sequence[Side]"
) -> "tuple[BalanceTask, tuple[Problem, ...]]":
    """Return what Spark is to do, and what there is to tell of what was measured."""
    from reconciler.balance.files.assignment_table import (
        Weighed,
        broker_table,
        has_all_sizes,
        partition_table,
        place_table,
    )
    from reconciler.balance.files.retention_table import retention_table
    from reconciler.balance.spark.balance_job import BalanceTask

    measured, told = _measured(job, loads, observed)
    task = BalanceTask(
        partitions=partition_table(sides),
        places=place_table(sides),
        brokers=broker_table(sides, {one.name: Weighed(one.capacities, one.weights, one.foreign) for one in observed}),
        measured=measured,
        retention=retention_table(sides),
        out=out,
        has_plan=any(one.plan is not None for one in observed),
        has_all_sizes=has_all_sizes(one.cluster for one in observed),
    )
    return task, told


def _measured(
    job: SparkJob, loads: str | None, observed: Sequence[ObservedCluster]
) -> "tuple[SampleTask | str, tuple[Problem, ...]]":
    only = observed[0].name if len(observed) == 1 else None
    if loads is not None:
        return loads, () if _is_for_spark(loads) else _check_loads(loads, observed)
    from reconciler.balance.files.sample_files import find_sample_files
    from reconciler.balance.spark.loads_job import SampleTask

    found = find_sample_files(job.samples, job.measure)
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


def _is_for_spark(loads: str) -> bool:
    """Return whether Spark alone can read them."""
    from reconciler.balance.files.table_folders import table_format

    return is_for_spark(loads) or table_format(Path(as_local(loads))) is not None


def _told_of_places(looked: "Looked", observed: Sequence[ObservedCluster]) -> tuple[Problem, ...]:
    """Check loads as `_check_loads` does, by what Spark has counted; return what to tell of places."""
    from reconciler.files.loads import MEANINGLESS, TWICE, NoLoadsOfCluster

    told = [_warning(NOT_USED, note) for note in looked.notes]
    if looked.wrong is None:
        return tuple(told)
    place, wrong = looked.task.measured, looked.wrong
    problems = []
    for one in observed:
        if one.name not in wrong:
            message = f"--loads {place} has no row of cluster {one.name}: it has {', '.join(sorted(wrong)) or 'none'}"
            if len(observed) == 1:
                raise NoLoadsOfCluster(message)
            told.append(_warning(NO_MEASURES, message))
            continue
        meaningless, twice = wrong[one.name]
        if meaningless:
            message = (
                f"{meaningless} rows of cluster {one.name} have no partition, or a load that is no number of bytes"
            )
            problems.append(Problem(MEANINGLESS, f"--loads {place}: {message}"))
        if twice:
            problems.append(Problem(TWICE, f"--loads {place}: {twice} partitions of cluster {one.name} stand twice"))
    if problems:
        raise InvalidInput(problems)
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
    moving = len(table_of(one.cluster).reassigning)
    if moving:
        yield _warning(
            ON_THE_WAY, f"{one.name}: {moving} partitions are being reassigned; they count where they are going"
        )


def _warning(code: str, message: str) -> Problem:
    return Problem(code, message, severity=Severity.WARNING)
