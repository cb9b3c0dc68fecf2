"""Finds likely slips in the files: a topic that is still read and that nobody declares, a name mistyped."""

import re
from collections.abc import Iterator, Mapping, Sequence

from reconciler.diff.managed import is_declared, is_ignored
from reconciler.model.change import CreateTopic, DeleteTopic, Spared, TopicChange
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired
from reconciler.model.problem import RENAMED, STILL_READ, Problem, Severity, warning

MOST_PAIRS = 200_000
"""How many pairs of names are compared; a plan with more creates so much that no single name tells anything."""
_CLOSE, _LEAST, _LETTERS = 0.75, 5, 2
_OWN_DOCUMENT = "have it deleted by a document of its own with state: absent"


def without_slips(changes: Sequence[TopicChange]) -> tuple[tuple[TopicChange, ...], tuple[Spared, ...]]:
    """Return the changes without deletions that are not safe while nobody has written them down, and why each stays.

    A topic that no document names stays where a live group reads it, and where the same plan creates one of a similar
    name.
    """
    undeclared = [change for change in changes if isinstance(change, DeleteTopic) and not change.is_declared]
    created = {change.topic: change for change in changes if isinstance(change, CreateTopic)}
    twins = _twins([*created], [change.topic for change in undeclared])
    spared: list[Spared] = []
    for change in undeclared:
        readers = sorted({group for effect in change.effects for group in effect.live_groups})
        if readers:
            spared.append(Spared(change.topic, _still_read(change, readers)))
        if change.topic in twins:
            spared.append(Spared(change.topic, _renamed(change, created[twins[change.topic]])))
    names = {each.topic for each in spared}
    return tuple(change for change in changes if change.topic not in names), tuple(spared)


def look_alikes(
    changes: Sequence[TopicChange], spared: Sequence[Spared], observed: Cluster, desired: Desired
) -> Iterator[Problem]:
    """Yield a warning for each topic that is created beside one of a similar name that nobody declares, and that stays.

    Of those that are spared a violation tells.
    Where undeclared topics are nobody's business (`managed: listed`), only a letter or two tells a slip.
    """
    created = {change.topic: change for change in changes if isinstance(change, CreateTopic)}
    told = {change.topic for change in changes if isinstance(change, DeleteTopic)} | {each.topic for each in spared}
    others = [
        name
        for name, topic in observed.topics.items()
        if created
        and not (topic.is_internal or name in told or is_ignored(desired, name) or is_declared(desired, name))
    ]
    twins = _twins([*created], others, is_letters_only=not desired.cluster.topics.is_all_managed)
    for other, name in sorted(twins.items(), key=lambda pair: (pair[1], pair[0])):
        message = (
            f"topic {name} is new, and {other}, which is not declared, is much like it: if {other} is meant, correct"
            " the name; Kafka renames no topic, and the new one begins empty beside it"
        )
        yield warning("KR843", message, created[name].at)


def _still_read(change: DeleteTopic, readers: Sequence[str]) -> Problem:
    groups = f"group {readers[0]} reads" if len(readers) == 1 else f"groups {', '.join(readers)} read"
    message = f"topic {change.topic} is not declared, but {groups} it: it stays; declare it, or {_OWN_DOCUMENT}"
    return Problem(STILL_READ, message, change.at, Severity.VIOLATION)


def _renamed(change: DeleteTopic, created: CreateTopic) -> Problem:
    message = (
        f"topic {created.topic} is new and {change.topic} is not declared: a rename? Kafka renames no topic, and a new"
        f" one begins empty; {change.topic} stays: correct the name, or {_OWN_DOCUMENT}"
    )
    return Problem(RENAMED, message, created.at, Severity.VIOLATION)


def _twins(created: Sequence[str], others: Sequence[str], *, is_letters_only: bool = False) -> Mapping[str, str]:
    """Return, for each other name that has one, the created name most like it."""
    if not others:
        return {}
    plain = [(name, _plain(name)) for name in sorted(created)[: max(1, MOST_PAIRS // len(others))]]
    found = {}
    for other in sorted(others):
        mine = _plain(other)
        alike_names = [(name, text) for name, text in plain if _is_alike(text, mine, is_letters_only=is_letters_only)]
        alike = [(-_share(text, mine), name) for name, text in alike_names]
        if alike:
            found[other] = min(alike)[1]
    return found


def _plain(name: str) -> str:
    """Return the name without what people mix up first: capitals and separators."""
    return re.sub(r"[._-]", "", name.lower())


def _is_alike(one: str, other: str, *, is_letters_only: bool) -> bool:
    if one == other:
        return True
    longer = max(len(one), len(other))
    if longer < _LEAST or _share(one, other) < _CLOSE:
        return False
    is_numbered = re.sub(r"v?\d+", "", one) == re.sub(r"v?\d+", "", other)
    return not is_letters_only or (longer - _common(one, other) <= _LETTERS and not is_numbered)


def _share(one: str, other: str) -> float:
    """Return how much of the longer one both begin and end with: 1.0 for equal ones."""
    return _common(one, other) / max(len(one), len(other), 1)


def _common(one: str, other: str) -> int:
    shorter = min(len(one), len(other))
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    rest = shorter - head
    return head + next((at for at in range(rest) if one[-1 - at] != other[-1 - at]), rest)
