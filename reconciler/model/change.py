"""What differs between desired and observed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.effect import Effect
from reconciler.model.move import Election, Reason
from reconciler.model.problem import Location, Problem
from reconciler.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic to create; `assignment` maps a partition to its ordered replicas, empty until the planner placed it."""

    topic: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    at: Location | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Partitions to add: from `from_count` to `to_count`; `assignment` covers the new ones only."""

    topic: str
    from_count: int
    to_count: int
    assignment: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    at: Location | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """Dynamic topic configs to set and to delete; `before` holds the present override of each key, None for none."""

    topic: str
    set: Mapping[str, str] = field(default_factory=dict)
    delete: tuple[str, ...] = ()
    before: Mapping[str, str | None] = field(default_factory=dict)
    at: Location | None = None
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """A topic to delete; `topic_id` guards against one made again under the same name."""

    topic: str
    topic_id: str | None = None
    at: Location | None = None
    effects: tuple[Effect, ...] = ()


TopicChange = CreateTopic | CreatePartitions | AlterConfigs | DeleteTopic


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of one topic, observed against desired; None where it is not set."""

    topic: str
    field: str
    old: str | None
    new: str | None
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A partition that breaks a rule today: which rule, in words, and where it is written."""

    topic_partition: TopicPartition
    reason: Reason
    detail: str
    at: Location | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """All differences: what topics need, which partitions break which rule, which leaders to elect, what is drift.

    `broken_rules` holds the most urgent rule that each partition breaks, which gives its move a reason; `also_broken`
    what it breaks beside that. `drift` holds what cannot be fixed, with the reason. Whether a balance is out of its
    target is the planner's word.
    """

    topic_changes: tuple[TopicChange, ...] = ()
    broken_rules: tuple[BrokenRule, ...] = ()
    elections: tuple[Election, ...] = ()
    drift: tuple[Problem, ...] = ()
    also_broken: tuple[BrokenRule, ...] = ()

    @property
    def every_broken_rule(self) -> tuple[BrokenRule, ...]:
        """All broken rules by partition, each one's most urgent first."""
        if not self.also_broken:
            return self.broken_rules
        return tuple(sorted((*self.broken_rules, *self.also_broken), key=lambda broken: broken.topic_partition))
