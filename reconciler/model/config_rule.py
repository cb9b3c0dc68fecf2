"""Defines what is known of a topic config: what each Kafka release takes as its value, and what a change of it does.

The table itself, `reconciler.model.topic_configs`, is made from the brokers' own classes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

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
        try:
            found = float(value) if self.newest.kind is Kind.DOUBLE else int(value)
        except ValueError:
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
