"""Kafka's `range`: a run of consecutive partitions for each member, topic by topic (RangeAssignor, 4.1.1; KIP-881)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from reconciler.groups.assignors.classic import static_first, subscribed_topics
from reconciler.groups.assignors.racks import meets_racks
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class RangeAssignor:
    """Divides each topic among its subscribers, static ones first; where racks help, partitions near them come first.

    With racks, topics of equal subscribers and equal size stay co-partitioned as far as their racks allow.
    """

    @property
    def name(self) -> str:
        """Return the name that a consumer configures."""
        return "range"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; owned partitions and the order of joining have no influence."""
        ordered = sorted(members, key=static_first)
        subscribers: dict[str, list[Subscriber]] = defaultdict(list)
        for member in ordered:
            for name in set(member.subscription):
                subscribers[name].append(member)
        shares = [_Share(topic, subscribers[topic.name]) for topic in subscribed_topics(members, topics)]
        if any(share.needs_racks for share in shares):
            _give_near(shares)
        for share in shares:
            share.give_rest()
        given: dict[str, dict[str, tuple[int, ...]]] = {member.member_id: {} for member in members}
        for share in shares:
            for member_id, held in share.held.items():
                if held:
                    given[member_id][share.topic.name] = tuple(sorted(held))
        return given


class _Share:
    """One topic on its way to its subscribers: what is left, and how many each may still take."""

    __slots__ = ("each", "extra", "held", "left", "needs_racks", "racks", "topic")

    def __init__(self, topic: SubscribedTopic, subscribers: Sequence[Subscriber]) -> None:
        self.topic = topic
        self.racks = {member.member_id: member.rack or None for member in subscribers}
        self.held: dict[str, list[int]] = {member_id: [] for member_id in self.racks}
        self.left = dict.fromkeys(range(topic.partitions))
        self.each, self.extra = divmod(topic.partitions, len(self.racks))
        self.needs_racks = meets_racks(self.racks.values(), topic.racks, topic.partitions)

    @property
    def has_racks(self) -> bool:
        return any(rack is not None for rack in self.racks.values())

    def room(self, member_id: str) -> int:
        return max(0, self.each + (self.extra > 0) - len(self.held[member_id]))

    def is_near(self, member_id: str, partition: int) -> bool:
        """Whether a replica stands in the member's rack; a member without a rack is near to all."""
        rack = self.racks[member_id]
        return rack is None or (partition < len(self.topic.racks) and rack in self.topic.racks[partition])

    def give(self, member_id: str, partitions: Iterable[int]) -> None:
        held = self.held[member_id]
        for partition in partitions:
            held.append(partition)
            del self.left[partition]
        if len(held) > self.each:
            self.extra -= 1

    def give_near(self) -> None:
        for member_id in self.racks:
            room = self.room(member_id)
            near = (partition for partition in self.left if self.is_near(member_id, partition))
            self._take(member_id, near, room)

    def give_rest(self) -> None:
        for member_id in self.racks:
            self._take(member_id, iter(self.left), self.room(member_id))

    def _take(self, member_id: str, partitions: Iterable[int], room: int) -> None:
        taken = [partition for partition, _ in zip(partitions, range(room), strict=False)]
        if taken:
            self.give(member_id, taken)


def _give_near(shares: Sequence[_Share]) -> None:
    """Hand out what is near its taker; of equally subscribed topics of one size, each number goes to one member."""
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Share]] = defaultdict(list)
    for share in shares:
        alike[tuple(share.racks.items()), share.topic.partitions if share.has_racks else 0].append(share)
    for together in alike.values():
        if len(together) > 1:
            _give_co_partitioned(together)
        elif together[0].needs_racks:
            together[0].give_near()


def _give_co_partitioned(shares: Sequence[_Share]) -> None:
    if not shares[0].has_racks:
        return
    takers = dict.fromkeys(shares[0].racks)
    for partition in range(shares[0].topic.partitions):
        for member_id in takers:
            if all(share.room(member_id) > 0 and share.is_near(member_id, partition) for share in shares):
                break
        else:
            continue
        for share in shares:
            share.give(member_id, (partition,))
        if not any(share.room(member_id) for share in shares):
            del takers[member_id]
