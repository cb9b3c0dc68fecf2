"""What the members of a KIP-848 group hold by its target assignment before it is computed anew."""

from collections.abc import Mapping, Sequence

from reconciler.model.assignment import SubscribedTopic, Subscriber

Held = dict[str, Sequence[int]]
"""Topic -> its partitions, ascending; a topic without partitions is not there."""


def held_by_each(members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> list[Held]:
    """Return for each member, in order, what of its own exists, is subscribed to, and no member before it holds."""
    taken: dict[str, set[int]] = {name: set() for name in topics}
    return [
        {
            name: partitions
            for name in dict.fromkeys(member.subscription)
            if name in topics and (partitions := _untaken(member.owned.get(name, ()), topics[name], taken[name]))
        }
        for member in members
    ]


def _untaken(owned: Sequence[int], topic: SubscribedTopic, taken: set[int]) -> Sequence[int]:
    """Return those that exist and are not taken yet, and take them."""
    if not owned:
        return owned
    if not taken.isdisjoint(owned) or owned[-1] >= topic.partitions:
        owned = [partition for partition in owned if partition < topic.partitions and partition not in taken]
    taken.update(owned)
    return owned
