"""Tells whether a document has its schema's form: yes or no, many times as fast as the validator, which says why."""

import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

from reconciler.files.strict_yaml import YamlFloat, YamlList, YamlMap

Check = Callable[[Any], bool]
_TYPES: Mapping[str, frozenset[type]] = {
    "array": frozenset({YamlList}),
    "boolean": frozenset({bool}),
    "integer": frozenset({int}),
    "null": frozenset({NoneType}),
    "number": frozenset({int, YamlFloat}),
    "object": frozenset({YamlMap}),
    "string": frozenset({str}),
}
_SILENT = {"$id", "$schema", "default", "description", "examples", "title", "version", "properties"}


def compiled(schema: Mapping[str, Any]) -> Check:
    """Return a function that says whether a value has that form; a KeyError names a keyword that it does not know."""
    checks = [_MAKERS[keyword](wanted) for keyword, wanted in schema.items() if keyword not in _SILENT | {_EXTRA}]
    if _EXTRA in schema or "properties" in schema:
        checks.append(_members(schema))
    if len(checks) == 1:
        return checks[0]
    return lambda value: all(check(value) for check in checks)


def _members(schema: Mapping[str, Any]) -> Check:
    known = {key: compiled(part) for key, part in schema.get("properties", {}).items()}
    extra = schema.get(_EXTRA, True)
    other = compiled(extra) if isinstance(extra, dict) else lambda _value: bool(extra)

    def fits(value: Any) -> bool:
        return type(value) is not YamlMap or all(known.get(key, other)(item) for key, item in value.items())

    return fits


def _type(wanted: str | list[str]) -> Check:
    kinds = frozenset[type]().union(*(_TYPES[word] for word in ([wanted] if isinstance(wanted, str) else wanted)))
    return lambda value: type(value) in kinds


def _enum(wanted: list[str]) -> Check:
    words = frozenset(wanted)
    return lambda value: type(value) is str and value in words


def _pattern(wanted: str) -> Check:
    matches = re.compile(wanted.removeprefix("^").removesuffix("$")).fullmatch
    return lambda value: type(value) is not str or matches(value) is not None


def _items(wanted: Mapping[str, Any]) -> Check:
    check = compiled(wanted)
    return lambda value: type(value) is not YamlList or all(map(check, value))


def _one_of(wanted: list[Mapping[str, Any]]) -> Check:
    checks = [compiled(part) for part in wanted]
    return lambda value: sum(check(value) for check in checks) == 1


def _required(wanted: list[str]) -> Check:
    return lambda value: type(value) is not YamlMap or all(key in value for key in wanted)


def _at_least(wanted: int) -> Check:
    return lambda value: type(value) is not int or value >= wanted


def _at_most(wanted: int) -> Check:
    return lambda value: type(value) is not int or value <= wanted


def _longer(kind: type[str | list[Any]]) -> Callable[[int], Check]:
    return lambda wanted: lambda value: type(value) is not kind or len(value) >= wanted


def _unique(_wanted: bool) -> Check:  # noqa: FBT001 # what the schema holds: always true
    # What cannot be told apart quickly is left to the validator.
    return lambda value: (
        type(value) is not YamlList
        or (all(type(item) in {int, str} for item in value) and len(set(value)) == len(value))
    )


_EXTRA = "additionalProperties"
_MAKERS: Mapping[str, Callable[[Any], Check]] = {
    "const": lambda wanted: _enum([wanted]),
    "enum": _enum,
    "items": _items,
    "maximum": _at_most,
    "minItems": _longer(YamlList),
    "minLength": _longer(str),
    "minimum": _at_least,
    "oneOf": _one_of,
    "pattern": _pattern,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique,
}
