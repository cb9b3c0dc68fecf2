"""Checks documents against their JSON Schemas: each problem is a sentence with its place, and is taken out.

Whether a document has its form at all is told many times as fast as by the validator, which says why.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

from reconciler.files.strict_yaml import Steps, YamlFloat, YamlList, YamlMap, drop, key_shown, place_of
from reconciler.model.problem import Problem

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

SCHEMA_FILES = {
    "Cluster": "cluster.json",
    "TopicClass": "topic-class.json",
    "Topic": "topic.json",
    "Mirror": "mirror.json",
    "Owner": "owner.json",
}
LONGEST_SHOWN = 60
MAX_ROUNDS = 3
_LISTS_OF_MAPPINGS = frozenset({("spec", "brokers"), ("spec", "windows")})
_BY_RACK = ("spec", "placement", "racks", "replicas")
_UNKNOWN_KEY = ""
UNNAMED = "unnamed"
_TYPES: Mapping[str, tuple[str, frozenset[type]]] = {
    "integer": ("a whole number", frozenset({int})),
    "string": ("a text", frozenset({str})),
    "object": ("a mapping", frozenset({YamlMap})),
    "array": ("a list", frozenset({YamlList})),
    "number": ("a number", frozenset({int, YamlFloat})),
    "boolean": ("true or false", frozenset({bool})),
    "null": ("null", frozenset({NoneType})),
}
"""The types of JSON Schema: what messages call them, and what they are here."""
API_VERSION = "reconciler/v1"
# What a pattern that wants a unit ends in, and examples of it.
UNITS = {"/s$": "50MiB/s", "/s)$": "100MiB/s, 80%", "B)$": "2TiB, 500GiB", "%$": "20%", "|d|w)$": "2h, 30m, 7d"}
_SECRET = re.compile("password|secret|token|jaas|key|credential", re.IGNORECASE)
_SECRET_WITHIN = re.compile(rf"({_SECRET.pattern})[^\s=:]*\s*[=:]", re.IGNORECASE)
_SOMETHING = "set to something"
WHY = {
    "pattern": "has not the form it must have",
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "minItems": "must not be empty",
    "minLength": "must not be empty",
    "minProperties": "must not be empty",
}
Check = Callable[[Any], bool]
_SILENT = {"$id", "$schema", "default", "description", "examples", "title", "version", "properties"}
_EXTRA = "additionalProperties"


@dataclass(frozen=True, slots=True)
class Form:
    """What is wrong with the form of a document, and what had to be taken out of it to be rid of that.

    `is_usable`: what is left has its schema's form, but for a name that was taken out and is empty now.
    """

    problems: tuple[Problem, ...] = ()
    taken: frozenset[Steps] = frozenset()
    is_usable: bool = True


def checked_form(document: YamlMap) -> Form:
    """Return what is wrong with the form of one document; all that is wrong is taken out of it."""
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in SCHEMA_FILES:
        return Form(tuple(_unknown_kind(document)), is_usable=False)
    if _quick_check(kind)(document):
        return Form()
    errors = list(_validator(kind).iter_errors(document))
    problems = tuple(problem for error in errors for problem in _told(document, error))
    taken = _take_out(document, errors)
    for _ in range(MAX_ROUNDS):
        if _is_whole(document, kind, taken):
            return Form(problems, frozenset(taken))
        # What is left may lack something that was taken out: then its holder goes too.
        taken |= _take_out(document, list(_validator(kind).iter_errors(document)))
    return Form(problems, frozenset(taken), is_usable=False)


def _take_out(document: YamlMap, errors: "Iterable[ValidationError]") -> set[Steps]:
    """Take out of the document what these errors are about; return the path of each.

    An entry goes with its key, a list and what adds up with all its items, but for lists of mappings, of which each
    says something by itself. An unknown key may be any field misspelt: its path ends in an empty step.
    """
    taken: set[Steps] = set()
    dropped: set[Steps] = set()
    for error in errors:
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties" and error.validator_value is False:
            taken.add((*path, _UNKNOWN_KEY))
            dropped |= {(*path, key) for key in _unknown(error)}
        else:
            while path and (isinstance(path[-1], int) or path[:-1] == _BY_RACK) and path[:-1] not in _LISTS_OF_MAPPINGS:
                path = path[:-1]
            taken.add(path)
            dropped.add(path)
    drop(document, dropped - {()})
    return taken


def _unknown(error: "ValidationError") -> list[str]:
    """Return the keys of a mapping that its schema does not know."""
    holder: Any = error.instance
    return [key for key in holder if key not in _known(error)]


def _known(error: "ValidationError") -> list[str]:
    return list(error.schema.get("properties", {})) if isinstance(error.schema, Mapping) else []


def _is_whole(document: YamlMap, kind: str, taken: Collection[Steps]) -> bool:
    """Whether the document has its schema's form, once what every document must hold is there again."""
    document["apiVersion"] = API_VERSION
    is_named = "metadata" in document and not any(
        path[:1] == ("metadata",) and path[1:2] != ("labels",) for path in taken
    )
    metadata = document.setdefault("metadata", YamlMap(document.at))
    document.value_at.setdefault("metadata", document.at)
    if is_named and metadata.get("name") != "":
        return _quick_check(kind)(document)
    metadata.pop("names", None)
    metadata["name"] = UNNAMED
    is_whole = _quick_check(kind)(document)
    metadata["name"] = ""
    metadata.value_at.setdefault("name", metadata.at)
    return is_whole


def _unknown_kind(document: YamlMap) -> Iterator[Problem]:
    """Yield what a document of no known kind lacks; what else it holds cannot be judged."""
    for key, allowed in (("apiVersion", [API_VERSION]), ("kind", sorted(SCHEMA_FILES))):
        found = document.get(key)
        if key not in document:
            message = f"the document lacks {key}; it must be {_either(allowed, '')}"
            yield Problem("KR102", message, document.at)
        elif found not in allowed:
            message = f"{key} is {_shown(found)}; it must be {_either(allowed, found)}"
            yield Problem("KR102", message, document.value_at[key])


def schema_folder() -> Path:
    """Return where the schemas are: beside the package in a checkout, inside it once installed."""
    inside = Path(__file__).parent.parent / "schemas"
    return inside if inside.is_dir() else Path(__file__).parent.parent.parent / "schemas"


@cache
def _quick_check(kind: str) -> Check:
    return _compiled(_schema(kind))


@cache
def _schema(kind: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((schema_folder() / SCHEMA_FILES[kind]).read_text(encoding="utf-8"))
    return schema


@cache
def _validator(kind: str) -> "Validator":
    """Return the validator, which is loaded only where something is wrong: a tenth of a second.

    3.0 partitions is a slip, and "orders" with a newline behind it is no topic: JSON Schema would take both.
    """
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def pattern(_validator: object, pattern: str, value: object, _schema: object) -> Iterator[ValidationError]:
        # For Python, `$` also stands before a last newline.
        if isinstance(value, str) and not re.fullmatch(pattern.removeprefix("^").removesuffix("$"), value):
            yield ValidationError("has another form")

    types = Draft7Validator.TYPE_CHECKER.redefine("integer", lambda _checker, value: type(value) is int)
    strict: Any = extend(Draft7Validator, validators={"pattern": pattern}, type_checker=types)  # type: ignore[no-untyped-call] # the stubs give it no types
    validator: Validator = strict(_schema(kind))
    return validator


def _told(document: YamlMap, error: "ValidationError") -> Iterator[Problem]:
    path = list(error.absolute_path)
    where = _dotted(path)
    at = place_of(document, path)
    wanted: Any = error.validator_value
    held: Any = error.instance
    match error.validator:
        case "additionalProperties" if wanted is False:
            for key in _unknown(error):
                message = f"unknown key {_shown(key_shown(key))} in {where}{_hint(key, _known(error))}"
                yield Problem("KR103", message, held.key_at[key])
        case "required":
            yield from (Problem("KR103", f"{where} lacks {key}", at) for key in wanted if key not in held)
        case "enum" | "const":
            allowed = [str(word) for word in (wanted if error.validator == "enum" else [wanted])]
            message = f"{where} is {_shown(error.instance)}; it must be {_either(allowed, error.instance)}"
            yield Problem("KR104", message, at)
        case "oneOf":
            yield from _no_branch(document, error)
        case _:
            secret = any(is_secret(str(step)) for step in path[2:]) or _is_of_client(path, error.instance)
            found, quotes = (_SOMETHING, "") if secret else (_shown(error.instance), _quotes(error))
            yield Problem("KR104", f"{where} is {found}, which {_why(error)}{quotes}{_meant(error)}", at)


def _is_of_client(path: Sequence[str | int], value: object) -> bool:
    """Whether it stands under `client`, where a line that lost its `: ` can hold any secret, under any name."""
    return list(path[:2]) == ["spec", "client"] and value is not None and not isinstance(value, list | dict)


def _no_branch(document: YamlMap, error: "ValidationError") -> Iterator[Problem]:
    """Yield what is wrong with the one form that is of the value's type, else which forms there are."""
    near = [cause for cause in error.context or () if cause.validator != "type" or cause.path]
    if isinstance(error.instance, dict):
        near = [cause for cause in near if cause.validator not in {"enum", "const"}]
        for cause in near:
            yield from _told(document, cause)
        if near:
            return
    path = list(error.absolute_path)
    enums: list[Any] = [cause.validator_value for cause in error.context or () if cause.validator == "enum"]
    words = [str(word) for each in enums for word in each]
    forms = f"; it must be {_either([*words, '{within: 10%}'], error.instance)}" if words else f", which {_why(error)}"
    message = f"{_dotted(path)} is {_shown(error.instance)}{forms}{_meant(error)}"
    yield Problem("KR104", message, place_of(document, path))


def _dotted(path: Sequence[str | int]) -> str:
    return ".".join(key_shown(str(step)) for step in path) or "the document"


def _meant(error: "ValidationError") -> str:
    """Return what the schema says of the field, behind a hint for a number without its unit."""
    schema: Any = error.schema
    if not isinstance(schema, Mapping):
        return ""
    pattern, text = str(schema.get("pattern", "")), str(schema.get("description", ""))
    numbers = isinstance(error.instance, int | float) and not isinstance(error.instance, bool)
    unit = next((words for ending, words in UNITS.items() if pattern.endswith(ending)), "") if numbers else ""
    return (f". Write a unit: {unit}" if unit else "") + (f". {text}" if text else "")


def _hint(word: str, known: Sequence[str]) -> str:
    lower = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(word.lower(), list(lower), n=1, cutoff=0.6)
    return f"; did you mean {lower[close[0]]!r}?" if close else f"; known are {', '.join(known)}"


def _either(allowed: Sequence[str], found: object) -> str:
    text = allowed[0] if len(allowed) == 1 else f"one of {', '.join(allowed)}"
    close = get_close_matches(str(found).lower(), allowed, n=1, cutoff=0.6)
    return f"{text}; did you mean {close[0]!r}?" if close and len(allowed) > 1 else text


def _why(error: "ValidationError") -> str:
    wanted: Any = error.validator_value
    if error.instance is None:
        return "says nothing: write its value, or leave the key out"
    if error.validator == "uniqueItems":
        items: Any = error.instance
        twice = next((item for index, item in enumerate(items) if item in items[:index]), None)
        return f"names {_shown(twice)} twice"
    if error.validator == "type":
        words = [wanted] if isinstance(wanted, str) else wanted
        *others, last = (_TYPES[word][0] for word in words)
        return f"must be {', '.join(others)}{' or ' if others else ''}{last}"
    return WHY.get(str(error.validator), "has none of the forms it may have").format(wanted)


def _quotes(error: "ValidationError") -> str:
    """Return how a text is written that YAML takes for a number or a truth value, or a number that is in quotes."""
    value: Any = error.instance
    schema: Any = error.schema
    if error.validator != "type" or value is None or isinstance(value, list | dict):
        return ""
    if error.validator_value == "string":
        text = str(value) if isinstance(value, YamlFloat) else json.dumps(value)
        return f': write "{text}"' if _compiled({**schema})(text) else ""
    is_number = error.validator_value == "integer" and isinstance(value, str) and value.isascii() and value.isdigit()
    return f": write {value}, without quotes" if is_number else ""


def _shown(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, YamlFloat):
        return str(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str) and _SECRET_WITHIN.search(value):
        return _SOMETHING
    text = json.dumps(value, ensure_ascii=False)  # JSON, so that no newline of a value begins a line of its own
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"


def is_secret(key: str) -> bool:
    """Whether the value of a key of that name is never shown."""
    return _SECRET.search(key) is not None


def _compiled(schema: Mapping[str, Any]) -> Check:
    """Return a function that says whether a value has that form; a KeyError names a keyword that it does not know."""
    checks: list[Check] = [
        partial(_FITS[keyword], _READY[keyword](wanted) if keyword in _READY else wanted)
        for keyword, wanted in schema.items()
        if keyword not in _SILENT | {_EXTRA}
    ]
    if _EXTRA in schema or "properties" in schema:
        known = {key: _compiled(part) for key, part in schema.get("properties", {}).items()}
        extra = schema.get(_EXTRA, True)
        checks.append(
            partial(_members_fit, known, _compiled(extra) if isinstance(extra, dict) else lambda _: bool(extra))
        )
    return checks[0] if len(checks) == 1 else partial(_all_fit, checks)


# Loops, which are quicker than `all` with a generator: these two are most of the work.
def _all_fit(checks: Sequence[Check], value: Any) -> bool:
    for check in checks:  # noqa: SIM110
        if not check(value):
            return False
    return True


def _members_fit(known: Mapping[str, Check], other: Check, value: Any) -> bool:
    if type(value) is YamlMap:
        for key, item in value.items():
            if not known.get(key, other)(item):
                return False
    return True


_READY: Mapping[str, Callable[[Any], Any]] = {
    "items": _compiled,
    "oneOf": lambda parts: [_compiled(part) for part in parts],
    "pattern": lambda pattern: re.compile(pattern.removeprefix("^").removesuffix("$")),
    "type": lambda words: frozenset[type]().union(
        *(_TYPES[each][1] for each in ([words] if type(words) is str else words))
    ),
}
"""Makes of what a keyword wants, where the schema has another form of it, what is compared with a value."""
_FITS: Mapping[str, Callable[[Any, Any], bool]] = {
    "const": lambda word, value: type(value) is str and value == word,
    "enum": lambda words, value: type(value) is str and value in words,
    "items": lambda fits, value: type(value) is not YamlList or all(map(fits, value)),
    "maximum": lambda most, value: type(value) is not int or value <= most,
    "minItems": lambda least, value: type(value) is not YamlList or len(value) >= least,
    "minLength": lambda least, value: type(value) is not str or len(value) >= least,
    "minProperties": lambda least, value: type(value) is not YamlMap or len(value) >= least,
    "minimum": lambda least, value: type(value) is not int or value >= least,
    "oneOf": lambda parts, value: sum(fits(value) for fits in parts) == 1,
    "pattern": lambda pattern, value: type(value) is not str or pattern.fullmatch(value) is not None,
    "required": lambda keys, value: type(value) is not YamlMap or all(key in value for key in keys),
    "type": lambda kinds, value: type(value) in kinds,
    # What cannot be told apart quickly is left to the validator.
    "uniqueItems": lambda _, value: (
        type(value) is not YamlList
        or (all(type(item) in {int, str} for item in value) and len(set(value)) == len(value))
    ),
}
"""Whether a value fits what a keyword wants; one of another type does, as JSON Schema has it."""
