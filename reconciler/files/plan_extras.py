"""What a plan's file may hold beside what runs: what it supposes, what would make it fit, what explains its moves."""

from typing import Any

from reconciler.files.checked import Fields, Malformed, shown
from reconciler.files.plan_grounds import grounds_to_json
from reconciler.model.grounds import Grounds
from reconciler.model.plan import Plan
from reconciler.model.problem import Edit, Location, Remedy
from reconciler.model.what_if import Affected, Health, WhatIf


def extras_to_json(plan: Plan) -> dict[str, Any]:
    """Return the members that only some plans have."""
    extras: dict[str, Any] = {}
    if plan.grounds != Grounds():
        extras["grounds"] = grounds_to_json(plan.grounds)
    if plan.remedies:
        extras["remedies"] = [_remedy(remedy) for remedy in plan.remedies]
    if plan.what_if is not None:
        extras["whatIf"] = what_if_to_json(plan.what_if)
    return extras


def what_if_to_json(supposed: WhatIf) -> dict[str, Any]:
    """Return what is supposed, assumed, and how partitions fare."""
    fields = {
        "suppositions": list(supposed.suppositions),
        "assumptions": list(supposed.assumptions),
        "before": _health(supposed.before),
        "atOnce": _health(supposed.at_once),
    }
    return fields if supposed.after is None else {**fields, "after": _health(supposed.after)}


def what_if_of(fields: Fields) -> WhatIf | None:
    """Return what the plan supposes, None where it supposes nothing."""
    if "whatIf" not in fields.value:
        return None
    supposed = fields.member("whatIf")
    return WhatIf(
        suppositions=supposed.text_list("suppositions"),
        assumptions=supposed.text_list("assumptions"),
        before=_health_of(supposed.member("before")),
        at_once=_health_of(supposed.member("atOnce")),
        after=_health_of(supposed.member("after")) if "after" in supposed.value else None,
    )


def remedies_of(fields: Fields) -> tuple[Remedy, ...]:
    """Return what would make the plan fit."""
    return fields.each("remedies", lambda one: Remedy(one.each("edits", _edit_of), one.flag("planned", default=True)))


def place_of(fields: Fields) -> Location | None:
    """Return the file and line that a field `at` names; None where there is none."""
    text = fields.optional_text("at")
    if text is None:
        return None
    file, colon, line = text.rpartition(":")
    if not colon or not (line.isascii() and line.isdigit()) or len(line) > len(str(1 << 31)):
        raise Malformed(
            fields.where("at"), f"must be a file and a line, such as topics/orders.yaml:18, not {shown(text)}"
        )
    return Location(file, int(line))


def _remedy(remedy: Remedy) -> dict[str, Any]:
    return {"edits": [_edit(edit) for edit in remedy.edits], "planned": remedy.is_planned}


def _edit(edit: Edit) -> dict[str, Any]:
    return {"change": edit.words} if edit.at is None else {"change": edit.words, "at": str(edit.at)}


def _edit_of(fields: Fields) -> Edit:
    return Edit(fields.text("change"), place_of(fields))


def _health(found: Health) -> dict[str, Any]:
    return {
        "underReplicated": _affected(found.under_replicated),
        "underMinIsr": _affected(found.under_min_isr),
        "offline": _affected(found.offline),
    }


def _health_of(fields: Fields) -> Health:
    return Health(
        _affected_of(fields.member("underReplicated")),
        _affected_of(fields.member("underMinIsr")),
        _affected_of(fields.member("offline")),
    )


def _affected(found: Affected) -> dict[str, Any]:
    return {"count": found.count, "some": list(found.some)}


def _affected_of(fields: Fields) -> Affected:
    return Affected(fields.integer("count"), fields.text_list("some"))
