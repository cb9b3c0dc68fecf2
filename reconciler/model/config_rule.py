"""Defines how Kafka reads a topic config's value, what each release takes, and what a change of it does.

The table itself, `reconciler.model.topic_configs`, is made from the brokers' own classes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from math import isfinite

from reconciler.model.effect import EffectClass

RELEASES = ("3.9", "4.1", "4.3")
"""The Kafka releases whose topic configs are known, oldest first."""


class Kind(StrEnum):
    """Kafka's types of config values."""

    BOOLEAN = "BOOLEAN"
    DOUBLE = "DOUBLE"
    INT = "INT"
    LIST = "LIST"
    LONG = "LONG"
    STRING = "STRING"


NUMBERS = frozenset({Kind.DOUBLE, Kind.INT, Kind.LONG})
ParsedValue = bool | int | float | str | tuple[str, ...]
"""A value as Kafka holds it once it has read its text; a tuple is a list's items."""
_TRIMMED = "".join(map(chr, range(33)))
"""What Java's `String.trim` takes off; a no-break space stays, and no number has one."""
_BITS = {Kind.INT: 32, Kind.LONG: 64}
_INTEGER = re.compile(r"[+-]?\d{1,4000}")
"""Kafka takes the digits of every script; more digits than these are of no number."""
_DECIMAL = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)
_HEXADECIMAL = re.compile(r"[+-]?0[xX]([\da-fA-F]+\.?[\da-fA-F]*|\.[\da-fA-F]+)[pP][+-]?\d+[fFdD]?", re.ASCII)
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7
"""Java writes a double from the first up to the second without an exponent."""


def parse_value(text: str, kind: Kind) -> ParsedValue | None:
    """Return the value as Kafka reads it (ConfigDef.parseType), None where it refuses to."""
    trimmed = text.strip(_TRIMMED)
    match kind:
        case Kind.BOOLEAN:
            return {"true": True, "false": False}.get(trimmed.lower())
        case Kind.DOUBLE:
            return _double(trimmed)
        case Kind.INT | Kind.LONG:
            number, limit = int(trimmed) if _INTEGER.fullmatch(trimmed) else None, 1 << (_BITS[kind] - 1)
            return number if number is not None and -limit <= number < limit else None
        case Kind.LIST:
            return tuple(re.split(r"\s*,\s*", trimmed, flags=re.ASCII)) if trimmed else ()
        case Kind.STRING:
            return trimmed


def displayed_text(text: str, kind: Kind) -> str:
    """Return the text that DescribeConfigs has for a value that was set as this one; of no value, the same."""
    value = parse_value(text, kind)
    match value:
        case None:
            return text
        case bool():
            return str(value).lower()
        case float():
            return _as_java(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _double(trimmed: str) -> float | None:
    if _DECIMAL.fullmatch(trimmed):
        return float(trimmed.rstrip("fFdD"))
    try:
        return float.fromhex(trimmed.rstrip("fFdD")) if _HEXADECIMAL.fullmatch(trimmed) else None
    except OverflowError:
        return float("-inf" if trimmed.startswith("-") else "inf")


def _as_java(number: float) -> str:
    """Return the number as Java's `Double.toString` writes it: `0.5`, `1.0E-4`, `NaN`."""
    if not isfinite(number):
        return str(number).replace("nan", "NaN").replace("inf", "Infinity")
    if not number or _PLAIN_FROM <= abs(number) < _PLAIN_BELOW:
        return repr(number)
    digits, _, exponent = f"{Decimal(repr(number)):E}".partition("E")
    return f"{digits}{'' if '.' in digits else '.0'}E{exponent.removeprefix('+')}"


@dataclass(frozen=True, slots=True)
class Rule:
    """The values that a key takes: at least `low`, at most `high`, or `beside`; or one of `choices` (LIST: each item).

    `default` is Kafka's own as text, which a broker's settings may change for its topics; a list's items have commas.
    """

    kind: Kind
    default: str = ""
    low: int | None = None
    high: int | None = None
    beside: int | None = None
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A topic config: its rule in each release, and what happens when its effective value changes.

    Of a number, `smaller` and `larger` tell. Of everything else, `becomes` tells by the new value, or of a list by each
    item that comes; `otherwise` holds for a value that is not in it, and for an item that goes.
    """

    rules: Mapping[str, Rule]
    """By release; a release that does not know the key is not in it."""
    broker_key: str | None = None
    """The broker setting that gives the default of the cluster's topics, None where there is none."""
    smaller: EffectClass = EffectClass.HARMLESS
    larger: EffectClass = EffectClass.HARMLESS
    becomes: Mapping[str, EffectClass] = field(default_factory=dict)
    otherwise: EffectClass = EffectClass.HARMLESS
    only_where: tuple[str, str] | None = None
    """Another key and its effective value (of a list: an item), without which every change is harmless."""
    is_unlimited_below_zero: bool = False

    @property
    def newest(self) -> Rule:
        """The rule of the newest release that knows the key."""
        return self.rules[max(self.rules, key=RELEASES.index)]

    @property
    def default(self) -> str:
        """Kafka's own default in the newest release that knows the key."""
        return self.newest.default

    def number(self, value: str) -> float | None:
        """Return the value as a number that compares, infinity where it means no limit, None where it is no number."""
        found = parse_value(value, self.newest.kind)
        if isinstance(found, bool | str | tuple | None):
            return None
        return float("inf") if self.is_unlimited_below_zero and found < 0 else found


def release_of(kafka_version: str | None) -> str:
    """Return the known release whose rules a cluster of that version has; of an unknown version, the newest's."""
    version = version_of(kafka_version)
    known = [release for release in RELEASES if version is None or (version_of(release) or (0, 0)) <= version]
    return known[-1] if known else RELEASES[0]


def version_of(text: str | None) -> tuple[int, int] | None:
    """Return major and minor of `4.1`, `4.1.1` or `4.3-IV0`, None of anything else."""
    parts = (text or "").partition("-")[0].split(".")
    if len(parts) < 2 or not all(part.isdecimal() for part in parts[:2]):  # noqa: PLR2004  major and minor
        return None
    return int(parts[0]), int(parts[1])
