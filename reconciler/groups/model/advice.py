"""Holds how many partitions a topic needs, and what they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from reconciler.model.codec import HIDDEN, REQUIRED, Key


@dataclass(frozen=True, slots=True)
class Need:
    """A reason for a number of partitions."""

    what: Annotated[str, "Who asks for partitions."]
    partitions: Annotated[int, "How many."]
    rate: Annotated[
        int | None,
        Key("bytesPerSecondOfOnePartition"),
        REQUIRED,
        "What one partition carries for it; null where members are counted.",
    ] = None
    is_measured: Annotated[
        bool, REQUIRED, "The rate was measured, not given: one partition has shown it, and may bear more."
    ] = False


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost of partitions."""

    name: Annotated[str, "What it costs."]
    after: Annotated[int, "With that many."]
    what: Annotated[str, "How it is reckoned; of a rule that is outdated, what holds today."]
    source: Annotated[str, "Where that comes from."]
    now: Annotated[int | None, REQUIRED, "Today; null where no topic is there yet."] = None
    unit: Annotated[str, "bytes or ms; not there for a count."] = ""
    is_outdated: Annotated[bool, REQUIRED, "The rule is of older versions of Kafka."] = False


@dataclass(frozen=True, slots=True)
class Existing:
    """The topic as it is, and the cluster around it, whose counts include this topic."""

    topic: Annotated[str, "The topic."]
    partitions: Annotated[int, "How many it has."]
    replication_factor: Annotated[int, "Replicas of each partition."]
    brokers: Annotated[int, HIDDEN]
    cluster_partitions: Annotated[int, HIDDEN]
    cluster_replicas: Annotated[int, HIDDEN]
    is_compacted: Annotated[bool, REQUIRED, "It is compacted: keys would map elsewhere."] = False
    total_bytes: Annotated[int | None, HIDDEN] = None
    """The size of one copy of the topic, None where it is not known."""
    segment_bytes: Annotated[int | None, HIDDEN] = None
    groups: Annotated[
        Mapping[str, int],
        REQUIRED,
        "Group to how many of its members subscribe to the topic; groups whose members share partitions are left out.",
    ] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Advice:
    """How many partitions a topic needs, why, and what they cost; rates are bytes per second."""

    partitions: Annotated[int, "The least that suffice."]
    needs: Annotated[tuple[Need, ...], "Who asks for how many."]
    target: Annotated[int | None, Key("targetBytesPerSecond"), "The throughput asked for."]
    headroom_percent: Annotated[float, "Room left beside it."]
    replication_factor: Annotated[int, "Replicas of each partition."]
    costs: Annotated[tuple[Cost, ...], "What many partitions cost."]
    notes: Annotated[tuple[str, ...], "What to keep in mind."]
    brokers: Annotated[int | None, REQUIRED, "Living brokers; null where they are not known."] = None
    even_partitions: Annotated[
        int | None, REQUIRED, "The next count that gives every broker as many leaders; null: brokers are not known."
    ] = None
    existing: Annotated[
        Existing | None, REQUIRED, "The topic as it is; null where none was named, or it is not there."
    ] = None
