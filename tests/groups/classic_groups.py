"""Scenarios as single rebalances of a client-side assignor, with what Kafka's class gave; plain facts about both."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from groups.java_assignors import AssignmentForm, ResultForm
from groups.scenarios import MemberForm, ScenarioForm, StepForm, TopicForm

from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber

COOPERATIVE = "cooperative-sticky"
CLASSIC = ("range", "roundrobin", "sticky", COOPERATIVE)

Owners = Mapping[tuple[str, int], str]


@dataclass(frozen=True, slots=True)
class Rebalance:
    """What an assignor is given, and what Kafka's class made of it."""

    where: str
    members: tuple[Subscriber, ...]
    topics: Mapping[str, SubscribedTopic]
    expected: Assignment

    @property
    def is_legal(self) -> bool:
        """Whether Kafka's class gave partitions to their subscribers alone."""
        return all(set(self.expected[member.member_id]) <= set(member.subscription) for member in self.members)


def rebalances(scenario: ScenarioForm, assignor: str, results: Sequence[ResultForm]) -> Iterator[Rebalance]:
    """Return every rebalance of a scenario, each round of a cooperative one; members bring what Kafka's class left."""
    held: dict[str, tuple[Mapping[str, tuple[int, ...]], int]] = {}
    generation = 0
    topics = scenario["topics"]
    for number, (step, result) in enumerate(zip(scenario["steps"], results, strict=True)):
        topics = step.get("topics", topics)
        generation = max([generation, *(member.get("generation", 0) for member in step["members"])])
        members = _members(step, held)
        rounds = result["rounds"] if "rounds" in result else [result["assignment"]]
        for round_number, expected in enumerate(map(_assignment, rounds)):
            where = f"{scenario['id']} step {number} round {round_number} {assignor}"
            yield Rebalance(where, members, _topics(topics), expected)
            generation += 1
            members = rejoining(members, expected, generation)
        held = {_identity(member): (member.owned, generation) for member in members}


def after(rebalance: Rebalance) -> tuple[Subscriber, ...]:
    """Return the members as they come to the next rebalance."""
    return rejoining(rebalance.members, rebalance.expected, max(member.generation for member in rebalance.members) + 1)


def owners(assignment: Assignment) -> Owners:
    """Return who owns each partition; fails where two do."""
    pairs = [
        ((topic, partition), member_id)
        for member_id, topics in assignment.items()
        for topic, partitions in topics.items()
        for partition in partitions
    ]
    twice = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
    assert twice == []
    return dict(pairs)


def counts(assignment: Assignment) -> dict[str, int]:
    """Return how many partitions each member has."""
    return {member_id: sum(map(len, topics.values())) for member_id, topics in assignment.items()}


def pairs_apart(assignment: Assignment) -> int:
    """Return the sum over all pairs of members of the difference of their counts."""
    held = list(counts(assignment).values())
    return sum(abs(one - other) for place, one in enumerate(held) for other in held[:place])


def moved(before: Assignment, now: Assignment) -> int:
    """Return how many partitions have another owner than before, though that one is still there."""
    owner = owners(now)
    return sum(member_id in now and owner[key] != member_id for key, member_id in owners(before).items())


def rejoining(members: Sequence[Subscriber], assignment: Assignment, generation: int = 1) -> tuple[Subscriber, ...]:
    """Return the members with what an assignment gave to them."""
    return tuple(replace(member, owned=assignment[member.member_id], generation=generation) for member in members)


def _members(step: StepForm, held: Mapping[str, tuple[Mapping[str, tuple[int, ...]], int]]) -> tuple[Subscriber, ...]:
    return tuple(_member(form, *held.get(form.get("instance") or form["id"], ({}, -1))) for form in step["members"])


def _member(form: MemberForm, owned: Mapping[str, tuple[int, ...]], generation: int) -> Subscriber:
    if "owned" in form:
        owned = {topic: tuple(partitions) for topic, partitions in form["owned"].items()}
    return Subscriber(
        form["id"],
        tuple(form["topics"]),
        form.get("instance"),
        form.get("rack"),
        owned,
        form.get("generation", generation),
    )


def _identity(member: Subscriber) -> str:
    return member.instance_id or member.member_id


def _topics(forms: Sequence[TopicForm]) -> dict[str, SubscribedTopic]:
    return {
        form["name"]: SubscribedTopic(
            form["name"], form["partitions"], form["id"], tuple(frozenset(racks) for racks in form.get("racks", ()))
        )
        for form in forms
    }


def _assignment(form: AssignmentForm) -> Assignment:
    return {
        member_id: {topic: tuple(partitions) for topic, partitions in topics.items()}
        for member_id, topics in form.items()
    }
