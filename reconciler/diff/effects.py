"""Classes what each change destroys, or may cost beside: the one place that says so (contract, section 4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.effect import Effect, EffectClass

Change = TypeVar("Change", bound=TopicChange)


def with_effects(changes: Iterable[TopicChange], observed: Cluster) -> tuple[TopicChange, ...]:
    """Return the changes, each with its effects; one without any is harmless."""
    readers = Readers.of(observed)
    return tuple(replace(change, effects=tuple(_effects(change, observed, readers))) for change in changes)


@dataclass(frozen=True, slots=True)
class Readers:
    """The groups that read each topic, by name and sorted; None where groups were not looked at."""

    by_topic: Mapping[str, Sequence[Group]] | None

    @classmethod
    def of(cls, observed: Cluster) -> "Readers":
        """Return who has members or committed offsets on what."""
        if not (observed.groups or observed.has_groups):
            return cls(None)
        found: dict[str, list[Group]] = {}
        for group in sorted(observed.groups, key=lambda each: each.group_id):
            for topic in group.topics:
                found.setdefault(topic, []).append(group)
        return cls(found)

    def groups(self, topic: str) -> tuple[str, ...] | None:
        """Return the names of those that read the topic."""
        return None if self.by_topic is None else tuple(each.group_id for each in self.by_topic.get(topic, ()))

    def live(self, topic: str) -> tuple[str, ...]:
        """Return the names of those that read the topic and have members now."""
        return tuple(each.group_id for each in (self.by_topic or {}).get(topic, ()) if each.is_live)


def bytes_of(topic: Topic) -> int | None:
    """Return the bytes of all replicas, in the brokers' log dirs; None where one of them is unknown."""
    sizes = [partition.size_on(replica) for partition in topic.partitions for replica in partition.replicas]
    known = [each for each in sizes if each is not None]
    return sum(known) if len(known) == len(sizes) else None


def _effects(change: TopicChange, observed: Cluster, readers: Readers) -> Iterator[Effect]:
    topic = observed.topics.get(change.topic)
    match change:
        case CreateTopic() | AlterConfigs():
            pass
        case CreatePartitions():
            yield Effect(EffectClass.IRREVERSIBLE, "Kafka takes no partitions away, and keys map elsewhere")
        case DeleteTopic():
            if topic is not None:
                yield _destroys("deletes every record", topic, readers, bytes_=bytes_of(topic))


def _destroys(what: str, topic: Topic, readers: Readers, *, bytes_: int | None, key: str | None = None) -> Effect:
    name = topic.name
    return Effect(EffectClass.DESTROYS, what, key, bytes_, readers.groups(name), readers.live(name))
