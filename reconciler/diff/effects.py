"""Classes what each change destroys, or may cost beside: by the table of configs, and by how they act together.

This is the one place that says so (contract, section 4).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from reconciler.diff.topic_values import CLEANUP, REMOTE, RETENTION_BYTES, RETENTION_MS, TopicValues, settings_in_force
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic, TopicChange
from reconciler.model.cluster import Cluster, Group, Topic
from reconciler.model.config_rule import NUMBERS, TopicConfig
from reconciler.model.effect import Effect, EffectClass
from reconciler.model.problem import Problem, warning
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.words import named_some

DROPS_REMOTE = "remote.log.delete.on.disable"
MIN_IN_SYNC = "min.insync.replicas"
CHECKED_EVERY_MS = 300_000
"""Kafka looks for what is too old every `log.retention.check.interval.ms`, by default so often.

A retention below it keeps nothing of what was there at one look until the next."""
_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
_WORDS = {
    "delete.retention.ms": "a consumer that reads slowly may miss that a key was deleted",
    "max.compaction.lag.ms": "the older records of a key are dropped sooner",
    "min.compaction.lag.ms": "the older records of a key may be dropped sooner",
    "max.message.bytes": "producers that send larger batches are refused",
    "message.timestamp.after.max.ms": "producers are refused whose timestamps are further ahead",
    "message.timestamp.before.max.ms": "producers are refused whose timestamps are older",
    "message.timestamp.difference.max.ms": "producers are refused whose timestamps are further away",
    "message.timestamp.type": "consumers see other timestamps, and retention goes by them",
    "message.downconversion.enable": "consumers of old formats are refused",
    "compression.type": "consumers before Kafka 2.1 cannot read it",
    "unclean.leader.election.enable": "where no replica in sync is left, one that lacks records may lead, and they go",
    REMOTE: "it cannot be turned off without the loss of what is remote by then",
}


def with_effects(changes: Iterable[TopicChange], observed: Cluster) -> tuple[TopicChange, ...]:
    """Return the changes, each with its effects; one without any is harmless."""
    found = tuple(changes)
    readers = _readers(observed) if found else None
    return tuple(replace(change, effects=tuple(_effects(change, observed, readers))) for change in found)


def unknown_defaults(changes: Iterable[TopicChange], observed: Cluster) -> Iterator[Problem]:
    """Yield a warning where it hangs on the brokers' own settings whether records go, and nobody told them."""
    if any(broker.settings for broker in observed.brokers.values()):
        return
    altered = [change for change in changes if isinstance(change, AlterConfigs)]
    keys = {(change.topic, key) for change in altered for key in _defaults_needed(change)}
    if keys:
        named = ", ".join(sorted({f"{TOPIC_CONFIGS[key].broker_key}" for _, key in keys}))
        unknown = (
            f"topic {named_some(sorted({topic for topic, _ in keys}), 1)}: what {named} is on the brokers is not known"
        )
        message = f"{unknown}, so Kafka's default counts: a snapshot of this version tells it"
        yield warning("KR844", message, altered[0].at)


_Readers = Sequence[tuple[Group, frozenset[str]]] | None
"""Each group with what it reads or has read, sorted; None where groups were not looked at."""


def _readers(observed: Cluster) -> _Readers:
    if not (observed.groups or observed.has_groups):
        return None
    return [(group, group.topics) for group in sorted(observed.groups, key=lambda each: each.group_id)]


def _effects(change: TopicChange, observed: Cluster, readers: _Readers) -> Iterator[Effect]:
    topic = observed.topics.get(change.topic)
    match change:
        case CreateTopic():
            pass
        case CreatePartitions():
            yield Effect(EffectClass.IRREVERSIBLE, "Kafka takes no partitions away, and keys map elsewhere")
        case AlterConfigs() if topic is not None:
            yield from (_read(effect, topic, readers) for effect in _config_effects(change, topic, observed))
        case DeleteTopic() if topic is not None:
            yield _read(_deletion(topic), topic, readers)


def _deletion(topic: Topic) -> Effect:
    what, sizes = "deletes every record", _sizes_of(topic)
    if TopicValues(topic.configs, {}, None).is_on(REMOTE):
        what, sizes = f"{what}, those in remote storage too, which log dirs do not count", None
    return Effect(EffectClass.DESTROYS, what, None, None if sizes is None else sum(sizes), is_total=True)


def _read(effect: Effect, topic: Topic, readers: _Readers) -> Effect:
    """Return the effect with the groups that read the topic, if records go."""
    if effect.kind is not EffectClass.DESTROYS:
        return effect
    groups = None if readers is None else tuple(group.group_id for group, topics in readers if topic.name in topics)
    live = tuple(group.group_id for group, _ in readers or () if group.is_reading(topic.name))
    return replace(effect, groups=groups, live_groups=live)


@dataclass(frozen=True, slots=True)
class _Altered:
    """One change: the topic, and its configs in force before and after."""

    topic: Topic
    old: TopicValues
    new: TopicValues

    def keeps(self, item: str) -> bool:
        """Whether the clean-up policy has that item before and after."""
        return item in self.old.items(CLEANUP) and item in self.new.items(CLEANUP)

    def most(self, *, is_timed: bool) -> int | None:
        """Return the bytes that may go: all, as no size tells how old it is, or what is above the new retention."""
        sizes = _sizes_of(self.topic)
        kept = 0 if is_timed else self.new.number(RETENTION_BYTES)
        return None if sizes is None else sum(int(max(0, size - kept)) for size in sizes)


def _config_effects(change: AlterConfigs, topic: Topic, observed: Cluster) -> tuple[Effect, ...]:
    """Return the effects of each key, by key; of brokers that differ in their settings, the gravest."""
    after = {key: value for key, value in topic.configs.items() if key not in change.delete} | dict(change.set)
    found: dict[str, list[Effect]] = {}
    for settings in settings_in_force(observed):
        version = observed.kafka_version
        altered = _Altered(topic, TopicValues(topic.configs, settings, version), TopicValues(after, settings, version))
        for key in sorted({*change.set, *change.delete}):
            effects = list(_key_effects(key, altered))
            if _rank(effects) < _rank(found.get(key, [])):
                found[key] = effects
    return tuple(effect for key in sorted(found) for effect in found[key])


def _defaults_needed(change: AlterConfigs) -> tuple[str, ...]:
    """Return the keys that may destroy, and of which the brokers' own setting counts before or after."""
    bare = {*change.delete, *(key for key in change.set if change.before.get(key) is None)}
    return tuple(key for key in bare if key in TOPIC_CONFIGS and _may_destroy(TOPIC_CONFIGS[key]))


def _may_destroy(config: TopicConfig) -> bool:
    classes = (config.smaller, config.larger, config.otherwise, *config.becomes.values())
    return config.broker_key is not None and EffectClass.DESTROYS in classes


def _rank(effects: Sequence[Effect]) -> int:
    return min((effect.kind.rank for effect in effects), default=EffectClass.HARMLESS.rank)


def _key_effects(key: str, altered: _Altered) -> Iterator[Effect]:
    match key:
        case "cleanup.policy":
            yield from _policy(altered)
        case "retention.ms" | "retention.bytes":
            if altered.keeps("delete") and altered.new.number(key) < altered.old.number(key):
                yield _retention(key, altered)
        case "remote.storage.enable" if altered.old.is_on(REMOTE) and not altered.new.is_on(REMOTE):
            what = "deletes every record that is in remote storage, which log dirs do not count"
            if not altered.new.is_on(DROPS_REMOTE):
                what += f"; Kafka refuses it without {DROPS_REMOTE}"
            yield _destroys(what, REMOTE, altered, None, is_total=True)
        case "min.insync.replicas":
            yield from _in_sync(altered)
        case _:
            yield from _by_table(key, altered)


def _by_table(key: str, altered: _Altered) -> Iterator[Effect]:
    """Yield what the table says of a key that acts alone."""
    config = TOPIC_CONFIGS.get(key)
    if config is None or (config.only_where is not None and not altered.keeps(config.only_where[1])):
        return
    kind = _class_of(key, config, altered)
    if kind is not EffectClass.HARMLESS:
        yield Effect(kind, _WORDS.get(key, kind.value), key)


def _class_of(key: str, config: TopicConfig, altered: _Altered) -> EffectClass:
    if config.newest.kind in NUMBERS:
        old, new = altered.old.number(key), altered.new.number(key)
        return config.smaller if new < old else config.larger if new > old else EffectClass.HARMLESS
    old_text, new_text = altered.old.text(key), altered.new.text(key)
    return EffectClass.HARMLESS if old_text == new_text else config.becomes.get(new_text, config.otherwise)


def _policy(altered: _Altered) -> Iterator[Effect]:
    come = altered.new.items(CLEANUP) - altered.old.items(CLEANUP)
    if "compact" in come:
        what = "keeps the last record of each key only; records without a key are dropped, and refused from then on"
        yield _destroys(what, CLEANUP, altered, altered.most(is_timed=True))
    if "delete" in come:
        limits = [text for key in (RETENTION_MS, RETENTION_BYTES) if (text := _limit(key, altered.new))]
        if limits:
            most = altered.most(is_timed=altered.new.number(RETENTION_MS) != float("inf"))
            is_total = any(_is_total(key, altered.new) for key in (RETENTION_MS, RETENTION_BYTES))
            yield _destroys(f"deletes {' and '.join(limits)}", CLEANUP, altered, most, is_total=is_total)


def _retention(key: str, altered: _Altered) -> Effect:
    is_total = _is_total(key, altered.new) and not _is_total(key, altered.old)
    most = altered.most(is_timed=key == RETENTION_MS)
    return _destroys(f"deletes {_limit(key, altered.new)}", key, altered, most, is_total=is_total)


def _limit(key: str, values: TopicValues) -> str:
    """Return which records a retention deletes, empty where it deletes none."""
    limit = values.number(key)
    if limit == float("inf"):
        return ""
    if _is_total(key, values):
        return "every record, within minutes of its writing" if key == RETENTION_MS else "every record"
    if key == RETENTION_MS:
        return f"what is older than {_span(limit)}"
    return f"the oldest above {int(limit)} B a partition"


def _is_total(key: str, values: TopicValues) -> bool:
    return values.number(key) < (CHECKED_EVERY_MS if key == RETENTION_MS else 1)


def _destroys(what: str, key: str, altered: _Altered, most: int | None, *, is_total: bool = False) -> Effect:
    """Return that records go; of a tiered topic nobody knows how many bytes."""
    return Effect(EffectClass.DESTROYS, what, key, None if altered.old.is_on(REMOTE) else most, is_total=is_total)


def _in_sync(altered: _Altered) -> Iterator[Effect]:
    """Yield who cannot write while too few are in sync, and which eligible leaders the change forgets (KIP-966)."""
    old, new = (values.number(MIN_IN_SYNC) for values in (altered.old, altered.new))
    partitions = altered.topic.partitions
    if new > old:
        # Since 3.7 no broker asks for more than there are replicas, those that a move adds included (KAFKA-15583).
        short = [each for each in partitions if len(each.isr) < min(new, len(each.replicas))]
        factor = min((len(each.target_replicas) for each in partitions), default=0)
        if short:
            what = f"acks=all is refused at once on {len(short)} of {len(partitions)} partitions: too few are in sync"
            yield Effect(EffectClass.AVAILABILITY, what, MIN_IN_SYNC)
        elif new > factor:
            what = f"above the {factor} replicas, so none may be missing while acks=all is written"
            yield Effect(EffectClass.AVAILABILITY, what, MIN_IN_SYNC)
    eligible = [each for each in partitions if each.elr]
    if not eligible:
        return
    what = f"clears the eligible leaders (ELR) of {len(eligible)} partitions, {altered.topic.name}-"
    # Kafka then elects none of these brokers when they are back: an unclean election is the only way on (seen on 4.3).
    leaderless = [each for each in eligible if each.leader is None]
    if leaderless:
        what += f"{leaderless[0].partition} first: without a leader as it is, it then gets one by an unclean election"
        sizes = _sizes_of(replace(altered.topic, partitions=tuple(leaderless)))
        most = None if sizes is None else sum(sizes)
        yield _destroys(
            f"{what} alone, which may lose records; start those brokers before it", MIN_IN_SYNC, altered, most
        )
    else:
        what += f"{eligible[0].partition} first: start those brokers before it"
        yield Effect(EffectClass.AVAILABILITY, what, MIN_IN_SYNC)


def _sizes_of(topic: Topic) -> tuple[int, ...] | None:
    """Return the bytes of each replica in its log dir, None where one of them is unknown."""
    sizes = [partition.size_on(replica) for partition in topic.partitions for replica in partition.replicas]
    known = tuple(each for each in sizes if each is not None)
    return known if len(known) == len(sizes) else None


def _span(milliseconds: float) -> str:
    for length, unit in _SPANS:
        if milliseconds % length == 0:
            return f"{int(milliseconds // length)} {unit}"
    return f"{int(milliseconds)} ms"
