"""Describes two clusters side by side: each topic with its copy, and where a consumer that changed over would go on."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, NamedTuple

from reconciler.model.codec import HIDDEN, INLINE, Key
from reconciler.model.problem import Problem, ReportedProblem
from reconciler.model.topic_partition import TopicPartition


class OffsetSync(NamedTuple):
    """That the record at `upstream` of a topic's partition was written at `downstream` of its copy."""

    topic_partition: TopicPartition
    upstream: int
    downstream: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """That a group which has committed one offset may go on at another of the copy."""

    group_id: Annotated[str, HIDDEN]
    copy: Annotated[TopicPartition, HIDDEN]
    upstream: Annotated[int, "What the group had committed on the source."]
    downstream: Annotated[int, "Where it may go on."]


class Ground(StrEnum):
    """What an offset of the copy is known by."""

    COMMITTED = "committed"
    """The group has committed it on the target."""
    CHECKPOINT = "checkpoint"
    """MirrorMaker 2 has written it down for that group."""
    SYNCS = "offsetSyncs"
    """It follows from MirrorMaker 2's offset syncs."""
    OFFSETS = "offsets"
    """Topic and copy begin at 0, so their offsets are compared as they are."""


_Why = Annotated[str | None, "Why something of it is null; null: all is known."]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two clusters."""

    cluster: Annotated[str, "Its name."]
    cluster_id: Annotated[str, "Its id."]
    observed_at: Annotated[str | None, "When it was looked at, ISO 8601 in UTC."]


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """What was read of one of MirrorMaker 2's topics."""

    cluster: Annotated[str | None, "The cluster that it is on; null: nothing was read."]
    topic: Annotated[str | None, "Its name; null: nothing was read."]
    records: Annotated[int, "How many records of that form it holds."]
    foreign: Annotated[int, "How many records have another form; nothing is taken from them."]
    unknown: Annotated[str | None, "Why nothing was read; null: it was."]


@dataclass(frozen=True, slots=True)
class ComparedConfig:
    """A config that topic and copy do not both have with one value. Null: no override."""

    key: Annotated[str, "The config."]
    source: Annotated[str | None, Key("value"), "The topic's override; a secret is masked."]
    copy: Annotated[str | None, Key("copyValue"), "The copy's; a secret is masked."]
    is_following: Annotated[bool, Key("follows"), "Whether the mirror wants it to be the topic's."]


@dataclass(frozen=True, slots=True)
class ComparedPartition:
    """The ends of a topic's partition and of its copy's."""

    partition: Annotated[int, "Its number."]
    start: Annotated[int | None, "The topic's first offset; null: not known."]
    end: Annotated[int | None, "The offset behind the topic's last record; null: not known."]
    copy_start: Annotated[int | None, "The copy's first offset; null: not known."]
    copy_end: Annotated[int | None, "The offset behind the copy's last record; null: not known."]
    lag: Annotated[
        int | None,
        "At most so many of the topic's records are not in the copy, if nothing but the mirror writes to it, and "
        "without transactions; null: not known.",
    ]
    lag_at_most: Annotated[int | None, "The same, whoever writes to it: what is behind the last offset sync."]
    lag_by: Annotated[Ground | None, "What the lag is known by; null: it is not."]
    unknown: _Why


@dataclass(frozen=True, slots=True)
class ComparedTopic:
    """A topic and its copy; one of them may not be there."""

    topic: Annotated[str, "The topic's name on the source."]
    copy: Annotated[str, "Its copy's name on the target."]
    mirror: Annotated[str | None, "The mirror that wants it; null: none, names are equal."]
    partition_count: Annotated[int | None, Key("partitions"), "The topic's partitions; null: there is no such topic."]
    copy_partition_count: Annotated[int | None, Key("copyPartitions"), "The copy's; null: there is no copy."]
    replication_factor: Annotated[int | None, "The topic's replicas of a partition, the fewest of any."]
    copy_replication_factor: Annotated[int | None, "The copy's."]
    configs: Annotated[tuple[ComparedConfig, ...], "The overrides that differ, by key."]
    partitions: Annotated[tuple[ComparedPartition, ...], Key("offsets"), "Each partition that both have."]

    @property
    def is_different(self) -> Annotated[bool, Key("differs"), "Whether there is more to do than to copy records."]:
        """Whether a mirror's wish is not met: the copy, its partitions, a config that follows.

        Without a mirror, whether one side lacks the topic or partitions.
        """
        if self.partition_count is None:
            return self.mirror is None
        if self.copy_partition_count is None:
            return True
        if self.mirror is None:
            return self.partition_count != self.copy_partition_count
        return self.copy_partition_count < self.partition_count or any(each.is_following for each in self.configs)


@dataclass(frozen=True, slots=True)
class Changeover:
    """What a group's consumer of one partition would read twice, or miss, if it went on at the copy now.

    Amounts are differences of offsets, so no more records than that: transaction markers and compacted records count.
    """

    topic_partition: Annotated[TopicPartition, INLINE]
    copy: Annotated[str, "The copy's name."]
    committed: Annotated[int, "What the group has committed on the source."]
    committed_on_target: Annotated[int | None, "What it has committed on the target; null: nothing, or not known."]
    checkpoint: Annotated[Checkpoint | None, "MirrorMaker 2's last checkpoint; null: there is none, or not known."]
    by_syncs: Annotated[int | None, "The commit as MirrorMaker 2 translates it by its offset syncs; null: it cannot."]
    low: Annotated[
        int | None,
        Key("positionLow"),
        "Starting here or before nothing is missed: all that the group has not read lies behind; null: not known.",
    ]
    high: Annotated[
        int | None, Key("positionHigh"), "Starting here or behind nothing is read twice; null: not known. Equal: exact."
    ]
    start: Annotated[int | None, "Where it goes on: the commit on the target, else the checkpoint, else by syncs."]
    start_by: Annotated[Ground | None, "Which of them; null: none."]
    read_twice: Annotated[
        int | None, "At most so many records, those included that are yet to be copied; null: not known."
    ]
    missed: Annotated[int | None, "At most so many records of the copy are skipped unread; null: not known."]
    not_copied: Annotated[int | None, "At most so many records the group has not read, and the copy has not yet."]
    unknown: _Why


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """A consumer group of the source that has read topics which are compared."""

    group_id: Annotated[str, "The group."]
    state: Annotated[str | None, "Its state on the source; null: not known."]
    target_state: Annotated[str | None, "Its state on the target; null: it is not there, or not known."]
    partitions: Annotated[tuple[Changeover, ...], "Each partition that it has committed an offset of."]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `diff --against` tells: two clusters side by side. Null is unknown, or not there."""

    source: Annotated[Side, "The cluster that is copied from."]
    target: Annotated[Side, "The cluster that is copied to."]
    mirrors: Annotated[tuple[str, ...], "The mirrors that copy; none: topics of equal name are compared."]
    offset_syncs: Annotated[RecordsRead, "MirrorMaker 2's offset syncs."]
    checkpoints: Annotated[RecordsRead, "MirrorMaker 2's checkpoints."]
    topics: Annotated[tuple[ComparedTopic, ...], "Each topic with its copy, by name."]
    groups: Annotated[tuple[ComparedGroup, ...] | None, "Groups of the source that read them; null: not looked at."]
    problems: Annotated[tuple[Problem, ...], HIDDEN] = ()

    @property
    def warnings(self) -> Annotated[tuple[ReportedProblem, ...], "What could not be seen, and what it means."]:
        """What could not be seen, and what it means."""
        return tuple(map(ReportedProblem.of, self.problems))

    @property
    def is_different(self) -> Annotated[bool, Key("differs"), "What --detailed-exitcode makes 2."]:
        """Whether a topic differs, or a group would miss records."""
        missing = (one.missed for group in self.groups or () for one in group.partitions)
        return any(each.is_different for each in self.topics) or any(missing)
