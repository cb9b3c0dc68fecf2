"""When each topic change is made: before the moves, once its topic's moves have ended, or last."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange, class_of
from reconciler.model.cluster import Cluster
from reconciler.model.effect import EffectClass
from reconciler.model.in_sync import MIN_ISR, brokers_min_isr
from reconciler.model.move import Move

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

    What Kafka may refuse comes before what nobody can undo: new topics and configs, then growth, then, after all moves,
    configs that destroy records, and deletions last. All of a topic's keys stay together, as Kafka judges them
    together, but for min.insync.replicas, which stands for itself.

    Two wait for their topic's moves. Growth, where these change the replication factor: Kafka wants the factor of the
    topic's first partition for a new one. And a higher min.insync.replicas, which until then fewer replicas might be
    in sync than it asks for; a lower one goes first, so that a lower factor never falls below it.
    """
    moved, refactored = set(), set()
    for move in moves:
        moved.add(move.topic_partition.topic)
        if len(move.from_replicas) != len(move.to_replicas):
            refactored.add(move.topic_partition.topic)
    before: list[TopicChange] = []
    after: list[TopicChange] = []
    last: list[TopicChange] = []
    for change in changes:
        match change:
            case DeleteTopic():
                last.append(change)
            case CreatePartitions():
                (after if change.topic in refactored else before).append(change)
            case AlterConfigs():
                is_late = change.topic in moved and _is_late(change, observed, is_refactored=change.topic in refactored)
                for part in _parts(change) if is_late or class_of(change) is EffectClass.DESTROYS else (change,):
                    is_waiting = is_late and _has(part, MIN_ISR)
                    destroys = class_of(part) is EffectClass.DESTROYS
                    (last if destroys else after if is_waiting else before).append(part)
            case CreateTopic():
                before.append(change)
    return TimedChanges(*(tuple(sorted(part, key=_order)) for part in (before, after, last)))


def _order(change: TopicChange) -> tuple[int, str]:
    return KINDS.index(type(change)), change.topic


def _has(change: AlterConfigs, key: str) -> bool:
    return key in change.set or key in change.delete


def _parts(change: AlterConfigs) -> tuple[AlterConfigs, ...]:
    """Return min.insync.replicas and the other keys, each as a change by itself where there is any."""
    parts = (_of_keys(change, is_min_isr=False), _of_keys(change, is_min_isr=True))
    return tuple(part for part in parts if part.set or part.delete)


def _of_keys(change: AlterConfigs, *, is_min_isr: bool) -> AlterConfigs:
    return replace(
        change,
        set={key: value for key, value in change.set.items() if (key == MIN_ISR) is is_min_isr},
        delete=tuple(key for key in change.delete if (key == MIN_ISR) is is_min_isr),
        before={key: value for key, value in change.before.items() if (key == MIN_ISR) is is_min_isr},
        effects=tuple(effect for effect in change.effects if (effect.key == MIN_ISR) is is_min_isr),
    )


def _is_late(change: AlterConfigs, observed: Cluster, *, is_refactored: bool) -> bool:
    """Whether the change raises min.insync.replicas above what every partition of the topic surely has in sync."""
    wanted = _number(change.set.get(MIN_ISR))
    topic = observed.topics.get(change.topic)
    if wanted is None or topic is None:
        return False
    if wanted <= (_number(topic.configs.get(MIN_ISR)) or brokers_min_isr(observed)):
        return False
    in_sync = min((len(partition.isr) for partition in topic.partitions), default=0)
    return is_refactored or in_sync < wanted


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.strip().isdigit() else None
