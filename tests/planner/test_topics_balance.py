"""`balance.topics`: each topic's replicas and preferred leaders over the brokers, held against plain enumeration."""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product
from math import ceil, floor
from random import Random

import pytest
from helpers.depth import parts
from helpers.plans.planning import planned, replicas_after

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Off,
    Placement,
    Spread,
    Within,
)
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner import sparse_flow, start

pytestmark = pytest.mark.long

SEEDS = range(100)
Placed = Mapping[TopicPartition, tuple[int, ...]]


def topics_case(seed: int) -> tuple[Desired, Cluster]:
    random = Random(seed)
    brokers = tuple(range(1, random.choice((3, 4)) + 1))
    topics = {}
    for name in ("a", "b"):
        factor = random.choice((1, 2))
        partitions = []
        for number in range(random.choice((1, 2))):
            replicas = tuple(random.sample(brokers, factor))
            size = random.choice((1, 2, 5, 5, 9))
            partitions.append(Partition(number, replicas[0], replicas, replicas, sizes=(size,) * factor))
        topics[name] = Topic(name, tuple(partitions))
    targets: tuple[BalanceTarget, ...] = (Off(), Even(), Within(Fraction(3, 10)))
    balance = Balance(
        replicas=random.choice(targets), leaders=random.choice(targets), topics=random.choice((Even(), targets[2]))
    )
    weights = {random.choice(brokers): random.choice((1, 2))}
    desired = Desired(
        DesiredCluster("c", balance=balance, brokers={b: DesiredBroker(b, capacity=w) for b, w in weights.items()}),
        {name: DesiredTopic(name) for name in topics},
    )
    return desired, Cluster("c", {b: Broker(b) for b in brokers}, topics)


def _unevenness(count: Counter[int], total: int, capacity: Mapping[int, int], target: BalanceTarget) -> Fraction:
    """Return the sum of count² / capacity, or the replicas outside the band; nothing where off."""
    if isinstance(target, Off):
        return Fraction(0)
    if isinstance(target, Even):
        return sum((Fraction(count[b] ** 2, weight) for b, weight in capacity.items()), Fraction(0))
    outside = 0
    for broker, weight in capacity.items():
        share = Fraction(total * weight, sum(capacity.values()))
        low = min(ceil(share * (1 - target.fraction)), floor(share))
        high = max(floor(share * (1 + target.fraction)), ceil(share))
        outside += max(0, low - count[broker], count[broker] - high)
    return Fraction(outside)


def topics_worth(observed: Cluster, desired: Desired, placed: Placed) -> tuple[Fraction, Fraction, int]:
    """Return what the replicas are judged by, in order: brokers, topics over the brokers, bytes copied."""
    balance = desired.cluster.balance
    capacity = {b: desired.cluster.broker(b).capacity for b in observed.brokers}
    whole = Counter(b for replicas in placed.values() for b in replicas)
    by_topic = Fraction(0)
    for name in observed.topics:
        count = Counter(b for key, replicas in placed.items() if key.topic == name for b in replicas)
        by_topic += _unevenness(count, count.total(), capacity, balance.topics)
    copied = 0
    for key, partition in observed.partitions():
        copied += len(set(placed[key]) - set(partition.replicas)) * (partition.sizes[0] or 0)
    return _unevenness(whole, whole.total(), capacity, balance.replicas), by_topic, copied


def _leader_worth(observed: Cluster, desired: Desired, leaders: Mapping[TopicPartition, int]) -> tuple[Fraction, ...]:
    balance = desired.cluster.balance
    capacity = {b: desired.cluster.broker(b).capacity for b in observed.brokers}
    by_topic = Fraction(0)
    for name in observed.topics:
        count = Counter(leader for key, leader in leaders.items() if key.topic == name)
        by_topic += _unevenness(count, count.total(), capacity, balance.topics)
    changed = sum(leaders[key] != partition.replicas[0] for key, partition in observed.partitions())
    whole = Counter(leaders.values())
    return _unevenness(whole, whole.total(), capacity, balance.leaders), by_topic, Fraction(changed)


def topics_placements(observed: Cluster) -> Iterator[Placed]:
    there = dict(observed.partitions())
    choices = [list(combinations(observed.brokers, len(partition.replicas))) for partition in there.values()]
    for chosen in product(*choices):
        yield dict(zip(there, chosen, strict=True))


@parts("seeds", SEEDS[::12], deep=SEEDS)
@pytest.mark.parametrize("is_sifted", [False, True])
def test_topics_are_as_even_as_enumeration_finds_and_no_plan_copies_less(
    monkeypatch: pytest.MonkeyPatch, seeds: range, *, is_sifted: bool
) -> None:
    if is_sifted:
        monkeypatch.setattr(sparse_flow, "FEW_ARCS", 0)
        monkeypatch.setattr(sparse_flow, "FEW_OF_CELLS", 0)
        monkeypatch.setattr(start, "SPARE_ROWS", 0)
    for seed in seeds:
        desired, observed = topics_case(seed)
        plan = planned(desired, observed)
        reached = replicas_after(observed, plan)
        best = min(topics_worth(observed, desired, placed) for placed in topics_placements(observed))
        assert topics_worth(observed, desired, reached) == best, seed
        assert plan.proof.value == plan.proof.lower_bound == best[2], seed


@parts("seeds", SEEDS[::12], deep=SEEDS)
def test_each_topics_leaders_are_as_even_as_enumeration_finds(seeds: range) -> None:
    for seed in seeds:
        desired, observed = topics_case(seed)
        reached = replicas_after(observed, planned(desired, observed))
        found = _leader_worth(observed, desired, {key: replicas[0] for key, replicas in reached.items()})
        options = [dict(zip(reached, chosen, strict=True)) for chosen in product(*reached.values())]
        assert found == min(_leader_worth(observed, desired, leaders) for leaders in options), seed


def test_a_topic_crowded_on_few_brokers_is_spread_and_stays_so() -> None:
    crowded = tuple(Partition(n, 1, (1, 2), (1, 2), sizes=(7, 7)) for n in range(6))
    spread = tuple(Partition(n, 3, (3, 4), (3, 4), sizes=(7, 7)) for n in range(6))
    observed = Cluster("c", {b: Broker(b) for b in (1, 2, 3, 4)}, {"x": Topic("x", crowded), "y": Topic("y", spread)})
    desired = Desired(
        DesiredCluster("c", balance=Balance(replicas=Even(), leaders=Even(), topics=Even())),
        {"x": DesiredTopic("x"), "y": DesiredTopic("y")},
    )
    reached = replicas_after(observed, planned(desired, observed))
    for name in ("x", "y"):
        assert {b: sum(b in r for k, r in reached.items() if k.topic == name) for b in (1, 2, 3, 4)} == dict.fromkeys(
            (1, 2, 3, 4), 3
        )
    topics = {
        name: Topic(
            name,
            tuple(
                Partition(
                    n,
                    reached[TopicPartition(name, n)][0],
                    reached[TopicPartition(name, n)],
                    reached[TopicPartition(name, n)],
                    sizes=(7, 7),
                )
                for n in range(6)
            ),
        )
        for name in ("x", "y")
    }
    assert not planned(desired, Cluster("c", observed.brokers, topics)).moves


def test_a_topic_that_rules_keep_uneven_is_named() -> None:
    few = tuple(Partition(n, 1, (1, 2), (1, 2), sizes=(7, 7)) for n in range(4))
    observed = Cluster("c", {b: Broker(b, rack="ab"[b % 2]) for b in (1, 2, 3)}, {"x": Topic("x", few)})
    placement = Placement(racks_spread=Spread.STRICT)
    desired = Desired(
        DesiredCluster("c", balance=Balance(topics=Even())), {"x": DesiredTopic("x", placement=placement)}
    )
    assert [problem.code for problem in planned(desired, observed).warnings] == ["KR805"]
