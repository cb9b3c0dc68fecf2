"""Classes what each change destroys, or may cost beside: the one place that says so (contract, section 4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.diff.config_effects import REMOTE, config_effects, sizes_of
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.effect import Effect, EffectClass


def with_effects(changes: Iterable[TopicChange], observed: Cluster) -> tuple[TopicChange, ...]:
    """Return the changes, each with its effects; one without any is harmless."""
    readers = Readers.of(observed)
    return tuple(replace(change, effects=tuple(_effects(change, observed, readers))) for change in changes)


@dataclass(frozen=True, slots=True)
class Readers:
    """The groups that read each topic, by name and sorted; None where groups were not looked at.

    `present`: all that have members now.
    """

    by_topic: Mapping[str, Sequence[Group]] | None
    present: Sequence[Group] = ()

    @classmethod
    def of(cls, observed: Cluster) -> "Readers":
        """Return who has members or committed offsets on what."""
        if not (observed.groups or observed.has_groups):
            return cls(None)
        found: dict[str, list[Group]] = {}
        for group in sorted(observed.groups, key=lambda each: each.group_id):
            for topic in group.topics:
                found.setdefault(topic, []).append(group)
        present = [group for group in observed.groups if group.is_live]
        return cls(found, sorted(present, key=lambda each: each.group_id))

    def groups(self, topic: str) -> tuple[str, ...] | None:
        """Return the names of those that read the topic."""
        return None if self.by_topic is None else tuple(each.group_id for each in self.by_topic.get(topic, ()))

    def live(self, topic: str) -> tuple[str, ...]:
        """Return the names of those whose members read the topic now."""
        return tuple(each.group_id for each in self.present if each.is_reading(topic))


def _effects(change: TopicChange, observed: Cluster, readers: Readers) -> Iterator[Effect]:
    topic = observed.topics.get(change.topic)
    match change:
        case CreateTopic():
            pass
        case CreatePartitions():
            yield Effect(EffectClass.IRREVERSIBLE, "Kafka takes no partitions away, and keys map elsewhere")
        case AlterConfigs() if topic is not None:
            yield from (_read(effect, topic, readers) for effect in config_effects(change, topic, observed))
        case DeleteTopic() if topic is not None:
            yield _read(_deletion(topic), topic, readers)


def _deletion(topic: Topic) -> Effect:
    sizes = sizes_of(topic)
    if topic.configs.get(REMOTE, "").lower() == "true":
        what = "deletes every record, those in remote storage too, which log dirs do not count"
        return Effect(EffectClass.DESTROYS, what, is_total=True)
    return Effect(
        EffectClass.DESTROYS, "deletes every record", None, None if sizes is None else sum(sizes), is_total=True
    )


def _read(effect: Effect, topic: Topic, readers: Readers) -> Effect:
    """Return the effect with the groups that read the topic, if records go."""
    if effect.kind is not EffectClass.DESTROYS:
        return effect
    return replace(effect, groups=readers.groups(topic.name), live_groups=readers.live(topic.name))
