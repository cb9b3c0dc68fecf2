"""Writes JSON for programs: sorted, with the unit in the key; a value's type is its form."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace

from reconciler.model.change import AlterConfigs, Changes, CreateTopic, Difference, DiffReport, TopicChange
from reconciler.model.codec import to_json
from reconciler.render.escape import MASK, config_value


def document(value: object) -> str:
    """Return plain data, or a value whose type is its format, as sorted, indented JSON with one newline at its end."""
    plain = value if isinstance(value, Mapping) else to_json(value)
    return json.dumps(plain, sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def line(value: object) -> str:
    """Return a value whose type is its format as sorted JSON on one line."""
    return json.dumps(to_json(value), sort_keys=True, ensure_ascii=False) + "\n"


def changes(found: Changes, fields: Iterable[Difference] = ()) -> str:
    """Return what differs. A value whose key names a secret is masked."""
    return document(masked_report(found, fields))


def masked_report(found: Changes, fields: Iterable[Difference] = ()) -> DiffReport:
    """Return the same as a value."""
    report = DiffReport.of(found, map(_masked, fields))
    return replace(report, topic_changes=tuple(map(_without_secrets, report.topic_changes)))


def _masked(each: Difference) -> Difference:
    return replace(each, old=_value(each.field, each.old), new=_value(each.field, each.new))


def _without_secrets(change: TopicChange) -> TopicChange:
    match change:
        case CreateTopic():
            return replace(change, configs={key: str(_value(key, value)) for key, value in change.configs.items()})
        case AlterConfigs():
            return replace(
                change,
                set={key: str(_value(key, value)) for key, value in change.set.items()},
                before={key: _value(key, value) for key, value in change.before.items()},
            )
        case _:
            return change


def _value(key: str, value: str | None) -> str | None:
    return MASK if value is not None and config_value(key, value) == MASK else value
