"""Assigns without regard to what members own: `range`, `server-range` and `roundrobin` (Kafka 4.1.1)."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from reconciler.groups.assignors.numbered import meets_racks, static_first, subscribed_topics
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class RangeAssignor:
    """Kafka's `range`: a run of consecutive partitions for each member, topic by topic; static members come first.

    Where racks help (KIP-881), partitions near a member come first, and topics of equal subscribers and equal size stay
    co-partitioned as far as their racks allow.
    """

    name = "range"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; owned partitions and the order of joining have no influence."""
        subscribers = _subscribers(members)
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


class ServerRangeAssignor:
    """The group coordinator's `range` (KIP-848): static members come first, so that they find theirs again.

    Where all subscribe to the same topics, all of one size, each member gets the same partitions of each. Racks have no
    influence.
    """

    name = "server-range"  # a consumer configures `range` as its remote assignor
    is_server_side = True

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; owned partitions and the order of joining have no influence."""
        given: dict[str, dict[str, tuple[int, ...]]] = {member.member_id: {} for member in members}
        subscribers = _subscribers(members)
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


class RoundRobinAssignor:
    """Kafka's `roundrobin`: deals all partitions, by topic and number, in turn; who does not subscribe is skipped."""

    name = "roundrobin"

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


def _subscribers(members: Sequence[Subscriber]) -> dict[str, list[Subscriber]]:
    """Return who subscribes to each topic, static members first."""
    subscribers: dict[str, list[Subscriber]] = defaultdict(list)
    for member in sorted(members, key=static_first):
        for name in set(member.subscription):
            subscribers[name].append(member)
    return subscribers


class _Share:
    """One topic on its way to its subscribers: what is left, and how many each may still take."""

    __slots__ = ("each", "extra", "held", "left", "needs_racks", "racks", "topic")

    def __init__(self, topic: SubscribedTopic, subscribers: Sequence[Subscriber]) -> None:
        self.topic = topic
        self.racks = {member.member_id: member.rack or None for member in subscribers}
        self.held: dict[str, list[int]] = {member_id: [] for member_id in self.racks}
        self.left = dict.fromkeys(range(topic.partitions))
        # Each member gets `each` partitions; `extra` members that are not full yet get one more.
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
            near = (partition for partition in self.left if self.is_near(member_id, partition))
            self._take(member_id, near)

    def give_rest(self) -> None:
        for member_id in self.racks:
            self._take(member_id, self.left)

    def _take(self, member_id: str, partitions: Iterable[int]) -> None:
        taken = list(islice(partitions, self.room(member_id)))
        if taken:  # a member that takes nothing must not use up an extra partition
            self.give(member_id, taken)


def _give_near(shares: Sequence[_Share]) -> None:
    """Hand out what is near its taker; of equally subscribed topics of one size, each number goes to one member."""
    alike: dict[tuple[tuple[tuple[str, str | None], ...], int], list[_Share]] = defaultdict(list)
    for share in shares:
        alike[tuple(share.racks.items()), share.topic.partitions if share.has_racks else 0].append(share)
    for together in alike.values():
        if len(together) > 1 and together[0].has_racks:
            _give_co_partitioned(together)
        elif len(together) == 1 and together[0].needs_racks:
            together[0].give_near()


def _give_co_partitioned(shares: Sequence[_Share]) -> None:
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
