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
    return list(_replicas_of(desired, observed).values())


def leader_counts(desired: Desired, observed: Cluster) -> Counts:
    """Return how many partitions prefer each broker that lives and stays as their leader."""
    return list(_leaders_of(desired, observed).values())


def _replicas_of(desired: Desired, observed: Cluster) -> Mapping[int, tuple[int, int]]:
    replicas = Counter(replica for _, partition in observed.partitions() for replica in partition.target_replicas)
    return _by_broker(desired, observed, replicas)


def _leaders_of(desired: Desired, observed: Cluster) -> Mapping[int, tuple[int, int]]:
    return _by_broker(desired, observed, Counter(partition.preferred_leader for _, partition in observed.partitions()))


def _by_broker(
    desired: Desired, observed: Cluster, count: Mapping[int, int] | Counter[int | None]
) -> Mapping[int, tuple[int, int]]:
    brokers = (desired.cluster.broker(broker) for broker in observed.brokers if observed.is_alive(broker))
    return {broker.id: (count.get(broker.id, 0), broker.capacity) for broker in brokers if broker.state not in LEAVING}


def is_surely_even(counts: Counts) -> bool:
    """Whether no counts could be more even: brokers of one capacity, which differ by one at most."""
    return len({capacity for _, capacity in counts}) <= 1 and _differ_by_one([count for count, _ in counts])


def is_surely_uneven(desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules]) -> bool:
    """Whether one declared replica, moved within its rack, would make the replicas of all brokers more even."""
    counts = _replicas_of(desired, observed)
    for name in desired.topics:
        rule = rules[name]
        for partition in observed.topics[name].partitions:
            held = partition.target_replicas
            for giver in held:
                rack = rule.rack_of.get(giver)
                takers = (each for each in rule.receivable if rule.rack_of.get(each) == rack and each not in held)
                if any(_is_better(counts, giver, taker) for taker in takers):
                    return True
    return False


def are_leaders_surely_uneven(desired: Desired, observed: Cluster, rules: Mapping[str, TopicRules]) -> bool:
    """Whether one declared partition, led by another of its replicas, would make all brokers lead more evenly."""
    counts = _leaders_of(desired, observed)
    return any(
        _is_better(counts, partition.target_replicas[0], taker)
        for name in desired.topics
        for partition in observed.topics[name].partitions
        for taker in partition.target_replicas[1:]
        if taker in rules[name].leadable
    )


def _is_better(counts: Mapping[int, tuple[int, int]], giver: int, taker: int) -> bool:
    """Whether one less here and one more there lowers the sum of the squares over the capacity."""
    if giver not in counts or taker not in counts:
        return False
    (more, wide), (less, narrow) = counts[giver], counts[taker]
    return (2 * less + 1) * wide < (2 * more - 1) * narrow


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
    if any(broker.capacity != 1 for broker in desired.cluster.brokers.values()):
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
