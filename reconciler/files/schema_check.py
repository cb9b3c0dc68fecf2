"""Documents against their JSON Schemas; each problem is a sentence with its place."""

import json
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft7Validator
from jsonschema.exceptions import ValidationError

from reconciler.files.strict_yaml import YamlMap, place_of
from reconciler.model.problem import Location, Problem

SCHEMA_FILES = {"Cluster": "cluster.json", "TopicClass": "topic-class.json", "Topic": "topic.json"}
LONGEST_SHOWN = 60
TYPE_NAMES = {
    "integer": "a whole number",
    "string": "a text",
    "object": "a mapping",
    "array": "a list",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
WHY = {
    "pattern": "has not the form it must have",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "minItems": "must not be empty",
    "minLength": "must not be empty",
    "uniqueItems": "names something twice",
}


def schema_problems(document: Any, name: str) -> Iterator[Problem]:
    """Yield what is wrong with the form of one document."""
    at = Location(name, *getattr(document, "at", (1, 1)))
    if not isinstance(document, YamlMap):
        yield Problem("KR102", "a document must be a mapping with apiVersion, kind, metadata and spec", at)
        return
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in SCHEMA_FILES:
        place = document.value_at.get("kind", document.at)
        yield Problem(
            "KR102", f"kind is {_shown(kind)}; it must be {_either(sorted(SCHEMA_FILES), kind)}", _at(name, place)
        )
        return
    for error in sorted(_validator(kind).iter_errors(document), key=lambda error: _sort_key(document, error)):
        yield from _told(document, error, name)


def schema_folder() -> Path:
    """Return where the schemas are: beside the package in a checkout, inside it once installed."""
    inside = Path(__file__).parent.parent / "schemas"
    return inside if inside.is_dir() else Path(__file__).parent.parent.parent / "schemas"


@cache
def _validator(kind: str) -> Draft7Validator:
    schema = json.loads((schema_folder() / SCHEMA_FILES[kind]).read_text(encoding="utf-8"))
    return Draft7Validator(schema)


def _sort_key(document: Any, error: ValidationError) -> tuple[int, int, str]:
    return (*place_of(document, list(error.absolute_path)), error.message)


def _told(document: YamlMap, error: ValidationError, name: str) -> Iterator[Problem]:
    path = list(error.absolute_path)
    where = ".".join(map(str, path)) or "the document"
    at = _at(name, place_of(document, path))
    wanted: Any = error.validator_value
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(error, name, where)
        case "required":
            held: Any = error.instance
            missing = sorted(set(wanted) - set(held))
            yield Problem("KR103", f"{where} lacks {', '.join(missing)}", at)
        case "enum" | "const":
            allowed = [str(word) for word in (wanted if error.validator == "enum" else [wanted])]
            message = f"{where} is {_shown(error.instance)}; it must be {_either(allowed, error.instance)}"
            yield Problem("KR104", message, at)
        case _:
            meant = error.schema.get("description") if isinstance(error.schema, Mapping) else None
            message = f"{where} is {_shown(error.instance)}, which {_why(error)}" + (f". {meant}" if meant else "")
            yield Problem("KR104", message, at)


def _unknown_keys(error: ValidationError, name: str, where: str) -> Iterator[Problem]:
    known = sorted(error.schema.get("properties", {})) if isinstance(error.schema, Mapping) else []
    holder: Any = error.instance
    for key in holder:
        if key not in known:
            hint = _hint(str(key), known)
            place = holder.key_at[key] if isinstance(holder, YamlMap) else (1, 1)
            yield Problem("KR103", f"unknown key {key!r} in {where}{hint}", _at(name, place))


def _hint(word: str, known: Sequence[str]) -> str:
    lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return f"; did you mean {lower[close[0]]!r}?" if close else f"; known are {', '.join(known)}"


def _either(allowed: Sequence[str], found: object) -> str:
    text = allowed[0] if len(allowed) == 1 else f"one of {', '.join(allowed)}"
    close = get_close_matches(str(found).lower(), allowed, n=1, cutoff=0.6)
    return f"{text}; did you mean {close[0]!r}?" if close and len(allowed) > 1 else text


def _why(error: ValidationError) -> str:
    wanted: Any = error.validator_value
    if error.validator == "type":
        words = [wanted] if isinstance(wanted, str) else wanted
        return f"must be {' or '.join(TYPE_NAMES.get(word, word) for word in words)}"
    return WHY.get(str(error.validator), "has none of the forms it may have").format(wanted)


def _shown(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def _at(name: str, place: tuple[int, int]) -> Location:
    return Location(name, *place)
