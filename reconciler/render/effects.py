"""Says what changes destroy, or may cost beside, in the words that every output shares."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from reconciler.model.change import CreatePartitions, DeleteTopic, TopicChange, class_of, destruction
from reconciler.model.effect import Destruction, Effect, EffectClass
from reconciler.model.words import MANY, counted, few, named_some, size
from reconciler.render.escape import visible

GRAVE = frozenset({EffectClass.DESTROYS, EffectClass.IRREVERSIBLE})
"""The classes that no rollback takes back."""
_NAMED = 5
_TAKES = {
    EffectClass.IRREVERSIBLE: "cannot be undone",
    EffectClass.AVAILABILITY: "may refuse writes",
    EffectClass.CLIENTS: "clients may notice",
    EffectClass.HARMLESS: "no data",
}


def takes(change: TopicChange) -> str:
    """Return in a few words what a change takes: the gravest of it."""
    kind = class_of(change)
    return _TAKES[kind] if kind is not EffectClass.DESTROYS else _destroys(change.effects)


def takes_in_all(changes: Sequence[TopicChange]) -> str:
    """Return the same of changes of one class, with all bytes that they destroy."""
    lost = destruction(changes)
    return takes(changes[0]) if lost is None else f"destroys {_data(lost)}"


def total(found: Destruction) -> str:
    """Return what is destroyed in all: `3 topics, up to 12.4 GiB on all replicas, read by 2 groups`."""
    readers = "nobody looked at who reads them" if found.groups is None else f"read by {counted(found.groups, 'group')}"
    return f"{counted(found.topics, 'topic')}, {_data(found)} on all replicas, {readers}"


def _data(found: Destruction) -> str:
    if found.is_size_known:
        return f"{'up to ' if found.is_most else ''}{size(found.bytes)}"
    return f"{size(found.bytes)} and an unknown number of bytes" if found.bytes else "an unknown number of bytes"


def told(changes: Iterable[TopicChange]) -> Iterator[tuple[EffectClass, str, str]]:
    """Yield class, topic and words of each effect that its change does not say already, the gravest first."""
    found = [(effect.kind, topic, words(effect)) for topic, effect in _effects(changes)]
    yield from sorted(found, key=lambda each: (each[0].rank, *each[1:]))


def grouped_effects(changes: Iterable[TopicChange]) -> Iterator[tuple[EffectClass, str, str]]:
    """Yield the same, but one for many topics that a config affects alike: with some names, and all bytes."""
    alike: dict[object, list[tuple[str, Effect]]] = {}
    for topic, effect in _effects(changes):
        own = topic if effect.key is None else ""
        alike.setdefault((effect.kind, effect.key, effect.what, own), []).append((topic, effect))
    found = []
    for group in alike.values():
        if len(group) > MANY:
            topics, effects = zip(*sorted(group, key=lambda each: each[0]), strict=True)
            who = f"{counted(len(topics), 'topic')} ({few(topics)})"
            found.append((effects[0].kind, who, words(_joined_effect(effects))))
        else:
            found += [(effect.kind, topic, words(effect)) for topic, effect in group]
    yield from sorted(found, key=lambda each: (each[0].rank, *each[1:]))


def _effects(changes: Iterable[TopicChange]) -> Iterator[tuple[str, Effect]]:
    for change in changes:
        effects = () if isinstance(change, CreatePartitions) else change.effects or _of_older_file(change)
        yield from ((change.topic, effect) for effect in effects if effect.kind is not EffectClass.HARMLESS)


def _joined_effect(effects: Sequence[Effect]) -> Effect:
    """Return one effect on several topics: with all bytes, and all groups, as far as they are known."""
    sizes = [effect.bytes for effect in effects if effect.bytes is not None]
    readers = [effect.groups for effect in effects if effect.groups is not None]
    return replace(
        effects[0],
        bytes=sum(sizes) if len(sizes) == len(effects) else None,
        groups=tuple(sorted({*chain(*readers)})) if len(readers) == len(effects) else None,
        live_groups=tuple(sorted({*chain(*(effect.live_groups for effect in effects))})),
    )


def words(effect: Effect) -> str:
    """Return one effect in words, with the bytes and the groups of what destroys."""
    if effect.kind is not EffectClass.DESTROYS:
        return visible(f"{effect.key}: {effect.what}" if effect.key else effect.what)
    what = f"{effect.key} {effect.what}" if effect.key else effect.what
    return visible(f"{what}: {_amount((effect,))} on all replicas, {_readers(effect)}")


def _destroys(effects: Sequence[Effect]) -> str:
    return f"destroys {_amount([each for each in effects if each.kind is EffectClass.DESTROYS])}"


def _amount(effects: Sequence[Effect]) -> str:
    """Return the most bytes that one of these effects on a topic takes."""
    known = [effect.bytes for effect in effects if effect.bytes is not None]
    if not effects or len(known) < len(effects):
        return "an unknown number of bytes"
    return f"{'up to ' if any(effect.key for effect in effects) else ''}{size(max(known))}"


def _readers(effect: Effect) -> str:
    if effect.groups is None:
        return "nobody looked at who reads it"
    if not effect.groups:
        return "read by no group"
    live_first = sorted(effect.groups, key=lambda name: (name not in effect.live_groups, name))
    names = [f"{name} (live)" if name in effect.live_groups else name for name in live_first]
    return f"read by {named_some(names, _NAMED)}"


def _of_older_file(change: TopicChange) -> tuple[Effect, ...]:
    """Return the effect of a deletion in a plan file which was made before effects were told."""
    deleted = isinstance(change, DeleteTopic)
    return (Effect(EffectClass.DESTROYS, "deletes every record", is_total=True),) if deleted else ()
