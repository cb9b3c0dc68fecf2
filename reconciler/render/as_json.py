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


def document(value: object) -> str:
    """Return plain data, or a value whose type is its format, as sorted, indented JSON with one newline at its end."""
    plain = value if isinstance(value, Mapping) else to_json(value)
    return json.dumps(plain, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def line(value: object) -> str:
    """Return a value whose type is its format as sorted JSON on one line."""
    return json.dumps(to_json(value), sort_keys=True, ensure_ascii=False) + "\n"


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
