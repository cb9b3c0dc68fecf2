"""Which topics the desired state speaks of: named ones, those a pattern covers, and, if asked, all others."""

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, DesiredTopic


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
    """Return the document with the longest pattern that matches; the first in file order among equals."""
    matching = [pattern for pattern in desired.patterns if fnmatchcase(name, pattern.name)]
    return max(matching, key=lambda pattern: len(pattern.name), default=None)


def is_declared(desired: Desired, name: str) -> bool:
    """Whether a document names that topic or a pattern covers it."""
    return name in desired.topics or (not is_ignored(desired, name) and covering_pattern(desired, name) is not None)
