"""Writes a balance report as JSON: everything that was found, unknown as null; schema `schemas/balance.json`."""

from collections.abc import Iterable

from reconciler.balance.model.balance_report import (
    BalanceReport,
    ClusterBalance,
    Load,
    LoadRow,
    Rate,
    Skew,
    Span,
    Traffic,
)
from reconciler.model.evenness import Evenness
from reconciler.model.problem import Problem
from reconciler.render.as_json import document, problem_object

FORMAT_VERSION = "1.0"


def balance(report: BalanceReport) -> str:
    """Return `clusters`, each with its total, brokers, racks, log dirs, topics and evenness, before and after."""
    return document(
        {
            "formatVersion": FORMAT_VERSION,
            "source": report.source,
            "fromSamples": report.from_samples,
            "defects": dict(report.defects),
            "clusters": [_cluster(cluster) for cluster in report.clusters],
            "warnings": _problems(report.warnings),
        }
    )


def _cluster(cluster: ClusterBalance) -> dict[str, object]:
    return {
        "cluster": cluster.name,
        "clusterId": cluster.cluster_id,
        "observedAt": cluster.observed_at,
        "planId": cluster.plan_id,
        "span": _span(cluster.span),
        "partitions": cluster.partition_count,
        "topicCount": cluster.topic_count,
        "total": _row(cluster.total, {}),
        "brokers": [_row(row, _broker(row)) for row in cluster.brokers],
        "racks": [_row(row, {"rack": row.rack}) for row in cluster.racks],
        "logDirs": [_row(row, {"broker": row.broker, "logDir": row.log_dir}) for row in cluster.log_dirs],
        "topics": [_row(row, {"topic": row.topic}) for row in cluster.topics],
        "evenness": [_skew(skew) for skew in cluster.skews],
        "warnings": _problems(cluster.warnings),
    }


def _broker(row: LoadRow) -> dict[str, object]:
    return {"broker": row.broker, "rack": row.rack, "alive": row.is_alive, "capacity": row.capacity}


def _row(row: LoadRow, name: dict[str, object]) -> dict[str, object]:
    sides = {"before": _load(row.before), "after": _load(row.after)}
    return name | sides | ({"moved": _traffic(row.moved)} if row.moved is not None else {})


def _load(load: Load | None) -> dict[str, object] | None:
    if load is None:
        return None
    return {
        "replicas": load.replicas,
        "leaders": load.leaders,
        "preferredLeaders": load.preferred_leaders,
        "sizeBytes": load.size_bytes,
        "unknownSizes": load.unknown_sizes,
        "bytesInPerSecond": _rate(load.bytes_in),
        "bytesOutPerSecond": _rate(load.bytes_out),
        "growthBytesPerDay": load.growth_bytes_per_day,
        "totalBytes": load.total_bytes,
        "freeBytes": load.free_bytes,
        "daysUntilFull": load.days_until_full,
        "leaderImbalance": load.leader_imbalance,
    }


def _rate(rate: Rate) -> dict[str, object]:
    return {
        "average": rate.average,
        "p95": rate.p95,
        "maximum": rate.maximum,
        "peak": rate.peak,
        "coverage": rate.coverage,
    }


def _traffic(traffic: Traffic) -> dict[str, object]:
    return {
        "arrivingReplicas": traffic.arriving_replicas,
        "arrivingBytes": traffic.arriving_bytes,
        "leavingReplicas": traffic.leaving_replicas,
        "leavingBytes": traffic.leaving_bytes,
    }


def _skew(skew: Skew) -> dict[str, object]:
    return {
        "measure": skew.measure.value,
        "statistic": skew.statistic.value if skew.statistic is not None else None,
        "before": _even(skew.before),
        "after": _even(skew.after),
    }


def _even(even: Evenness | None) -> dict[str, object] | None:
    if even is None:
        return None
    return {
        "maxOverMean": even.max_over_mean,
        "coefficientOfVariation": even.coefficient_of_variation,
        "gini": even.gini,
    }


def _span(span: Span | None) -> dict[str, object] | None:
    if span is None:
        return None
    return {"buckets": span.buckets, "seconds": span.seconds, "first": span.first, "last": span.last}


def _problems(found: Iterable[Problem]) -> list[object]:
    return [problem_object(problem) for problem in found]
