"""Holds how many partitions a topic needs, and what they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Need:
    """One reason for a number of partitions: who asks for it, and the rate of one partition that it follows from.

    `rate` is in bytes per second, None where members are counted; `is_measured`: one partition has shown it, so that
    it may bear more.
    """

    what: str
    partitions: int
    rate: int | None = None
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class Cost:
    """One cost of partitions: its figure now and with the advice, and where the rule comes from.

    `now` is None where no topic exists yet. `unit` is `bytes`, `ms` or empty for a count. A rule of old Kafka versions
    is told as outdated, with what holds today in `what`.
    """

    name: str
    after: int
    what: str
    source: str
    now: int | None = None
    unit: str = ""
    is_outdated: bool = False


@dataclass(frozen=True, slots=True)
class Existing:
    """What is there: the topic, the cluster around it, and the groups that read the topic.

    `groups` maps a group to how many of its members subscribe to the topic, groups whose members share partitions left
    out; `total_bytes` is the size of one copy of
    the topic, None where it is not known; the counts of the cluster include this topic.
    """

    topic: str
    partitions: int
    replication_factor: int
    brokers: int
    cluster_partitions: int
    cluster_replicas: int
    is_compacted: bool = False
    total_bytes: int | None = None
    segment_bytes: int | None = None
    groups: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Advice:
    """How many partitions, why, what they cost, and what to keep in mind.

    `target` is in bytes per second, `headroom_percent` on top of it. `even_partitions` is the next number that gives
    every broker as many leaders, None where the brokers are not known.
    """

    partitions: int
    needs: tuple[Need, ...]
    target: int | None
    headroom_percent: float
    replication_factor: int
    costs: tuple[Cost, ...]
    notes: tuple[str, ...]
    brokers: int | None = None
    even_partitions: int | None = None
    existing: Existing | None = None
