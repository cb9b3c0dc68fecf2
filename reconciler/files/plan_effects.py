"""What a plan's changes destroy, or may cost, as its file has it."""

from typing import Any

from reconciler.files.checked import Fields, Malformed, shown
from reconciler.model.effect import Destruction, Effect, EffectClass

_CLASSES = {each.value: each for each in EffectClass}


def effects_to_json(effects: tuple[Effect, ...]) -> dict[str, Any]:
    """Return the member of a change that has effects; of what destroys, null bytes or groups are unknown."""
    return {"effects": [_effect(each) for each in effects]} if effects else {}


def destruction_to_json(found: Destruction | None) -> dict[str, Any]:
    """Return the member of a summary that tells what is destroyed."""
    if found is None:
        return {}
    known = {"topics": found.topics, "bytes": found.bytes, "groups": found.groups}
    return {"destroys": known if found.is_size_known else {**known, "sizeKnown": False}}


def effects_of(fields: Fields) -> tuple[Effect, ...]:
    """Return the effects of one change, none where its file is of an older version."""
    return fields.each("effects", _effect_of)


def _effect(effect: Effect) -> dict[str, Any]:
    told: dict[str, Any] = {"class": effect.kind.value, "what": effect.what}
    if effect.key is not None:
        told["key"] = effect.key
    if effect.kind is EffectClass.DESTROYS:
        told["bytes"] = effect.bytes
        told["total"] = effect.is_total
        told["groups"] = None if effect.groups is None else list(effect.groups)
        told["liveGroups"] = list(effect.live_groups)
    return told


def _effect_of(fields: Fields) -> Effect:
    kind = fields.text("class")
    if kind not in _CLASSES:
        raise Malformed(fields.where("class"), f"must be one of {', '.join(_CLASSES)}, not {shown(kind)}")
    return Effect(
        _CLASSES[kind],
        fields.text("what"),
        fields.optional_text("key"),
        fields.optional_integer("bytes"),
        None if fields.value.get("groups") is None else fields.text_list("groups"),
        fields.text_list("liveGroups"),
        fields.flag("total", default=False),
    )
