"""Finds where something stands in a JSON text, once it is known to be wrong: reading itself keeps no places."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isinf
from typing import NamedTuple

MOST_LOOKED_THROUGH = 8 << 20
DEEPEST = 64
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+', re.DOTALL)
_NO_NUMBER = frozenset({"NaN", "Infinity", "-Infinity"})
_MOST_DIGITS = 4300
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _Token(NamedTuple):
    text: str
    start: int
    pointer: str
    depth: int
    is_key: bool
    is_repeated: bool


@dataclass(slots=True)
class _Level:
    """An object or a list that is not closed yet: the next member's key, or number, and the keys so far."""

    pointer: str
    is_object: bool
    key: str = "0"
    awaits_key: bool = True
    keys: set[str] = field(default_factory=set)

    @property
    def member(self) -> str:
        return f"{self.pointer}/{self.key}"


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
        if token.is_key or not _leads_to(token.pointer, pointer):
            continue
        if len(token.pointer) > best:
            best, at = len(token.pointer), token.start
        if token.pointer == pointer:
            break
    return f":{line_and_column(text, at)}"


def place_of_slip(text: str) -> str:
    """Return `:line:column` of what no strict JSON holds: a key written twice, NaN, a number or a nesting too large."""
    if len(text) > MOST_LOOKED_THROUGH:
        return ""
    found = next((token.start for token in _tokens(text) if _is_slip(token)), None)
    return "" if found is None else f":{line_and_column(text, found)}"


def _is_slip(token: _Token) -> bool:
    if token.text[0] == '"':
        return token.is_repeated or (_SURROGATE.search(token.text) is not None and _is_half(token.text))
    if token.text in _NO_NUMBER or token.depth > DEEPEST or len(token.text) > _MOST_DIGITS:
        return True
    try:
        return isinf(float(token.text))
    except ValueError:
        return False


def _is_half(text: str) -> bool:
    try:
        json.loads(text).encode()
    except UnicodeEncodeError:
        return True
    except ValueError:
        return False
    return False


def _leads_to(here: str, pointer: str) -> bool:
    return pointer == here or pointer.startswith(f"{here}/")


def _tokens(text: str) -> Iterator[_Token]:
    """Yield what the text holds, each with the pointer of its value; of a text that is no JSON, something."""
    levels: list[_Level] = []
    for found in _TOKEN.finditer(text):
        mark, top = found.group(), levels[-1] if levels else None
        if mark in {"}", "]"}:
            del levels[-1:]
        elif mark == ",":
            _go_on(top)
        elif mark != ":":
            is_key = top is not None and top.is_object and top.awaits_key
            is_repeated = top is not None and is_key and _take_key(top, mark)
            pointer = top.member if top is not None else ""
            yield _Token(mark, found.start(), pointer, len(levels), is_key, is_repeated)
            if mark in {"{", "["}:
                levels.append(_Level(pointer, mark == "{"))


def _go_on(level: _Level | None) -> None:
    if level is None:
        return
    if level.is_object:
        level.awaits_key = True
    else:
        level.key = str(int(level.key) + 1)


def _take_key(level: _Level, token: str) -> bool:
    """Make that the object's next key; return whether it has had it before."""
    try:
        key = str(json.loads(token))
    except ValueError:
        key = token
    level.key, level.awaits_key = key.replace("~", "~0").replace("/", "~1"), False
    is_repeated = key in level.keys
    level.keys.add(key)
    return is_repeated
