"""Tells what each broker's fair share of each measure is in proportion to: weights of the file, or sizes of disks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from reconciler.diff.rules import LEAVING
from reconciler.model.cluster import Cluster
from reconciler.model.columns import sums
from reconciler.model.desired import CAPACITIES, Desired, Off
from reconciler.model.table_maker import table_of


@dataclass(frozen=True, slots=True)
class Capacities:
    """Weights of the brokers that live and stay; only the proportion of one measure's weights counts.

    `of`: by measure, one of CAPACITIES, then by broker. `foreign`: bytes on a broker's disks that are not Kafka's; told
    only where disks weigh by their size, and then they take of its share.
    """

    of: Mapping[str, Mapping[int, int]]
    foreign: Mapping[int, int] = field(default_factory=dict)


def capacities(desired: Desired, observed: Cluster) -> Capacities:
    """Return the weights, as written.

    Where no weight of any disk is written and all their sizes are known, these are the weights of disks. Disks of one
    size all weigh 1, and what else lies on them counts for nothing.
    """
    alive = (broker_id for broker_id in sorted(observed.brokers) if observed.is_alive(broker_id))
    brokers = [one for one in map(desired.cluster.broker, alive) if one.state not in LEAVING]
    of = {measure: {one.id: one.weight(measure) for one in brokers} for measure in CAPACITIES}
    sizes = {one.id: observed.brokers[one.id].total_bytes or 0 for one in brokers}
    if any(one.is_disk_weighed for one in brokers) or not all(sizes.values()) or len({*sizes.values()}) <= 1:
        return Capacities(of)
    unit = gcd(*sizes.values())
    of["disk"] = {broker_id: size // unit for broker_id, size in sizes.items()}
    return Capacities(of, _foreign(observed, sizes))


def weights_told(desired: Desired, observed: Cluster) -> Mapping[int, Mapping[str, int]]:
    """Return each broker's weights that differ from its plain capacity, by measure; none where all are plain.

    Sizes of disks are weights only where a balance of disks is asked for.
    """
    found = capacities(desired, observed).of
    told: dict[int, dict[str, int]] = {}
    for broker_id in sorted(observed.brokers):
        written = desired.cluster.broker(broker_id)
        by_size = {} if isinstance(desired.cluster.balance.disk, Off) else found["disk"]
        weights = {**written.weights, "disk": by_size.get(broker_id, written.weight("disk"))}
        different = {measure: weight for measure, weight in sorted(weights.items()) if weight != written.capacity}
        if different:
            told[broker_id] = different
    return told


def foreign_told(desired: Desired, observed: Cluster) -> Mapping[int, int]:
    """Return what else lies on brokers' disks, where a balance of disks is asked for and they weigh by their size."""
    return {} if isinstance(desired.cluster.balance.disk, Off) else capacities(desired, observed).foreign


def _foreign(observed: Cluster, brokers: Mapping[int, int]) -> Mapping[int, int]:
    """Return what is used of these brokers' disks beside replicas, 0 where that is not known."""
    table = table_of(observed)
    untold = {*table.replicas[table.sizes < 0].tolist()}
    held = sums(table.replicas, table.sizes)
    used = {broker_id: observed.brokers[broker_id].used_bytes for broker_id in brokers if broker_id not in untold}
    return {broker_id: max(0, size - held.get(broker_id, 0)) for broker_id, size in used.items() if size is not None}
