"""Kafka's `range` on the server's side (KIP-848, RangeAssignor of the group coordinator, 4.1.1)."""

from collections.abc import Mapping, Sequence

from reconciler.groups.assignors.classic import static_first, subscribed_topics
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class ServerRangeAssignor:
    """Divides each topic among its subscribers in runs; static members first, so that they find theirs again.

    Where all subscribe to the same topics, all of one size, each member gets the same partitions of each. Racks have no
    influence.
    """

    is_server_side = True

    @property
    def name(self) -> str:
        """Return the name under which it is known here; a consumer configures `range` as its remote assignor."""
        return "server-range"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; owned partitions and the order of joining have no influence."""
        given: dict[str, dict[str, tuple[int, ...]]] = {member.member_id: {} for member in members}
        ordered = sorted(members, key=static_first)
        subscribers: dict[str, list[Subscriber]] = {}
        for member in ordered:
            for name in set(member.subscription):
                subscribers.setdefault(name, []).append(member)
        for topic in subscribed_topics(members, topics):
            takers = subscribers[topic.name]
            each, extra = divmod(topic.partitions, len(takers))
            start = 0
            for place, member in enumerate(takers):
                end = start + each + (place < extra)
                if start < end:
                    given[member.member_id][topic.name] = tuple(range(start, end))
                start = end
        return given
