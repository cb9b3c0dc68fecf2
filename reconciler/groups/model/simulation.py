"""Holds a group over time and what becomes of it: scenarios in, outcomes and comparisons out."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from reconciler.model.assignment import Assignment, SubscribedTopic
from reconciler.model.topic_partition import TopicPartition

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
    """How even an assignment is, in partitions of one member, and what it cost.

    `pair_score` is Kafka's getBalanceScore: the sum over all pairs of members of the difference of their counts.
    `moved_from_survivors` counts partitions whose previous owner is still there and that now belong to another member;
    None where nothing came before.
    """

    most: int
    fewest: int
    pair_score: int
    moved_from_survivors: int | None = None


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
    """What a group's members own, seen as a whole: now, or after a change under one assignor.

    `rebalances` counts how often the group stops for it, 0 for now; `moved` holds the partitions whose owner is still
    there and that now belong to another; `bytes_per_second` maps a member to what it reads, None where no loads are
    known. `doubts` says in sentences what about it Kafka may decide otherwise.
    """

    assignor: str
    assignment: Assignment
    stats: Stats
    rebalances: int = 0
    moved: tuple[TopicPartition, ...] = ()
    bytes_per_second: Mapping[str, int] | None = None
    doubts: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """How many partitions each member has."""
        return partition_counts(self.assignment)

    @property
    def idle(self) -> tuple[str, ...]:
        """The members that read nothing."""
        return tuple(member_id for member_id, count in self.counts.items() if not count)

    @property
    def count_imbalance(self) -> float | None:
        """The largest count of a member over the mean; None where nothing is owned."""
        return _max_over_mean(list(self.counts.values()))

    @property
    def load_imbalance(self) -> float | None:
        """The largest load of a member over the mean; None where loads are unknown or nothing is read."""
        return None if self.bytes_per_second is None else _max_over_mean(list(self.bytes_per_second.values()))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group, what is changed, and what its members would own under each assignor; `own` names the group's own.

    `labels` maps a member id to the short text by which people know it.
    """

    group_id: str
    state: str
    own: str | None
    changes: tuple[str, ...]
    now: Sharing
    after: tuple[Sharing, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


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
