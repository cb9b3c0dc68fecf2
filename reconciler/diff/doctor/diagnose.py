"""Collects all findings of one look at a cluster, sorted, the gravest first."""

from collections.abc import Sequence

from reconciler.diff.doctor import brokers, layout, partitions, quorum, rights, runs, throttles, versions
from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Diagnosis, Finding, KnownRun
from reconciler.model.in_sync import blocking_partitions, brokers_min_isr
from reconciler.model.problem import Problem, Severity
from reconciler.model.starting import start_order
from reconciler.model.vitals import Vitals

_WEIGHT = {severity: weight for weight, severity in enumerate(Severity)}


def diagnose(
    vitals: Vitals,
    known: Sequence[KnownRun] = (),
    *,
    desired: Desired | None = None,
    is_snapshot: bool = False,
    of_client: Sequence[Problem] = (),
) -> Diagnosis:
    """Return what is found; `known` are the runs that are known here, the latest first. The same input, the same words.

    `of_client`: what the properties leave open by which the cluster was reached.

    Of a snapshot, rights, versions of features, strays and log dirs cannot be told: it does not hold them.
    """
    cluster = vitals.cluster
    needed = rights.needed_rights(vitals.rights, desired) if vitals.rights is not None else None
    found_throttles = throttles.found_throttles(vitals, known)
    is_moving = any(partition.is_reassigning for _, partition in cluster.partitions())
    min_isr = brokers_min_isr(cluster, vitals.settings)
    blocking = blocking_partitions(cluster, min_isr)
    findings: list[Finding] = [
        *(Finding(each.code, Severity.WARNING, each.message) for each in of_client),
        *versions.findings(vitals, desired),
        *rights.findings(needed or ()),
        *brokers.findings(vitals),
        *partitions.findings(vitals),
        *layout.findings(cluster, blocking),
        *quorum.findings(vitals.quorum, cluster),
        *runs.findings(vitals, known),
        *throttles.findings(found_throttles, is_moving=is_moving),
    ]
    return Diagnosis(
        cluster_id=cluster.cluster_id,
        is_snapshot=is_snapshot,
        observed_at=cluster.observed_at,
        kafka_version=cluster.kafka_version,
        brokers=len(cluster.brokers),
        topics=len(cluster.topics),
        partitions=sum(len(topic.partitions) for topic in cluster.topics.values()),
        findings=tuple(sorted(findings, key=_order)),
        features=vitals.features,
        rights=needed,
        throttles=found_throttles,
        safe_to_stop=tuple(one for one in sorted(cluster.brokers) if cluster.is_alive(one) and one not in blocking),
        blocking=blocking,
        quorum=vitals.quorum,
        start=start_order(cluster, min_isr),
        locked_by=vitals.locked_by,
        unexamined=vitals.unexamined,
    )


def _order(finding: Finding) -> tuple[object, ...]:
    return _WEIGHT[finding.severity], finding.code, finding.brokers, finding.topics, finding.partitions, finding.message
