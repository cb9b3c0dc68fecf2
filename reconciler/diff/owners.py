"""Finds what the files alone break of what Owner documents allow: names, labels, configs, and how much there may be.

A topic's owner is its label `owner`, else the Owner with the longest pattern that matches its name.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from fnmatch import fnmatchcase, translate
from functools import lru_cache

from reconciler.model.config_value import is_same_value
from reconciler.model.desired import OWNER, ConfigBounds, Desired, DesiredOwner, DesiredTopic
from reconciler.model.problem import Location, Problem, Severity, warning
from reconciler.model.topic_configs import TOPIC_CONFIGS
from reconciler.model.words import FEW, in_brackets, named_some, number, size

NO_OWNER, AMBIGUOUS = "KR470", "KR471"
TOO_MANY, TOO_HIGH, WRONG_NAME, WRONG_LABEL, WRONG_CONFIG = "KR472", "KR473", "KR474", "KR475", "KR476"
TOPICS, PARTITIONS, BYTES, FACTOR = "topics", "partitions", "bytes", "replicationFactor"
Claim = tuple[DesiredTopic, tuple[DesiredOwner, ...]]
"""A topic and whose it is: one Owner, none, or several whose patterns are equally long."""
_LONGEST = 249
"""How much of a label is shown, and looked for among the names of Owners."""


def owners_by_pattern(desired: Desired, name: str) -> tuple[DesiredOwner, ...]:
    """Return the Owners with the longest pattern that matches that name: one, or none, or several of that length."""
    longest = {
        owner.name: max((len(each) for each in owner.topics if _matcher(each)(name)), default=0)
        for owner in desired.owners
    }
    most = max(longest.values(), default=0)
    return tuple(owner for owner in desired.owners if most and longest[owner.name] == most)


@lru_cache(maxsize=1 << 12)
def _matcher(pattern: str) -> Callable[[str], object]:
    """Return what matches names. `fnmatchcase` keeps 256 patterns, and makes each of more anew for each name."""
    return re.compile(translate(pattern)).match


def owner_problems(desired: Desired) -> Iterator[Problem]:
    """Yield all that the files of a cluster break of its Owners' rules; nothing where it has none."""
    if not desired.owners:
        return
    claimed = claims(desired, present_topics(desired))
    labelled = claims(desired, (pattern for pattern in desired.patterns if OWNER in pattern.labels))
    yield from unknown_owners(desired, (*claimed, *labelled))
    counts = {owner.name: {TOPICS: 0, PARTITIONS: 0} for owner in desired.owners}
    for topic, owner in owned(claimed):
        yield from topic_problems(topic, owner)
        counts[owner.name][TOPICS] += 1
        counts[owner.name][PARTITIONS] += topic.partitions or len(topic.placement.assignment or ()) or 1
    for pattern, owner in owned(labelled):
        yield from _config_problems(owner, pattern)
    for owner in desired.owners:
        for what, count in counts[owner.name].items():
            if count > owner.limits.get(what, count):
                yield too_much(owner, what, count, "declares")


def claims(desired: Desired, topics: Iterable[DesiredTopic]) -> tuple[Claim, ...]:
    """Return whose each of these topics is."""
    named = {owner.name: (owner,) for owner in desired.owners}
    return tuple(
        (topic, named.get(topic.labels[OWNER], ()) if OWNER in topic.labels else owners_by_pattern(desired, topic.name))
        for topic in topics
    )


def owned(claimed: Iterable[Claim]) -> Iterator[tuple[DesiredTopic, DesiredOwner]]:
    """Yield the topics that are one Owner's, with their Owner."""
    return ((topic, owners[0]) for topic, owners in claimed if len(owners) == 1)


def present_topics(desired: Desired) -> Iterator[DesiredTopic]:
    """Yield the topics that documents name and that are to exist."""
    return (topic for topic in desired.topics.values() if not topic.is_absent)


def too_much(
    owner: DesiredOwner, what: str, count: int, verb: str, *, is_least: bool = False, is_worse: bool = True
) -> Problem:
    """Return that an owner has more than it may, and whom to ask; a warning where it only stays so."""
    shown, may = (size(each) if what == BYTES else number(each) for each in (count, owner.limits[what]))
    noun = "of all replicas" if what == BYTES else what
    message = f"{owner.name} {verb} {'at least ' if is_least else ''}{shown} {noun}, and its limits.{what} is {may}"
    message += f": raise it, or ask {owner} for less" if is_worse else f"; this plan adds none: ask {owner}"
    severity = Severity.VIOLATION if is_worse else Severity.WARNING
    return Problem(TOO_MANY, message, owner.where(f"limits.{what}"), severity)


def unknown_size(owner: DesiredOwner) -> Problem:
    """Return that nobody knows whether an owner has more bytes than it may."""
    message = (
        f"some sizes of what {owner.name} owns are unknown, so its limits.bytes cannot be checked: let log dirs be read"
    )
    return warning(TOO_MANY, message, owner.where(f"limits.{BYTES}"))


def unknown_owners(desired: Desired, claimed: Iterable[Claim]) -> Iterator[Problem]:
    """Yield each label that names no Owner, once; and each topic that patterns of several Owners claim alike."""
    names, first = [owner.name for owner in desired.owners], dict[str, list[DesiredTopic]]()
    for topic, owners in claimed:
        label = topic.labels.get(OWNER)
        if label is not None and label not in names:
            first.setdefault(label, []).append(topic)
        elif len(owners) > 1:
            places = tuple(at for owner in owners if (at := owner.where(TOPICS)))
            named = " and ".join(f"{owner.name}{in_brackets(owner.where(TOPICS))}" for owner in owners)
            message = f"topic {topic.name} may be of {named}, whose patterns are equally long"
            yield _violation(AMBIGUOUS, f"{message}: lengthen one, or write the label owner", topic.where(""), *places)
    for label, labelled in first.items():
        near = get_close_matches(label[:_LONGEST], names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"declare it, or write one of {', '.join(names)}"
        named = named_some((topic.name for topic in labelled), FEW)
        message = f"there is no Owner {label[:_LONGEST]}, which the label of {named} names: {hint}"
        yield _violation(NO_OWNER, message, labelled[0].where(""))


def topic_problems(topic: DesiredTopic, owner: DesiredOwner) -> Iterator[Problem]:
    """Yield what one topic that a document names breaks of its owner's rules."""
    factor, most = topic.replication_factor or len(next(iter(topic.placement.assignment or ()), ())), f"limits.{FACTOR}"
    if factor > owner.limits.get(FACTOR, factor):
        what = f"has replicationFactor {factor}, and {_rule(owner, most)} is {owner.limits[FACTOR]}: lower it"
        yield _broken_rule(TOO_HIGH, owner, most, topic, what, field=FACTOR)
    if owner.names and not any(fnmatchcase(topic.name, pattern) for pattern in owner.names):
        what = f"has a name like none that {_rule(owner, 'names')} allows ({', '.join(owner.names)}): rename it"
        yield _broken_rule(WRONG_NAME, owner, "names", topic, what)
    for label, patterns in sorted(owner.labels.items()):
        value, rule = topic.labels.get(label), f"labels.{label}"
        if value is None or not any(fnmatchcase(value, pattern) for pattern in patterns):
            found = f"lacks the label {label}" if value is None else f"has the label {label}: {value}"
            what = f"{found}, and {_rule(owner, rule)} wants {' | '.join(patterns)}: write it"
            yield _broken_rule(WRONG_LABEL, owner, rule, topic, what)
    yield from _config_problems(owner, topic)


def _config_problems(owner: DesiredOwner, topic: DesiredTopic) -> Iterator[Problem]:
    if owner.config is None:
        return
    for key, value in topic.config.items():
        bounds, rule = owner.config.get(key), f"config.{key}"
        if value is None:
            continue
        if bounds is None:
            what = f"sets {key}, and {_rule(owner, 'config')} does not allow it: leave it out"
            yield _broken_rule(WRONG_CONFIG, owner, "config", topic, what, field=rule)
        elif (wanted := _broken(key, value, bounds)) is not None:
            what = f"sets {key}, and {_rule(owner, rule)} wants {wanted}: change it"
            yield _broken_rule(WRONG_CONFIG, owner, rule, topic, what, field=rule)


def _broken(key: str, value: str, bounds: ConfigBounds) -> str | None:
    """Return what the bounds want that the value is not; what is no number is below and above every bound."""
    found, least, most = (None if each is None else _number(key, each) for each in (value, bounds.least, bounds.most))
    if bounds.least is not None and (found is None or least is None or found < least):
        return f"{bounds.least} or more"
    if bounds.most is not None and (found is None or most is None or found > most):
        return f"{bounds.most} or less"
    if bounds.one_of and not any(is_same_value(key, value, each) for each in bounds.one_of):
        return f"one of {' | '.join(bounds.one_of)}"
    return None


def _number(key: str, value: str) -> float | None:
    known = TOPIC_CONFIGS.get(key)
    try:
        return known.number(value) if known is not None else float(value)
    except ValueError:
        return None


def _rule(owner: DesiredOwner, path: str) -> str:
    return f"{path} of {owner.name}{in_brackets(owner.where(path))}"


def _broken_rule(
    code: str, owner: DesiredOwner, rule: str, topic: DesiredTopic, what: str, *, field: str = ""
) -> Problem:
    """Return that a topic breaks a rule of its owner: at a field of the topic, or at its document."""
    return _violation(code, f"topic {topic.name} {what}, or ask {owner}", topic.where(field), owner.where(rule))


def _violation(code: str, message: str, at: Location | None, *beside: Location | None) -> Problem:
    return Problem(code, message, at, Severity.VIOLATION, tuple(place for place in beside if place is not None))
