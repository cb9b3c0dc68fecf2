"""Kafka's `roundrobin`: one turn over all members for the partitions of all topics (RoundRobinAssignor, 4.1.1)."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from reconciler.groups.assignors.classic import static_first, subscribed_topics
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class RoundRobinAssignor:
    """Deals all partitions, by topic and number, to the members in turn; who does not subscribe is skipped."""

    @property
    def name(self) -> str:
        """Return the name that a consumer configures."""
        return "roundrobin"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; owned partitions and the order of joining have no influence."""
        turn = sorted(members, key=static_first)
        seats: dict[str, list[int]] = defaultdict(list)
        for seat, member in enumerate(turn):
            for name in set(member.subscription):
                seats[name].append(seat)
        dealt: list[dict[str, list[int]]] = [defaultdict(list) for _ in turn]
        seat = 0
        for topic in subscribed_topics(members, topics):
            seated = seats[topic.name]
            for partition in range(topic.partitions):
                taker = seated[bisect_left(seated, seat) % len(seated)]
                dealt[taker][topic.name].append(partition)
                seat = (taker + 1) % len(turn)
        given = {
            member.member_id: {name: tuple(held) for name, held in sorted(hand.items())}
            for member, hand in zip(turn, dealt, strict=True)
        }
        return {member.member_id: given[member.member_id] for member in members}
