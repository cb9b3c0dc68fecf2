"""When each topic change is safe: before the moves, once its topic's moves have ended, or last."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.move import Move

MIN_ISR = "min.insync.replicas"
KAFKA_DEFAULT_MIN_ISR = 1
KINDS = (CreateTopic, AlterConfigs, CreatePartitions, DeleteTopic)


@dataclass(frozen=True, slots=True)
class TimedChanges:
    """Topic changes by when they are made, each part in order."""

    before: tuple[TopicChange, ...] = ()
    after_moves: tuple[TopicChange, ...] = ()
    last: tuple[TopicChange, ...] = ()

    @property
    def in_order(self) -> tuple[TopicChange, ...]:
        """All of them, in the order in which they are made."""
        return self.before + self.after_moves + self.last


def timed(changes: Sequence[TopicChange], moves: Iterable[Move], observed: Cluster) -> TimedChanges:
    """Return the changes, split where one has parts that are safe at different times.

    Two wait for their topic's moves. Growth, where these change the replication factor: Kafka wants the factor of the
    topic's first partition for a new one. And a higher min.insync.replicas, which until then fewer replicas might be
    in sync than it asks for; a lower one goes first, so that a lower factor never falls below it. Deletes are last.
    """
    moved, refactored = set(), set()
    for move in moves:
        moved.add(move.topic_partition.topic)
        if len(move.from_replicas) != len(move.to_replicas):
            refactored.add(move.topic_partition.topic)
    before: list[TopicChange] = []
    after: list[TopicChange] = []
    for change in changes:
        if isinstance(change, CreatePartitions):
            (after if change.topic in refactored else before).append(change)
        elif isinstance(change, AlterConfigs) and change.topic in moved:
            early, late = _split(change, observed, is_refactored=change.topic in refactored)
            before.extend(early)
            after.extend(late)
        elif not isinstance(change, DeleteTopic):
            before.append(change)
    deletes = [change for change in changes if isinstance(change, DeleteTopic)]
    return TimedChanges(*(tuple(sorted(part, key=_order)) for part in (before, after, deletes)))


def _order(change: TopicChange) -> tuple[int, str]:
    return KINDS.index(type(change)), change.topic


def _split(
    change: AlterConfigs, observed: Cluster, *, is_refactored: bool
) -> tuple[tuple[AlterConfigs, ...], tuple[AlterConfigs, ...]]:
    if not _is_late(change, observed, is_refactored=is_refactored):
        return (change,), ()
    late = replace(
        change,
        set={MIN_ISR: change.set[MIN_ISR]},
        delete=(),
        before={key: value for key, value in change.before.items() if key == MIN_ISR},
    )
    early = replace(
        change,
        set={key: value for key, value in change.set.items() if key != MIN_ISR},
        before={key: value for key, value in change.before.items() if key != MIN_ISR},
    )
    return (early,) if early.set or early.delete else (), (late,)


def _is_late(change: AlterConfigs, observed: Cluster, *, is_refactored: bool) -> bool:
    """Whether the change raises min.insync.replicas above what every partition of the topic surely has in sync."""
    wanted = _number(change.set.get(MIN_ISR))
    topic = observed.topics.get(change.topic)
    if wanted is None or topic is None:
        return False
    if wanted <= (_number(topic.configs.get(MIN_ISR)) or KAFKA_DEFAULT_MIN_ISR):
        return False
    in_sync = min((len(partition.isr) for partition in topic.partitions), default=0)
    return is_refactored or in_sync < wanted


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.strip().isdigit() else None
