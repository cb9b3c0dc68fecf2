"""Takes out of a document everything that has not its schema's form, and tells what that was."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from reconciler.files.strict_yaml import YamlList, YamlMap

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Steps = tuple[str | int, ...]
_LISTS_OF_MAPPINGS = frozenset({("spec", "brokers"), ("spec", "windows")})
_UNKNOWN_KEY = ""


def take_out(document: YamlMap, errors: "Iterable[ValidationError]") -> set[Steps]:
    """Take out of the document what these errors are about; return the path of each.

    An entry goes with its key, a list with all its items, but for lists of mappings, of which each says something by
    itself. An unknown key may be any field misspelt: its path ends in an empty step.
    """
    taken: set[Steps] = set()
    items: set[Steps] = set()
    for error in errors:
        path = tuple(error.absolute_path)
        if error.validator == "additionalProperties" and error.validator_value is False:
            taken.add((*path, _UNKNOWN_KEY))
            _drop_unknown_keys(error)
        else:
            path = _whole(path)
            taken.add(path)
            if path and isinstance(path[-1], int):
                items.add(path)
            elif path:
                _drop(document, path)
    for path in sorted(items, key=lambda each: [str(step) for step in each[:-1]] + [each[-1]], reverse=True):
        _drop_item(document, path)
    return taken


def _whole(path: Steps) -> Steps:
    """Return the path of the nearest thing around that means something without the rest."""
    while path and isinstance(path[-1], int) and path[:-1] not in _LISTS_OF_MAPPINGS:
        path = path[:-1]
    return path


def _drop_unknown_keys(error: "ValidationError") -> None:
    holder, schema = error.instance, error.schema
    known = schema.get("properties", {}) if isinstance(schema, dict) else {}
    if isinstance(holder, YamlMap):
        for key in [key for key in holder if key not in known]:
            _forget(holder, key)


def _drop(document: YamlMap, path: Steps) -> None:
    holder = _at(document, path[:-1])
    if isinstance(holder, YamlMap) and path[-1] in holder:
        _forget(holder, str(path[-1]))


def _forget(holder: YamlMap, key: str) -> None:
    for entries in (holder, holder.key_at, holder.value_at):
        entries.pop(key, None)


def _drop_item(document: YamlMap, path: Steps) -> None:
    holder, number = _at(document, path[:-1]), path[-1]
    if isinstance(holder, YamlList) and isinstance(number, int) and number < len(holder):
        del holder[number], holder.item_at[number]


def _at(document: YamlMap, path: Sequence[str | int]) -> object:
    here: object = document
    for step in path:
        if isinstance(here, YamlMap) and step in here:
            here = here[str(step)]
        elif isinstance(here, YamlList) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            return None
    return here
