"""Simulates rebalance after rebalance: what each member would own, under any assignor, how evenly, and how surely.

The result may follow the order in which members are walked. In Kafka that is a hash map's, which no client can know, so
the same is simulated in other orders, and what differs is said to be unsure.
"""

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.groups.model.simulation import Identity, Member, Outcome, Scenario, Stats, pair_score, partition_counts
from reconciler.model.assignment import Assignment, Assignor, Received, SubscribedTopic, Subscriber
from reconciler.model.problem import ReconcilerError
from reconciler.model.topic_partition import TopicPartition

COOPERATIVE, SERVER_UNIFORM = "cooperative-sticky", "server-uniform"
MAX_ROUNDS = 50  # rebalances of one step, after which an assignor that still moves partitions is given up
NO_GENERATION = -1  # Kafka's own mark of a member that comes from no rebalance
TOPIC_ORDER_UNKNOWN = "topics go by the hash of their ids, which are not known here: who gets which may differ"
_BUDGET = 300_000  # members and partitions, summed over steps and orders: what is simulated again takes a second or two
Owners = Mapping[tuple[str, int], Identity]
"""(topic, partition) -> who owns it."""


class AssignorFailed(ReconcilerError):
    """An assignor, as a rule a user's own, failed or returned what no group could hold."""

    code = "KR931"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One step of a group, and the assignor that is asked."""

    assignor: Assignor
    members: Sequence[Member]
    topics: Mapping[str, SubscribedTopic]
    group_id: str | None


@dataclass(frozen=True, slots=True)
class _Held:
    """What a member brings to a rebalance."""

    owned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    generation: int = NO_GENERATION


def is_cooperative(assignor: Assignor) -> bool:
    """Whether members keep what they own during a rebalance, so that what changes hands takes a second one (KIP-429).

    A class of a user's own says so with an attribute `is_cooperative = True`; it must then withhold, in `assign`, what
    another member still owns.
    """
    return assignor.name == COOPERATIVE or getattr(assignor, "is_cooperative", False) is True


def is_server_side(assignor: Assignor) -> bool:
    """Whether the group's coordinator runs it (KIP-848); a class of a user's own says `is_server_side = True`."""
    return getattr(assignor, "is_server_side", False) is True


def simulate(scenario: Scenario, assignor: Assignor) -> tuple[Outcome, ...]:
    """Return the outcome of each step under that assignor; each starts from what the one before left.

    A class of a user's own is made anew for it (`anew`), so that what it keeps from one rebalance to the next is of
    these steps alone.
    Raises AssignorFailed where the assignor fails, gives a partition twice or to who does not subscribe to it, or does
    not come to rest.
    """
    assignor = getattr(assignor, "anew", lambda: assignor)()
    held: dict[Identity, _Held] = {}
    topics: Mapping[str, SubscribedTopic] = {}
    before: Mapping[tuple[str, int], Identity] | None = None
    generation = 0
    outcomes = []
    for number, step in enumerate(scenario.steps):
        seen, topics = topics, scenario.topics_at(number)
        if is_server_side(assignor):
            held = _without(held, _made_again(seen, topics))
        generation = max([generation, *(member.generation or 0 for member in step.members)])
        start = {
            member.identity: _brought(member, held.get(member.identity, _Held()), assignor) for member in step.members
        }
        rounds = _rounds(_Asked(assignor, step.members, topics, scenario.scenario_id), start, generation)
        outcomes.append(
            Outcome(rounds, stats_of(step.members, rounds[-1], before), is_cooperative=is_cooperative(assignor))
        )
        generation += len(rounds)
        held = _held_after(step.members, rounds[-1], generation)
        before = owners(step.members, rounds[-1])
    return tuple(outcomes)


def _made_again(seen: Mapping[str, SubscribedTopic], topics: Mapping[str, SubscribedTopic]) -> frozenset[str]:
    """Return the topics that have another id than before: a coordinator's target goes by the ids (KIP-848)."""
    ids = {name: topic.topic_id for name, topic in seen.items()}
    return frozenset(
        name
        for name, topic in topics.items()
        if None not in {topic.topic_id, ids.get(name)} and topic.topic_id != ids[name]
    )


def _without(held: Mapping[Identity, _Held], gone: frozenset[str]) -> dict[Identity, _Held]:
    return {
        identity: replace(left, owned={topic: owned for topic, owned in left.owned.items() if topic not in gone})
        for identity, left in held.items()
    }


def _brought(member: Member, left: _Held, assignor: Assignor) -> _Held:
    if member.is_claim and is_server_side(assignor):
        return left
    return _Held(
        left.owned if member.owned is None else member.owned,
        left.generation if member.generation is None else member.generation,
    )


def _rounds(asked: _Asked, held: Mapping[Identity, _Held], generation: int) -> tuple[Assignment, ...]:
    """Return each rebalance of one step, up to the one after which nothing changes.

    An assignor may hand out differently for ever what everybody owns already. Kafka does not ask it again once nobody
    has to let anything go (KIP-429), so the first such rebalance is then the last.
    """
    assignor, members = asked.assignor, asked.members
    rounds = [_rebalance(asked, held, generation + 1)]
    is_quiet = [_is_quiet(members, held, rounds[0])]
    while is_cooperative(assignor):
        held = _held_after(members, rounds[-1], generation + len(rounds))
        following = _rebalance(asked, held, generation + len(rounds) + 1)
        if following == rounds[-1]:
            break
        rounds.append(following)
        is_quiet.append(_is_quiet(members, held, following))
        if len(rounds) > MAX_ROUNDS and True in is_quiet:
            return tuple(rounds[: is_quiet.index(True) + 1])
        if len(rounds) > MAX_ROUNDS:
            raise AssignorFailed(
                f"assignor {assignor.name} does not come to rest: partitions still change hands after {MAX_ROUNDS} "
                "rebalances; it must return the same assignment once every member owns what it was given"
            )
    return tuple(rounds)


def _is_quiet(members: Sequence[Member], held: Mapping[Identity, _Held], given: Assignment) -> bool:
    """Whether no member has to let go of a partition that it holds."""
    return not any(
        set(partitions).difference(given[member.member_id].get(topic, ()))
        for member in members
        for topic, partitions in held[member.identity].owned.items()
        if topic in member.subscription
    )


def _held_after(members: Sequence[Member], assignment: Assignment, generation: int) -> dict[Identity, _Held]:
    return {member.identity: _Held(assignment[member.member_id], generation) for member in members}


def _rebalance(asked: _Asked, held: Mapping[Identity, _Held], generation: int) -> Assignment:
    assignor, members, topics = asked.assignor, asked.members, asked.topics
    if not members:
        return {}
    is_kept = is_cooperative(assignor)
    subscribers = [_subscriber(member, held[member.identity], is_only_subscribed=is_kept) for member in members]
    try:
        # A copy: what a class of a user's own does to it must not reach the assignors that are asked after it.
        given, user_data = _parted(assignor.assign(subscribers, dict(topics)))
        assignment = checked(given, members, topics, assignor.name)
        if not is_server_side(assignor):
            _tell(asked, assignment, _checked_user_data(user_data, members, assignor.name), generation)
    except ReconcilerError:
        raise
    except (Exception, SystemExit) as error:  # what a user's own class raises can be anything; it is theirs to read
        told = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise AssignorFailed(f"assignor {assignor.name} failed: {told}") from error
    return assignment


def _parted(given: Assignment | tuple[Assignment, Mapping[str, bytes]]) -> tuple[Assignment, Mapping[str, bytes]]:
    """Return what an assignor gives as assignment and user data: a user's own class may return both."""
    assignment, user_data = given if isinstance(given, tuple) else (given, {})
    return assignment, user_data


def _checked_user_data(user_data: Mapping[str, bytes], members: Sequence[Member], name: str) -> Mapping[str, bytes]:
    known = {member.member_id for member in members}
    for member_id, data in user_data.items():
        if member_id not in known:
            raise AssignorFailed(f"assignor {name} gives user data to {member_id}, which is no member")
        if not isinstance(data, bytes):
            kind = type(data).__name__
            raise AssignorFailed(f"assignor {name} gives {member_id} user data of type {kind}: it must be bytes")
    return user_data


def _tell(asked: _Asked, assignment: Assignment, user_data: Mapping[str, bytes], generation: int) -> None:
    """Tell each member what it got, where the assignor wants to know: Kafka does so after each rebalance."""
    on_assignment = getattr(asked.assignor, "on_assignment", None)
    if on_assignment is None:
        return
    for member in asked.members:
        got, data = dict(assignment[member.member_id]), user_data.get(member.member_id)
        on_assignment(Received(member.member_id, got, data, generation, asked.group_id, member.instance_id))


def _subscriber(member: Member, held: _Held, *, is_only_subscribed: bool) -> Subscriber:
    """Return the member as its assignor sees it, `owned` being a copy that the assignor may write into.

    A cooperative member lets go what it no longer subscribes to before it joins (KIP-429); a sticky one sends its last
    assignment as it was.
    """
    kept = frozenset(member.subscription) if is_only_subscribed else held.owned.keys()
    owned = {topic: partitions for topic, partitions in held.owned.items() if topic in kept}
    return Subscriber(
        member.member_id,
        member.subscription,
        member.instance_id,
        member.rack,
        owned,
        held.generation,
        None if member.user_data is None else b64decode(member.user_data),
        member.client_id,
        member.host,
    )


def checked(
    given: Assignment, members: Sequence[Member], topics: Mapping[str, SubscribedTopic], name: str
) -> Assignment:
    """Return the assignment in its one form, every member there, sorted; raise AssignorFailed where it cannot be."""
    strangers = sorted(set(given) - {member.member_id for member in members})
    if strangers:
        raise AssignorFailed(f"assignor {name} gives partitions to {strangers[0]}, which is no member")
    taken: dict[tuple[str, int], str] = {}
    result: dict[str, dict[str, tuple[int, ...]]] = {member.member_id: {} for member in members}
    for member in members:
        own, subscribed = given.get(member.member_id, {}), frozenset(member.subscription)
        for topic in sorted(topic for topic in own if len(own[topic])):
            wrong = f"partitions of {topic} to {member.member_id}, which does not subscribe to it"
            if topic in subscribed:
                wrong = _wrong(own[topic], member.member_id, topics.get(topic, SubscribedTopic(topic, 0)), taken)
            if wrong:
                raise AssignorFailed(f"assignor {name} gives {wrong}")
            result[member.member_id][topic] = tuple(sorted(own[topic]))
    return result


def _wrong(partitions: Sequence[int], member_id: str, topic: SubscribedTopic, taken: dict[tuple[str, int], str]) -> str:
    """Return what no group could hold of these partitions of a topic, empty for nothing; `taken` takes note of them."""
    for partition in partitions:
        if type(partition) is not int:
            what = f"{partition!r}, a {type(partition).__name__}, as a partition of {topic.name}"
            return f"{member_id} {what}: it must be an int"
        if not 0 <= partition < topic.partitions:
            return f"{topic.name}-{partition} to {member_id}: there is no such partition"
        other = taken.setdefault((topic.name, partition), member_id)
        if other != member_id:
            return f"{topic.name}-{partition} to {other} and to {member_id}"
    if len(set(partitions)) != len(partitions):
        return f"{member_id} a partition of {topic.name} twice"
    return ""


def stats_of(members: Sequence[Member], assignment: Assignment, before: Owners | None) -> Stats:
    """Return how even the assignment is over these members, and how much moved between those that were there before."""
    counts = sorted(partition_counts(assignment).values())
    moved = None if before is None else len(moved_partitions(members, assignment, before))
    return Stats(counts[-1] if counts else 0, counts[0] if counts else 0, pair_score(counts), moved)


def owners(members: Sequence[Member], assignment: Assignment) -> dict[tuple[str, int], Identity]:
    """Return who owns each partition, by identity."""
    return {
        (topic, partition): member.identity
        for member in members
        for topic, partitions in assignment[member.member_id].items()
        for partition in partitions
    }


def moved_partitions(members: Sequence[Member], assignment: Assignment, before: Owners) -> list[TopicPartition]:
    """Return the partitions whose owner before is still a member and that now belong to another, sorted."""
    there = {member.identity for member in members}
    now = owners(members, assignment)
    return sorted(
        TopicPartition(*key) for key, owner in before.items() if owner in there and now.get(key, owner) != owner
    )


def sensitive_from_step(scenario: Scenario, assignor: Assignor, outcomes: Sequence[Outcome]) -> int | None:
    """Return the first step, counted from 0, that comes out otherwise where the members arrive in another order.

    None where none of the orders tried changed anything: up to six, fewer for a large group, at least one.
    """
    found = [
        number
        for other in _other_orders(scenario)
        for number, (told, again) in enumerate(zip(outcomes, simulate(other, assignor), strict=True))
        if told.rounds != again.rounds
    ]
    return min(found, default=None)


def is_topic_order_unknown(scenario: Scenario, assignor: Assignor) -> bool:
    """Whether several topics go by their ids, as inside server-uniform, and an id is missing."""
    if assignor.name != SERVER_UNIFORM:
        return False
    lists = [scenario.topics_at(number) for number in range(len(scenario.steps))]
    return any(len(topics) > 1 and any(topic.topic_id is None for topic in topics.values()) for topics in lists)


def _other_orders(scenario: Scenario) -> Iterator[Scenario]:
    weight = sum(
        len(step.members) + sum(topic.partitions for topic in scenario.topics_at(number).values())
        for number, step in enumerate(scenario.steps)
    )
    seen = [scenario]
    for order in _ORDERS[: max(1, _BUDGET // max(weight, 1))]:
        other = replace(
            scenario, steps=tuple(replace(step, members=tuple(order(step.members))) for step in scenario.steps)
        )
        if other not in seen:
            seen.append(other)
            yield other


def _by_id(members: Sequence[Member]) -> list[Member]:
    return sorted(members, key=lambda member: member.member_id)


# Reversed, by id, halves swapped, every other one first, by id reversed, the first one last.
_ORDERS: tuple[Callable[[Sequence[Member]], list[Member]], ...] = (
    lambda members: [*reversed(members)],
    _by_id,
    lambda members: [*members[len(members) // 2 :], *members[: len(members) // 2]],
    lambda members: [*members[1::2], *members[::2]],
    lambda members: [*reversed(_by_id(members))],
    lambda members: [*members[1:], *members[:1]],
)
