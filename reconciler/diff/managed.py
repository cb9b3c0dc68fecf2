"""Tells which topics the desired state speaks of: named ones, those a pattern covers, and, if asked, all others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredTopic
from reconciler.model.problem import Problem
from reconciler.model.words import named_some


def managed_topics(desired: Desired, observed: Cluster) -> Mapping[str, DesiredTopic]:
    """Return what is declared of each managed topic, observed or yet to be created, by name and sorted.

    A document that names the topic wins; then the longest pattern that matches; with `managed: all` an undeclared
    topic is managed with nothing written. What `topics.ignore` matches is managed only where a document names it.
    """
    managed = {name: topic for name, topic in desired.topics.items() if name in observed.topics or not topic.is_absent}
    for name in observed.topics:
        if name in managed or is_ignored(desired, name):
            continue
        pattern = covering_pattern(desired, name)
        if pattern is not None:
            managed[name] = replace(pattern, name=name)
        elif desired.cluster.topics.is_all_managed:
            managed[name] = DesiredTopic(name)
    return dict(sorted(managed.items()))


def is_ignored(desired: Desired, name: str) -> bool:
    """Whether `topics.ignore` matches that name."""
    return any(fnmatchcase(name, pattern) for pattern in desired.cluster.topics.ignore)


def covering_pattern(desired: Desired, name: str) -> DesiredTopic | None:
    """Return the document with the longest pattern that matches; equals say the same, or `ambiguous_patterns` tells."""
    matching = [pattern for pattern in desired.patterns if fnmatchcase(name, pattern.name)]
    return max(matching, key=lambda pattern: len(pattern.name), default=None)


def ambiguous_patterns(desired: Desired, observed: Cluster) -> Iterator[Problem]:
    """Yield each two patterns, equally long and the longest, that say different things of one observed topic.

    Which of them is meant would hang on the order of files, and there is none.
    """
    rivals = _rivals(desired.patterns)
    found: dict[tuple[str, str], list[str]] = {}
    for name in observed.topics if rivals else ():
        if name in desired.topics or is_ignored(desired, name):
            continue
        matching = [pattern for pattern in rivals if fnmatchcase(name, pattern.name)]
        first = covering_pattern(desired, name) if len(matching) > 1 else None
        for other in matching if first is not None else ():
            if first is not None and len(other.name) == len(first.name) and _says(other) != _says(first):
                found.setdefault((first.name, other.name), []).append(name)
    patterns = {pattern.name: pattern for pattern in desired.patterns}
    for (first_name, other_name), names in sorted(found.items()):
        first_at, other_at = (patterns[name].where("") for name in (first_name, other_name))
        message = (
            f"topic {named_some(sorted(names), 1)}: the patterns {first_name} ({first_at}) and {other_name} "
            f"({other_at}) are equally long and say different things: name the topic, or lengthen the "
            "pattern that is meant"
        )
        yield Problem("KR250", message, other_at)


def _rivals(patterns: Sequence[DesiredTopic]) -> Sequence[DesiredTopic]:
    """Return the patterns that are as long as another one that says something else."""
    alike: dict[int, list[DesiredTopic]] = {}
    for pattern in patterns:
        alike.setdefault(len(pattern.name), []).append(pattern)
    groups = [group for group in alike.values() if any(_says(each) != _says(group[0]) for each in group)]
    return [pattern for group in groups for pattern in group]


def _says(pattern: DesiredTopic) -> tuple[object, ...]:
    return pattern.config, pattern.placement, pattern.protect


def is_declared(desired: Desired, name: str) -> bool:
    """Whether a document names that topic or a pattern covers it."""
    return name in desired.topics or (not is_ignored(desired, name) and covering_pattern(desired, name) is not None)
