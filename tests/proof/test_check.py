"""Plans are proved by their prices alone, and no plan that was made worse is."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import pytest
from helpers.clusters.random_clusters import SMALL, TINY, Size, random_cluster, with_unknown_sizes
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, problem_of
from helpers.plans.proving import provable_plan, replica_bounds_by_enumeration, with_levels

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Within,
)
from reconciler.model.plan import Plan
from reconciler.proof.check import prove_end

pytestmark = pytest.mark.long


def _cases(seeds: range, size: Size) -> Iterator[tuple[int, Desired, Cluster, Plan]]:
    for seed in seeds:
        desired, observed = random_cluster(seed, size)
        if is_feasible(problem_of(desired, observed)):
            yield seed, desired, observed, provable_plan(desired, observed)


@parts("seeds", range(0, 300, 5), deep=range(300))
def test_every_plan_of_a_tiny_cluster_is_proved(seeds: range) -> None:
    proved = 0
    for seed, desired, observed, plan in _cases(seeds, TINY):
        verdict = prove_end(plan, desired, observed)
        assert verdict.wrong is None, (seed, verdict.wrong)
        below = {level.objective for level in verdict.levels if level.lower_bound < level.value}
        assert below <= {*verdict.unproved} <= {"evenness"}, (seed, below)  # racks that are to lead decide before it
        proved += 1
    assert proved > len(seeds) / 6


@parts("seeds", range(0, 100, 4), deep=range(300))
def test_every_plan_of_a_small_cluster_is_proved(seeds: range) -> None:
    wrong = {seed: prove_end(plan, desired, observed).wrong for seed, desired, observed, plan in _cases(seeds, SMALL)}
    assert len(wrong) > len(seeds) / 2
    assert set(wrong.values()) == {None}


@parts("seeds", range(0, 100, 4), deep=range(100))
def test_plans_that_count_replicas_because_a_size_is_unknown_are_proved(seeds: range) -> None:
    tried = 0
    for seed, desired, known, _ in _cases(seeds, TINY):
        observed = with_unknown_sizes(known, seed)
        plan = provable_plan(desired, observed)
        verdict = prove_end(plan, desired, observed)
        assert verdict.wrong is None, seed
        assert verdict.objective == plan.proof.objective, seed
        tried += plan.proof.objective == "replicas"
    assert tried > len(seeds) / 4


@pytest.fixture(scope="module")
def priced() -> list[tuple[int, Desired, Cluster, Plan]]:
    return list(_cases(range(400, 420), TINY))


def test_a_changed_price_proves_nothing_unless_it_happens_to_be_as_good(
    priced: list[tuple[int, Desired, Cluster, Plan]],
) -> None:
    refused = 0
    for seed, desired, observed, plan in priced:
        problem, balance = problem_of(desired, observed), desired.cluster.balance
        for number, level in enumerate(plan.proof.levels):
            if "leaders" in level.objective:
                continue
            for broker_id in level.prices:
                for more in (-7, 1, 100_000):
                    prices = {**level.prices, broker_id: level.prices[broker_id] + more}
                    levels = [*plan.proof.levels]
                    levels[number] = replace(level, prices=prices)
                    of_replicas = [each for each in levels if "leaders" not in each.objective]
                    bounds = replica_bounds_by_enumeration(problem, balance, of_replicas)
                    is_as_good = bounds == [each.value for each in levels[: len(bounds)]]
                    verdict = prove_end(with_levels(plan, levels), desired, observed)
                    is_joint = verdict.wrong is not None and verdict.wrong.startswith("the proof's prices")
                    assert verdict.is_proved == is_as_good or (is_as_good and is_joint), (seed, level, prices)
                    refused += not verdict.is_proved
    assert refused > 100


def test_a_changed_price_of_the_leaders_is_noticed(priced: list[tuple[int, Desired, Cluster, Plan]]) -> None:
    refused = 0
    for _, desired, observed, plan in priced:
        for number, level in enumerate(plan.proof.levels):
            if level.objective == "leaders balance":
                for broker_id in level.prices:
                    levels = [*plan.proof.levels]
                    levels[number] = replace(level, prices={**level.prices, broker_id: 100_000})
                    refused += not prove_end(with_levels(plan, levels), desired, observed).is_proved
    assert refused > 8


@pytest.mark.parametrize("size", [TINY, SMALL], ids=["tiny", "small"])
def test_plans_that_even_topics_are_proved_with_prices_of_topics(size: Size) -> None:
    priced = 0
    for seed in range(0, 80, 3):
        desired, observed = random_cluster(seed, size)
        if not is_feasible(problem_of(desired, observed)):
            continue
        target: BalanceTarget = Even() if seed % 2 else Within(Fraction(seed % 3, 5))
        balance = replace(desired.cluster.balance, topics=target)
        desired = replace(desired, cluster=replace(desired.cluster, balance=balance))
        plan = provable_plan(desired, observed)
        assert prove_end(plan, desired, observed).wrong is None, seed
        without = [replace(level, topic_prices={}) for level in plan.proof.levels]
        priced += not prove_end(with_levels(plan, without), desired, observed).is_proved
    assert priced > 2


def test_leaders_that_a_band_forces_onto_a_broker_are_proved_with_even_topics() -> None:
    """Three of five partitions can be led by broker 8 alone: so many are more than an even topic has there."""
    brokers = {b: Broker(b, rack) for b, rack in {1: "a", 2: "b", 4: "a", 5: "b", 6: "a", 8: "b", 10: "a"}.items()}
    sets, leaders = [(1, 5, 4), (4, 1, 5), (5, 2, 4), (5, 4, 2), (1, 4, 2)], [1, 4, 5, 2, 4]
    rows = zip(sets, leaders, [10, 5, 2, 2, 5], strict=True)
    there = [Partition(n, led, ids, ids, sizes=(size,) * 3) for n, (ids, led, size) in enumerate(rows)]
    others = [Partition(n, b, (b,), (b,), sizes=(1,)) for n, b in enumerate([5, 4, 4, 2])]
    topics = {"__int1": Topic("__int1", tuple(others), is_internal=True), "t3": Topic("t3", tuple(there))}
    cluster = DesiredCluster(
        "c",
        brokers={b: DesiredBroker(b, capacity=weight) for b, weight in {1: 3, 8: 3, 10: 2}.items()},
        balance=Balance(leaders=Within(Fraction(0)), topics=Even()),
    )
    desired = Desired(cluster, {"t3": DesiredTopic("t3", placement=Placement(racks_leader=frozenset({"b"})))})
    observed = Cluster("c", brokers, topics)
    verdict = prove_end(provable_plan(desired, observed), desired, observed)
    assert verdict.wrong is None
    assert ("topic leaders balance", 30, 30) in [
        (each.objective, each.value, each.lower_bound) for each in verdict.levels
    ]
