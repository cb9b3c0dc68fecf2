"""Classes what each change destroys, or may cost beside: the one place that says so (contract, section 4)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.diff.config_effects import REMOTE, config_effects, defaults_needed, sizes_of
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.problem import Problem, Severity
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.words import named_some


def with_effects(changes: Iterable[TopicChange], observed: Cluster) -> tuple[TopicChange, ...]:
    """Return the changes, each with its effects; one without any is harmless."""
    found = tuple(changes)
    readers = Readers.of(observed) if found else Readers(None)
    return tuple(replace(change, effects=tuple(_effects(change, observed, readers))) for change in found)


def unknown_defaults(changes: Iterable[TopicChange], observed: Cluster) -> Iterator[Problem]:
    """Yield a warning where it hangs on the brokers' own settings whether records go, and nobody told them."""
    if any(broker.settings for broker in observed.brokers.values()):
        return
    altered = [change for change in changes if isinstance(change, AlterConfigs)]
    keys = {(change.topic, key) for change in altered for key in defaults_needed(change)}
    if keys:
        named = ", ".join(sorted({f"{TOPIC_CONFIGS[key].broker_key}" for _, key in keys}))
        topics = sorted({topic for topic, _ in keys})
        message = (
            f"topic {named_some(topics, 1)}: what {named} is on the brokers is"
            " not known, so Kafka's default counts: a snapshot of this version tells it"
        )
        yield Problem("KR844", message, altered[0].at, Severity.WARNING)


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
