"""Holds what `topics` tells of a topic: what Kafka shows, who declares, owns and reads it, its size and growth."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from reconciler.model.cluster import REMOTE_STORAGE, Partition, Topic
from reconciler.model.codec import HIDDEN, INLINE, REQUIRED, Integer, Key
from reconciler.model.keys import KeyGrowth
from reconciler.model.problem import Location, ReportedProblem
from reconciler.model.several import Failed


@dataclass(frozen=True, slots=True)
class Declaration:
    """The document that declares a topic."""

    by: Annotated[str, "What speaks of it: topic, absent topic, pattern NAME or mirror NAME."]
    at: Annotated[Location | None, "Its file and line, below the root."]
    owner: Annotated[str | None, REQUIRED, "Its label `owner`; null: it has none."] = None


@dataclass(frozen=True, slots=True)
class Reader:
    """A group that reads the topic, or has read it."""

    group_id: Annotated[str, "The group."]
    state: Annotated[str | None, "Kafka's state of the group."]
    members: Annotated[int, "How many of its members subscribe to the topic, or have partitions of it."]
    lag: Annotated[
        int | None, "Records of the topic behind the end, over the partitions with a commit; null: not known."
    ]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a topic grew since an earlier snapshot, or while samples were taken. Null is unknown, and never zero."""

    since: Annotated[str, "When that snapshot was taken, or the first sample."]
    bytes_per_day: Annotated[
        Integer | None, "How its bytes grew, one replica of each partition; below zero: it shrank."
    ]
    records_per_day: Annotated[int | None, "How its end offsets grew: records, and marks of transactions."]
    is_idle: Annotated[bool | None, "Whether no end offset has moved since, or no sample has a message."]


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic with all that is told of it."""

    topic: Annotated[Topic, HIDDEN]
    configs: Annotated[
        Mapping[str, str],
        "Its overrides; of a live cluster described also what brokers set for all topics, as kafka-topics shows.",
    ]
    declaration: Annotated[
        Declaration | None,
        REQUIRED,
        "What declares it; null: nothing does or, where `declared` is null, it is unknown.",
    ]
    is_declared: Annotated[bool | None, "Whether a document declares it; null: files could not be read, or none were."]
    readers: Annotated[tuple[Reader, ...] | None, "The groups that read it; null: nobody looked at groups."]
    growth: Annotated[Growth | None, REQUIRED, "Null where neither an earlier snapshot nor loads were given."] = None
    owner: Annotated[
        str | None,
        REQUIRED,
        "Who owns it: the label `owner` of what declares it, else the Owner whose pattern matches; null: nobody known.",
    ] = None

    @property
    def name(self) -> Annotated[str, Key("topic"), "The topic."]:
        """The topic's name."""
        return self.topic.name

    @property
    def topic_id(self) -> Annotated[str | None, "Its id."]:
        """The topic's id, None where a snapshot does not say it."""
        return self.topic.topic_id

    @property
    def is_internal(self) -> Annotated[bool, "Whether Kafka keeps it for itself."]:
        """Whether Kafka keeps it for itself."""
        return self.topic.is_internal

    @property
    def replication_factor(self) -> Annotated[int, "Replicas of its first partition, before a move in flight."]:
        """What kafka-topics calls so: of the first partition, without what a reassignment adds."""
        first = next(iter(self.topic.partitions), None)
        return len(first.replicas) - len(first.adding_replicas) if first is not None else 0

    @property
    def size(self) -> Annotated[int | None, Key("bytes"), "Bytes in log dirs, one replica of each partition."]:
        """The sum of `bytes_on_brokers`; None where a partition tells of none. Of a tiered topic, local bytes alone."""
        return total(one.bytes_on_brokers for one in self.topic.partitions)

    @property
    def size_of_replicas(self) -> Annotated[int | None, Key("bytesOfReplicas"), "The same of all replicas."]:
        """The bytes of all replicas; None where that of one is unknown."""
        partitions = self.topic.partitions
        return total(size for one in partitions for size in (one.sizes or (None,) * len(one.replicas)))

    @property
    def is_tiered(self) -> Annotated[bool, "Whether older records go to remote storage (KIP-405)."]:
        """Whether `remote.storage.enable` is on: only a topic's own override can switch it on."""
        return self.topic.configs.get(REMOTE_STORAGE) == "true"


@dataclass(frozen=True, slots=True)
class ListedTopic:
    """A topic in a list."""

    facts: Annotated[TopicFacts, INLINE]

    @property
    def partitions(self) -> Annotated[int, "How many partitions it has."]:
        """How many partitions it has."""
        return len(self.facts.topic.partitions)


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic with its partitions."""

    facts: Annotated[TopicFacts, INLINE]

    @property
    def partitions(self) -> Annotated[Sequence[Partition], "Its partitions, as a snapshot has them."]:
        """Its partitions."""
        return self.facts.topic.partitions


_Name = Annotated[str | None, "The cluster's name; null where it is not declared, or not named."]
_Id = Annotated[str, "The cluster's id."]
_Time = Annotated[str | None, "When it was observed, ISO 8601 in UTC."]
_Warnings = Annotated[tuple[ReportedProblem, ...], "What could not be seen, and what it means."]


@dataclass(frozen=True, slots=True)
class ListOfCluster:
    """The topics of a cluster, in a list."""

    cluster: _Name
    cluster_id: _Id
    observed_at: _Time
    topics: Annotated[tuple[ListedTopic, ...], "The topics, by name."]
    warnings: _Warnings


@dataclass(frozen=True, slots=True)
class TopicList:
    """What `topics list` tells. Null is unknown."""

    clusters: Annotated[tuple[ListOfCluster, ...], "The clusters; one where one is named."]
    failed: Failed


@dataclass(frozen=True, slots=True)
class DescriptionOfCluster:
    """The topics of a cluster, described."""

    cluster: _Name
    cluster_id: _Id
    observed_at: _Time
    topics: Annotated[tuple[DescribedTopic, ...], "The topics, by name."]
    warnings: _Warnings


@dataclass(frozen=True, slots=True)
class TopicDescriptions:
    """What `topics describe` tells. Null is unknown."""

    clusters: Annotated[tuple[DescriptionOfCluster, ...], "The clusters; one where one is named."]
    failed: Failed


@dataclass(frozen=True, slots=True)
class KeyOfCluster:
    """Where a key goes in a cluster."""

    cluster: _Name
    cluster_id: _Id
    topic: Annotated[str, "The topic."]
    partitions: Annotated[int, "How many partitions it has."]
    partition: Annotated[int, "The partition that the key goes to."]
    after: Annotated[KeyGrowth | None, REQUIRED, "The same with another number of partitions; null: none was given."]


@dataclass(frozen=True, slots=True)
class KeyReport:
    """What `topics key` tells, by the Java client's default partitioner."""

    clusters: Annotated[tuple[KeyOfCluster, ...], "The clusters; one where one is named."]
    failed: Failed


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum, None where one of them is unknown."""
    known = tuple(numbers)
    return None if None in known else sum(one for one in known if one is not None)
