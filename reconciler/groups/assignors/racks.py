"""Whether racks can make a difference to a group (KIP-881)."""

from collections.abc import Iterable, Sequence


def meets_racks(member_racks: Iterable[str | None], partition_racks: Sequence[frozenset[str]], partitions: int) -> bool:
    """Whether Kafka takes racks into account: some member shares one with a replica, and not all partitions are alike.

    `partition_racks` may be shorter than the number of partitions: the racks of the others are unknown.
    """
    wanted = {rack for rack in member_racks if rack}
    distinct = set(partition_racks[:partitions])
    if len(partition_racks) < partitions:
        distinct.add(frozenset())
    everywhere = frozenset[str]().union(*distinct)
    return not wanted.isdisjoint(everywhere) and distinct != {everywhere}
