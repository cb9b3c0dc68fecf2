"""Holds a group over time and what becomes of it: scenarios in, outcomes and comparisons out."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from reconciler.model.assignment import BASE64, BASE64_FORM, MAX_PARTITIONS, Assignment, SubscribedTopic
from reconciler.model.codec import (
    DISTINCT,
    FILLED,
    HIDDEN,
    INLINE,
    NEVER_NULL,
    REQUIRED,
    SINGLE,
    SORTED,
    AtLeast,
    By,
    Check,
    Closed,
    Ids,
    Key,
    Malformed,
    Of,
    refuse_repeats,
)
from reconciler.model.topic_partition import PartitionObject, TopicPartition

_FEW = 8  # so many counts fit into a cell of a table one by one
_SCHEMA_LINK: Any = Annotated[str, "Where an editor finds this schema."]

Identity = tuple[bool, str]
"""Who a member is from step to step: (is static, its instance id or member id)."""


def _refuse_twice(names: tuple[str, ...]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise Malformed("", "names {} twice", name)


@dataclass(frozen=True, slots=True)
class Member:
    """A member at one step.

    `owned` and `generation` stand for what it brings from before; None means what the step before left to it. They are
    a claim where the member says so itself: the coordinator of a KIP-848 group goes by its own target, not by claims.
    """

    FORM: ClassVar = Closed()

    member_id: Annotated[str, Key("id"), FILLED, "Its member id."]
    subscription: Annotated[
        tuple[Annotated[str, FILLED], ...],
        Key("topics"),
        DISTINCT,
        Check(_refuse_twice),
        "What it subscribes to; a topic need not exist.",
    ]
    instance_id: Annotated[
        str | None,
        Key("instance"),
        "group.instance.id of a static member: from step to step it is the same one, whatever its member id.",
    ] = None
    rack: Annotated[str | None, "Its client.rack."] = None
    owned: Annotated[
        Mapping[str, Annotated[Ids, SORTED]] | None,
        "What it brings, topic to partitions, instead of what the step before left to it.",
    ] = None
    generation: Annotated[
        int | None, AtLeast(-1), "From which rebalance it brings that (-1: none), instead of the one before."
    ] = None
    user_data: Annotated[
        str | None,
        Key("userData"),
        BASE64_FORM,
        BASE64,
        "What its own assignor class sends with its subscription, base64: such as its weight; no other reads it.",
    ] = None
    client_id: Annotated[str, Key("clientId"), "Its client.id."] = ""
    host: Annotated[str, "Where it runs."] = ""
    is_claim: Annotated[bool, HIDDEN] = True

    @property
    def identity(self) -> Identity:
        """Who it is from step to step: a static member goes by its instance id, whatever its member id."""
        return (False, self.member_id) if self.instance_id is None else (True, self.instance_id)


def _refuse_same_member(members: tuple[Member, ...]) -> None:
    refuse_repeats((member.member_id for member in members), "id")
    refuse_repeats((member.instance_id for member in members), "instance")


def _refuse_other_racks(topic: SubscribedTopic) -> None:
    if topic.racks and len(topic.racks) != topic.partitions:
        message = f"must hold the racks of each of the {topic.partitions} partitions, not of {len(topic.racks)}"
        raise Malformed("/racks", message)


def _refuse_many_partitions(topics: Mapping[str, SubscribedTopic]) -> None:
    total = sum(topic.partitions for topic in topics.values())
    if total > MAX_PARTITIONS:
        raise Malformed("", f"must have at most {MAX_PARTITIONS} partitions in all, not {total}")


Topics = Annotated[
    Mapping[str, Annotated[SubscribedTopic, Check(_refuse_other_racks)]], By("name"), Check(_refuse_many_partitions)
]


@dataclass(frozen=True, slots=True)
class Step:
    """One rebalance: its members in the order in which they joined; `topics` None means as before."""

    FORM: ClassVar = Closed()

    members: Annotated[
        tuple[Member, ...],
        Of("members", most=100_000),
        Check(_refuse_same_member),
        "Who is there, in the order in which they joined; who was there in the step before brings what it owned.",
    ]
    topics: Annotated[Topics | None, NEVER_NULL, "The topics that exist from this step on."] = None
    changes: Annotated[tuple[str, ...], Key("change"), SINGLE, "What happened, in words; shown, never read."] = ()


@dataclass(frozen=True, slots=True)
class Scenario:
    """Topics, and rebalance after rebalance; each step starts from what the one before left to the same members."""

    FORM: ClassVar = Closed(
        {
            "$schema": _SCHEMA_LINK,
            "class": Annotated[str, "What kind of case it is; not read."],
            "expected": Annotated[Mapping[str, object], "What comes out, as -o json writes it; not read."],
            "insertion_order_sensitive_from_step": Annotated[
                Mapping[str, object], "Where the order of the members decides; not read."
            ],
        }
    )

    topics: Annotated[Topics, "The topics that exist."]
    steps: Annotated[tuple[Step, ...], Of("steps", 1, 1_000), "Rebalance after rebalance."]
    scenario_id: Annotated[str | None, Key("id"), "Its name in a list; by default its place there."] = None

    def topics_at(self, number: int) -> Mapping[str, SubscribedTopic]:
        """Return the topics that exist at that step, counted from 0."""
        given = (step.topics for step in reversed(self.steps[: number + 1]) if step.topics is not None)
        return next(given, self.topics)


@dataclass(frozen=True, slots=True)
class ScenarioList:
    """Several scenarios under one key."""

    FORM: ClassVar = Closed(
        {"meta": Annotated[Mapping[str, object], "What the file says of itself; not read."], "$schema": _SCHEMA_LINK}
    )
    SIZE: ClassVar = Of("scenarios", 1, 10_000)

    scenarios: Annotated[tuple[object, ...], SIZE, "Several scenarios, each on its own."]
    """As they stand there: each is read by itself, so that each tells what is wrong in it."""


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
