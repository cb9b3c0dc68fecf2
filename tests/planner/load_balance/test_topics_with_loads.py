"""`balance.topics` beside disks and network: held against the flow's exact result for topics alone, and enumeration."""

from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor
from random import Random

import pytest
from helpers.clusters.random_clusters import SMALL, shuffled
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible, most_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from helpers.plans.proving import plan_of_placed
from planner.load_balance.enumerated import Lists, bytes_copied, orders, outside, placements
from planner.load_balance.planning import planned_with, random_loads

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    Desired,
    DesiredCluster,
    DesiredTopic,
    Even,
    Limits,
    Placement,
    Spread,
    Within,
)
from reconciler.model.problem import InvalidInput, PlacementInfeasible
from reconciler.planner.load_balance import measured
from reconciler.proof.check import prove_end

pytestmark = pytest.mark.long

BROKERS, TOPICS, PARTITIONS, RF = 9, 20, 36, 3
WIDE, TIGHT = Within(Fraction(20)), Within(Fraction(1, 10))


def _uneven(seed: int) -> Cluster:
    """Return topics that each lean to some brokers of every rack, of sizes that differ a hundredfold."""
    random, topics = Random(seed), {}
    for number in range(TOPICS):
        weight = [random.choice([1, 1, 1, 3]) for _ in range(BROKERS)]
        partitions = []
        for one in range(PARTITIONS):
            of_racks = ([b for b in range(1, BROKERS + 1) if (b - 1) % 3 == rack] for rack in range(RF))
            replicas = [random.choices(ids, [weight[b - 1] for b in ids])[0] for ids in of_racks]
            random.shuffle(replicas)
            held, size = tuple(replicas), int(100 * random.lognormvariate(0, 0.8)) + 1
            partitions.append(Partition(one, held[0], held, held, sizes=(size,) * RF))
        topics[f"t{number:02}"] = Topic(f"t{number:02}", tuple(partitions))
    return Cluster("c", {b: Broker(b, "abc"[(b - 1) % 3]) for b in range(1, BROKERS + 1)}, topics)


def _desired(observed: Cluster, balance: Balance) -> Desired:
    strict = Placement(racks_spread=Spread.STRICT)
    return Desired(
        DesiredCluster("c", balance=balance), {name: DesiredTopic(name, placement=strict) for name in observed.topics}
    )


def _parts_outside(lists: Lists) -> int:
    """Return the replicas and leads that parts of topics have beyond the whole numbers next to their even share."""
    held: Counter[tuple[str, int]] = Counter()
    led: Counter[tuple[str, int]] = Counter()
    for key, replicas in lists.items():
        held.update((key.topic, replica) for replica in replicas)
        led[key.topic, replicas[0]] += 1
    shares = ((held, Fraction(PARTITIONS * RF, BROKERS)), (led, Fraction(PARTITIONS, BROKERS)))
    return sum(
        max(0, floor(share) - counts[name, broker_id]) + max(0, counts[name, broker_id] - ceil(share))
        for counts, share in shares
        for name in {key.topic for key in lists}
        for broker_id in range(1, BROKERS + 1)
    )


@parts("seeds", range(1, 2), deep=range(1, 6))
def test_where_disks_ask_for_nothing_it_copies_what_topics_alone_do(seeds: range) -> None:
    for seed in seeds:
        observed = _uneven(seed)
        alone = planned(_desired(observed, Balance(topics=Even())), observed)
        both = planned(_desired(observed, Balance(topics=Even(), disk=WIDE)), observed)
        assert both.proof.lower_bound <= alone.proof.value <= both.proof.value <= 1.001 * alone.proof.value, seed
        assert _parts_outside(replicas_after(observed, both)) == 0, seed


@parts("seeds", range(3, 4), deep=range(1, 6))
def test_topics_and_disks_are_even_at_once_nearly_proved_and_at_rest(seeds: range) -> None:
    for seed in seeds:
        observed = _uneven(seed)
        desired = _desired(observed, Balance(topics=Even(), disk=TIGHT))
        placed = planned(desired, observed)
        assert _parts_outside(replicas_after(observed, placed)) == 0, seed
        used = [share.bytes or 0 for share in placed.balance_after.values()]
        assert max(used) * len(used) <= 1.101 * sum(used), seed
        assert placed.proof.lower_bound >= 0.99 * placed.proof.value, seed
        assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None, seed
        assert not planned(desired, cluster_after(observed, placed.moves, placed.topic_changes)).moves, seed
        assert planned(shuffled(desired, seed), observed) == placed, seed


def _topics_outside(problem: Problem, target: BalanceTarget, lists: Lists) -> bool:
    """Whether some topic with something to decide has a part outside its band over the brokers that may hold it."""
    demands = defaultdict(list)
    for demand in problem.demands:
        demands[demand.topic_partition.topic].append(demand)
    for own in demands.values():
        open_ones = [demand for demand in own if demand.settled is None]
        if not open_ones:
            continue
        staying = {b for d in own for b in (d.must_hold if d.settled is None else d.settled)}
        some = {b for d in open_ones for b in d.allowed} | staying
        capacity = {b: problem.capacity[b] for b in some & problem.capacity.keys()}
        held = Counter(b for d in own for b in lists[d.topic_partition] if b in capacity)
        led = Counter(lists[d.topic_partition][0] for d in own if lists[d.topic_partition][0] in capacity)
        for counts in (held, led):
            for broker_id, weight in capacity.items():
                share = Fraction(counts.total() * weight, sum(capacity.values()))
                fraction = target.fraction if isinstance(target, Within) else Fraction(0)
                low, high = ceil(share * (1 - fraction)), floor(share * (1 + fraction))
                if not min(low, floor(share)) <= counts[broker_id] <= max(high, ceil(share)):
                    return True
    return False


@parts("seeds", range(0, 400, 10), deep=range(400))
def test_on_tiny_clusters_bands_that_can_be_kept_nearly_always_are_and_bounds_hold(seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed)
        target: BalanceTarget = Even() if seed % 2 else Within(Fraction(1, 2))
        balance = Balance(topics=target, disk=Within(Fraction(12, 10)))
        desired = replace(desired, cluster=replace(desired.cluster, balance=balance))
        if not is_feasible(problem) or not problem.is_size_known:
            continue
        every = placements(problem, orders, 5_000)
        if every is None:
            continue
        within = [
            lists
            for lists in every
            if not _topics_outside(problem, target, lists) and not outside(problem, balance, loads, lists)
        ]
        placed = planned_with(desired, observed, loads)
        lists = replicas_after(observed, placed)
        is_kept = not _topics_outside(problem, target, lists) and not outside(problem, balance, loads, lists)
        assert is_kept <= bool(within), seed
        if within:
            least = min(bytes_copied(problem, each) for each in within)
            seen["attainable"] += 1
            seen["kept"] += is_kept
            if is_kept:
                assert placed.proof.lower_bound <= least <= placed.proof.value, seed
                seen["least"] += placed.proof.value == least
        assert prove_end(plan_of_placed(desired, observed, placed), desired, observed, loads).wrong is None, seed
        reached = cluster_after(observed, placed.moves, placed.topic_changes)
        assert not planned_with(desired, reached, loads).moves, seed
    assert seen["attainable"] > len(seeds) / 10, seen
    assert seen["kept"] >= 0.9 * seen["attainable"], seen
    assert seen["least"] >= 0.75 * seen["attainable"], seen


@parts("seeds", range(0, 200, 12), deep=range(200))
def test_a_limit_on_replicas_is_kept_by_every_balance_of_loads(seeds: range) -> None:
    looked_at = 0
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed, SMALL)
        if not is_feasible(problem) or not problem.brokers:
            continue
        limit = max(1, -(-sum(d.need for d in problem.demands) // len(problem.brokers)) + seed % 3)
        limits = Limits(replicas_per_broker=limit)
        limited = replace(desired, cluster=replace(desired.cluster, limits=limits))
        try:
            placed = planned_with(limited, observed, loads)
        except PlacementInfeasible:
            continue
        counts = Counter(b for replicas in replicas_after(observed, placed).values() for b in replicas)
        assert all(counts[b] <= most for b, most in most_of(problem, limit).items()), seed
        assert prove_end(plan_of_placed(limited, observed, placed), limited, observed, loads).wrong is None, seed
        looked_at += 1
    assert looked_at > len(seeds) / 8


def test_more_topics_than_can_be_planned_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MOST_PARTS", 100)
    observed = _uneven(1)
    with pytest.raises(InvalidInput, match=r"asks for 360 parts of topics on brokers, .* at most 100 are planned"):
        planned(_desired(observed, Balance(topics=Even(), disk=TIGHT)), observed)
