"""Collects all findings of one look at a cluster, sorted, the gravest first; those of its versions are made here."""

from collections.abc import Iterator, Sequence

from reconciler.diff.doctor import brokers, partitions, rights, runs, transactions
from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Diagnosis, Finding, KnownRun
from reconciler.model.in_sync import blocking_partitions, brokers_min_isr
from reconciler.model.problem import Problem, Severity
from reconciler.model.starting import start_order
from reconciler.model.vitals import Features, Vitals

METADATA_VERSION = "metadata.version"
_WEIGHT = {severity: weight for weight, severity in enumerate(Severity)}


def diagnose(
    vitals: Vitals,
    known: Sequence[KnownRun] = (),
    *,
    desired: Desired | None = None,
    is_snapshot: bool = False,
    cautions: Sequence[Problem] = (),
    of_copies: Sequence[Finding] = (),
    is_cleaned_up: bool = False,
) -> Diagnosis:
    """Return what is found; `known` are the runs that are known here, the latest first. The same input, the same words.

    `cautions`: of how the cluster was reached, and of a record in it. `of_copies`: of topics of others.
    `is_cleaned_up`: what runs left was put back, so a throttle that no known run sets is not one of theirs.

    Of a snapshot, rights, versions of features, strays and log dirs cannot be told: it does not hold them.
    """
    cluster = vitals.cluster
    needed = rights.needed_rights(vitals.rights, desired) if vitals.rights is not None else None
    throttles = runs.found_throttles(vitals, known, is_cleaned_up=is_cleaned_up)
    is_moving = any(partition.is_reassigning for _, partition in cluster.partitions())
    min_isr = brokers_min_isr(cluster, vitals.settings)
    blocking = blocking_partitions(cluster, min_isr)
    alive = [one for one in sorted(cluster.brokers) if cluster.is_alive(one)]
    findings: list[Finding] = [
        *(Finding(each.code, Severity.WARNING, each.message) for each in cautions),
        *_another_cluster(vitals, desired),
        *_of_features(vitals.features),
        *rights.findings(needed or ()),
        *brokers.findings(vitals),
        *partitions.findings(vitals, blocking),
        *transactions.findings(vitals),
        *runs.findings(vitals, known),
        *runs.of_throttles(throttles, is_moving=is_moving),
        *of_copies,
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
        throttles=throttles,
        safe_to_stop=tuple(one for one in alive if vitals.has_topic_configs and one not in blocking),
        blocking=blocking,
        quorum=vitals.quorum,
        start=start_order(cluster, min_isr),
        locked_by=vitals.locked_by,
        unexamined=vitals.unexamined,
    )


def _order(finding: Finding) -> tuple[object, ...]:
    return _WEIGHT[finding.severity], finding.code, finding.brokers, finding.topics, finding.partitions, finding.message


def _another_cluster(vitals: Vitals, desired: Desired | None) -> Iterator[Finding]:
    wanted = desired.cluster.cluster_id if desired is not None else None
    if desired is not None and wanted is not None and wanted != vitals.cluster.cluster_id:
        what = f"{desired.cluster.name} declares clusterId {wanted}, but {vitals.cluster.cluster_id} answers"
        advice = "reach the right cluster, or correct clusterId: plan and apply refuse this one"
        yield Finding("KR636", Severity.ERROR, what, advice)


def _of_features(features: Features | None) -> Iterator[Finding]:
    """Yield what these brokers' versions cannot do, and an upgrade that nobody finished."""
    if features is None:
        return
    if not features.has_factor_guard:
        what = "these brokers cannot forbid that a move changes a replication factor (KIP-860, from Kafka 4.1 on)"
        advice = "nothing: apply compares each partition itself before it moves it"
        yield Finding("KR634", Severity.NOTE, what, advice)
    finalized, supported = features.finalized.get(METADATA_VERSION), features.supported.get(METADATA_VERSION)
    if finalized is not None and supported is not None and finalized < supported:
        what = f"{METADATA_VERSION} is {finalized}, the brokers support {supported}: an upgrade was not finished"
        advice = "kafka-features upgrade, once every broker runs the new release and you will not go back"
        yield Finding("KR635", Severity.NOTE, what, advice)
