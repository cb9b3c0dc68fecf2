"""Kafka's `cooperative-sticky`: sticky, but nothing changes hands before it was let go (KIP-429)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.groups.claims import claims_of, is_equally_subscribed
from reconciler.groups.numbered import NOBODY, NumberedGroup, group_racks, numbered
from reconciler.groups.sticky_equal import assign_equal
from reconciler.groups.sticky_unequal import assign_unequal
from reconciler.model.assignment import Assignment, Assignor, SubscribedTopic, Subscriber

MOST_ROUNDS = 50


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


def rounds(
    assignor: Assignor, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]
) -> tuple[Assignment, ...]:
    """Return the assignment after each rebalance, up to the one after which nothing changes, 50 at most.

    Each starts from what the one before left; its generation is newer than any that a member came with.
    """
    return tuple(_rounds(assignor, members, topics))


def _rounds(
    assignor: Assignor, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]
) -> Iterator[Assignment]:
    newest = max([0, *(member.generation for member in members)])
    before = None
    for generation in range(newest + 1, newest + 1 + MOST_ROUNDS):
        reached = assignor.assign(members, topics)
        if reached == before:
            return
        yield reached
        before = reached
        members = [replace(member, owned=reached[member.member_id], generation=generation) for member in members]


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
