"""Measures how even an observed cluster is: what can be said of it without a solver."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor

from reconciler.diff.rules import LEAVING, TopicRules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import Desired, Within

BANDS = tuple(Fraction(percent, 100) for percent in (1, 2, 5, 10, 15, 20, 25, 30))
"""The bands that are tried, the tightest first; a cluster outside them all keeps no balance worth the name."""

Counts = Sequence[tuple[int, int]]
"""A count and a capacity for each broker that takes part."""


def replica_counts(desired: Desired, observed: Cluster) -> Counts:
    """Return how many replicas stand on each broker that lives and stays."""
    lists = (partition.target_replicas for _, partition in observed.partitions())
    return _by_broker(desired, observed, "replicas", Counter(replica for replicas in lists for replica in replicas))


def leader_counts(desired: Desired, observed: Cluster) -> Counts:
    """Return how many partitions prefer each broker that lives and stays as their leader."""
    count = Counter(partition.preferred_leader for _, partition in observed.partitions())
    return _by_broker(desired, observed, "leaders", count)


def _by_broker(
    desired: Desired, observed: Cluster, measure: str, count: Mapping[int, int] | Counter[int | None]
) -> Counts:
    brokers = (desired.cluster.broker(broker) for broker in observed.brokers if observed.is_alive(broker))
    return [(count.get(broker.id, 0), broker.weight(measure)) for broker in brokers if broker.state not in LEAVING]


def tightest_band(counts: Counts) -> Within | None:
    """Return the tightest of the bands that all counts are in, the next whole numbers included; None for none."""
    return next((Within(band) for band in BANDS if all(_is_within(counts, each, band) for each in counts)), None)


def _is_within(counts: Counts, each: tuple[int, int], band: Fraction) -> bool:
    count, capacity = each
    share = Fraction(sum(count for count, _ in counts) * capacity, sum(capacity for _, capacity in counts))
    least, most = min(share * (1 - band), Fraction(floor(share))), max(share * (1 + band), Fraction(ceil(share)))
    return least <= count <= most


def are_topics_even(desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules]) -> bool:
    """Whether each declared topic's replicas, and its preferred leaders, differ by one at most over its brokers."""
    brokers = desired.cluster.brokers.values()
    if any(broker.weight(measure) != 1 for broker in brokers for measure in ("replicas", "leaders")):
        return False
    return all(_is_topic_even(observed, name, rules[name].keepable) for name in desired.topics)


def _is_topic_even(observed: Cluster, name: str, brokers: Collection[int]) -> bool:
    lists = [partition.target_replicas for partition in observed.topics[name].partitions]
    held = Counter(replica for replicas in lists for replica in replicas)
    led = Counter(replicas[0] for replicas in lists)
    return _differ_by_one([held[each] for each in brokers]) and _differ_by_one([led[each] for each in brokers])


def _differ_by_one(counts: Iterable[int]) -> bool:
    found = list(counts)
    return not found or max(found) - min(found) <= 1
