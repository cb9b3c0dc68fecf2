"""Rebalance after rebalance: what each member would own, under any assignor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.groups.model.scenario import Member, Scenario
from reconciler.groups.model.simulation import Outcome
from reconciler.groups.simulate.evenness import Identity, owners, stats_of
from reconciler.model.assignment import Assignment, Assignor, SubscribedTopic, Subscriber
from reconciler.model.problem import ReconcilerError

COOPERATIVE = "cooperative-sticky"
MAX_ROUNDS = 50
NO_GENERATION = -1


class AssignorFailed(ReconcilerError):
    """An assignor, as a rule a user's own, failed or returned what no group could hold."""

    code = "KR931"


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

    Raises AssignorFailed where the assignor fails, gives a partition twice or to who does not subscribe to it, or does
    not come to rest.
    """
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
        rounds = _rounds(assignor, step.members, topics, start, generation)
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


def _rounds(
    assignor: Assignor,
    members: Sequence[Member],
    topics: Mapping[str, SubscribedTopic],
    held: Mapping[Identity, _Held],
    generation: int,
) -> tuple[Assignment, ...]:
    """Return each rebalance of one step, up to the one after which nothing changes.

    An assignor may hand out differently for ever what everybody owns already. Kafka does not ask it again once nobody
    has to let anything go (KIP-429), so the first such rebalance is then the last.
    """
    rounds = [_rebalance(assignor, members, topics, held)]
    is_quiet = [_is_quiet(members, held, rounds[0])]
    while is_cooperative(assignor):
        held = _held_after(members, rounds[-1], generation + len(rounds))
        following = _rebalance(assignor, members, topics, held)
        if following == rounds[-1]:
            break
        rounds.append(following)
        is_quiet.append(_is_quiet(members, held, following))
        if len(rounds) > MAX_ROUNDS:
            return tuple(rounds[: _first_quiet(assignor, is_quiet) + 1])
    return tuple(rounds)


def _is_quiet(members: Sequence[Member], held: Mapping[Identity, _Held], given: Assignment) -> bool:
    """Whether no member has to let go of a partition that it holds."""
    return not any(
        set(partitions).difference(given[member.member_id].get(topic, ()))
        for member in members
        for topic, partitions in held[member.identity].owned.items()
        if topic in member.subscription
    )


def _first_quiet(assignor: Assignor, is_quiet: Sequence[bool]) -> int:
    if True not in is_quiet:
        raise AssignorFailed(
            f"assignor {assignor.name} does not come to rest: partitions still change hands after {MAX_ROUNDS} "
            "rebalances; it must return the same assignment once every member owns what it was given"
        )
    return is_quiet.index(True)


def _held_after(members: Sequence[Member], assignment: Assignment, generation: int) -> dict[Identity, _Held]:
    return {member.identity: _Held(assignment[member.member_id], generation) for member in members}


def _rebalance(
    assignor: Assignor,
    members: Sequence[Member],
    topics: Mapping[str, SubscribedTopic],
    held: Mapping[Identity, _Held],
) -> Assignment:
    if not members:
        return {}
    is_kept = is_cooperative(assignor)
    subscribers = [_subscriber(member, held[member.identity], is_only_subscribed=is_kept) for member in members]
    try:
        # A copy: what a class of a user's own does to it must not reach the assignors that are asked after it.
        given = assignor.assign(subscribers, dict(topics))
        return checked(given, members, topics, assignor.name)
    except ReconcilerError:
        raise
    except (Exception, SystemExit) as error:  # what a user's own class raises can be anything; it is theirs to read
        told = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise AssignorFailed(f"assignor {assignor.name} failed: {told}") from error


def _subscriber(member: Member, held: _Held, *, is_only_subscribed: bool) -> Subscriber:
    """Return the member as its assignor sees it, `owned` being a copy that the assignor may write into.

    A cooperative member lets go what it no longer subscribes to before it joins (KIP-429); a sticky one sends its last
    assignment as it was.
    """
    kept = frozenset(member.subscription) if is_only_subscribed else held.owned.keys()
    owned = {topic: partitions for topic, partitions in held.owned.items() if topic in kept}
    return Subscriber(member.member_id, member.subscription, member.instance_id, member.rack, owned, held.generation)


def checked(
    given: Assignment, members: Sequence[Member], topics: Mapping[str, SubscribedTopic], name: str
) -> Assignment:
    """Return the assignment in its one form, every member there, sorted; raise AssignorFailed where it cannot be."""
    strangers = sorted(set(given) - {member.member_id for member in members})
    if strangers:
        raise AssignorFailed(f"assignor {name} gives partitions to {strangers[0]}, which is no member")
    handed = _HandedOut(f"assignor {name} gives", topics)
    return {member.member_id: handed.checked(member, given.get(member.member_id, {})) for member in members}


@dataclass(frozen=True, slots=True)
class _HandedOut:
    """What has been given to whom so far; `gives` begins what is said of a fault."""

    gives: str
    topics: Mapping[str, SubscribedTopic]
    taken: dict[tuple[str, int], str] = field(default_factory=dict)

    def checked(self, member: Member, given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Return what the member is given, in order, once none of it is a fault."""
        subscribed = frozenset(member.subscription)
        owned = {topic: given[topic] for topic in sorted(given) if len(given[topic])}
        for topic in owned:
            if topic not in subscribed:
                reader = f"{member.member_id}, which does not subscribe to it"
                raise AssignorFailed(f"{self.gives} partitions of {topic} to {reader}")
        return {topic: self._checked(member.member_id, topic, partitions) for topic, partitions in owned.items()}

    def _checked(self, member_id: str, topic: str, partitions: Sequence[int]) -> tuple[int, ...]:
        count = self.topics[topic].partitions if topic in self.topics else 0
        for partition in partitions:
            if type(partition) is not int:
                what = f"{partition!r}, a {type(partition).__name__}, as a partition of {topic}"
                raise AssignorFailed(f"{self.gives} {member_id} {what}: it must be an int")
            if not 0 <= partition < count:
                raise AssignorFailed(f"{self.gives} {topic}-{partition} to {member_id}: there is no such partition")
            other = self.taken.setdefault((topic, partition), member_id)
            if other != member_id:
                raise AssignorFailed(f"{self.gives} {topic}-{partition} to {other} and to {member_id}")
        if len(set(partitions)) != len(partitions):
            raise AssignorFailed(f"{self.gives} {member_id} a partition of {topic} twice")
        return tuple(sorted(partitions))
