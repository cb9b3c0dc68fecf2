"""Restates what fair shares are in proportion to, what others have on disks, and the most that limits allow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reconciler.model.cluster import Broker, Cluster
from reconciler.model.desired import Desired, DesiredBroker
from reconciler.proof.arithmetic import exact_sum
from reconciler.proof.snapshot import Snapshot

REPLICAS, LEADERS, DISK, NETWORK = "replicas", "leaders", "disk", "network"
NETWORK_IN = "networkIn"


@dataclass(frozen=True, slots=True)
class Capacity:
    """Weights by measure, in the order of the brokers that take part; `foreign`: bytes of others on their disks."""

    replicas: tuple[int, ...]
    leaders: tuple[int, ...]
    disk: tuple[int, ...]
    network: tuple[int, ...]
    foreign: tuple[int, ...]
    most_in: tuple[int | None, ...]  # bytes a second that a limit lets each take in; None: no limit
    most_replicas: int | None  # replicas that a limit lets each hold; None: no limit
    room: tuple[int | None, ...]  # bytes that the limit of disks lets each take beside what it holds; None: no limit


def capacity_of(desired: Desired, observed: Cluster, ids: Sequence[int], snapshot: Snapshot) -> Capacity:
    """Return the capacity of these brokers: as written; disks by size where none is written and all are known."""
    written = [desired.cluster.brokers.get(broker_id, DesiredBroker(broker_id)) for broker_id in ids]
    replicas, leaders, weighed, network = (
        tuple(one.weights.get(measure, one.capacity) for one in written)
        for measure in (REPLICAS, LEADERS, DISK, NETWORK)
    )
    is_written = any(one.capacity != 1 or DISK in one.weights for one in written)
    sizes = tuple(disk_bytes(observed.brokers[broker_id]) for broker_id in ids)
    is_by_size = not is_written and 0 not in sizes and len(set(sizes)) > 1
    foreign = _foreign(observed, ids, snapshot) if is_by_size else (0,) * len(ids)
    limit = desired.cluster.limits.rates.get(NETWORK_IN)
    most: tuple[int | None, ...] = (None,) * len(ids)
    if isinstance(limit, Fraction):
        rates = [one.rates.get(NETWORK_IN) for one in written]
        most = tuple(None if rate is None else int(limit * rate // 1) for rate in rates)
    elif limit is not None:
        most = tuple(limit * weight for weight in network)
    room = _room(observed, ids, desired.cluster.limits.disk_use)
    of_disks, limit = sizes if is_by_size else weighed, desired.cluster.limits.replicas_per_broker
    return Capacity(replicas, leaders, of_disks, network, foreign, most, limit, room)


def _room(observed: Cluster, ids: Sequence[int], share: Fraction | None) -> tuple[int | None, ...]:
    """Return the bytes left below that share of each broker's disks; None where they do not tell, or none is asked."""
    used = used_bytes(observed.brokers)
    return tuple(
        None if share is None or one not in used else int(disk_bytes(observed.brokers[one]) * share // 1) - used[one]
        for one in ids
    )


def disk_bytes(broker: Broker) -> int:
    """Return the size of all its log dirs of known size together, 0 if no size is known."""
    return sum(one.total_bytes for one in broker.log_dirs if one.total_bytes is not None)


def _foreign(observed: Cluster, ids: Sequence[int], snapshot: Snapshot) -> tuple[int, ...]:
    """Return what is used on each broker's disks beside its replicas; 0 where a size is not known."""
    used, foreign = used_bytes(observed.brokers), []
    for broker_id in ids:
        sizes = snapshot.sizes[snapshot.replicas == broker_id]
        is_known = broker_id in used and bool((sizes >= 0).all())
        foreign.append(max(0, used[broker_id] - exact_sum(sizes)) if is_known else 0)
    return tuple(foreign)


def used_bytes(brokers: Mapping[int, Broker]) -> Mapping[int, int]:
    """Return the used bytes of each broker, if all its log dirs of known size have known free bytes."""
    found = {}
    for broker_id, broker in brokers.items():
        pairs = [(one.total_bytes, one.usable_bytes) for one in broker.log_dirs if one.total_bytes is not None]
        if pairs and all(usable is not None for _, usable in pairs):
            found[broker_id] = sum(max(0, total - (usable or 0)) for total, usable in pairs)
    return found
