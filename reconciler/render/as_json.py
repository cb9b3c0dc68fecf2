"""JSON for programs: a verb's own result, sorted, with the unit in the key. A plan's own JSON is its file."""

import json
from collections.abc import Iterable, Mapping, Sequence

from reconciler.model.change import (
    AlterConfigs,
    Changes,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Difference,
    TopicChange,
    destruction,
)
from reconciler.model.codec import to_json
from reconciler.model.effect import Destruction, Effect
from reconciler.model.problem import Location, Problem, Remedy, ReportedProblem
from reconciler.model.starting import Start
from reconciler.model.status import Status
from reconciler.model.topic_partition import TopicPartition
from reconciler.render.escape import MASK, config_value


def changes(found: Changes, fields: Sequence[Difference] = ()) -> str:
    """Return what differs: `topicChanges`, `destroys`, `differences`, `brokenRules`, `elections`, `drift`."""
    return document(
        {
            "topicChanges": [_topic_change(change) for change in found.topic_changes],
            "destroys": _destruction(destruction(found.topic_changes)),
            "differences": [
                {
                    "topic": each.topic,
                    "field": each.field,
                    "old": _value(each.field, each.old),
                    "new": _value(each.field, each.new),
                    "at": _place(each.at),
                }
                for each in fields
            ],
            "brokenRules": [
                {
                    "topic": broken.topic_partition.topic,
                    "partition": broken.topic_partition.partition,
                    "reason": broken.reason.value,
                    "detail": broken.detail,
                    "at": _place(broken.at),
                }
                for broken in found.every_broken_rule
            ],
            "elections": [
                {
                    "topic": election.topic_partition.topic,
                    "partition": election.topic_partition.partition,
                    "leader": election.leader,
                }
                for election in found.elections
            ],
            "drift": [problem_object(problem) for problem in found.problems],
        }
    )


def problems(found: Iterable[Problem]) -> str:
    """Return `problems`, each with code, message, severity and place."""
    return document({"problems": [problem_object(problem) for problem in found]})


def error(
    code: str, message: str, exit_code: int, found: Iterable[Problem] = (), remedies: Iterable[Remedy] = ()
) -> str:
    """Return an error that ended the verb, with every problem it carries and what would cure them all."""
    fields: dict[str, object] = {
        "code": code,
        "message": message,
        "exitCode": exit_code,
        "problems": [problem_object(problem) for problem in found],
    }
    cures = [
        {
            "edits": [{"change": edit.words, "at": _place(edit.at)} for edit in remedy.edits],
            "planned": remedy.is_planned,
        }
        for remedy in remedies
    ]
    return document({"error": fields | {"remedies": cures} if cures else fields})


def _key(key: TopicPartition) -> dict[str, object]:
    return {"topic": key.topic, "partition": key.partition}


def status(seen: Status, cluster_name: str) -> str:
    """Return where a run stands."""
    return document(_status(seen, cluster_name))


def status_line(seen: Status, cluster_name: str) -> str:
    """Return where a run stands, on one line."""
    return json.dumps(_status(seen, cluster_name), sort_keys=True, ensure_ascii=False) + "\n"


def _status(seen: Status, cluster_name: str) -> dict[str, object]:
    event = seen.last_event
    return {
        "cluster": cluster_name,
        "time": seen.time.isoformat(),
        "planId": seen.plan_id,
        "state": seen.phase,
        "undoes": seen.undoes,
        "startedBy": seen.started_by,
        "startedAt": seen.started_at,
        "rateAsked": seen.rate_asked,
        "moveCounts": None if seen.tally is None else seen.tally.counts,
        "stage": seen.stage,
        "stages": seen.stages,
        "stagesDone": seen.stages_done,
        "moves": [
            {
                "topic": each.move.topic_partition.topic,
                "partition": each.move.topic_partition.partition,
                "from": list(each.move.from_replicas),
                "to": list(each.move.to_replicas),
                "copiedBytes": each.copied_bytes,
                "bytes": each.move.bytes,
                "bytesPerSecond": each.bytes_per_second,
                "etaSeconds": each.eta_seconds,
            }
            for each in seen.moves
        ],
        "bytesPerSecond": seen.bytes_per_second,
        "etaSeconds": seen.eta_seconds,
        "brokerThrottles": {str(owner): dict(keys) for owner, keys in seen.broker_throttles.items()},
        "topicThrottles": {owner: dict(keys) for owner, keys in seen.topic_throttles.items()},
        "foreign": [
            {"topic": key.topic, "partition": key.partition, "to": list(to)} for key, to in seen.foreign.items()
        ],
        "safeToStop": list(seen.safe_to_stop),
        "blocking": {str(owner): [str(key) for key in keys] for owner, keys in seen.blocking.items()},
        "start": starts(seen.start),
        "isOpen": seen.is_open,
        "lockedBy": seen.holder,
        "lastEvent": {"time": event.time.isoformat(), "step": event.step, "outcome": event.outcome.value}
        if event
        else None,
    }


def document(value: object) -> str:
    """Return plain data, or a value whose type is its format, as sorted, indented JSON with one newline at its end."""
    plain = value if isinstance(value, Mapping) else to_json(value)
    return json.dumps(plain, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def starts(order: Sequence[Start]) -> list[dict[str, object]]:
    """Return dead brokers in the order in which to start them, as JSON has it."""

    def keys(some: Sequence[TopicPartition]) -> list[dict[str, object]]:
        return [_key(key) for key in some]

    return [
        {
            "broker": one.broker_id,
            "leads": keys(one.leads),
            "canLead": keys(one.can_lead),
            "opens": keys(one.opens),
        }
        for one in order
    ]


def problem_object(problem: Problem) -> dict[str, object]:
    """Return a problem as JSON has it; line and column are null where there is no place."""
    plain: dict[str, object] = to_json(ReportedProblem.of(problem))
    return plain


def _topic_change(change: TopicChange) -> dict[str, object]:
    effects = [_effect(effect) for effect in change.effects]
    common: dict[str, object] = {"topic": change.topic, "at": _place(change.at), "effects": effects}
    match change:
        case CreateTopic():
            return common | {
                "kind": "createTopic",
                "partitions": change.partitions,
                "replicationFactor": change.replication_factor,
                "configs": {key: _value(key, value) for key, value in change.configs.items()},
            }
        case CreatePartitions():
            return common | {"kind": "createPartitions", "from": change.from_count, "to": change.to_count}
        case AlterConfigs():
            return common | {"kind": "alterConfigs", "configs": _config_changes(change)}
        case DeleteTopic():
            return common | {"kind": "deleteTopic", "topicId": change.topic_id}


def _effect(effect: Effect) -> dict[str, object]:
    return {
        "class": effect.kind.value,
        "what": effect.what,
        "key": effect.key,
        "bytes": effect.bytes,
        "total": effect.is_total,
        "groups": None if effect.groups is None else list(effect.groups),
        "liveGroups": list(effect.live_groups),
    }


def _destruction(found: Destruction | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "topics": found.topics,
        "bytes": found.bytes,
        "sizeKnown": found.is_size_known,
        "groups": found.groups,
    }


def _config_changes(change: AlterConfigs) -> dict[str, object]:
    after: dict[str, str | None] = {**change.set, **dict.fromkeys(change.delete)}
    return {
        key: {"from": _value(key, change.before.get(key)), "to": _value(key, value)} for key, value in after.items()
    }


def _value(key: str, value: str | None) -> str | None:
    return MASK if value is not None and config_value(key, value) == MASK else value


def _place(at: Location | None) -> str | None:
    return str(at) if at else None
