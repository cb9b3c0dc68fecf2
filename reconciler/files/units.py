"""Sizes, rates, durations and percentages with their units, exactly."""

import re
from fractions import Fraction

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%/]+)")
_BINARY = {"B": 1} | {f"{letter}iB": 1024**power for power, letter in enumerate("KMGTP", start=1)}
_DECIMAL = {f"{letter}B": 1000**power for power, letter in enumerate("KMGTP", start=1)} | {"kB": 1000}
LONGEST = 40
MAX_INTEGER = (1 << 63) - 1
BYTES = _BINARY | _DECIMAL
MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


def parse_bytes(text: str) -> int:
    """Return the bytes of a size such as `2TiB`; raises ValueError."""
    return _whole(text, BYTES)


def parse_rate(text: str) -> int:
    """Return the bytes per second of a rate such as `50MiB/s`; raises ValueError."""
    if not text.endswith("/s"):
        raise ValueError(text)
    return _whole(text.removesuffix("/s"), BYTES)


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

    Raises ValueError where the unit does not fit the key.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    found = _NUMBER.fullmatch(value.strip())
    if found is None or found.group(2) not in BYTES | MILLISECONDS:
        return value
    if key.endswith(".ms") and found.group(2) in MILLISECONDS:
        return str(parse_milliseconds(value.strip()))
    if key.endswith("bytes") and found.group(2) in BYTES:
        return str(parse_bytes(value.strip()))
    raise ValueError(value)


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
