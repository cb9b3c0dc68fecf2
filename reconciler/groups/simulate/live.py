"""Shows an observed group as its assignor sees it: members with what they own, topics with their racks."""

from collections.abc import Collection, Mapping, Sequence

from reconciler.groups.model.simulation import Member
from reconciler.model.assignment import SubscribedTopic
from reconciler.model.cluster import CLASSIC, CONSUMER, Cluster, Group, GroupMember, Topic

# One rebalance ago: what every present member owns is of the same generation.
_PRESENT = 1
_START_OF_UUID = 8


def is_assigned(group: Group) -> bool:
    """Whether an assignor of consumers decides in that group; one that only holds offsets may get members.

    None does in a share group, whose members read the same partitions together (KIP-932).
    """
    return group.kind == CONSUMER or (group.kind == CLASSIC and group.protocol_type in {CONSUMER, ""})


def own_assignor(group: Group) -> str | None:
    """Return the name by which the group's own assignor is known here, None where it is not told.

    A KIP-848 group names `uniform` or `range`, which the broker computes.
    """
    if not group.protocol:
        return None
    return f"server-{group.protocol}" if group.kind == CONSUMER else group.protocol


def present_members(group: Group) -> tuple[Member, ...]:
    """Return the group's members as they are, with what they own, sorted by id."""
    by_pattern = _topics_by_pattern(group)
    return tuple(
        Member(
            member.member_id,
            _subscription(member, by_pattern),
            member.instance_id,
            member.rack,
            {topic: tuple(sorted(owned)) for topic, owned in sorted(member.assignment.items()) if owned},
            _PRESENT,
            member.user_data,
            member.client_id,
            member.host,
            is_claim=False,
        )
        for member in sorted(group.members, key=lambda member: member.member_id)
    )


def subscribed_topic(cluster: Cluster, topic: Topic, partitions: int | None = None) -> SubscribedTopic:
    """Return the topic as an assignor sees it; where it grows, the racks of the new partitions are not known."""
    racks = [
        frozenset(
            broker.rack
            for replica in partition.target_replicas
            if (broker := cluster.brokers.get(replica)) is not None and broker.rack is not None
        )
        for partition in topic.partitions
    ]
    count = partitions or len(topic.partitions)
    racks += [frozenset()] * (count - len(racks))
    return SubscribedTopic(topic.name, count, topic.topic_id, tuple(racks) if any(racks) else ())


def labels(group: Group, members: Sequence[Member]) -> dict[str, str]:
    """Return the text by which people know each member: instance id, else client id, where no other shares it.

    Kafka's member ids are the client id and a UUID; a client id that several share is followed by the UUID's start.
    """
    known = {member.member_id: member for member in group.members}
    short = {member.member_id: _label(known.get(member.member_id), member) for member in members}
    taken = list(short.values())
    return {
        member_id: label if taken.count(label) == 1 else _with_start(member_id, label)
        for member_id, label in short.items()
    }


def _label(known: GroupMember | None, member: Member) -> str:
    return member.instance_id or (known.client_id if known is not None else "") or member.member_id


def _with_start(member_id: str, label: str) -> str:
    rest = member_id.removeprefix(label).lstrip("-")
    return f"{label}-{rest[:_START_OF_UUID]}".rstrip("-") if rest and rest != member_id else member_id


def _subscription(member: GroupMember, by_pattern: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return all that the member subscribes to; what it owns counts where its metadata does not tell."""
    names = {*member.subscription, *by_pattern.get(member.subscription_pattern or "", ())}
    return tuple(sorted(names or member.assignment))


def _topics_by_pattern(group: Group) -> dict[str, set[str]]:
    """Return what each pattern has found: the topics that members which subscribe by it own.

    Patterns are RE2, which Python's expressions are not, and every partition of a topic that one finds is owned.
    """
    found: dict[str, set[str]] = {}
    for member in group.members:
        if member.subscription_pattern is not None:
            found.setdefault(member.subscription_pattern, set()).update(member.assignment)
    return found
