"""Tells where a JSON document does not fit its type: by file, line, column and JSON pointer."""

from reconciler.files.json_place import place_of_pointer
from reconciler.files.json_text import canonical_json
from reconciler.files.raw import invalid
from reconciler.model.codec import Malformed
from reconciler.model.problem import InvalidInput

_SHOWN = 60


def malformed(code: str, name: str, content: bytes, wrong: Malformed) -> InvalidInput:
    """Return the error that tells it: `name:line:column: /pointer message`."""
    place = place_of_pointer(content, wrong.pointer)
    return invalid(code, f"{name}{place}: {wrong.pointer or '/'} {wrong.told(shown)}")


def shown(value: object) -> str:
    """Return the value as JSON, cut where it is long."""
    text = canonical_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
