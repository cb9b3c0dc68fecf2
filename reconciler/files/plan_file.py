"""Writes a plan so that the same plan gives the same bytes, and reads it back only if nobody changed it."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from reconciler.files.json_text import canonical_parts, collector_paused, malformed, parse_json, readable_json
from reconciler.files.raw import display_name, invalid, read_bytes, write_atomically
from reconciler.files.snapshot import check_version, refuse_other_kind
from reconciler.model.codec import Malformed, from_json, pointer, to_json
from reconciler.model.plan import Plan
from reconciler.model.problem import Refused, Severity
from reconciler.model.stage import TopicsStage

UNREADABLE = "KR211"
WRONG_VERSION = "KR212"
CHANGED = "KR213"
WRONG_CONTENT = "KR214"
NOT_WRITTEN = "KR215"
OTHER_DIGEST = "KR425"
_DIGEST = "sha256:"
_ID_LENGTH = 8
_OVER_ALL_ELSE = frozenset({"id", "digest"})
_WHOLE = frozenset({"rollback", "stages"})
"""The members that are as long as the plan: no number in them has a fraction."""


def with_id(plan: Plan) -> Plan:
    """Return the plan with its digest, the SHA-256 over everything else in its file, and its id, the digest's start."""
    with collector_paused():
        document = to_json(plan)
        digest = _content_digest(document)
        named = replace(plan, id=_id_of(digest), digest=digest)
        # What follows from a frozen value may be kept in it.
        text = readable_json(document | {"id": named.id, "digest": digest}, _WHOLE)
        object.__setattr__(named, "made_text", text)
        object.__setattr__(named, "made_summary", plan.summary)
        object.__setattr__(named, "made_moves", plan.every_move())
    return named


def plan_text(plan: Plan) -> str:
    """Return the plan's file: sorted keys, one move a line. Digest and id are computed, whatever the plan carries."""
    return str(plan.made_text or with_id(plan).made_text)


def write_plan(plan: Plan, path: str | Path) -> None:
    """Write the plan's file; it is replaced whole or not at all."""
    write_atomically(Path(path), plan_text(plan).encode(), "plan", NOT_WRITTEN)


def read_plan(source: str | Path, reviewed_digest: str | None = None) -> Plan:
    """Return the plan in that file, `-` being stdin; refuse one whose content does not match its digest and id.

    Raises Refused if its digest is not the reviewed one, if that is given: anybody who edits the file can make its own
    digest match. What comes back equals what was written, but for the columns of its places: the file keeps lines.
    """
    name = display_name(source)
    content = read_bytes(source, "plan", UNREADABLE)
    document = parse_json(content, name, "plan", UNREADABLE)
    if not isinstance(document, dict):
        raise invalid(WRONG_CONTENT, f"{name}: a plan is one JSON object; this holds something else")
    refuse_other_kind(document, name, "plan", WRONG_CONTENT)
    check_version(document, name, "plan", WRONG_VERSION)
    try:
        digest = _checked_digest(document, name)
        if reviewed_digest not in {None, digest}:
            raise _other_digest(name, digest, str(reviewed_digest))
        with collector_paused():
            plan = replace(plan_from_json(document), digest=digest)
            _refuse_not_understood(document, to_json(plan))
    except Malformed as wrong:
        raise malformed(WRONG_CONTENT, name, content, wrong) from None
    except RecursionError:
        raise invalid(UNREADABLE, f"{name}: the plan is nested too deeply") from None
    return plan


def plan_from_json(document: object) -> Plan:
    """Return the plan that this JSON object describes; raise Malformed at the first wrong place."""
    plan = from_json(Plan, document)
    for stage in plan.stages:
        if isinstance(stage, TopicsStage) and any(position >= len(plan.topic_changes) for position in stage.changes):
            message = f"must hold positions in topicChanges, which has {len(plan.topic_changes)}"
            raise Malformed(f"/stages/{stage.number - 1}/topicChanges", message)
    for index, topic in enumerate(plan.grounds.topics.values()):
        if topic.placement >= len(plan.grounds.placements):
            message = f"must be a position in placements, which has {len(plan.grounds.placements)}"
            raise Malformed(f"/grounds/topics/{index}", message)
    return replace(
        plan,
        warnings=tuple(replace(each, severity=Severity.WARNING) for each in plan.warnings),
        violations=tuple(replace(each, severity=Severity.VIOLATION) for each in plan.violations),
    )


def _content_digest(document: dict[str, Any]) -> str:
    digest = hashlib.sha256()
    for part in canonical_parts({key: document[key] for key in document.keys() - _OVER_ALL_ELSE}, _WHOLE):
        digest.update(part)
    return _DIGEST + digest.hexdigest()


def _id_of(digest: str) -> str:
    return digest.removeprefix(_DIGEST)[:_ID_LENGTH]


def _checked_digest(document: dict[str, Any], name: str) -> str:
    """Return the digest of what a plan says; refuse one that names another. Old files have an id alone."""
    digest = _content_digest(document)
    if (document.get("id"), document.get("digest", digest)) != (_id_of(digest), digest):
        raise invalid(
            CHANGED,
            f"{name}: this plan was changed after it was made: its content does not match its digest. "
            "Make it again with `reconciler plan`; what was reviewed is what may run",
        )
    return digest


def _other_digest(name: str, digest: str, asked: str) -> Refused:
    return Refused(
        f"{name}: this is not the plan that was reviewed: its digest is {digest}, and {asked} was asked for. "
        "Fetch the plan that was reviewed, or review this one",
        code=OTHER_DIGEST,
    )


def _refuse_not_understood(document: dict[str, Any], understood: dict[str, Any]) -> None:
    """Refuse a plan that says more than this version reads, or whose summary is not that of its moves."""
    sums = dict.fromkeys(_OVER_ALL_ELSE)
    where = _first_difference(document | sums, understood | sums, "")
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
