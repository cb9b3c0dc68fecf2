"""Finds what a plan breaks of what Owner documents allow: rules of the topics it changes, and how much there may be.

Only what the plan makes worse is a violation: a team that has outgrown its limit must not keep a broker from being
emptied. What is over a limit already is a warning.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from reconciler.diff.managed import is_ignored
from reconciler.diff.owners import (
    BYTES,
    PARTITIONS,
    TOPICS,
    claims,
    owned,
    present_topics,
    too_much,
    topic_problems,
    unknown_owners,
    unknown_size,
)
from reconciler.diff.topic_facts import owner_of
from reconciler.model.change import AlterConfigs, CreatePartitions, CreateTopic, DeleteTopic
from reconciler.model.cluster import Cluster
from reconciler.model.columns import Ints
from reconciler.model.desired import Desired
from reconciler.model.partition_table import PartitionTable
from reconciler.model.plan import Plan
from reconciler.model.problem import Problem, Severity
from reconciler.model.stage import moves_of
from reconciler.model.table_maker import table_of


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


_NOTHING = _Held()


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
    claimed = claims(desired, (topic for topic in present_topics(desired) if topic.name in changed))
    yield from unknown_owners(desired, claimed)
    for topic, owner in owned(claimed):
        yield from topic_problems(topic, owner)


def _of_limits(plan: Plan, desired: Desired, observed: Cluster) -> Iterator[Problem]:
    before, after = _before_and_after(plan, observed)
    theirs: dict[str, list[str]] = {owner.name: [] for owner in desired.owners}
    for name in sorted({*before, *after}):
        topic, whose = observed.topics.get(name), owner_of(desired, name)
        # Internal and ignored topics are nobody's, unless a document names them.
        is_nobodys = name not in desired.topics and (topic is None or topic.is_internal or is_ignored(desired, name))
        if whose in theirs and not is_nobodys:
            theirs[whose].append(name)
    for owner in desired.owners:
        was, will = (
            sum((held.get(name, _NOTHING) for name in theirs[owner.name]), _NOTHING) for held in (before, after)
        )
        for what in (TOPICS, PARTITIONS, BYTES):
            limit, is_least = owner.limits.get(what), what == BYTES and not will.is_size_known
            if limit is not None and will.of(what) <= limit and is_least:
                yield unknown_size(owner)
            if limit is None or will.of(what) <= limit:
                continue
            is_worse = will.of(what) > was.of(what)
            verb = "would have" if is_worse else "has"
            yield too_much(owner, what, will.of(what), verb, is_least=is_least, is_worse=is_worse)


def _before_and_after(plan: Plan, observed: Cluster) -> tuple[Mapping[str, _Held], Mapping[str, _Held]]:
    """Return how much there is of each topic, and how much there will be once the plan has run."""
    table = table_of(observed)
    lengths = {move.topic_partition: len(move.to_replicas) for move in moves_of(plan.stages)}
    rows = table.rows_of(lengths)
    factor = table.factor.copy()
    factor[rows[rows >= 0]] = np.array([*lengths.values()], dtype=np.int64)[rows >= 0]
    after = dict(_held(table, factor))
    for change in plan.topic_changes:
        match change:
            case CreateTopic():
                after[change.topic] = _Held(1, change.partitions)
            case CreatePartitions():
                after[change.topic] = replace(after[change.topic], partitions=change.to_count)
            case DeleteTopic():
                after[change.topic] = _NOTHING
            case AlterConfigs():
                pass
    return _held(table, table.factor), after


def _held(table: PartitionTable, factor: Ints) -> Mapping[str, _Held]:
    """Return how much there is of each topic where each row has so many replicas."""
    one = table.bytes_on_brokers
    sums = np.concatenate(([0], np.cumsum(np.where(one >= 0, one, 0) * factor)))
    unknown = np.concatenate(([0], np.cumsum(one < 0)))
    columns = (np.diff(table.start), np.diff(sums[table.start]), np.diff(unknown[table.start]))
    rows = zip(table.topics, *(column.tolist() for column in columns), strict=True)
    return {name: _Held(1, partitions, size, not untold) for name, partitions, size, untold in rows}
