"""Compares two clusters as observed: each topic with its copy, and where each group of the source would go on.

Nothing is guessed: what cannot be known is None, and says why.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reconciler.diff.mirror_offsets import Alignment, SyncHistory, Syncs, aligned, aligned_from, translated
from reconciler.diff.mirrors import copies, source_topics
from reconciler.model.against import (
    Changeover,
    Checkpoint,
    ComparedConfig,
    ComparedGroup,
    ComparedPartition,
    ComparedTopic,
    Ground,
)
from reconciler.model.cluster import TOPIC_THROTTLES, Cluster, Group, Topic
from reconciler.model.config_value import is_same_value
from reconciler.model.desired import TOPIC, Desired, DesiredCluster, DesiredMirror
from reconciler.model.topic_partition import TopicPartition

NO_MIRROR = "no mirror declares it as a copy"
NO_END = "where one of the two logs ends is not known"


class Pair(NamedTuple):
    """A topic and its copy, by name; either may not exist. `followed`: the configs that its mirror wants."""

    topic: str
    copy: str
    mirror: str | None = None
    followed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a cluster: its state and, where it was asked, where each partition's log begins and ends.

    `ends` None: as the state has them.
    """

    cluster: Cluster
    starts: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int | None] | None = None

    def end(self, key: TopicPartition) -> int | None:
        """Return the offset behind that partition's last record, None where nobody told it."""
        if self.ends is not None:
            return self.ends.get(key)
        partition = self.cluster.partition(key)
        return partition.end_offset if partition is not None else None


@dataclass(frozen=True, slots=True)
class MirrorMaker:
    """What MirrorMaker 2 has written down; None: its topic was not read, for the reason beside it.

    `is_without_syncs`: it was looked for where it should be, and there is none.
    """

    syncs: Syncs | None = None
    checkpoints: Mapping[tuple[str, TopicPartition], Checkpoint] | None = None
    why_no_syncs: str = ""
    is_without_syncs: bool = False


def pairs(
    desired: Desired, source: Cluster, target: Cluster, source_name: str, clusters: Collection[str]
) -> list[Pair]:
    """Return each topic with its copy, as the mirrors from that source want it; without such a mirror, equal names.

    A topic that only one side has stands alone. Internal and ignored topics are left out.
    """
    mirrors = tuple(each for each in desired.mirrors if each.source == source_name)
    by_names = (DesiredMirror("", source_name, ("*",), TOPIC),)
    gone = _gone(mirrors, target) if mirrors else target.topics
    topics = source_topics(Desired(DesiredCluster(source_name)), replace(source, topics={**gone, **source.topics}))
    wanted = copies(Desired(desired.cluster, mirrors=mirrors or by_names), {source_name: topics}, clusters)
    found = {
        Pair(each.topic, copy, *((each.mirror.name, each.mirror.config) if mirrors else ()))
        for copy, asked in wanted.items()
        for each in asked
        if each.topic in source.topics or copy in target.topics
    }
    return sorted(found, key=lambda pair: (pair.topic, pair.copy, pair.mirror or "", pair.followed))


def _gone(mirrors: Sequence[DesiredMirror], target: Cluster) -> Mapping[str, Topic]:
    """Return the topics whose copies are there: a copy stays when its topic is gone.

    A name that does not tell its source may be anybody's, and MirrorMaker 2's own topics are no copies.
    """
    return {
        original: topic
        for mirror in mirrors
        if mirror.is_source_told
        for name, topic in target.topics.items()
        if not name.endswith(".internal") and (original := mirror.original_of(name)) is not None
    }


class _Known(NamedTuple):
    """How the offsets of a partition lie in its copy, and what that is known by; or why it is not known."""

    alignment: Alignment | None = None
    ground: Ground | None = None
    unknown: str | None = None


class _Partitions:
    """Tells of each partition of a pair what is known of its offsets."""

    def __init__(self, source: Seen, target: Seen, told: MirrorMaker) -> None:
        self.source, self.target, self.told = source, target, told
        self._known: dict[tuple[Pair, int], _Known] = {}

    def ends(self, pair: Pair, number: int) -> tuple[int | None, int | None, int | None, int | None]:
        """Return where the topic's log begins and ends, and its copy's."""
        key, copy = TopicPartition(pair.topic, number), TopicPartition(pair.copy, number)
        return self.source.starts.get(key), self.source.end(key), self.target.starts.get(copy), self.target.end(copy)

    def known(self, pair: Pair, number: int) -> _Known:
        """Return what is known of that partition."""
        if (pair, number) not in self._known:
            self._known[pair, number] = self._look(pair, number)
        return self._known[pair, number]

    def _look(self, pair: Pair, number: int) -> _Known:
        start, end, copy_start, copy_end = self.ends(pair, number)
        if pair.mirror is None:
            return _Known(unknown=NO_MIRROR)
        if end is None or copy_end is None:
            return _Known(unknown=NO_END)
        if not copy_end and start is not None:
            return _Known(aligned_from((start, 0), end, 0), Ground.OFFSETS)
        if self.told.syncs is not None:
            return _by_syncs(self.told.syncs.get(TopicPartition(pair.topic, number)), end, copy_end)
        why = self.told.why_no_syncs
        if self.told.is_without_syncs:
            return _by_offsets((start, end), (copy_start, copy_end), why)
        return _Known(unknown=why)


def _by_syncs(history: SyncHistory | None, end: int, copy_end: int) -> _Known:
    if history is None:
        return _Known(unknown="MirrorMaker 2 has no offset sync of it")
    last = history.syncs[-1]
    if last.upstream >= end or last.downstream >= copy_end:
        why = f"its last offset sync, {last.upstream} at {last.downstream} of the copy, lies behind the end of a log"
        return _Known(unknown=f"{why}: topic or copy was made again, or the sync is of another mirror")
    return _Known(aligned(history, end, copy_end), Ground.SYNCS)


def _by_offsets(log: tuple[int | None, int], copy: tuple[int | None, int], why: str) -> _Known:
    """Compare offsets as they are, where both logs still begin at 0 and the copy is no longer than its topic."""
    if log[0] is None or copy[0] is None:
        return _Known(unknown=f"{why}, and where the logs begin is not known")
    if log[0] or copy[0]:
        return _Known(unknown=f"{why}, and the logs no longer begin at 0")
    if copy[1] > log[1]:
        return _Known(unknown=f"{why}, and the copy is longer than its topic")
    return _Known(aligned_from((0, 0), log[1], copy[1]), Ground.OFFSETS)


def compared_topics(found: Iterable[Pair], source: Seen, target: Seen, told: MirrorMaker) -> Iterator[ComparedTopic]:
    """Yield each pair side by side."""
    known = _Partitions(source, target, told)
    for pair in found:
        topic, copy = source.cluster.topics.get(pair.topic), target.cluster.topics.get(pair.copy)
        both = min(len(topic.partitions), len(copy.partitions)) if topic is not None and copy is not None else 0
        yield ComparedTopic(
            pair.topic,
            pair.copy,
            pair.mirror,
            len(topic.partitions) if topic is not None else None,
            len(copy.partitions) if copy is not None else None,
            _replication_factor(topic),
            _replication_factor(copy),
            tuple(_configs(topic, copy, pair.followed)) if topic is not None and copy is not None else (),
            tuple(_partition(pair, number, known) for number in range(both)),
        )


def _replication_factor(topic: Topic | None) -> int | None:
    factors = (len(each.target_replicas) for each in topic.partitions) if topic is not None else ()
    return min(factors, default=None)


def _configs(topic: Topic, copy: Topic, followed: Sequence[str]) -> Iterator[ComparedConfig]:
    """Yield the overrides that differ; throttles come and go with runs."""
    for key in sorted({*topic.configs, *copy.configs}.difference(TOPIC_THROTTLES)):
        value, there = topic.configs.get(key), copy.configs.get(key)
        if not is_same_value(key, value, there):
            yield ComparedConfig(key, value, there, key in followed)


def _partition(pair: Pair, number: int, known: _Partitions) -> ComparedPartition:
    alignment, ground, unknown = known.known(pair, number)
    lag = at_most = None
    if alignment is not None:
        lag, at_most = alignment.lag, alignment.lag_at_most
        if lag is None:
            unknown = "the copy has offsets that no record of the topic has: transactions, or another writer"
    return ComparedPartition(number, *known.ends(pair, number), lag, at_most, ground, unknown)


def compared_groups(
    found: Sequence[Pair], source: Seen, target: Seen, told: MirrorMaker
) -> tuple[ComparedGroup, ...] | None:
    """Return each group of the source that has committed an offset of these topics; None: nobody looked at groups."""
    if not (source.cluster.has_groups or source.cluster.groups):
        return None
    known = _Partitions(source, target, told)
    there = {group.group_id: group for group in target.cluster.groups}
    by_topic: dict[str, list[Pair]] = {}
    for pair in found:
        by_topic.setdefault(pair.topic, []).append(pair)
    groups = []
    for group in sorted(source.cluster.groups, key=lambda each: each.group_id):
        other = there.get(group.group_id)
        rows = tuple(
            _changeover((group, other), key, pair, known)
            for key in group.committed
            for pair in by_topic.get(key.topic, ())
        )
        if rows:
            state = other.state or None if other is not None else None
            groups.append(ComparedGroup(group.group_id, group.state or None, state, rows))
    return tuple(groups)


def _changeover(groups: tuple[Group, Group | None], key: TopicPartition, pair: Pair, known: _Partitions) -> Changeover:
    """Return what becomes of one partition of a group; `groups`: as it is on the source, and on the target."""
    group, other = groups
    committed, copy = group.offsets[key.topic][key.partition], TopicPartition(pair.copy, key.partition)
    there = other.offsets.get(pair.copy, {}).get(key.partition) if other is not None else None
    written = (known.told.checkpoints or {}).get((group.group_id, copy)) if pair.mirror is not None else None
    alignment, _, unknown = known.known(pair, key.partition)
    by_syncs = translated(alignment.syncs, committed) if alignment is not None else None
    low, high = _position(alignment, committed, written)
    is_seen = known.target.cluster.has_groups or bool(known.target.cluster.groups)
    start, start_by = _start(there, written, by_syncs, low) if is_seen else (None, None)
    _, end, copy_start, copy_end = known.ends(pair, key.partition)
    outcome: _Outcome = (None, None, None)
    if known.target.cluster.partition(copy) is None:
        unknown = "the copy has no such partition"
    elif end is not None and committed > end:
        unknown = f"the topic ends at {end}, before that commit: it was made again, or has lost records"
    elif not is_seen:
        unknown = "nobody looked at groups of the target: what it has committed there is not known"
    elif start is None:
        unknown = unknown or "the commit lies before the first offset sync that is left, and there is no checkpoint"
    elif start < (copy_start or 0) or (copy_end is not None and start > copy_end):
        unknown = f"the copy holds {copy_start or 0} to {copy_end}, so the consumer's auto.offset.reset decides"
    else:
        outcome = _outcome(alignment, committed, start, low, high)
    return Changeover(
        key, pair.copy, committed, there, written, by_syncs, low, high, start, start_by, *outcome, unknown
    )


def _position(alignment: Alignment | None, committed: int, written: Checkpoint | None) -> tuple[int | None, int | None]:
    """Return the bounds of where the commit lies in the copy; a checkpoint never lies behind what it stands for."""
    low, high = alignment.position(committed) if alignment is not None else (None, None)
    is_usable = written is not None and written.upstream <= committed
    if written is not None and is_usable and (high is None or written.downstream <= high):
        low = max(low or 0, written.downstream)
    return low, high


def _start(
    there: int | None, written: Checkpoint | None, by_syncs: int | None, low: int | None
) -> tuple[int | None, Ground | None]:
    """Return where a consumer of that group would go on, and what says so."""
    if there is not None:
        return there, Ground.COMMITTED
    if written is not None:
        return written.downstream, Ground.CHECKPOINT
    if by_syncs is not None:
        return by_syncs, Ground.SYNCS
    return (low, Ground.OFFSETS) if low is not None else (None, None)


_Outcome = tuple[int | None, int | None, int | None]


def _outcome(alignment: Alignment | None, committed: int, start: int, low: int | None, high: int | None) -> _Outcome:
    """Return the most that is read twice, that is missed, and that is neither read nor copied."""
    missed = max(0, start - low) if low is not None else None
    if alignment is None or high is None:
        return None, missed, None
    lag = alignment.lag_at_most if alignment.lag is None else alignment.lag
    # What the group has read and the copy has not yet will come, and is read again.
    yet_to_come = max(0, lag - (alignment.end - committed))
    return max(0, high - start) + yet_to_come, missed, min(lag, alignment.end - committed)
