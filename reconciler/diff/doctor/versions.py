"""Findings of versions: what this cluster cannot do yet, and whether it is the one that was meant."""

from collections.abc import Iterator

from reconciler.model.desired import Desired
from reconciler.model.diagnosis import Finding
from reconciler.model.problem import Severity
from reconciler.model.vitals import Features, Vitals

METADATA_VERSION = "metadata.version"


def findings(vitals: Vitals, desired: Desired | None) -> Iterator[Finding]:
    """Yield what versions keep from working, or hold back."""
    yield from _another_cluster(vitals, desired)
    if vitals.features is not None:
        yield from _of_features(vitals.features)


def _another_cluster(vitals: Vitals, desired: Desired | None) -> Iterator[Finding]:
    wanted = desired.cluster.cluster_id if desired is not None else None
    if desired is not None and wanted is not None and wanted != vitals.cluster.cluster_id:
        yield Finding(
            "KR636",
            Severity.ERROR,
            f"{desired.cluster.name} declares clusterId {wanted}, but {vitals.cluster.cluster_id} answers",
            "reach the right cluster, or correct clusterId: plan and apply refuse this one",
        )


def _of_features(features: Features) -> Iterator[Finding]:
    if not features.has_factor_guard:
        yield Finding(
            "KR634",
            Severity.NOTE,
            "these brokers cannot forbid that a move changes a replication factor (KIP-860, from Kafka 4.1 on)",
            "nothing: apply compares each partition itself before it moves it",
        )
    finalized, supported = features.finalized.get(METADATA_VERSION), features.supported.get(METADATA_VERSION)
    if finalized is not None and supported is not None and finalized < supported:
        yield Finding(
            "KR635",
            Severity.NOTE,
            f"{METADATA_VERSION} is {finalized}, the brokers support {supported}: an upgrade was not finished",
            "kafka-features upgrade, once every broker runs the new release and you will not go back",
        )
