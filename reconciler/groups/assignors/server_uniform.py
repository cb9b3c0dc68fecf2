"""Kafka's `uniform` on the server's side (KIP-848, UniformAssignor of the group coordinator, 4.1.1)."""

from collections.abc import Mapping, Sequence

from reconciler.groups.assignors.server_equal import equal_shares
from reconciler.groups.assignors.server_unequal import unequal_shares
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber
from reconciler.model.java_hash import hash_map_order


class ServerUniformAssignor:
    """Gives each member as many partitions as the others, whatever their topics, and leaves as much as it can in place.

    What members own is the group's target assignment, which the coordinator keeps. How many partitions each gets is
    determined; which ones follows hash orders, here those of Kafka as far as the input tells them: a member's place by
    its id, a topic's by its id (by its name where ids are not known).
    """

    is_server_side = True

    @property
    def name(self) -> str:
        """Return the name under which it is known here; a consumer configures `uniform` as its remote assignor."""
        return "server-uniform"

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; of what two members claim, the first of them in Kafka's order keeps it."""
        by_id = {member.member_id: member for member in members}
        ordered = [by_id[member_id] for member_id in hash_map_order(by_id)]
        # A topic that does not exist counts here, as it does in the coordinator.
        distinct = {member.subscription for member in members}
        is_equal = len({frozenset(subscription) for subscription in distinct}) <= 1
        shares = equal_shares(ordered, topics) if is_equal else unequal_shares(ordered, topics)
        return {member.member_id: dict(sorted(shares[member.member_id].items())) for member in members}
