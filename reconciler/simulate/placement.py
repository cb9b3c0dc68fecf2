"""Where a simulated cluster puts the replicas of a topic that came without an assignment."""

from collections.abc import Mapping

from reconciler.model.cluster import Cluster
from reconciler.simulate.answers import Denied


def striped(
    cluster: Cluster, partitions: int, replication_factor: int, *, first: int = 0
) -> Mapping[int, tuple[int, ...]] | Denied:
    """Return replicas in stripes over racks, as Kafka's placer makes them, but from a fixed start."""
    if replication_factor <= 0:
        return Denied(
            "INVALID_REPLICATION_FACTOR",
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if partitions <= 0:
        return Denied("INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value.")
    alive, fenced = _alternating(cluster)
    count = len(alive) + len(fenced)
    if replication_factor > count:
        closed = " or some brokers have all their log directories cordoned" if count < len(cluster.brokers) else ""
        only = f"only {count} broker(s) are registered{closed}."
        return _unplaced(
            replication_factor,
            f"The target replication factor of {replication_factor} cannot be reached because {only}",
        )
    if not alive:
        return _unplaced(replication_factor, "All brokers are currently fenced.")
    return {
        number: (alive[number % len(alive) :] + alive[: number % len(alive)] + fenced)[:replication_factor]
        for number in range(first, first + partitions)
    }


def _alternating(cluster: Cluster) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the living brokers, one of each rack in turn, and the fenced ones, less those that are cordoned."""
    open_brokers = [one for one in cluster.brokers.values() if not one.is_cordoned]
    racks: dict[str, list[int]] = {}
    for broker in sorted(open_brokers, key=lambda one: (one.rack or "", one.id)):
        if not broker.is_fenced:
            racks.setdefault(broker.rack or "", []).append(broker.id)
    deepest = max(map(len, racks.values()), default=0)
    alive = tuple(racks[rack][depth] for depth in range(deepest) for rack in sorted(racks) if depth < len(racks[rack]))
    return alive, tuple(sorted({one.id for one in open_brokers}.difference(alive)))


def _unplaced(replication_factor: int, reason: str) -> Denied:
    return Denied(
        "INVALID_REPLICATION_FACTOR", f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    )
