"""Holds a group as it is looked at and changed: who owns what, how far behind it is, where its offsets would go."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.cluster import Group
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """How far one partition is behind. `end`: the log end offset; `member_id`: who owns it; each None if unknown."""

    topic_partition: TopicPartition
    committed: int | None = None
    end: int | None = None
    member_id: str | None = None

    @property
    def lag(self) -> int | None:
        """Records between the commit and the end; None, not zero, where nothing is committed or the end is unknown.

        Below zero for a commit behind the end: the log lost records since, or the topic was made again.
        """
        return None if self.committed is None or self.end is None else self.end - self.committed


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group as it is.

    `offsets_partition` is the partition of `__consumer_offsets` whose leader coordinates it, None where that topic is
    not there or not shown; `offsets_leader` is who leads that, None for nobody. For a moment, or in
    a snapshot that was not taken at once, the coordinator is another. `coordinator_after` is who coordinates the group
    once a plan has run, None where that is the same one. `labels` maps a member id to the text by which people know it.
    """

    group: Group
    lags: tuple[PartitionLag, ...] = ()
    offsets_partition: int | None = None
    offsets_leader: int | None = None
    coordinator_host: str | None = None
    coordinator_after: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def total_lag(self) -> int | None:
        """The sum of all known lags, those below zero counted as zero; None where none is known."""
        known = [each.lag for each in self.lags if each.lag is not None]
        return sum(max(0, lag) for lag in known) if known else None


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """One partition's commit, before and after; its log holds the records from `earliest` up to `latest` by then."""

    topic_partition: TopicPartition
    old: int | None
    new: int
    earliest: int
    latest: int

    @property
    def lag(self) -> int:
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
class GroupReset:
    """One group's reset: what it changes, and, once it was tried, what Kafka refused and why."""

    group_id: str
    changes: tuple[OffsetChange, ...]
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GroupDeletion:
    """A group that is deleted, with the commits that go with it; `refused` says why Kafka did not, once tried."""

    group: Group
    refused: str | None = None


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
