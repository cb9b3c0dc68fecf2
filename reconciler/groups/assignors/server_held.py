"""What the members of a KIP-848 group hold by its target assignment before it is computed anew."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.assignment import SubscribedTopic, Subscriber

Held = dict[str, tuple[int, ...]]
"""Topic -> its partitions, ascending; a topic without partitions is not there."""


@dataclass(frozen=True, slots=True)
class Target:
    """What each member holds, in the order of the members, and what of each topic is held at all.

    What a member holds is made for who asked: it may be changed into what the member gets.
    """

    held: tuple[Held, ...]
    taken: Mapping[str, frozenset[int] | set[int]]

    def free(self, topic: SubscribedTopic) -> Sequence[int]:
        """Return the topic's partitions that nobody holds, ascending."""
        taken = self.taken.get(topic.name, frozenset())
        if len(taken) == topic.partitions:
            return ()
        every = range(topic.partitions)
        return [partition for partition in every if partition not in taken] if taken else every


def target_before(members: Iterable[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Target:
    """Return what of each member's own exists, is subscribed to, and is not held by a member before it."""
    taken: dict[str, set[int]] = defaultdict(set)
    wanted: dict[tuple[str, ...], frozenset[str]] = {}
    held = []
    for member in members:
        subscription = member.subscription
        if subscription not in wanted:
            wanted[subscription] = frozenset(subscription).intersection(topics)
        names = wanted[subscription]
        own: Held = {}
        for name, owned in member.owned.items():
            if owned and name in names:
                kept = _untaken(owned, topics[name].partitions, taken[name])
                if kept:
                    own[name] = kept
        held.append(own)
    return Target(tuple(held), taken)


def _untaken(owned: tuple[int, ...], count: int, taken: set[int]) -> tuple[int, ...]:
    """Return those that exist and are not taken yet, and take them."""
    if owned[-1] >= count or not taken.isdisjoint(owned):
        owned = tuple(partition for partition in owned if partition < count and partition not in taken)
    taken.update(owned)
    return owned
