"""Kafka's `cooperative-sticky`: sticky, but nothing changes hands before it was let go (KIP-429)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from reconciler.groups.assignors.claims import claims_of, is_equally_subscribed
from reconciler.groups.assignors.numbered import NOBODY, NumberedGroup, group_racks, numbered
from reconciler.groups.assignors.sticky_equal import assign_equal
from reconciler.groups.assignors.sticky_unequal import assign_unequal
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class CooperativeStickyAssignor:
    """One rebalance: a partition that its owner must first let go is withheld from who is to get it next."""

    @property
    def name(self) -> str:
        """Return the name that a consumer configures."""
        return "cooperative-sticky"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member holds after this rebalance; what is withheld nobody has.

        A member lets go what it no longer subscribes to before it joins, so that does not count as owned.
        """
        if not members:
            return {}
        group = numbered([_joining(member) for member in members], topics)
        claims, racks = claims_of(group), group_racks(group)
        withheld: Collection[int]
        if is_equally_subscribed(group):
            owners, withheld = assign_equal(group, claims, racks)
        else:
            owners = assign_unequal(group, claims, racks)
            withheld = _changing_hands(group, owners)
        held = list(owners)
        for partition in withheld:
            held[partition] = NOBODY
        return group.assignment(held)


def _joining(member: Subscriber) -> Subscriber:
    kept = {topic: partitions for topic, partitions in member.owned.items() if topic in member.subscription}
    return replace(member, owned=kept)


def _changing_hands(group: NumberedGroup, owners: Sequence[int]) -> set[int]:
    """Return the partitions that go to a member who does not claim them while another one does."""
    claimed_elsewhere: set[int] = set()
    claimed_by_owner: set[int] = set()
    for member in range(len(group.members)):
        for partition in group.claims(member):
            (claimed_by_owner if owners[partition] == member else claimed_elsewhere).add(partition)
    return claimed_elsewhere - claimed_by_owner
