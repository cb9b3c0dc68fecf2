"""Assigns as the group coordinator's `uniform` does (KIP-848, UniformAssignor of Kafka 4.1.1).

Here is the case in which all members subscribe to the same topics: each gets its quota, and keeps what it has as far as
that allows. `server_unequal` has the other case.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from reconciler.groups.assignors.server_order import Held, map_order, partitions_in_set_order, set_order, target_before
from reconciler.groups.assignors.server_unequal import unequal_shares
from reconciler.model.assignment import Assignment, SubscribedTopic, Subscriber
from reconciler.model.java_hash import hash_map_order


class ServerUniformAssignor:
    """Gives each member as many partitions as the others, whatever their topics, and leaves as much as it can in place.

    What members own is the group's target assignment, which the coordinator keeps. How many partitions each gets is
    determined; which ones follows hash orders, here those of Kafka as far as the input tells them: a member's place by
    its id, a topic's by its id (by its name where ids are not known).
    """

    name = "server-uniform"  # a consumer configures `uniform` as its remote assignor
    is_server_side = True

    def assign(self, members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
        """Return what each member gets; of what two members claim, the first of them in Kafka's order keeps it."""
        by_id = {member.member_id: member for member in members}
        ordered = [by_id[member_id] for member_id in hash_map_order(by_id)]
        # A topic that does not exist counts here, as it does in the coordinator.
        distinct = {member.subscription for member in members}
        is_equal = len({frozenset(subscription) for subscription in distinct}) <= 1
        shares = equal_shares(ordered, topics) if is_equal else unequal_shares(ordered, topics)
        return {member.member_id: dict(sorted(shares[member.member_id].items())) for member in members}


def equal_shares(members: Sequence[Subscriber], topics: Mapping[str, SubscribedTopic]) -> Assignment:
    """Return what each member gets, members in Kafka's order (UniformHomogeneousAssignmentBuilder, 4.1.1).

    A member gives up only what exceeds its quota; what nobody holds, then what was given up, fills the others. The
    larger quota goes to the first who have so much already, else to the last.
    """
    if not members:
        return {}
    names = set_order(members[0].subscription, topics)
    minimum, larger = divmod(sum(topics[name].partitions for name in names), len(members))
    target = target_before(members, topics)
    supply = [(name, target.free(topics[name])) for name in names]
    wanting: list[tuple[Held, int]] = []
    for place, (member, own) in enumerate(zip(members, target.held, strict=True)):
        size = sum(map(len, own.values()))
        quota = minimum + (larger > 0)
        if size > quota:
            walked = map_order([name for name in names if name in own], len(member.owned), topics)
            supply.extend(_given_up(own, walked, quota))
            size = quota
        is_larger = larger > 0 and (size > minimum or larger >= len(members) - place)
        larger -= is_larger
        if size < minimum + is_larger:
            wanting.append((own, minimum + is_larger - size))
    left = deque((name, run) for name, run in supply if run)
    for own, quota in wanting:
        count = quota
        while count:
            name, run = left.popleft()
            own[name] = tuple(sorted((*own.get(name, ()), *run[:count])))
            if len(run) > count:
                left.appendleft((name, run[count:]))
            count -= min(count, len(run))
    return {member.member_id: own for member, own in zip(members, target.held, strict=True)}


def _given_up(own: Held, walked: Iterable[str], quota: int) -> list[tuple[str, Sequence[int]]]:
    """Take from `own` what exceeds the quota, topic by topic, and return it."""
    given_up: list[tuple[str, Sequence[int]]] = []
    for name in walked:
        partitions = own[name]
        if len(partitions) > quota:
            ordered = partitions_in_set_order(partitions)
            given_up.append((name, ordered[quota:]))
            del own[name]
            if quota:
                own[name] = tuple(sorted(ordered[:quota]))
        quota -= min(quota, len(partitions))
    return given_up
