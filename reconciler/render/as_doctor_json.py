"""What a doctor found, as JSON for programs; schema `schemas/doctor.json`."""

from collections.abc import Sequence

from reconciler.model.codec import to_json
from reconciler.model.diagnosis import Diagnosis, Finding, FoundThrottle, Gravity, NeededRight
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.vitals import Features, Quorum, QuorumMember
from reconciler.render.as_json import document

FORMAT_VERSION = "1.0"


def doctor(found: Diagnosis, name: str | None, restored: Sequence[str] = ()) -> str:
    """Return everything that was found; `restored`: what `--fix throttles` brought back, a sentence each."""
    return document(
        {
            "formatVersion": FORMAT_VERSION,
            "cluster": name,
            "clusterId": found.cluster_id,
            "observedAt": found.observed_at,
            "isSnapshot": found.is_snapshot,
            "isHealthy": found.is_healthy,
            "kafkaVersion": found.release,
            "brokers": found.brokers,
            "topics": found.topics,
            "partitions": found.partitions,
            "features": _features(found.features),
            "quorum": _quorum(found.quorum),
            "rights": None if found.rights is None else [_right(one) for one in found.rights],
            "findings": [_finding(one) for one in found.findings],
            "throttles": [_throttle(one) for one in found.throttles],
            "safeToStop": list(found.safe_to_stop),
            "blocking": {str(broker): _partitions(keys) for broker, keys in found.blocking.items()},
            "start": [to_json(one) for one in found.start],
            "lockedBy": found.holder,
            "unexamined": list(found.unexamined),
            "restored": list(restored),
            "summary": {f"{gravity.value}s": found.count(gravity) for gravity in Gravity},
        }
    )


def _features(features: Features | None) -> dict[str, object] | None:
    if features is None:
        return None
    return {
        "finalized": dict(features.finalized),
        "supported": dict(features.supported),
        "replicationFactorGuard": features.has_factor_guard,
        "consumerGroups": features.has_consumer_groups,
    }


def _quorum(quorum: Quorum | None) -> dict[str, object] | None:
    if quorum is None:
        return None
    return {
        "leader": quorum.leader,
        "voters": [_member(one) for one in quorum.voters],
        "observers": [_member(one) for one in quorum.observers],
    }


def _member(one: QuorumMember) -> dict[str, object]:
    return {"id": one.id, "recordsBehind": one.behind_records, "millisecondsBehind": one.behind_ms}


def _right(one: NeededRight) -> dict[str, object]:
    return {
        "operation": one.operation,
        "resource": one.resource,
        "verbs": list(one.verbs),
        "purpose": one.purpose,
        "isGranted": one.is_granted,
        "lacking": list(one.lacking),
    }


def _finding(one: Finding) -> dict[str, object]:
    return {
        "code": one.code,
        "severity": one.gravity.value,
        "message": one.message,
        "next": one.next,
        "brokers": list(one.brokers),
        "topics": list(one.topics),
        "partitions": _partitions(one.partitions),
        "bytesBehind": one.bytes_behind,
        "recordsBehind": one.records_behind,
        "bytesOnDisk": one.bytes_on_disk,
    }


def _throttle(one: FoundThrottle) -> dict[str, object]:
    is_broker = isinstance(one.owner, int)
    return {
        "broker": one.owner if is_broker else None,
        "topic": None if is_broker else one.owner,
        "key": one.key,
        "value": one.value,
        "whose": one.whose.value,
        "planId": one.plan_id,
        "restored": one.restored,
    }


def _partitions(keys: Sequence[TopicPartition]) -> list[dict[str, object]]:
    return [{"topic": key.topic, "partition": key.partition} for key in keys]
