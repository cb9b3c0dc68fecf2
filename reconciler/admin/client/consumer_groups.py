"""Describes KIP-848 groups, in a request that the client library knows by number only."""

from collections.abc import Iterable

from kafka.protocol.api_message import ApiMessage

from reconciler.admin.client import messages
from reconciler.model.cluster import GroupMember


# The library is untyped: neither ApiMessage nor the argument of its metaclass is known to mypy.
class ConsumerGroupDescribeRequest(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """Asks a coordinator for its KIP-848 groups (API 69)."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=messages):  # type: ignore[misc, call-arg]
    """What a KIP-848 group looks like: its server-side assignor, and each member with what it owns by now."""


def members(told: ApiMessage) -> tuple[GroupMember, ...]:
    """Return the members of a described group, by id; what they own, not what the assignor wants them to own next."""
    found = (
        GroupMember(
            member_id=member.member_id,
            client_id=member.client_id,
            host=member.client_host.removeprefix("/"),
            instance_id=member.instance_id,
            rack=member.rack_id or None,
            subscription=tuple(sorted(member.subscribed_topic_names)),
            assignment=_owned(member.assignment.topic_partitions),
            subscription_pattern=member.subscribed_topic_regex or None,
        )
        for member in told.members
    )
    return tuple(sorted(found, key=lambda member: member.member_id))


def _owned(topics: Iterable[ApiMessage]) -> dict[str, tuple[int, ...]]:
    named = sorted(topics, key=lambda topic: topic.topic_name)
    return {topic.topic_name: tuple(sorted(topic.partitions)) for topic in named if topic.partitions}
