"""Kafka's `sticky`: as balanced as can be, and then as few moves as can be (StickyAssignor, 4.1.1; KIP-54)."""

from collections.abc import Mapping, Sequence

from reconciler.groups.assignors.claims import claims_of, is_equally_subscribed
from reconciler.groups.assignors.numbered import group_racks, numbered
from reconciler.groups.assignors.sticky_equal import assign_equal
from reconciler.groups.assignors.sticky_unequal import assign_unequal
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber


class StickyAssignor:
    """Keeps what members owned as far as balance allows; the whole assignment is handed over at once."""

    @property
    def name(self) -> str:
        """Return the name that a consumer configures."""
        return "sticky"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; ids that share a bin of a Java hash map count in the order of joining."""
        if not members:
            return {}
        group = numbered(members, topics)
        claims, racks = claims_of(group), group_racks(group)
        if is_equally_subscribed(group):
            return group.assignment(assign_equal(group, claims, racks)[0])
        return group.assignment(assign_unequal(group, claims, racks))
