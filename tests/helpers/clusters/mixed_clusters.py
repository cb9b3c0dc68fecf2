"""Random clusters with everything that a proof has to cover: topics' balance, disks, limits, broken replicas."""

from dataclasses import replace
from fractions import Fraction
from random import Random

from helpers.clusters.random_clusters import SMALL, TINY, random_cluster

from reconciler.model.cluster import Cluster, LogDir
from reconciler.model.desired import Desired, Even


def mixed_cluster(seed: int) -> tuple[Desired, Cluster]:
    """Return a desired state and a cluster drawn from the seed; some cannot be planned."""
    random = Random(f"mixed {seed}")
    desired, observed = random_cluster(seed, SMALL if seed % 3 == 0 else TINY)
    document = desired.cluster
    if random.random() < 0.3:
        document = replace(document, balance=replace(document.balance, topics=Even()))
    if random.random() < 0.3:
        observed = _with_disks(observed, random)
        share = Fraction(random.choice([60, 80, 90]), 100)
        document = replace(document, limits=replace(document.limits, disk_use=share))
    if random.random() < 0.15:
        most = random.randint(2, 12)
        document = replace(document, limits=replace(document.limits, replicas_per_broker=most))
    brokers = {
        broker_id: replace(broker, weights={"leaders": random.choice([1, 2])} if random.random() < 0.3 else {})
        for broker_id, broker in document.brokers.items()
    }
    return replace(desired, cluster=replace(document, brokers=brokers)), observed


def _with_disks(observed: Cluster, random: Random) -> Cluster:
    """Give each broker one log dir that has room for some more than it holds."""
    held = dict.fromkeys(observed.brokers, 0)
    for _, partition in observed.partitions():
        for broker_id, size in zip(partition.replicas, partition.sizes, strict=False):
            held[broker_id] += size or 0
    brokers = {}
    for broker_id, broker in observed.brokers.items():
        total = max(10, round(held[broker_id] * random.choice([1.1, 1.3, 2, 4]))) + random.choice([5, 50, 2000])
        brokers[broker_id] = replace(broker, log_dirs=(LogDir("/d", total, total - held[broker_id]),))
    return replace(observed, brokers=brokers)
