"""Says what changes destroy, or may cost beside, in the words that every output shares."""

from collections.abc import Iterable, Iterator, Sequence

from reconciler.model.change import CreatePartitions, DeleteTopic, TopicChange, class_of
from reconciler.model.effect import Destruction, Effect, EffectClass
from reconciler.model.words import counted, named_some, size
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


def takes_of_key(change: TopicChange, key: str) -> str:
    """Return the same of one config."""
    found = [effect for effect in change.effects if effect.key == key]
    kind = min((effect.kind for effect in found), key=lambda each: each.rank, default=EffectClass.HARMLESS)
    return _TAKES[kind] if kind is not EffectClass.DESTROYS else _destroys(found)


def total(found: Destruction) -> str:
    """Return what is destroyed in all: `3 topics, up to 12.4 GiB on all replicas, read by 2 groups`."""
    data = f"{'up to ' if found.is_most else ''}{size(found.bytes)}"
    if not found.is_size_known:
        data = f"{size(found.bytes)} and an unknown number of bytes" if found.bytes else "an unknown number of bytes"
    readers = "nobody looked at who reads them" if found.groups is None else f"read by {counted(found.groups, 'group')}"
    return f"{counted(found.topics, 'topic')}, {data} on all replicas, {readers}"


def told(changes: Iterable[TopicChange]) -> Iterator[tuple[EffectClass, str, str]]:
    """Yield class, topic and words of each effect that its change does not say already, the gravest first."""
    found = [
        (effect.kind, change.topic, words(effect))
        for change in changes
        if not isinstance(change, CreatePartitions)
        for effect in change.effects or _of_older_file(change)
        if effect.kind is not EffectClass.HARMLESS
    ]
    yield from sorted(found, key=lambda each: (each[0].rank, *each[1:]))


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
