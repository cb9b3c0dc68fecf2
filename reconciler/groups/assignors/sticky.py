"""Assigns as Kafka's `sticky` and `cooperative-sticky` do: balanced first, then with as few moves as can be.

Both hand out by quotas where all members subscribe alike (`sticky_equal`), else step by step (`sticky_unequal`). Only
their ends differ: the cooperative one withholds what its owner must first let go.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.groups.assignors.numbered import (
    NOBODY,
    NumberedGroup,
    claims_of,
    group_racks,
    is_equally_subscribed,
    numbered,
)
from reconciler.groups.assignors.sticky_equal import assign_equal
from reconciler.groups.assignors.sticky_unequal import assign_unequal
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class StickyAssignor:
    """Keeps what members owned as far as balance allows; the whole assignment is handed over at once (KIP-54)."""

    name = "sticky"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; ids that share a bin of a Java hash map count in the order of joining."""
        if not members:
            return {}
        group = numbered(members, topics)
        return group.assignment(_owners(group)[0])


class CooperativeStickyAssignor:
    """One rebalance: a partition that its owner must first let go is withheld from who gets it next (KIP-429)."""

    name = "cooperative-sticky"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member holds after this rebalance; what is withheld nobody has.

        A member lets go what it no longer subscribes to before it joins, so that does not count as owned.
        """
        if not members:
            return {}
        group = numbered([_joining(member) for member in members], topics)
        owners, withheld = _owners(group)
        for partition in withheld:
            owners[partition] = NOBODY
        return group.assignment(owners)


def _owners(group: NumberedGroup) -> tuple[list[int], Collection[int]]:
    """Return the owner of each partition, and the partitions that change hands while somebody may still own them."""
    claims, racks = claims_of(group), group_racks(group)
    if is_equally_subscribed(group):
        return assign_equal(group, claims, racks)
    owners = assign_unequal(group, claims, racks)
    claimed_elsewhere: set[int] = set()
    claimed_by_owner: set[int] = set()
    for member in range(len(group.members)):
        for partition in group.claims(member):
            (claimed_by_owner if owners[partition] == member else claimed_elsewhere).add(partition)
    return owners, claimed_elsewhere - claimed_by_owner


def _joining(member: Subscriber) -> Subscriber:
    kept = {topic: partitions for topic, partitions in member.owned.items() if topic in member.subscription}
    return replace(member, owned=kept)
