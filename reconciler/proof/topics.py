"""Restates from the contract which topics the files speak of, and what becomes of each."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from reconciler.model.cluster import DEFAULT_PARTITIONS, DEFAULT_REPLICATION_FACTOR, Cluster, Partition, Topic
from reconciler.model.desired import Desired, DesiredTopic, Protection


@dataclass(frozen=True, slots=True)
class TopicCase:
    """A topic, as it is and as the files want it; `partitions` is how many it is to have.

    `observed` None: it is to be created. `written` None: the files do not speak of it. `is_doomed`: it is deleted.
    `is_left_out`: the plan was confined to other topics.
    """

    name: str
    observed: Topic | None
    written: DesiredTopic | None
    partitions: int
    is_doomed: bool = False
    is_left_out: bool = False

    @property
    def existing(self) -> Sequence[Partition]:
        """The partitions that are there."""
        return self.observed.partitions if self.observed is not None else ()


def topic_cases(
    desired: Desired, observed: Cluster, only: Sequence[str], spared: Collection[str]
) -> Iterator[TopicCase]:
    """Yield every topic that is observed or to be created, by name; the spared ones are not deleted."""
    for name in sorted({*observed.topics, *desired.topics}):
        topic, written = observed.topics.get(name), _written(desired, name)
        if topic is None and written is not None:
            written = _as_created(written, observed)
        if topic is None and (written is None or written.is_absent):
            continue
        is_left_out = bool(only) and not any(fnmatchcase(name, pattern) for pattern in only)
        if topic is None and is_left_out:
            continue
        there = len(topic.partitions) if topic is not None else 0
        is_doomed = topic is not None and _is_doomed(desired, topic, written)
        is_doomed &= not is_left_out and name not in spared
        wanted = there if is_left_out or is_doomed else _partitions(topic, written)
        yield TopicCase(name, topic, written, wanted, is_doomed, is_left_out)


def _written(desired: Desired, name: str) -> DesiredTopic | None:
    """Return what the files say of that topic: by name, by the longest pattern, or by `managed: all`."""
    if name in desired.topics:
        return desired.topics[name]
    if _is_ignored(desired, name):
        return None
    pattern = _pattern(desired, name)
    if pattern is not None:
        return replace(pattern, name=name)
    return DesiredTopic(name) if desired.cluster.topics.is_all_managed else None


def _as_created(written: DesiredTopic, observed: Cluster) -> DesiredTopic:
    """Return how a topic is created: as the brokers' defaults have it, where the files leave that open."""
    if written.placement.assignment:
        return written
    return replace(
        written,
        partitions=written.partitions or _default(observed, DEFAULT_PARTITIONS),
        replication_factor=written.replication_factor or _default(observed, DEFAULT_REPLICATION_FACTOR),
    )


def _default(observed: Cluster, setting: str) -> int | None:
    """Return the number that all living brokers which report that setting have, None if they differ or none does."""
    alive = [broker for broker in observed.brokers.values() if not broker.is_fenced]
    texts = {broker.configs.get(setting, broker.settings.get(setting)) for broker in alive} - {None}
    text = texts.pop() if len(texts) == 1 else None
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _is_ignored(desired: Desired, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in desired.cluster.topics.ignore)


def _pattern(desired: Desired, name: str) -> DesiredTopic | None:
    longest: DesiredTopic | None = None
    for pattern in desired.patterns:
        is_longer = longest is None or len(pattern.name) > len(longest.name)
        if is_longer and fnmatchcase(name, pattern.name):
            longest = pattern
    return longest


def _is_doomed(desired: Desired, topic: Topic, written: DesiredTopic | None) -> bool:
    policy = desired.cluster.topics
    if topic.is_internal or not policy.is_delete_allowed:
        return False
    is_named = topic.name in desired.topics
    if is_named or (not _is_ignored(desired, topic.name) and _pattern(desired, topic.name) is not None):
        return written is not None and written.is_absent and Protection.DELETE not in written.protect
    is_kept = _is_ignored(desired, topic.name) or _is_kept_for_mirrors(desired, topic.name)
    return policy.is_all_managed and not is_kept


def _is_kept_for_mirrors(desired: Desired, name: str) -> bool:
    """Whether a mirror may have made that topic, or MirrorMaker 2 keeps it for itself: such topics nobody declares."""
    own = ["heartbeats", "mm2*.internal", "*.checkpoints.internal"]
    own += [f"{mirror.source}.{way}heartbeats" for mirror in desired.mirrors for way in ("", "*.")]
    copies = (
        mirror.rename.replace("{source}", mirror.source).replace("{topic}", pattern)
        for mirror in desired.mirrors
        for pattern in mirror.topics
    )
    return any(fnmatchcase(name, pattern) for pattern in (*own, *copies))


def _partitions(topic: Topic | None, written: DesiredTopic | None) -> int:
    there = len(topic.partitions) if topic is not None else 0
    if written is None or written.is_absent:
        return there
    wanted = written.partitions or 0
    if topic is None and not wanted and written.placement.assignment:
        wanted = len(written.placement.assignment)
    return max(there, wanted)


def assignment_of(written: DesiredTopic | None, partition: int) -> tuple[int, ...] | None:
    """Return the explicit replicas of a partition, None where none are written."""
    lists = (written.placement.assignment if written is not None else None) or ()
    return lists[partition] if partition < len(lists) else None
