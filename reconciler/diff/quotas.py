"""Finds what a plan breaks of what Owner documents allow: rules of the topics it changes, and how much there may be.

Only what the plan makes worse is a violation: a team that has outgrown its limit must not keep a broker from being
emptied. What is over a limit already is a warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.diff.managed import is_ignored
from reconciler.diff.owners import BYTES, PARTITIONS, TOPICS, present_topics, too_much, topic_problems, unknown_owners
from reconciler.diff.topic_facts import owner_of
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster, Topic
from reconciler.model.desired import Desired
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import moves_of


@dataclass(frozen=True, slots=True)
class _Held:
    """How much there is of a topic; `bytes` of all replicas, at least where `is_size_known` is false."""

    topics: int = 0
    partitions: int = 0
    bytes: int = 0
    is_size_known: bool = True

    def __add__(self, other: "_Held") -> "_Held":
        is_known = self.is_size_known and other.is_size_known
        return _Held(self.topics + other.topics, self.partitions + other.partitions, self.bytes + other.bytes, is_known)

    def of(self, what: str) -> int:
        return {TOPICS: self.topics, PARTITIONS: self.partitions, BYTES: self.bytes}[what]


def with_quotas(plan: Plan, desired: Desired, observed: Cluster) -> Plan:
    """Return the plan with a violation for each rule of an owner that it breaks, a warning where it is broken now."""
    if not desired.owners:
        return plan
    found = [*_of_topics(plan, desired), *_of_limits(plan, desired, observed)]
    warnings = (one for one in found if one.severity is Severity.WARNING)
    violations = (one for one in found if one.severity is Severity.VIOLATION)
    return replace(plan, warnings=(*plan.warnings, *warnings), violations=(*plan.violations, *violations))


def _of_topics(plan: Plan, desired: Desired) -> Iterator[Problem]:
    """Yield what the topics that the plan makes, grows or gives configs or replicas break."""
    raised = (move for move in moves_of(plan.stages) if len(move.to_replicas) > len(move.from_replicas))
    changed = {change.topic for change in plan.topic_changes if not isinstance(change, DeleteTopic)}
    changed |= {move.topic_partition.topic for move in raised}
    topics = [topic for topic in present_topics(desired) if topic.name in changed]
    yield from unknown_owners(desired, topics)
    for topic in topics:
        yield from topic_problems(desired, topic)


def _of_limits(plan: Plan, desired: Desired, observed: Cluster) -> Iterator[Problem]:
    before, after = _before(desired, observed), _after(plan, observed)
    owned: dict[str, list[str]] = {owner.name: [] for owner in desired.owners}
    for name in sorted({*before, *after}):
        whose = owner_of(desired, name)
        if whose in owned and (name in before or name in desired.topics):
            owned[whose].append(name)
    for owner in desired.owners:
        names = owned[owner.name]
        was = sum((before[name] for name in names if name in before), start=_Held())
        will = sum((after.get(name, before.get(name, _Held())) for name in names), start=_Held())
        for what in (TOPICS, PARTITIONS, BYTES):
            limit = owner.limits.get(what)
            if limit is None or will.of(what) <= limit:
                continue
            is_worse = will.of(what) > was.of(what)
            is_least = what == BYTES and not will.is_size_known
            verb = "would have" if is_worse else "has"
            yield too_much(owner, what, will.of(what), verb, is_least=is_least, is_worse=is_worse)


def _before(desired: Desired, observed: Cluster) -> Mapping[str, _Held]:
    """Return what there is of each topic; internal and ignored ones are nobody's, unless a document names them."""
    return {
        name: _held(topic, {})
        for name, topic in observed.topics.items()
        if name in desired.topics or not (topic.is_internal or is_ignored(desired, name))
    }


def _after(plan: Plan, observed: Cluster) -> Mapping[str, _Held]:
    """Return what there will be of each topic that the plan changes."""
    lengths: dict[str, dict[int, int]] = {}
    for move in moves_of(plan.stages):
        lengths.setdefault(move.topic_partition.topic, {})[move.topic_partition.partition] = len(move.to_replicas)
    found = {name: _held(observed.topics[name], counts) for name, counts in lengths.items() if name in observed.topics}
    for change in plan.topic_changes:
        match change:
            case CreateTopic():
                found[change.topic] = _Held(1, change.partitions)
            case CreatePartitions():
                now = found.get(change.topic) or _held(observed.topics[change.topic], {})
                found[change.topic] = replace(now, partitions=change.to_count)
            case DeleteTopic():
                found[change.topic] = _Held()
            case AlterConfigs():
                pass
    return found


def _held(topic: Topic, lengths: Mapping[int, int]) -> _Held:
    """Return how much there is of the topic, with as many replicas of a partition as `lengths` has."""
    sizes = [
        None
        if one.bytes_on_brokers is None
        else one.bytes_on_brokers * lengths.get(one.partition, len(one.target_replicas))
        for one in topic.partitions
    ]
    known = [size for size in sizes if size is not None]
    return _Held(1, len(sizes), sum(known), len(known) == len(sizes))
