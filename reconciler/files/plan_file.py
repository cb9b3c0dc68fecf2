"""A plan as a file: written so that the same plan gives the same bytes, read back only if nobody changed it."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.files.checked import Malformed, malformed, pointer
from reconciler.files.json_text import canonical_json, collector_paused, parse_json, readable_json
from reconciler.files.plan_reader import plan_from_json
from reconciler.files.plan_writer import plan_to_json
from reconciler.files.raw import display_name, invalid, read_bytes, write_atomically
from reconciler.files.snapshot import check_version, refuse_other_kind
from reconciler.model.plan import Plan

UNREADABLE = "KR211"
WRONG_VERSION = "KR212"
CHANGED = "KR213"
WRONG_CONTENT = "KR214"
NOT_WRITTEN = "KR215"
_ID_LENGTH = 8


def with_id(plan: Plan) -> Plan:
    """Return the plan with its id: the start of the SHA-256 over everything else in its file."""
    return replace(plan, id=_content_id(plan_to_json(plan)))


def plan_text(plan: Plan) -> str:
    """Return the plan's file: its id, sorted keys, one move a line. The id is computed, whatever the plan carries."""
    with collector_paused():
        document = plan_to_json(plan)
        return readable_json(document | {"id": _content_id(document)})


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write the plan's file; it is replaced whole or not at all."""
    write_atomically(Path(path), plan_text(plan).encode(), "plan", NOT_WRITTEN)


def read_plan(source: str | Path) -> Plan:
    """Return the plan in that file, `-` being stdin; refuse one whose content is not what its id was made from.

    What comes back equals what was written, but for the columns of its places: the file keeps lines.
    """
    name = display_name(source)
    content = read_bytes(source, "plan", UNREADABLE)
    document = parse_json(content, name, "plan", UNREADABLE)
    if not isinstance(document, dict):
        raise invalid(WRONG_CONTENT, f"{name}: a plan is one JSON object; this holds something else")
    refuse_other_kind(document, name, "plan", WRONG_CONTENT)
    check_version(document, name, "plan", WRONG_VERSION)
    try:
        _refuse_changed(document, name)
        with collector_paused():
            plan = plan_from_json(document)
            _refuse_not_understood(document, plan_to_json(plan))
    except Malformed as wrong:
        raise malformed(WRONG_CONTENT, name, content, wrong) from None
    except RecursionError:
        raise invalid(UNREADABLE, f"{name}: the plan is nested too deeply") from None
    return plan


def _content_id(document: dict[str, Any]) -> str:
    rest = {key: value for key, value in document.items() if key != "id"}
    return hashlib.sha256(canonical_json(rest).encode()).hexdigest()[:_ID_LENGTH]


def _refuse_changed(document: dict[str, Any], name: str) -> None:
    if document.get("id") != _content_id(document):
        raise invalid(
            CHANGED,
            f"{name}: this plan was changed after it was made: its content does not match its id. "
            "Make it again with `reconciler plan`; what was reviewed is what may run",
        )


def _refuse_not_understood(document: dict[str, Any], understood: dict[str, Any]) -> None:
    """Refuse a plan that says more than this version reads, or whose summary is not that of its moves."""
    where = _first_difference({**document, "id": ""}, {**understood, "id": ""}, "")
    if where is not None:
        raise Malformed(where, "says something that this version does not read, or that the rest of the plan denies")


def _first_difference(one: object, other: object, at: str) -> str | None:
    if one == other and type(one) is type(other):
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        members = [(key, one.get(key), other.get(key)) for key in sorted({*one, *other})]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        members = [(index, *pair) for index, pair in enumerate(zip(one, other, strict=True))]
    else:
        return at
    found = (_first_difference(left, right, pointer(at, key)) for key, left, right in members)
    return next((where for where in found if where is not None), at)
