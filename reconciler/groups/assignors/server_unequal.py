"""Assigns `server-uniform` where members subscribe to different topics: the least loaded takes, the most loaded gives.

This follows UniformHeterogeneousAssignmentBuilder of Kafka 4.1.1 step by step, since its order decides who gets what.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from reconciler.groups.assignors.numbered import NOBODY
from reconciler.groups.assignors.server_order import Held, fullest_first, target_before
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber

MAX_TURNS = 16  # Kafka ends here, although subscriptions that overlap may leave it short of the best balance


def unequal_shares(members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
    """Return what each member gets: all keep what they may, the least loaded take the rest, loads are evened."""
    subscribers = _subscribers(members, topics)
    target = target_before(members, topics)
    owners = {name: [NOBODY] * topics[name].partitions for name in subscribers}
    sizes = [0] * len(members)
    for place, own in enumerate(target.held):
        for name, partitions in own.items():
            sizes[place] += len(partitions)
            owner_of = owners[name]
            for partition in partitions:
                owner_of[partition] = place
    names = fullest_first(subscribers, topics)
    for name in names:
        _give_free(owners[name], subscribers[name], sizes)
    _even(names, owners, subscribers, sizes)
    return _assignment(members, owners)


def _subscribers(members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> dict[str, list[int]]:
    """Return who subscribes to each topic that exists, in the order of the members."""
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, member in enumerate(members):
        alike[member.subscription].append(place)
    subscribers: dict[str, list[int]] = defaultdict(list)
    for subscription, places in alike.items():
        for name in set(subscription).intersection(topics):
            subscribers[name] += places
    return {name: sorted(places) for name, places in subscribers.items()}


def _give_free(owners: list[int], subscribers: Sequence[int], sizes: list[int]) -> None:
    if NOBODY not in owners:
        return
    ends = _Ends(subscribers, sizes)
    for partition, owner in enumerate(owners):
        if owner == NOBODY:
            taker = ends.next_least_loaded()
            owners[partition] = taker
            sizes[taker] += 1


def _even(
    names: Sequence[str], owners: Mapping[str, list[int]], subscribers: Mapping[str, Sequence[int]], sizes: list[int]
) -> None:
    """Go round the topics until a whole turn has moved nothing."""
    shared = [name for name in names if len(subscribers[name]) > 1]
    last_moved = None
    for _ in range(MAX_TURNS):
        for place, name in enumerate(shared):
            if place == last_moved:
                return
            if _even_topic(owners[name], subscribers[name], sizes) or last_moved is None:
                last_moved = place


def _even_topic(owners: list[int], subscribers: Sequence[int], sizes: list[int]) -> int:
    """Move partitions of a topic from its most loaded to its least loaded subscribers; return how many."""
    loads = [sizes[member] for member in subscribers]
    if max(loads) - min(loads) <= 1:
        return 0
    ends = _Ends(subscribers, sizes)
    givable: dict[int, list[int]] = defaultdict(list)
    for partition, owner in enumerate(owners):
        givable[owner].append(partition)
    moved = 0
    while (giver := ends.next_most_loaded(givable)) is not None:
        partition = givable[giver].pop()
        taker = ends.next_least_loaded()
        if ends.is_balanced:
            break
        owners[partition] = taker
        sizes[giver] -= 1
        sizes[taker] += 1
        moved += 1
    return moved


class _Ends:
    """The least and the most loaded of some members, each range growing towards the other as its members get even.

    `sizes` is the caller's: whoever is returned is taken to gain or lose a partition there.
    """

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=sizes.__getitem__)
        self._least_end = 0
        self._least_next = 0
        self._least_level = sizes[self._members[0]] - 1
        self._most_start = self._most_end = len(members)
        self._most_next = len(members) - 1
        self._most_level = sizes[self._members[-1]] + 1

    @property
    def is_balanced(self) -> bool:
        """Whether a move from the one range to the other would gain nothing."""
        return self._most_level - self._least_level <= 1

    def next_least_loaded(self) -> int:
        """Return the member that takes the next partition."""
        members, sizes = self._members, self._sizes
        if self._least_next >= self._least_end:
            self._least_level += 1
            while self._least_end < len(members) and sizes[members[self._least_end]] == self._least_level:
                self._least_end += 1
            self._least_next = 0
        self._least_next += 1
        return members[self._least_next - 1]

    def next_most_loaded(self, givable: Mapping[int, Sequence[int]]) -> int | None:
        """Return the member that gives the next partition; None where none has any left that it could give."""
        while not self.is_balanced:
            if self._most_next < self._most_start:
                self._lower_most()
            if self._most_next < 0:
                return None
            found = self._most_next
            self._most_next -= 1
            member = self._members[found]
            if givable.get(member):
                return member
            self._most_end -= 1
            self._members[found], self._members[self._most_end] = self._members[self._most_end], member
        return None

    def _lower_most(self) -> None:
        members, sizes = self._members, self._sizes
        if self._most_end <= self._most_start and self._most_start > 0:
            # All of the range had nothing to give: it begins again below them.
            self._most_level = sizes[members[self._most_start - 1]]
        else:
            self._most_level -= 1
        while self._most_start > 0 and sizes[members[self._most_start - 1]] == self._most_level:
            self._most_start -= 1
        self._most_next = self._most_end - 1


def _assignment(members: Sequence[Subscriber], owners: Mapping[str, Sequence[int]]) -> Assignment:
    given: list[Held] = [{} for _ in members]
    for name, by_partition in owners.items():
        owned: dict[int, list[int]] = defaultdict(list)
        for partition, owner in enumerate(by_partition):
            owned[owner].append(partition)
        for owner, partitions in owned.items():
            given[owner][name] = tuple(partitions)
    return {member.member_id: own for member, own in zip(members, given, strict=True)}
