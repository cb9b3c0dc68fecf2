"""Reads sizes, rates, durations and percentages with their units, exactly."""

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%/]+)")
_BINARY = {"B": 1} | {f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", start=1)}
_DECIMAL = {f"{letter}B": 1000**power for power, letter in enumerate("KMGTP", start=1)} | {"kB": 1000}
_PLAIN = re.compile(r"-?[0-9]{1,19}")
LONGEST = 40
MAX_INTEGER = (1 << 63) - 1
BYTES = _BINARY | _DECIMAL
MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


@lru_cache(maxsize=1 << 12)
def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as `2TiB`; raises ValueError."""
    return _whole(text, BYTES)


def parse_rate(text: str) -> int:
    """Return the bytes per second of a rate such as `50MiB/s`; raises ValueError."""
    if not text.endswith("/s"):
        raise ValueError(text)
    return _whole(text.removesuffix("/s"), BYTES)


@lru_cache(maxsize=1 << 12)
def parse_milliseconds(text: str) -> int:
    """Return the milliseconds of a duration such as `7d`; raises ValueError."""
    return _whole(text, MILLISECONDS)


def parse_seconds(text: str) -> int:
    """Return the seconds of a duration, rounded up; raises ValueError."""
    return -(-parse_milliseconds(text) // 1000)


def parse_percent(text: str) -> Fraction:
    """Return the share of a percentage such as `10%`; raises ValueError."""
    return _scaled(text, {"%": 1}) / 100


def config_text(key: str, value: object) -> str:
    """Return a topic config as Kafka takes it; a value with a unit is converted to the key's own.

    Raises ValueError where the unit does not fit the key, or where a time or a size is neither a whole number nor one
    with a unit: Kafka would refuse `7days` only when the plan runs.
    """
    if key.endswith(".ms"):
        return _config_number(value, parse_milliseconds)
    if key.endswith(".bytes"):
        return _config_number(value, parse_bytes)
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    found = _NUMBER.fullmatch(text.strip())
    if found is not None and found.group(2) in BYTES | MILLISECONDS:
        raise ValueError(text)
    return text


def _config_number(value: object, parse: Callable[[str], int]) -> str:
    text = str(value).strip()
    return text if _PLAIN.fullmatch(text) else str(parse(text))


def _whole(text: str, units: dict[str, int]) -> int:
    value = _scaled(text, units)
    if value.denominator != 1 or value > MAX_INTEGER:
        raise ValueError(text)
    return int(value)


def _scaled(text: str, units: dict[str, int]) -> Fraction:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found.group(2) not in units or len(text) > LONGEST:
        raise ValueError(text)
    return Fraction(found.group(1)) * units[found.group(2)]
