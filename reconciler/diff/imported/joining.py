"""Finds the declared class of each new topic: the one of its neighbours, else the one that says most of it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.diff.compare import compare
from reconciler.diff.imported.strongest_rules import judged
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.config_value import is_same_value
from reconciler.model.desired import Desired, DesiredTopic, Placement
from reconciler.model.imported import Adopted, FoundClass

Classes = Mapping[str, DesiredTopic]
"""What declared classes say, by their names."""
Changed = Callable[[Mapping[str, DesiredTopic]], Collection[str]]
"""Which of these topics a plan would change, declared so."""


def with_declared_classes(
    adopted: Adopted, classes: Classes, usual: Mapping[str, str], changed: Changed | None = None
) -> Adopted:
    """Return the same with the declared class of each topic that has one: what the class says is so, a topic only adds.

    `usual`: by topic, the class of most topics in its file, which goes first. `changed` judges as a plan does; None:
    nobody knows the cluster, and a class must have the very rules of its topics.
    """
    pending = {name: _candidates(topic, classes, usual.get(name), changed) for name, topic in adopted.topics.items()}
    class_of: dict[str, str] = {}
    while pending := {name: found for name, found in pending.items() if found}:
        tried = {name: found[0] for name, found in pending.items()}
        whole = {name: _over(classes[each], adopted.topics[name]) for name, each in tried.items()}
        refused = changed(whole) if changed is not None else ()
        class_of |= {name: each for name, each in tried.items() if name not in refused}
        pending = {name: found[1:] for name, found in pending.items() if name in refused}
    joined = tuple(_found(name, classes[name], class_of) for name in sorted({*class_of.values()}))
    return replace(adopted, joined=joined, class_of=class_of)


def changed_by_a_plan(base: Desired, observed: Cluster) -> Changed:
    """Return the judge of topics in the cluster of `base`, with no balance and no elections asked for."""

    def changed(topics: Mapping[str, DesiredTopic]) -> Collection[str]:
        desired = judged(base, topics)
        return compare(desired, observed, topic_rules(desired, observed)).topics

    return changed


def _candidates(topic: DesiredTopic, classes: Classes, usual: str | None, changed: Changed | None) -> Sequence[str]:
    """Return the classes that a topic could be of, the best first."""
    if topic.is_absent:
        return ()
    rules = replace(topic.placement, assignment=None)
    fitting = [
        name
        for name, each in classes.items()
        if (name == usual or any(_said_by(each)))
        and each.replication_factor in {None, topic.replication_factor}
        and all(is_same_value(key, topic.config.get(key), value) for key, value in each.config.items())
        and (changed is not None or each.placement == rules)
    ]
    return sorted(fitting, key=lambda name: (name != usual, *(-said for said in _said_by(classes[name])), name))


def _said_by(declared: DesiredTopic) -> tuple[int, int]:
    """Return how many configs a class writes, and how many rules."""
    return len(declared.config), (declared.replication_factor is not None) + (declared.placement != Placement())


def _over(declared: DesiredTopic, topic: DesiredTopic) -> DesiredTopic:
    """Return what is declared of a topic of that class that writes its numbers, its configs and its assignment."""
    placement = replace(declared.placement, assignment=topic.placement.assignment)
    return replace(topic, placement=placement, protect=declared.protect)


def _found(name: str, declared: DesiredTopic, class_of: Mapping[str, str]) -> FoundClass:
    config = {key: value for key, value in declared.config.items() if value is not None}
    topics = sum(each == name for each in class_of.values())
    return FoundClass(name, declared.replication_factor, declared.placement, config, topics)
