"""Holds what is to change about a group: members joining, leaving, subscribing anew, topics growing."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.groups.model.simulation import Member
from reconciler.groups.simulate.live import subscribed_topic
from reconciler.model.assignment import SubscribedTopic
from reconciler.model.cluster import Cluster, Group
from reconciler.model.problem import InvalidInput, Problem

WRONG_CHANGE = "KR932"
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What is to change: members joining (id -> topics, empty for those of the others), leaving, subscribing anew.

    A member is named by its member id, its instance id, or its client id where only one has it. `partitions` maps a
    topic to its new count.
    """

    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    subscriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partitions: Mapping[str, int] = field(default_factory=dict)


def changed_members(group: Group, present: Sequence[Member], change: GroupChange) -> tuple[Member, ...]:
    """Return the members after the change, the new ones last; InvalidInput names every member that is not there."""
    problems: list[str] = []
    leaving = {_named(group, name, "--remove-member", problems): name for name in change.removed}
    reading = {name: _named(group, name, "--subscribe", problems) for name in sorted(change.subscriptions)}
    problems += _contradictions(reading, leaving, {member.member_id for member in present})
    anew = {member_id: change.subscriptions[name] for name, member_id in reading.items()}
    problems += [
        f"--add-member {name}: the group has a member of that name already"
        for name in change.added
        if any(name in {member.member_id, member.instance_id} for member in present)
    ]
    _refuse(problems)
    common = {member.subscription for member in present}
    if len(common) != 1:
        _refuse(
            f"--add-member {name}: say what it subscribes to, {name}:TOPIC,…, because the group's members "
            + ("differ in that" if common else "are none")
            for name, topics in change.added.items()
            if not topics
        )
    staying = [
        replace(member, subscription=anew.get(member.member_id, member.subscription))
        for member in present
        if member.member_id not in leaving
    ]
    joining = [Member(name, topics or next(iter(common))) for name, topics in change.added.items()]
    return (*staying, *joining)


def grown_topics(cluster: Cluster, partitions: Mapping[str, int]) -> dict[str, SubscribedTopic]:
    """Return every topic as an assignor sees it, some with more partitions; InvalidInput where one would shrink."""
    unknown = [
        f"there is no topic {name}: --partitions grows one that exists"
        for name in sorted(partitions)
        if name not in cluster.topics
    ]
    shrunk = [
        f"topic {name} has {len(cluster.topics[name].partitions)} partitions: Kafka can only add some, never go to "
        f"{count}"
        for name, count in sorted(partitions.items())
        if name in cluster.topics and count < len(cluster.topics[name].partitions)
    ]
    _refuse([*unknown, *shrunk])
    return {
        name: subscribed_topic(cluster, topic, partitions.get(name)) for name, topic in sorted(cluster.topics.items())
    }


def told(cluster: Cluster, change: GroupChange) -> Iterator[str]:
    """Yield each change in words."""
    for name, count in sorted(change.partitions.items()):
        yield f"{name} {len(cluster.topics[name].partitions)} -> {count} partitions"
    yield from (f"{name} leaves" for name in change.removed)
    for name, topics in change.added.items():
        yield f"{name} joins and reads {', '.join(topics)}" if topics else f"{name} joins"
    for name, topics in sorted(change.subscriptions.items()):
        yield f"{name} reads {', '.join(topics)}"


def _contradictions(reading: Mapping[str, str], leaving: Mapping[str, str], there: Collection[str]) -> Iterator[str]:
    """Yield each member that is to subscribe anew under two names, or to leave as well."""
    first: dict[str, str] = {}
    for name, member_id in reading.items():
        if member_id not in there:
            continue
        if member_id in leaving:
            yield f"--subscribe {name}: it leaves, by --remove-member {leaving[member_id]}; take one of the two"
        other = first.setdefault(member_id, name)
        if other != name:
            yield f"--subscribe {name}: --subscribe {other} is the same member; give it once, with all its topics"


def _named(group: Group, name: str, option: str, problems: list[str]) -> str:
    """Return the id of the member that is meant; add a problem where none is, or more than one."""
    for keys in ([m.member_id for m in group.members], [m.instance_id for m in group.members]):
        if name in keys:
            return group.members[keys.index(name)].member_id
    found = [member.member_id for member in group.members if member.client_id == name]
    if len(found) == 1:
        return found[0]
    if found:
        problems.append(f"{option} {name}: {len(found)} members have that client id; name one by its member id")
    else:
        there = ", ".join(sorted(member.member_id for member in group.members)[:_MOST_NAMED]) or "none"
        problems.append(f"{option} {name}: group {group.group_id} has no such member; its members: {there}")
    return name


def _refuse(messages: Iterable[str]) -> None:
    found = [Problem(WRONG_CHANGE, message) for message in messages]
    if found:
        raise InvalidInput(found)
