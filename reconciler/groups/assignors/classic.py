"""What Kafka's client-side assignors share: the order of members, and the topics there are to hand out."""

from collections.abc import Mapping, Sequence

from reconciler.model.assignment import SubscribedTopic, Subscriber
from reconciler.model.java_hash import java_order


def static_first(member: Subscriber) -> tuple[bool, bytes, bytes]:
    """Return the sort key of `range` and `roundrobin`: static members by instance id, then the others by member id."""
    by_id = java_order(member.member_id)
    if member.instance_id is None:
        return True, b"", by_id
    return False, java_order(member.instance_id), by_id


def subscribed_topics(
    members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]
) -> tuple[SubscribedTopic, ...]:
    """Return the topics that have partitions and a subscriber, as Java sorts their names."""
    wanted = {name for member in members for name in member.subscription}
    known = (topics[name] for name in wanted if name in topics)
    return tuple(sorted((topic for topic in known if topic.partitions), key=lambda topic: java_order(topic.name)))
