"""What differs between desired and observed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.effect import Destruction, Effect, EffectClass
from reconciler.model.move import Election, Reason
from reconciler.model.problem import DRIFT, Location, Problem
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
    """A topic to delete; `topic_id` guards against one made again under the same name.

    `is_declared`: its own document says `state: absent`. Another one is never deleted while a live group reads it.
    """

    topic: str
    topic_id: str | None = None
    at: Location | None = None
    effects: tuple[Effect, ...] = ()
    is_declared: bool = False


TopicChange = CreateTopic | CreatePartitions | AlterConfigs | DeleteTopic


def class_of(change: TopicChange) -> EffectClass:
    """Return the gravest class of its effects; what a plan file of an older version deletes or grows has none there."""
    least = {DeleteTopic: EffectClass.DESTROYS, CreatePartitions: EffectClass.IRREVERSIBLE}
    classes = (*(effect.kind for effect in change.effects), least.get(type(change), EffectClass.HARMLESS))
    return min(classes, key=lambda each: each.gravity)


def destruction(changes: Iterable[TopicChange]) -> Destruction | None:
    """Return what these changes destroy together, each topic counted once; None where nothing is."""
    lost = [change for change in changes if class_of(change) is EffectClass.DESTROYS]
    if not lost:
        return None
    effects = {each.topic: [one for one in each.effects if one.kind is EffectClass.DESTROYS] for each in lost}
    every = [effect for found in effects.values() for effect in found]
    readers = [effect.groups for effect in every if effect.groups is not None]
    return Destruction(
        topics=len(effects),
        bytes=sum(max((effect.bytes or 0 for effect in found), default=0) for found in effects.values()),
        is_size_known=all(found and all(one.bytes is not None for one in found) for found in effects.values()),
        is_most=any(effect.key is not None for effect in every),
        groups=len({name for names in readers for name in names}) if every and len(readers) == len(every) else None,
    )


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
class Spared:
    """A topic that is not deleted, and the violation that says why."""

    topic: str
    problem: Problem


@dataclass(frozen=True, slots=True)
class Changes:
    """All differences: what topics need, which partitions break which rule, which leaders to elect, what is drift.

    `broken_rules` holds the most urgent rule that each partition breaks, which gives its move a reason; `also_broken`
    what it breaks beside that. `drift` holds what cannot be fixed, with the reason, and what seems to be a slip.
    `spared`: why a topic that nobody declares, and that could be deleted, is not; a topic may have several reasons.
    Whether a balance is out of its target is the planner's word.
    """

    topic_changes: tuple[TopicChange, ...] = ()
    broken_rules: tuple[BrokenRule, ...] = ()
    elections: tuple[Election, ...] = ()
    drift: tuple[Problem, ...] = ()
    also_broken: tuple[BrokenRule, ...] = ()
    spared: tuple[Spared, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that stays as it is, and why, and what seems to be a slip."""
        return (*(each.problem for each in self.spared), *self.drift)

    @property
    def stays(self) -> tuple[Problem, ...]:
        """The differences among them."""
        return tuple(problem for problem in self.problems if problem.code in DRIFT)

    @property
    def every_broken_rule(self) -> tuple[BrokenRule, ...]:
        """All broken rules by partition, each one's most urgent first."""
        if not self.also_broken:
            return self.broken_rules
        return tuple(sorted((*self.broken_rules, *self.also_broken), key=lambda broken: broken.topic_partition))
