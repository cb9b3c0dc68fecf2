"""Holds what a reader of another tool's files hands on, and takes fields: each checked, each with its place."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.files.desired_writer import CONFIG_KEY, is_writable
from reconciler.files.semantics import LONGEST_NAME, MIN_ISR
from reconciler.files.strict_yaml import YamlFloat, YamlList, YamlMap
from reconciler.model.cluster import BROKER_THROTTLES, TOPIC_THROTTLES
from reconciler.model.desired import DesiredTopic
from reconciler.model.problem import Location, Problem, warning
from reconciler.model.topic_configs import TOPIC_CONFIGS

WRONG, UNMAPPED, SKIPPED = "KR191", "KR192", "KR193"
MAX_FACTOR = 32767
COLLIDING = "in metrics, Kafka takes . and _ for one"
_NAME = re.compile("[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class ForeignTopic:
    """A topic of another tool's file: what it comes to, the cluster it belongs to if it says, and comments."""

    topic: DesiredTopic
    at: Location
    cluster: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Reading:
    """All that is read so far. `problems` are errors; `warnings` name what is not mapped, or left out."""

    topics: list[ForeignTopic] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping within a file; what is wrong with a field is told with the field's place."""

    entries: YamlMap
    path: str
    reading: Reading

    def at(self, key: str = "") -> Location:
        """Return where a field's value stands, or the mapping."""
        return self.entries.value_at.get(key, self.entries.at)

    def wrong(self, key: str, message: str) -> None:
        """Tell an error."""
        self.reading.problems.append(Problem(WRONG, f"{self._named(key)} {message}", self.at(key)))

    def warn(self, key: str, message: str, code: str = UNMAPPED) -> None:
        """Tell what has no counterpart here."""
        named = f"{self._named(key)} " if key else ""
        self.reading.warnings.append(warning(code, named + message, self.at(key)))

    def part(self, key: str) -> "Part":
        """Return a mapping below; an empty one where it is not there, or is none."""
        value = self.entries.get(key)
        if value is not None and not isinstance(value, YamlMap):
            self.wrong(key, "must be a mapping")
        return Part(self.entries.part(key), self._named(key), self.reading)

    def text(self, key: str) -> str | None:
        """Return a text; None where it is not there."""
        value = self.entries.get(key)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return _plain(value)
        self.wrong(key, "must be a text")
        return None

    def count(self, key: str, most: int | None = None) -> int | None:
        """Return a whole number of at least 1; None where it is not there, or is -1, the broker's default."""
        value = self.entries.get(key)
        if value is None or (type(value) is int and value == -1):
            return None
        if type(value) is not int or value < 1 or (most is not None and value > most):
            self.wrong(key, f"must be a whole number of at least 1{f' and at most {most}' if most else ''}")
            return None
        return value

    def flag(self, key: str) -> bool | None:
        """Return true or false, also where it is written as a text; None where it is not there."""
        value = self.entries.get(key)
        return None if value is None else str(value).lower() == "true"

    def items(self, key: str) -> YamlList:
        """Return a list; an empty one where it is not there, or is none."""
        value = self.entries.get(key)
        if value is not None and not isinstance(value, YamlList):
            self.wrong(key, "must be a list")
        return value if isinstance(value, YamlList) else YamlList(self.entries.at)

    def parts(self, key: str) -> list["Part"]:
        """Return the mappings of a list, each by its number."""
        items = self.items(key)
        found = [
            Part(each, f"{key}[{index}]", self.reading) for index, each in enumerate(items) if isinstance(each, YamlMap)
        ]
        if len(found) < len(items):
            self.wrong(key, "must hold mappings alone")
        return found

    def labels(self, key: str) -> Mapping[str, str]:
        """Return the labels of one mapping."""
        below = self.part(key)
        return {name: text for name in sorted(below.entries) if (text := below.text(name)) is not None}

    def configs(self, key: str) -> dict[str, str | None]:
        """Return topic configs as Kafka takes them; lists are joined with commas, what cannot be written is told."""
        below = self.part(key)
        found: dict[str, str | None] = {}
        for name in sorted(below.entries):
            value = below.entries[name]
            if name in (*TOPIC_THROTTLES, *BROKER_THROTTLES):
                below.warn(name, "belongs to a reassignment and is never declared; use moves.throttle")
            elif not CONFIG_KEY.fullmatch(name):
                below.wrong(name, "is no config of Kafka's: keys hold a-z A-Z 0-9 . _ -")
            elif value is None:
                below.warn(name, "has no value and is left out")
            elif isinstance(value, YamlMap):
                below.wrong(name, "must be a plain value, or a list of them")
            elif not is_writable(name, text := _config_text(value)):
                message = "has a value that Kafka would not take: write a plain number, or a text without a unit"
                below.wrong(name, message)
            else:
                found[name] = text
                if name not in TOPIC_CONFIGS:
                    below.warn(name, "is no topic config of Kafka's and is listed under customConfigs")
        return found

    def refuse_unknown(self, known: frozenset[str]) -> None:
        """Warn of every field that is not known: it has no effect here."""
        for key in sorted(set(self.entries) - known):
            self.warn(key, "is not known and has no effect")

    def _named(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path and key else self.path or key


def keep(reading: Reading, topic: DesiredTopic, part: Part, cluster: str | None, notes: tuple[str, ...] = ()) -> None:
    """Add a topic, unless no document could declare it."""
    at, name = part.at(), topic.name
    wanted, factor = topic.config.get(MIN_ISR), topic.replication_factor
    if not _NAME.fullmatch(name) or name in {".", ".."} or len(name) > LONGEST_NAME:
        message = f"{ascii(name)[:60]} cannot be a topic's name: Kafka wants 1 to {LONGEST_NAME} of a-z A-Z 0-9 . _ -"
    elif name.startswith("__"):
        message = f"topic {name} is internal to Kafka and is left out: nobody creates or deletes it"
        reading.warnings.append(warning(SKIPPED, message, at))
        return
    elif wanted is not None and not (
        wanted.isascii() and wanted.isdigit() and 0 < int(wanted) <= (factor or MAX_FACTOR)
    ):
        message = f"topic {name}: {MIN_ISR} {wanted} is no whole number from 1 to replicas ({factor or 'not given'})"
    else:
        reading.topics.append(ForeignTopic(topic, at, cluster, notes))
        return
    reading.problems.append(Problem(WRONG, message, at))


def is_replica_list(found: object) -> bool:
    """Whether that is a list of different broker ids."""
    return (
        isinstance(found, list)
        and bool(found)
        and all(type(broker) is int and broker >= 0 for broker in found)
        and len(set(found)) == len(found)
    )


def _config_text(value: object) -> str:
    return ",".join(map(_plain, value)) if isinstance(value, YamlList) else _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # A decimal number keeps its text, and 0.50 stays 0.50.
    return value.text if isinstance(value, YamlFloat) else str(value)
