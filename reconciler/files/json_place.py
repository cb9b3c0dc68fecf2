"""Finds where something stands in a JSON text, once it is known to be wrong: reading itself keeps no places."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from math import isinf
from typing import NamedTuple

from reconciler.model.codec import pointer as pointer_of

MOST_LOOKED_THROUGH = 8 << 20
DEEPEST = 64
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_NO_NUMBER = frozenset({"NaN", "Infinity", "-Infinity"})
_MOST_DIGITS = 4300


class _Token(NamedTuple):
    """A scalar, a key or what opens an object or a list; `pointer`: of the value, None for a key."""

    text: str
    start: int
    pointer: str | None
    depth: int
    is_repeated: bool = False


def line_and_column(text: str, index: int) -> str:
    """Return `line:column` of a character, both from 1."""
    return f"{text.count(chr(10), 0, index) + 1}:{index - text.rfind(chr(10), 0, index)}"


def place_of_pointer(content: bytes, pointer: str) -> str:
    """Return `:line:column` of the value at that JSON pointer, or of the nearest around it; empty where unknown."""
    if len(content) > MOST_LOOKED_THROUGH:
        return ""
    text = content.decode("utf-8-sig", "replace")
    best, at = -1, 0
    for token in _tokens(text):
        here = token.pointer
        if here is not None and len(here) > best and f"{pointer}/".startswith(f"{here}/"):
            best, at = len(here), token.start
        if here == pointer:
            break
    return f":{line_and_column(text, at)}"


def places_of_pointers(content: bytes) -> Mapping[str, tuple[int, int]]:
    """Return line and column of each value, by its JSON pointer, in one pass; none of a text that is too long."""
    if len(content) > MOST_LOOKED_THROUGH:
        return {}
    text = content.decode("utf-8-sig", "replace")
    begins = [0, *(found.end() for found in re.finditer("\n", text))]
    found = {}
    for token in _tokens(text):
        if token.pointer is not None:
            line = bisect_right(begins, token.start)
            found[token.pointer] = line, token.start - begins[line - 1] + 1
    return found


def place_of_slip(text: str) -> str:
    """Return `:line:column` of what no strict JSON holds: a key written twice, NaN, a number or a nesting too large."""
    if len(text) > MOST_LOOKED_THROUGH:
        return ""
    found = next((token.start for token in _tokens(text) if _is_slip(token)), None)
    return "" if found is None else f":{line_and_column(text, found)}"


def _is_slip(token: _Token) -> bool:
    if token.text[0] == '"':
        return token.is_repeated or _is_half(token.text)
    if token.text in _NO_NUMBER or token.depth > DEEPEST or len(token.text) > _MOST_DIGITS:
        return True
    try:
        return isinf(float(token.text))
    except ValueError:
        return False


def _is_half(text: str) -> bool:
    """Whether a text holds half a surrogate pair."""
    try:
        json.loads(text).encode()
    except ValueError as error:
        return isinstance(error, UnicodeEncodeError)
    return False


def _tokens(text: str) -> Iterator[_Token]:
    """Yield what the text holds, each with the pointer of its value; of a text that is no JSON, something."""
    around: list[
        tuple[str, set[str] | None]
    ] = []  # the pointer of what is not closed yet; of an object, its keys so far
    here, is_key = "", False
    for found in _TOKEN.finditer(text):
        mark, keys = found.group(), around[-1][1] if around else None
        if mark in {"}", "]"}:
            here = around.pop()[0] if around else ""
        elif mark == ",":
            is_key = keys is not None
            if around and not is_key:
                before, _, number = here.rpartition("/")
                here = f"{before}/{int(number) + 1}"
        elif is_key and keys is not None:
            key = _key(mark)
            yield _Token(mark, found.start(), None, len(around), key in keys)
            keys.add(key)
            here, is_key = pointer_of(around[-1][0], key), False
        elif mark != ":":
            yield _Token(mark, found.start(), here, len(around))
            if mark in {"{", "["}:
                is_key = mark == "{"
                around.append((here, set() if is_key else None))
                here = here if is_key else f"{here}/0"


def _key(token: str) -> str:
    try:
        return str(json.loads(token))
    except ValueError:
        return token
