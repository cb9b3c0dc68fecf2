"""Good files made wrong by a seed: the same seed makes the same bytes, on any machine."""

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

UNICODE = tuple(map(chr, (0, 7, 0x1B, 0x85, 0xAD, 0xE9, 0x301, 0x430, 0x200B, 0x200D, 0x2028, 0x202E, 0x2066, 0xFEFF)))
UNICODE += ("\uffff", "\U0001f600", "\U000e0041", "\ufdfd")
YAML_VALUES = (
    *("{}", "[]", "null", "~", "true", "NO", "0", "-1", "1_000"),
    *("0o7", "0x1f", "1.5", "1.0e999", ".inf", ".nan", "99999999999999999999", "2026-11-21", "1:30"),
    *("''", '"\\x1b"', "!!int", "&a", "*a", "<<", "50MiB/s", "10%", "7d"),
    *("-7d", "even", "strict", "a/../b", "${env:X}", "|"),
)
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1 << 31, 1 << 63, 1 << 80, 1.5, -0.0, 1e300),
    *("", "x", "0", [], {}, [[]], [0], {"": 0}, {"0": 0}),
)
RAW_VALUES = ("NaN", "-Infinity", "1e999", "9" * 5000, '"\\ud800"', "1.", "+1", "0x1", "'x'", "undefined", "[" * 2000)
MARK = "\N{BLACK STAR}"
Change = Callable[[bytes, random.Random], bytes]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """Change a few bits."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 6)):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut_short(content: bytes, chance: random.Random) -> bytes:
    """Keep a beginning, or an end."""
    at = chance.randrange(len(content))
    return content[:at] if chance.random() < 0.8 else content[at:]


def doubled(content: bytes, chance: random.Random) -> bytes:
    """Write some lines again, there or elsewhere."""
    lines = content.splitlines(keepends=True)
    start = chance.randrange(len(lines))
    block = lines[start : start + chance.choice((1, 1, 2, 5, 20))] * chance.choice((1, 1, 2, 30))
    at = chance.choice((start, chance.randrange(len(lines) + 1)))
    return b"".join([*lines[:at], *block, *lines[at:]])


def swapped(content: bytes, chance: random.Random) -> bytes:
    """Let two blocks of lines trade places."""
    lines = content.splitlines(keepends=True)
    one, two = sorted(chance.randrange(len(lines)) for _ in range(2))
    length = chance.choice((1, 2, 3))
    middle = lines[one + length : two]
    return b"".join(
        [*lines[:one], *lines[two : two + length], *middle, *lines[one : one + length], *lines[two + length :]]
    )


def with_characters(content: bytes, chance: random.Random) -> bytes:
    """Put in a character that is seldom meant."""
    text = content.decode("utf-8", "replace")
    at = chance.randrange(len(text))
    return (text[:at] + chance.choice(UNICODE) * chance.choice((1, 1, 3)) + text[at:]).encode()


def with_yaml_value(content: bytes, chance: random.Random) -> bytes:
    """Write another value behind a key."""
    found = list(re.finditer(rb"(?<=: )[^{\[\n][^,}\]\n]*", content))
    place = chance.choice(found)
    return content[: place.start()] + chance.choice(YAML_VALUES).encode() + content[place.end() :]


def with_json_value(content: bytes, chance: random.Random) -> bytes:
    """Put another value in some place of the tree; now and then one that no JSON holds."""
    document = json.loads(content)
    holder, key = _place(document, chance)
    if chance.random() < 0.2:
        holder[key] = MARK
        return json.dumps(document, ensure_ascii=False).replace(f'"{MARK}"', chance.choice(RAW_VALUES)).encode()
    choice = chance.randrange(4)
    if choice == 0 and isinstance(holder, dict):
        del holder[key]
    elif choice == 1:
        other, name = _place(document, chance)
        holder[key], other[name] = json.loads(json.dumps(other[name])), json.loads(json.dumps(holder[key]))
    else:
        holder[key] = chance.choice(JSON_VALUES)
    return json.dumps(document, ensure_ascii=False, indent=chance.choice((None, 1))).encode()


def _place(document: Any, chance: random.Random) -> tuple[Any, Any]:  # noqa: ANN401 - any JSON
    holder, key = document, next(iter(document))
    while True:
        key = chance.choice(sorted(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
        value = holder[key]
        if not isinstance(value, dict | list) or not value or chance.random() < 0.15:
            return holder, key
        holder = value


ALL: tuple[Change, ...] = (flipped, cut_short, doubled, swapped, with_characters)
CHANGES: Mapping[str, tuple[Change, ...]] = {
    "yaml": (*ALL, *[with_yaml_value] * 8),
    "json": (*ALL, *[with_json_value] * 15),
    "lines": ALL,
}


def fuzzed(content: bytes, form: str, chance: random.Random) -> bytes:
    """Return the content with one to three changes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        change = chance.choice(CHANGES[form])
        try:
            content = change(content, chance) or content
        except (
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            StopIteration,
        ):  # the change before left nothing that this one understands
            content = flipped(content or b"\n", chance)
    return content
