"""Tells the configs that are in force for a topic: its overrides, then the brokers' settings, then Kafka's defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.cluster import Cluster
from reconciler.model.config_value import displayed_value
from reconciler.model.topic_configs import TOPIC_CONFIGS, default_of

CLEANUP, RETENTION_MS, RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
LOCAL_MS, LOCAL_BYTES = "local.retention.ms", "local.retention.bytes"
REMOTE = "remote.storage.enable"
_AS_RETENTION = "-2"
_HOUR_MS = 3_600_000
_IN_UNITS: Mapping[str, Mapping[str, int]] = {
    RETENTION_MS: {"log.retention.ms": 1, "log.retention.minutes": 60_000, "log.retention.hours": _HOUR_MS},
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
}
"""The brokers' settings of a time, the finest unit first, and how many ms each is."""


@dataclass(frozen=True, slots=True)
class TopicValues:
    """The effective configs of one topic: its overrides, then the brokers' settings, then Kafka's defaults."""

    overrides: Mapping[str, str]
    settings: Mapping[str, str]
    version: str | None

    def text(self, key: str) -> str:
        """Return the value in force as Kafka shows it, empty where there is none."""
        if key in self.overrides:
            return displayed_value(key, self.overrides[key])
        config = TOPIC_CONFIGS.get(key)
        if key in _IN_UNITS:
            return _finest(key, self.settings)
        told = self.settings.get(config.broker_key) if config is not None and config.broker_key else None
        return told if told is not None else default_of(key, self.version) or ""

    def number(self, key: str) -> float:
        """Return the number in force, infinity where it means no limit or is none."""
        found = TOPIC_CONFIGS[key].number(self.text(key))
        return float("inf") if found is None else found

    def items(self, key: str) -> frozenset[str]:
        """Return the items of the list in force."""
        return frozenset(filter(None, self.text(key).split(",")))

    def is_on(self, key: str) -> bool:
        """Whether the value in force is true."""
        return self.text(key) == "true"

    def kept_on_disk(self, key: str) -> float:
        """Return how much of that retention a broker keeps on its own disks, infinity where all.

        A tiered topic keeps there what its local retention says, which may say: as its retention.
        """
        local = {RETENTION_MS: LOCAL_MS, RETENTION_BYTES: LOCAL_BYTES}[key]
        if not self.is_on(REMOTE) or self.text(local) in {"", _AS_RETENTION}:
            return self.number(key)
        kept = self.number(local)
        return min(self.number(key), kept if kept >= 0 else float("inf"))


def settings_in_force(observed: Cluster) -> Sequence[Mapping[str, str]]:
    """Return the brokers' settings, each of those that differ once; none known, Kafka's defaults."""
    known = {tuple(sorted(broker.settings.items())): broker.settings for broker in observed.brokers.values()}
    return [known[each] for each in sorted(known) if each] or [{}]


def _finest(key: str, settings: Mapping[str, str]) -> str:
    """Return the brokers' own time in ms: the finest unit that is set counts, Kafka's default where none is."""
    for setting, factor in _IN_UNITS[key].items():
        text = settings.get(setting, "")
        if text.removeprefix("-").isdecimal():
            return text if int(text) < 0 else str(int(text) * factor)
    return TOPIC_CONFIGS[key].default
