"""Describes what differs between desired and observed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from reconciler.model.codec import ALWAYS, FILLED, INLINE, OBJECT, REQUIRED, AtLeast, Ids
from reconciler.model.effect import Destruction, Effect, EffectClass
from reconciler.model.move import Election, Reason
from reconciler.model.problem import DRIFT, LEADERLESS, Location, Problem, ReportedProblem, warning
from reconciler.model.several import Failed, Outcomes
from reconciler.model.topic_partition import TopicPartition
from reconciler.model.words import MANY, labelled, named_some, size

_Topic = Annotated[str, "The topic."]
_At = Annotated[Location | None, "File and line that ask for it."]
_Effects = Annotated[tuple[Effect, ...], "What it destroys, or may cost; not there: it is harmless."]
_Assignment = Annotated[
    Mapping[int, Annotated[Ids, FILLED]],
    REQUIRED,
    "Partition to its ordered replicas; the first is the preferred leader. Empty until the planner placed it.",
]
_KIND = "What this change does."


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic to create."""

    kind: ClassVar[Annotated[Literal["createTopic"], _KIND]] = "createTopic"
    topic: _Topic
    partitions: Annotated[int, AtLeast(1), "How many."]
    replication_factor: Annotated[int, AtLeast(1), "Replicas of each partition."]
    configs: Annotated[Mapping[str, str], REQUIRED, "The overrides it starts with."] = field(default_factory=dict)
    assignment: _Assignment = field(default_factory=dict)
    at: _At = None
    effects: _Effects = ()


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Partitions to add to a topic."""

    kind: ClassVar[Annotated[Literal["createPartitions"], _KIND]] = "createPartitions"
    topic: _Topic
    from_count: Annotated[int, "How many there are."]
    to_count: Annotated[int, "How many there will be."]
    assignment: Annotated[_Assignment, "The new partitions alone: each to its ordered replicas."] = field(
        default_factory=dict
    )
    at: _At = None
    effects: _Effects = ()


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """Dynamic configs of a topic to set and to delete."""

    kind: ClassVar[Annotated[Literal["alterConfigs"], _KIND]] = "alterConfigs"
    topic: _Topic
    set: Annotated[Mapping[str, str], REQUIRED, "Overrides to set."] = field(default_factory=dict)
    delete: Annotated[tuple[str, ...], REQUIRED, "Overrides to delete."] = ()
    before: Annotated[Mapping[str, str | None], REQUIRED, "What each key was overridden with; null: it was not."] = (
        field(default_factory=dict)
    )
    at: _At = None
    effects: _Effects = ()


class ConfigOperation(StrEnum):
    """KIP-339's incremental operations."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One key of one resource; `value` is empty for DELETE, a comma-separated list for APPEND and SUBTRACT."""

    key: str
    operation: ConfigOperation
    value: str = ""


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """A topic to delete."""

    kind: ClassVar[Annotated[Literal["deleteTopic"], _KIND]] = "deleteTopic"
    topic: _Topic
    topic_id: Annotated[
        str | None, REQUIRED, "The id that it must have: one made again under the same name is not deleted."
    ] = None
    at: _At = None
    effects: _Effects = ()
    is_declared: Annotated[
        bool, ALWAYS, "Its own document says state: absent. Another topic is not deleted while a live group reads it."
    ] = False


TopicChange = CreateTopic | CreatePartitions | AlterConfigs | DeleteTopic


def class_of(change: TopicChange) -> EffectClass:
    """Return the gravest class of its effects; what a plan file of an older version deletes or grows has none there."""
    least = {DeleteTopic: EffectClass.DESTROYS, CreatePartitions: EffectClass.IRREVERSIBLE}
    classes = (*(effect.kind for effect in change.effects), least.get(type(change), EffectClass.HARMLESS))
    return min(classes, key=lambda each: each.rank)


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
    """A field of a topic, observed against desired."""

    topic: _Topic
    field: Annotated[str, "What differs, such as a config's key."]
    old: Annotated[str | None, "What is; null for nothing."]
    new: Annotated[str | None, "What shall be; null for nothing."]
    at: _At = None


class BrokenRule(NamedTuple):
    """A partition that breaks a rule today."""

    topic_partition: Annotated[TopicPartition, INLINE]
    reason: Annotated[Reason, "Which rule, as the reason of the move that mends it."]
    detail: Annotated[str, "How it is broken, in words."]
    at: _At = None


class LeaderlessPartition(NamedTuple):
    """A partition without a leader, or without a living replica in sync: no plan gives it a new replica."""

    topic_partition: TopicPartition
    brokers: tuple[int, ...]  # that have its records, ascending
    are_complete: bool  # whether each of them has every acknowledged record
    bytes: int | None  # of one replica; None: unknown
    at: Location | None = None


def leaderless_problems(partitions: Iterable[LeaderlessPartition]) -> Iterator[Problem]:
    """Yield one warning for all partitions whose records are on the same brokers."""
    alike: dict[tuple[tuple[int, ...], bool], list[LeaderlessPartition]] = {}
    for one in partitions:
        alike.setdefault((one.brokers, one.are_complete), []).append(one)
    for (brokers, are_complete), group in sorted(alike.items()):
        known = [one.bytes for one in group if one.bytes is not None]
        held = f"{'at least ' if len(known) < len(group) else ''}{size(sum(known))}" if known else "size unknown"
        message = (
            f"no leader: {named_some((one.topic_partition for one in group), MANY)} ({held},"
            f" {'all' if are_complete else 'some or all'} records on {labelled('broker', brokers)}). No plan gives such"
            " a partition a new replica: Kafka could elect it, empty, and the records would be lost. Bring back"
            f" {labelled('broker', brokers)} (doctor says how), then plan again"
        )
        yield warning(LEADERLESS, message, group[0].at)


@dataclass(frozen=True, slots=True)
class DirDifference:
    """A log dir that does not hold what is wished."""

    broker: Annotated[int, "The broker."]
    log_dir: Annotated[str, "The log dir's path."]
    detail: Annotated[str, "What differs, in words."]
    at: _At = None


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
    `log_dirs`: those of a broker that do not hold what is wished. `leaderless`: partitions that no plan moves.
    `spared`: why a topic that nobody declares, and that could be deleted, is not; a topic may have several reasons.
    Whether a balance is out of its target is the planner's word.
    """

    topic_changes: tuple[TopicChange, ...] = ()
    broken_rules: tuple[BrokenRule, ...] = ()
    elections: tuple[Election, ...] = ()
    drift: tuple[Problem, ...] = ()
    also_broken: tuple[BrokenRule, ...] = ()
    spared: tuple[Spared, ...] = ()
    log_dirs: tuple[DirDifference, ...] = ()
    leaderless: tuple[LeaderlessPartition, ...] = ()

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What stays as it is without being a violation, and why, and what seems to be a slip."""
        return (*self.drift, *leaderless_problems(self.leaderless))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that stays as it is, and why, and what seems to be a slip."""
        return (*(each.problem for each in self.spared), *self.warnings)

    @property
    def stays(self) -> tuple[Problem, ...]:
        """The differences among them."""
        return tuple(problem for problem in self.problems if problem.code in DRIFT)

    @property
    def deleted(self) -> frozenset[str]:
        """The topics that are deleted."""
        return frozenset(change.topic for change in self.topic_changes if isinstance(change, DeleteTopic))

    @property
    def topics(self) -> frozenset[str]:
        """The topics of which something is to change."""
        keys = (
            *(each.topic_partition for each in self.broken_rules),
            *(each.topic_partition for each in self.elections),
        )
        return frozenset({*(each.topic for each in self.topic_changes), *(key.topic for key in keys)})

    @property
    def every_broken_rule(self) -> tuple[BrokenRule, ...]:
        """All broken rules by partition, each one's most urgent first."""
        if not self.also_broken:
            return self.broken_rules
        return tuple(sorted((*self.broken_rules, *self.also_broken), key=lambda broken: broken.topic_partition))


@dataclass(frozen=True, slots=True)
class DiffReport:
    """What `diff` tells: what differs between desired and observed state; nothing is planned."""

    topic_changes: Annotated[tuple[TopicChange, ...], "What changes topics themselves; secrets are masked."]
    destroys: Annotated[Destruction | None, "What is destroyed in all; null: no records are."]
    differences: Annotated[tuple[Difference, ...], "Each changed field, old and new; secrets are masked."]
    broken_rules: Annotated[tuple[Annotated[BrokenRule, OBJECT], ...], "Partitions that break a rule today."]
    elections: Annotated[tuple[Election, ...], "Leaders to elect; no data moves."]
    drift: Annotated[
        tuple[ReportedProblem, ...],
        "What differs and is not put right, such as undeclared topics that may not be deleted.",
    ]
    log_dirs: Annotated[tuple[DirDifference, ...], "Log dirs that do not hold what is wished; not there: none."] = ()

    @classmethod
    def of(cls, found: Changes, fields: Iterable[Difference]) -> Self:
        """Return the report of these changes; nothing is masked yet."""
        return cls(
            topic_changes=found.topic_changes,
            destroys=destruction(found.topic_changes),
            differences=tuple(fields),
            broken_rules=found.every_broken_rule,
            elections=found.elections,
            drift=tuple(map(ReportedProblem.of, found.problems)),
            log_dirs=found.log_dirs,
        )


@dataclass(frozen=True, slots=True)
class DiffOfCluster:
    """What differs in one of several clusters."""

    cluster: Annotated[str, "The cluster's name."]
    report: Annotated[DiffReport, INLINE]


@dataclass(frozen=True, slots=True)
class DiffsReport:
    """What `diff` tells of several clusters."""

    clusters: Annotated[tuple[DiffOfCluster, ...], "What differs in each."]
    failed: Failed
    summary: Outcomes
