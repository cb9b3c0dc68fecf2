"""One partition's explanation for programs: the same facts as the text, with the unit in the key."""

from reconciler.model.explanation import Added, Alternative, Counts, Explanation, NewLeader, Removed, StepOfPartition
from reconciler.render.as_json import document


def explanation(found: Explanation) -> str:
    """Return the explanation; `touched` is false, and little else there, where the plan does nothing to it."""
    at = found.at
    return document(
        {
            "topic": found.topic_partition.topic,
            "partition": found.topic_partition.partition,
            "touched": bool(found.steps),
            "from": list(found.before),
            "to": list(found.after),
            "bytes": found.bytes,
            "sizeKnown": found.is_size_known,
            "reason": found.reason.value if found.reason else None,
            "at": str(at) if at else None,
            "steps": [_step(step) for step in found.steps],
            "added": [_added(one, is_in_replicas=found.is_counted_in_replicas) for one in found.added],
            "removed": [_removed(one) for one in found.removed],
            "leader": _leader(found.leader) if found.leader else None,
            "least": found.is_least,
        }
    )


def _step(step: StepOfPartition) -> dict[str, object]:
    if step.elected is not None:
        return {"stage": step.stage, "kind": "elect", "from": step.source, "leader": step.elected}
    if step.is_created:
        return {"stage": step.stage, "kind": "create", "to": list(step.to_replicas)}
    return {
        "stage": step.stage,
        "kind": "reassign",
        "to": list(step.to_replicas),
        "added": list(step.added),
        "removed": list(step.removed),
        "bytes": step.bytes,
        "sourceBroker": step.source,
    }


def _added(added: Added, *, is_in_replicas: bool) -> dict[str, object]:
    other = added.instead
    return {
        "broker": added.broker_id,
        "rack": added.rack or None,
        "replicas": _counts(added.counts),
        "inPlaceOf": added.in_place_of,
        "fullRacks": [{"rack": rack or None, "brokers": list(held)} for rack, held in added.full],
        "alternatives": [_alternative(one, is_in_replicas=is_in_replicas) for one in added.alternatives],
        "otherAlternatives": added.others,
        "barred": [{"broker": one.broker_id, "why": one.why} for one in added.barred],
        "instead": {
            "topic": other.topic_partition.topic,
            "partition": other.topic_partition.partition,
            "bytes": other.bytes,
        }
        if other
        else None,
    }


def _alternative(other: Alternative, *, is_in_replicas: bool) -> dict[str, object]:
    key = "atLeastMoreReplicas" if is_in_replicas else "atLeastMoreBytes"
    return {
        "broker": other.broker_id,
        "verdict": other.verdict.value,
        key: other.extra,
        "replicas": _counts(other.counts),
    }


def _removed(removed: Removed) -> dict[str, object]:
    return {"broker": removed.broker_id, "cause": removed.cause.value, "replicas": _counts(removed.counts)}


def _leader(leader: NewLeader) -> dict[str, object]:
    return {
        "from": leader.old,
        "to": leader.new,
        "cause": leader.cause.value,
        "leadersOfFrom": _counts(leader.old_counts) if leader.old_counts else None,
        "leadersOfTo": _counts(leader.new_counts),
    }


def _counts(counts: Counts) -> dict[str, object]:
    told: dict[str, object] = {"before": counts.before, "after": counts.after, "share": counts.share}
    if counts.bytes_after is None:
        return told
    return {**told, "bytesBefore": counts.bytes_before, "bytesAfter": counts.bytes_after}
