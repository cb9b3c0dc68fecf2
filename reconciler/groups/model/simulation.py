"""Holds a group over time and what becomes of it: scenarios in, outcomes and comparisons out."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from reconciler.model.assignment import Assignment, SubscribedTopic
from reconciler.model.codec import HIDDEN, INLINE, REQUIRED, Key
from reconciler.model.topic_partition import PartitionObject, TopicPartition

_FEW = 8  # so many counts fit into a cell of a table one by one

Identity = tuple[bool, str]
"""Who a member is from step to step: (is static, its instance id or member id)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member at one step.

    `owned` and `generation` stand for what it brings from before; None means what the step before left to it. They are
    a claim where the member says so itself: the coordinator of a KIP-848 group goes by its own target, not by claims.
    """

    member_id: str
    subscription: tuple[str, ...]
    instance_id: str | None = None
    rack: str | None = None
    owned: Mapping[str, tuple[int, ...]] | None = None
    generation: int | None = None
    is_claim: bool = False

    @property
    def identity(self) -> Identity:
        """Who it is from step to step: a static member goes by its instance id, whatever its member id."""
        return (False, self.member_id) if self.instance_id is None else (True, self.instance_id)


@dataclass(frozen=True, slots=True)
class Step:
    """One rebalance: its members in the order in which they joined; `topics` None means as before."""

    members: tuple[Member, ...]
    topics: Mapping[str, SubscribedTopic] | None = None
    changes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Topics, and rebalance after rebalance; each step starts from what the one before left to the same members."""

    topics: Mapping[str, SubscribedTopic]
    steps: tuple[Step, ...]
    scenario_id: str | None = None

    def topics_at(self, number: int) -> Mapping[str, SubscribedTopic]:
        """Return the topics that exist at that step, counted from 0."""
        given = (step.topics for step in reversed(self.steps[: number + 1]) if step.topics is not None)
        return next(given, self.topics)


@dataclass(frozen=True, slots=True)
class Stats:
    """The figures that Kafka's own tests of assignors use.

    `pair_score` is Kafka's getBalanceScore: the sum over all pairs of members of the difference of their counts.
    `moved_from_survivors` counts partitions whose previous owner is still there and that now belong to another member;
    None where nothing came before.
    """

    most: Annotated[int, Key("max"), "Most partitions of one member."]
    fewest: Annotated[int, Key("min"), "Fewest partitions of one member."]
    pair_score: Annotated[int, Key("pair_score"), "Sum over pairs of members of the differences of their counts."]
    moved_from_survivors: Annotated[
        int | None, Key("moved_from_survivors"), "Partitions taken from members that stay; not there at the start."
    ] = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one step comes to under one assignor: its rebalances in order, the last one being stable.

    An eager assignor needs one. A cooperative one first withholds what has to change hands, so that its owner can let
    it go, and hands it out in the next (KIP-429).
    """

    rounds: tuple[Assignment, ...]
    stats: Stats
    is_cooperative: bool = False

    @property
    def assignment(self) -> Assignment:
        """What each member owns in the end."""
        return self.rounds[-1]


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a group's members own, seen as a whole: now, or after a change under one assignor."""

    assignor: Annotated[str, HIDDEN]
    assignment: Annotated[
        Mapping[str, Annotated[Mapping[str, Annotated[tuple[int, ...], "Partitions."]], "By topic."]],
        "What each member gets.",
    ]
    stats: Annotated[Stats, "The figures that Kafka's own tests of assignors use."]
    rebalances: Annotated[int, HIDDEN] = 0
    """How often the group stops for it, 0 for now."""
    moved: Annotated[tuple[TopicPartition, ...], HIDDEN] = ()
    """The partitions whose owner is still there and that now belong to another."""
    bytes_per_second: Annotated[
        Mapping[str, int] | None,
        Key("bytesPerSecondPerMember"),
        REQUIRED,
        "By member, what it reads; null where no loads are known.",
    ] = None
    doubts: Annotated[tuple[str, ...], HIDDEN] = ()
    """In sentences, what about it Kafka may decide otherwise."""

    @property
    def counts(self) -> Annotated[Mapping[str, int], Key("partitionsPerMember"), "By member."]:
        """How many partitions each member has."""
        return partition_counts(self.assignment)

    @property
    def idle(self) -> Annotated[tuple[str, ...], "Members that get nothing."]:
        """The members that read nothing."""
        return tuple(member_id for member_id, count in self.counts.items() if not count)

    @property
    def most_over_mean(self) -> Annotated[float | None, "The largest count over the mean."]:
        """The largest count of a member over the mean, to four digits; None where nothing is owned."""
        return _rounded(self.count_imbalance)

    @property
    def bytes_most_over_mean(self) -> Annotated[float | None, "The largest load over the mean."]:
        """The largest load of a member over the mean, to four digits; None where loads are unknown."""
        return _rounded(self.load_imbalance)

    @property
    def count_imbalance(self) -> float | None:
        """The largest count of a member over the mean; None where nothing is owned."""
        return _max_over_mean(list(self.counts.values()))

    @property
    def load_imbalance(self) -> float | None:
        """The largest load of a member over the mean; None where loads are unknown or nothing is read."""
        return None if self.bytes_per_second is None else _max_over_mean(list(self.bytes_per_second.values()))


@dataclass(frozen=True, slots=True)
class SharingAfter:
    """What a change comes to under one assignor."""

    sharing: Annotated[Sharing, INLINE]
    is_groups_own: Annotated[bool, "The assignor is the one in use."]

    @property
    def assignor(self) -> Annotated[str, "The assignor that hands out."]:
        """The assignor that hands out."""
        return self.sharing.assignor

    @property
    def rebalances(self) -> Annotated[int, "Rebalances until all is handed out."]:
        """Rebalances until all is handed out."""
        return self.sharing.rebalances

    @property
    def moved(self) -> Annotated[tuple[PartitionObject, ...], "Partitions that change owner."]:
        """Partitions that change owner."""
        return self.sharing.moved

    @property
    def doubts(self) -> Annotated[tuple[str, ...], "What Kafka might do otherwise."]:
        """What Kafka might do otherwise."""
        return self.sharing.doubts


@dataclass(frozen=True, slots=True)
class Comparison:
    """A group, what is changed, and what its members would own under each assignor."""

    group_id: Annotated[str, "The group."]
    state: Annotated[str, "Kafka's state of it."]
    own: Annotated[str | None, Key("assignor"), "The assignor in use."]
    changes: Annotated[tuple[str, ...], "What is supposed to change."]
    now: Annotated[Sharing, "As it is."]
    after: Annotated[tuple[Sharing, ...], HIDDEN]
    labels: Annotated[Mapping[str, str], HIDDEN] = field(default_factory=dict)
    """A member's id to the short text by which people know it."""
    notes: Annotated[tuple[str, ...], REQUIRED, "What to keep in mind."] = ()

    @property
    def told_after(self) -> Annotated[tuple[SharingAfter, ...], Key("after"), "As it would be, an entry an assignor."]:
        """What it would be, an entry an assignor."""
        return tuple(SharingAfter(each, each.assignor == self.own) for each in self.after)


@dataclass(frozen=True, slots=True)
class Simulated:
    """Who would get what. Null is unknown. Of a scenario file, groups-simulate-scenario.json is printed instead."""

    groups: Annotated[tuple[Comparison, ...], "The groups."]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _max_over_mean(values: list[int]) -> float | None:
    return max(values) * len(values) / sum(values) if sum(values) else None


def partition_counts(assignment: Assignment) -> dict[str, int]:
    """Return how many partitions each member has."""
    return {member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()}


def spread(counts: Iterable[int]) -> str:
    """Return counts from the largest on: `5-4-4`; of many, how often each: `5 x3, 4 x9`, or their range."""
    ordered = sorted(counts, reverse=True)
    if not ordered:
        return "no members"
    if len(ordered) <= _FEW:
        return "-".join(map(str, ordered))
    times = sorted(Counter(ordered).items(), reverse=True)
    if len(times) <= _FEW // 2:
        return ", ".join(f"{count:,} x{often:,}" for count, often in times)
    return f"{ordered[-1]:,} to {ordered[0]:,}, {len(ordered):,} members"


def pair_score(counts: Iterable[int]) -> int:
    """Return the sum over all pairs of the difference of their counts."""
    ordered = sorted(counts)
    # In ascending order, the one at a position is the larger in `position` pairs and the smaller in the others.
    return sum(count * (2 * position - len(ordered) + 1) for position, count in enumerate(ordered))
