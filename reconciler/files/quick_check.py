"""Tells whether a document has its schema's form: yes or no, many times as fast as the validator, which says why."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
_EXTRA = "additionalProperties"


def compiled(schema: Mapping[str, Any]) -> Check:
    """Return a function that says whether a value has that form; a KeyError names a keyword that it does not know."""
    checks: list[Check] = [
        partial(_FITS[keyword], _READY[keyword](wanted) if keyword in _READY else wanted)
        for keyword, wanted in schema.items()
        if keyword not in _SILENT | {_EXTRA}
    ]
    if _EXTRA in schema or "properties" in schema:
        known = {key: compiled(part) for key, part in schema.get("properties", {}).items()}
        extra = schema.get(_EXTRA, True)
        checks.append(
            partial(_members_fit, known, compiled(extra) if isinstance(extra, dict) else lambda _: bool(extra))
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
    "items": compiled,
    "oneOf": lambda parts: [compiled(part) for part in parts],
    "pattern": lambda pattern: re.compile(pattern.removeprefix("^").removesuffix("$")),
    "type": lambda words: frozenset[type]().union(
        *(_TYPES[each] for each in ([words] if type(words) is str else words))
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
