"""Reads JSON strictly, and writes it so that the same value gives the same, readable bytes."""

import gc
import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache
from math import isinf
from typing import Any, NoReturn

from reconciler.files.json_place import line_and_column, place_of_pointer, place_of_slip
from reconciler.files.raw import invalid
from reconciler.model.codec import Malformed
from reconciler.model.problem import InvalidInput

_LONG_LINE = 160
_LONG_ITEM = 1000
_LONGEST_SHOWN = 60
_BETWEEN = "}, {"
_AT_ONCE = 1_000
"""So many items are written at once: a million of them as one text would need as much memory once more."""
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_SPACED = json.JSONEncoder(sort_keys=True, separators=(", ", ": "), ensure_ascii=False, allow_nan=False)
INDENT = " "
_YAML = re.compile(r"[A-Za-z][\w.]*:(?:\s|$)")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _NotStrict(ValueError):
    """JSON that Python would take, but that does not say one thing only."""


def parse_json(content: bytes, name: str, what: str, code: str) -> Any:
    """Return the JSON value; refuse duplicate keys, NaN and infinities, nesting without end and what is not UTF-8.

    The InvalidInput that it raises says where: `name:line:column`.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig", "replace")
        reason = f"byte {error.start} is not UTF-8"
        raise _not_json(code, name, f":{line_and_column(before, len(before))}", what, reason) from None
    try:
        with collector_paused():
            value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
            if _SURROGATE.search(text):
                canonical_json(value).encode()
            return value
    except UnicodeEncodeError:
        reason = "it holds half a surrogate pair, which is no character"
    except json.JSONDecodeError as error:
        reason = f"{error.msg[:1].lower()}{error.msg[1:]}{_looks_like(text)}"
        raise _not_json(code, name, f":{error.lineno}:{error.colno}", what, reason) from None
    except RecursionError:
        reason = "it is nested too deeply"
    except _NotStrict as error:
        reason = str(error)
    except ValueError:
        reason = "it holds a number with too many digits"
    raise _not_json(code, name, place_of_slip(text), what, reason)


def _not_json(code: str, name: str, place: str, what: str, reason: str) -> InvalidInput:
    return invalid(code, f"{name}{place}: the {what} is not valid JSON: {reason}")


def malformed(code: str, name: str, content: bytes, wrong: Malformed) -> InvalidInput:
    """Return the error that tells where JSON does not fit its type: `name:line:column: /pointer message`."""

    def shown(value: object) -> str:
        text = canonical_json(value)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"

    message = f"{name}{place_of_pointer(content, wrong.pointer)}: {wrong.pointer or '/'} {wrong.told(shown)}"
    return invalid(code, message)


def canonical_json(value: object, whole: Collection[str] = ()) -> str:
    """Return the one shortest form of that value: sorted keys, no spaces. `whole`: its members without any float."""
    return b"".join(canonical_parts(value, whole)).decode() if whole else _ENCODER.encode(value)


def canonical_parts(value: object, whole: Collection[str]) -> Iterator[bytes]:
    """Yield the same in UTF-8, an object member by member, as it may be long."""
    if not isinstance(value, dict):
        yield _ENCODER.encode(value).encode()
        return
    yield b"{"
    for place, key in enumerate(sorted(value)):
        yield f"{',' if place else ''}{_ENCODER.encode(key)}:".encode()
        yield _quick(is_spaced=False)(value[key]) if key in whole else _ENCODER.encode(value[key]).encode()
    yield b"}"


def readable_json(value: object, whole: Collection[str] = ()) -> str:
    """Return sorted JSON with one object a line where objects are listed, and one newline at the end."""
    return "".join([*_pieces(value, "", _SPACED.encode, whole), "\n"])


@cache
def _quick(*, is_spaced: bool) -> Callable[[object], bytes]:
    """Return what writes the same but for floats, in a fifth of the time."""
    import msgspec  # only what writes has a use for it

    encode, form = msgspec.json.Encoder(order="sorted").encode, msgspec.json.format
    return (lambda value: form(encode(value), indent=0)) if is_spaced else encode


def _quickly(value: object) -> str:
    return _quick(is_spaced=True)(value).decode()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause cyclic garbage collection: building very many values without cycles makes it search in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _pieces(
    value: object, indent: str, encode: Callable[[object], str], whole: Collection[str] = (), longest: int = _LONG_LINE
) -> list[str]:
    """Return the value on one line if it lists no objects and, being an object, is short; else one line a member.

    Joined, the pieces are its text: whole texts, which may be long, are copied once.
    """
    inner = indent + INDENT
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [f"[\n{inner}", f",\n{inner}".join(_items(value, inner, encode)), f"\n{indent}]"]
    if not isinstance(value, dict):
        return [encode(value)]
    line = "" if _lists_objects(value) else encode(value)
    if (line and len(line) <= longest) or not value:
        return [line]
    pieces: list[str] = []
    for key in sorted(value):
        pieces += [f",\n{inner}" if pieces else f"{{\n{inner}", f"{_SPACED.encode(key)}: "]
        pieces += _pieces(value[key], inner, _quickly if key in whole else encode)
    return [*pieces, f"\n{indent}}}"]


def _items(items: list[dict[str, Any]], indent: str, encode: Callable[[object], str]) -> Iterator[str]:
    for begin in range(0, len(items), _AT_ONCE):
        some = items[begin : begin + _AT_ONCE]
        yield _on_lines(some, indent, encode) or f",\n{indent}".join(_item(item, indent, encode) for item in some)


def _on_lines(items: list[dict[str, Any]], indent: str, encode: Callable[[object], str]) -> str:
    """Return the items, written at once, if each fits one line and their ends are plain to see; else nothing."""
    if _lists_objects(items[0]):
        return ""
    text = encode(items)[1:-1]
    lines = text.split(_BETWEEN)
    is_plain = len(lines) == len(items) and "[{" not in text and max(map(len, lines)) + 2 <= _LONG_ITEM
    return f"}},\n{indent}{{".join(lines) if is_plain else ""


def _item(item: dict[str, Any], indent: str, encode: Callable[[object], str]) -> str:
    # Most items fit one line: to write it, and see whether it fits, is quicker than to look into the item first.
    line = "" if _lists_objects(item) else encode(item)
    return line if line and len(line) <= _LONG_ITEM else "".join(_pieces(item, indent, encode, (), _LONG_ITEM))


def _lists_objects(value: dict[str, Any]) -> bool:
    for item in value.values():
        if isinstance(item, list):
            if item and isinstance(item[0], dict):
                return True
        elif isinstance(item, dict) and _lists_objects(item):
            return True
    return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _NotStrict(f"the key {json.dumps(twice)} stands twice in one object")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise _NotStrict("it holds a number that is too large")
    return number


def _no_constant(name: str) -> NoReturn:
    raise _NotStrict(f"{name} is no number")


def _looks_like(text: str) -> str:
    """Return what a text that is not JSON may be instead."""
    if not text.strip():
        return "; it is empty"
    first = next((line for line in text.splitlines() if line.strip() and line[0] not in "#-%"), "")
    return "; it looks like YAML: desired-state files are read with -C and --cluster" if _YAML.match(first) else ""
