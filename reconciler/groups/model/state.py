"""Holds a group as it is looked at and changed: who owns what, how far behind it is, where its offsets would go."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Self

from reconciler.model.cluster import Group, GroupMember
from reconciler.model.codec import HIDDEN, INLINE, REQUIRED, Integer, Key
from reconciler.model.problem import Problem, ReportedProblem
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far one partition is behind."""

    topic_partition: Annotated[TopicPartition, INLINE]
    committed: Annotated[int | None, REQUIRED, "The committed offset."] = None
    end: Annotated[int | None, REQUIRED, "The log end offset."] = None
    member_id: Annotated[str | None, REQUIRED, "Who owns it."] = None

    @property
    def lag(self) -> Annotated[Integer | None, "How far it is behind."]:
        """Records between the commit and the end; None, not zero, where nothing is committed or the end is unknown.

        Below zero for a commit behind the end: the log lost records since, or the topic was made again.
        """
        return None if self.committed is None or self.end is None else self.end - self.committed


@dataclass(frozen=True, slots=True)
class GroupState:
    """A group as it is.

    The leader of its partition of `__consumer_offsets` coordinates it. For a moment, or in a snapshot that was not
    taken at once, the coordinator is another.
    """

    group: Annotated[Group, HIDDEN]
    lags: Annotated[tuple[PartitionLag, ...], HIDDEN] = ()
    offsets_partition: Annotated[
        int | None, REQUIRED, "The partition of __consumer_offsets that decides it; null: not there, or not shown."
    ] = None
    offsets_leader: Annotated[int | None, HIDDEN] = None
    """Who leads that partition, None for nobody."""
    coordinator_host: Annotated[str | None, REQUIRED, "The coordinator's host."] = None
    coordinator_after: Annotated[
        int | None,
        Key("coordinatorAfterPlan"),
        REQUIRED,
        "The coordinator once a plan has run; null without one, or where it stays.",
    ] = None
    labels: Annotated[Mapping[str, str], HIDDEN] = field(default_factory=dict)
    """A member's id to the text by which people know it."""

    @property
    def group_id(self) -> Annotated[str, "The group."]:
        """The group's id."""
        return self.group.group_id

    @property
    def kind(self) -> Annotated[str, Key("type"), "classic, consumer (KIP-848) or another of Kafka's."]:
        """Kafka's type of the group."""
        return self.group.kind

    @property
    def protocol_type(self) -> Annotated[str, "What its members speak, such as consumer; empty: offsets alone."]:
        """What its members speak."""
        return self.group.protocol_type

    @property
    def state(self) -> Annotated[str | None, "Kafka's state of the group."]:
        """Kafka's state of the group, None where it is not known."""
        return self.group.state or None

    @property
    def assignor(self) -> Annotated[str | None, "The assignor in use."]:
        """The assignor in use, None where there is none."""
        return self.group.protocol or None

    @property
    def coordinator(self) -> Annotated[int | None, "The broker that coordinates it."]:
        """The broker that coordinates it."""
        return self.group.coordinator

    @property
    def total_lag(self) -> Annotated[int | None, "Records behind the end, over all partitions."]:
        """The sum of all known lags, those below zero counted as zero; None where none is known."""
        known = [each.lag for each in self.lags if each.lag is not None]
        return sum(max(0, lag) for lag in known) if known else None


_Partitions = Annotated[tuple[PartitionLag, ...], "What it reads, partition by partition."]


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in a list."""

    seen: Annotated[GroupState, INLINE]

    @property
    def members(self) -> Annotated[int, "How many members it has."]:
        """How many members it has."""
        return len(self.seen.group.members)


@dataclass(frozen=True, slots=True)
class LaggingGroup:
    """A group with its lag."""

    seen: Annotated[GroupState, INLINE]

    @property
    def partitions(self) -> _Partitions:
        """How far it is behind, partition by partition."""
        return self.seen.lags


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group with its members and its lag."""

    seen: Annotated[GroupState, INLINE]

    @property
    def members(self) -> Annotated[tuple[GroupMember, ...], "Who is in it, and what they own."]:
        """Its members."""
        return self.seen.group.members

    @property
    def partitions(self) -> _Partitions:
        """How far it is behind, partition by partition."""
        return self.seen.lags


_Warnings = Annotated[tuple[ReportedProblem, ...], "What could not be seen, and what it means."]


@dataclass(frozen=True, slots=True)
class GroupList:
    """What `groups list` tells. Null is unknown."""

    groups: Annotated[tuple[ListedGroup, ...], "The groups, by id."]
    warnings: _Warnings

    @classmethod
    def of(cls, seen: Iterable[GroupState], warnings: Iterable[Problem]) -> Self:
        """Return the report of these groups."""
        return cls(tuple(map(ListedGroup, seen)), tuple(map(ReportedProblem.of, warnings)))


@dataclass(frozen=True, slots=True)
class GroupLags:
    """What `groups lag` tells. Null is unknown."""

    groups: Annotated[tuple[LaggingGroup, ...], "The groups, by id."]
    warnings: _Warnings

    @classmethod
    def of(cls, seen: Iterable[GroupState], warnings: Iterable[Problem]) -> Self:
        """Return the report of these groups."""
        return cls(tuple(map(LaggingGroup, seen)), tuple(map(ReportedProblem.of, warnings)))


@dataclass(frozen=True, slots=True)
class GroupDescriptions:
    """What `groups describe` tells. Null is unknown."""

    groups: Annotated[tuple[DescribedGroup, ...], "The groups, by id."]
    warnings: _Warnings

    @classmethod
    def of(cls, seen: Iterable[GroupState], warnings: Iterable[Problem]) -> Self:
        """Return the report of these groups."""
        return cls(tuple(map(DescribedGroup, seen)), tuple(map(ReportedProblem.of, warnings)))


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """One partition's commit, before and after. `again` follows from what its log holds."""

    topic_partition: Annotated[TopicPartition, INLINE]
    old: Annotated[int | None, Key("committed"), "The offset before; null: none was committed."]
    new: Annotated[int, "The offset after."]
    earliest: Annotated[int, HIDDEN]
    latest: Annotated[int, "The end offset."]

    @property
    def lag(self) -> Annotated[Integer, "Records that are still to be read after it."]:
        """Records that are still to be read after the change."""
        return self.latest - self.new

    @property
    def again(self) -> int | None:
        """Records that are read again; below zero: records that are skipped. None where nothing was committed.

        Only those that the log holds count: a commit may lie outside it, where records were deleted or the topic was
        made again.
        """
        return None if self.old is None else self._within(self.old) - self._within(self.new)

    def _within(self, offset: int) -> int:
        return max(self.earliest, min(self.latest, offset))


@dataclass(frozen=True, slots=True)
class ResetOffset:
    """A partition's commit in a reset."""

    change: Annotated[OffsetChange, INLINE]
    error: Annotated[str | None, "Why Kafka refused it; null: it did not, or was not asked."]


@dataclass(frozen=True, slots=True)
class GroupReset:
    """A group's reset: what it changes, and, once it was tried, what Kafka refused and why."""

    group_id: Annotated[str, "The group."]
    changes: Annotated[tuple[OffsetChange, ...], HIDDEN]
    refused: Annotated[Mapping[TopicPartition, str], HIDDEN] = field(default_factory=dict)

    @property
    def offsets(self) -> Annotated[tuple[ResetOffset, ...], "Each partition."]:
        """Each change, with Kafka's refusal beside it."""
        return tuple(ResetOffset(one, self.refused.get(one.topic_partition)) for one in self.changes)


@dataclass(frozen=True, slots=True)
class GroupDeletion:
    """A group that is deleted, with the commits that go with it."""

    group: Annotated[Group, HIDDEN]
    refused: Annotated[
        str | None, Key("error"), REQUIRED, "Why Kafka refused it; null: it did not, or was not asked."
    ] = None

    @property
    def group_id(self) -> Annotated[str, "The group."]:
        """The group's id."""
        return self.group.group_id

    @property
    def state(self) -> Annotated[str, "Kafka's state of it."]:
        """Kafka's state of it."""
        return self.group.state

    @property
    def committed_offsets(self) -> Annotated[int, "Commits that go with it."]:
        """How many commits go with it."""
        return len(self.group.committed)


def partition_lags(group: Group, ends: Mapping[TopicPartition, int]) -> tuple[PartitionLag, ...]:
    """Return one entry for each partition that a member owns or the group has a commit of, by topic and number."""
    owners = {
        TopicPartition(topic, partition): member.member_id
        for member in group.members
        for topic, partitions in member.assignment.items()
        for partition in partitions
    }
    committed = group.committed
    return tuple(
        PartitionLag(key, committed.get(key), ends.get(key), owners.get(key)) for key in sorted({*owners, *committed})
    )
