"""Bounds where measured loads are to be balanced: at any prices what enumeration gives, and never above the truth."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from random import Random

import numpy as np
import pytest
from helpers.clusters.loads_clusters import LoadsCase
from helpers.clusters.random_clusters import random_cluster
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible, legal_sets, problem_of, reached_replicas
from helpers.plans.proving import plan_of_placed, provable_plan

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import Balance, Desired, DesiredCluster, DesiredTopic, Even, Within
from reconciler.model.plan import Plan, PriceLevel, Proof
from reconciler.model.stage import ReassignStage
from reconciler.model.topic_partition import TopicPartition
from reconciler.planner.place import plan_placement
from reconciler.proof.check import prove_end
from reconciler.proof.demands import demands_of
from reconciler.proof.loaded import Carried, loaded_bound
from reconciler.proof.reached import reached


@dataclass(frozen=True, slots=True)
class _Case:
    seed: int
    desired: Desired
    observed: Cluster
    problem: Problem
    plan: Plan
    carried: Mapping[TopicPartition, Carried]
    level: PriceLevel


def _cases(seeds: range) -> Iterator[_Case]:
    for seed in seeds:
        random = Random(seed)
        desired, observed = random_cluster(seed)
        problem = problem_of(desired, observed)
        if not is_feasible(problem):
            continue
        carried = {d.topic_partition: Carried(random.randint(0, 9), random.randint(0, 5)) for d in problem.demands}
        of_loads = {name: _prices(random, problem) for name in ("disk", "networkIn")}
        level = PriceLevel("bytes", 0, 0, _prices(random, problem), {}, of_loads, random.choice([1, 4]))
        yield _Case(seed, desired, observed, problem, provable_plan(desired, observed), carried, level)


def _prices(random: Random, problem: Problem) -> dict[int, int]:
    return {broker_id: random.randint(-20, 20) for broker_id in problem.brokers}


def _by_enumeration(case: _Case, placed: Mapping[TopicPartition, tuple[int, ...]]) -> Fraction:
    """Return the bound of every legal set tried, with the bands as wide as the reached loads."""
    level, brokers = case.level, case.problem.brokers
    prices = [level.prices, level.load_prices["disk"], level.load_prices["networkIn"]]
    bound = 0
    final = [dict.fromkeys(brokers, 0) for _ in prices]
    for demand in case.problem.demands:
        one = case.carried[demand.topic_partition]
        weights = (1, one.disk, one.network_in)
        bound += min(
            (demand.bytes_copied(replicas) << level.shift)
            + sum(
                weight * price[b]
                for weight, price in zip(weights, prices, strict=True)
                for b in replicas
                if b in brokers
            )
            for replicas in legal_sets(demand, case.problem.rack_of)
        )
        for weight, loads in zip(weights, final, strict=True):
            for broker_id in set(placed[demand.topic_partition]) & set(brokers):
                loads[broker_id] += weight
    for price, loads in zip(prices, final, strict=True):
        total = sum(loads.values())
        bound -= sum(max(0, price[b] * total) for b in brokers)
    return Fraction(bound, 1 << level.shift)


@pytest.mark.long
@parts("seeds", range(0, 150, 6), deep=range(150))
def test_the_bound_is_what_enumeration_gives(seeds: range) -> None:
    tried = 0
    for case in _cases(seeds):
        demands = demands_of(case.desired, case.observed)
        end = reached(case.plan, demands)
        sizes = np.maximum(demands.rows.size, 0) * demands.is_copied
        moves = [move for stage in case.plan.stages if isinstance(stage, ReassignStage) for move in stage.moves]
        placed = reached_replicas(case.observed, moves, case.plan.topic_changes)
        found = loaded_bound(
            demands, end, Balance(), case.level, copy=np.array(sizes, dtype=np.int64), carried=case.carried
        )
        forced = sum(d.bytes_copied(d.settled) for d in case.problem.demands if d.settled is not None)
        assert found == -(-(_by_enumeration(case, placed) - forced) // 1), case.seed
        tried += 1
    assert tried > len(seeds) // 2


def _drifted() -> tuple[Desired, Cluster, Plan]:
    """Return three brokers of which one is too full, and a plan that moves 40 bytes off it: the least that will do."""
    sizes = {"big": (1, 60), "some": (1, 40), "more": (2, 50), "rest": (3, 60)}
    topics = {
        name: Topic(name, (Partition(0, broker_id, (broker_id,), (broker_id,), sizes=(size,)),))
        for name, (broker_id, size) in sizes.items()
    }
    observed = Cluster("c", {b: Broker(b) for b in (1, 2, 3)}, topics)
    balance = Balance(disk=Within(Fraction(3, 10)))
    desired = Desired(DesiredCluster("c", balance=balance), {name: DesiredTopic(name) for name in sizes})
    wanted = replace(
        desired.topics["some"], placement=replace(desired.topics["some"].placement, brokers_only=frozenset({2}))
    )
    moved = replace(
        desired, cluster=replace(desired.cluster, balance=Balance()), topics={**desired.topics, "some": wanted}
    )
    return desired, observed, provable_plan(moved, observed)


DESIRED, OBSERVED, MOVED = _drifted()
PRICES = {1: 1 << 4, 2: 0, 3: 0}
LEVEL = PriceLevel("bytes", 40, 30, {}, {}, {"disk": PRICES}, 4)
"""Broker 1 has 100 bytes and may keep 91: at the price of a byte a byte, at least 9 must go."""


def _with(level: PriceLevel, value: int = 40, bound: int | None = None) -> Plan:
    bound = level.lower_bound if bound is None else bound
    return replace(MOVED, proof=Proof("bytes", value, bound, {}, (level,)))


def _true_bound() -> int:
    plans = {bound: _with(replace(LEVEL, lower_bound=bound)) for bound in range(41)}
    return max(bound for bound, plan in plans.items() if prove_end(plan, DESIRED, OBSERVED).is_proved)


def test_a_bound_is_accepted_up_to_what_the_prices_prove() -> None:
    assert _true_bound() == 9
    verdict = prove_end(_with(replace(LEVEL, lower_bound=9)), DESIRED, OBSERVED)
    assert verdict.wrong is None
    assert (verdict.value, verdict.gap_percent, verdict.is_within_bands) == (40, 77.5, True)
    wrong = prove_end(_with(replace(LEVEL, lower_bound=10)), DESIRED, OBSERVED).wrong
    assert wrong == "bytes: the prices prove only 9, but the proof claims 10"


@pytest.mark.parametrize(
    ("plan", "wrong"),
    [
        (_with(replace(LEVEL, value=30)), "bytes: the proof says 30, but the plan copies 40"),
        (_with(LEVEL, value=30), "bytes: the proof says 30, but the plan copies 40"),
        (_with(LEVEL, bound=1), "bytes: the proof's bound is 1, and that of its level 30"),
        (_with(replace(LEVEL, load_prices={"heat": {1: 1}})), "bytes: there are prices of heat, which is no load"),
        (_with(replace(LEVEL, load_prices={"disk": {9: 1}})), "there is a price of broker 9"),
        (_with(replace(LEVEL, load_prices={"disk": {1: 1 << 62}})), "beyond any cost"),
        (_with(replace(LEVEL, load_prices={"disk": {1: 1 << 59}})), "a price times what a partition carries"),
        (_with(replace(LEVEL, shift=60)), "prices in 2^-60 of the unit are beyond any cost"),
        (_with(replace(LEVEL, shift=1 << 62)), "of the unit are beyond any cost"),
        (replace(MOVED, proof=Proof("bytes", 40, 9)), "the proof has no prices for bytes"),
        (_with(replace(LEVEL, load_prices={"networkIn": {1: 1}})), "which only the loads tell"),
    ],
)
def test_a_bound_that_was_tampered_with_is_refused(plan: Plan, wrong: str) -> None:
    found = prove_end(plan, DESIRED, OBSERVED).wrong
    assert found is not None
    assert wrong in found


def test_a_bound_for_the_same_counts_alone_says_so() -> None:
    """Six partitions of ten bytes, two a broker: moving two of them onto broker 1 is no plan that must be made."""
    lists = {f"t{number}": number % 3 + 1 for number in range(6)}
    topics = {
        name: Topic(name, (Partition(0, broker_id, (broker_id,), (broker_id,), sizes=(10,)),))
        for name, broker_id in lists.items()
    }
    observed = Cluster("c", {b: Broker(b) for b in (1, 2, 3)}, topics)
    wide = Balance(replicas=Even(), disk=Within(Fraction(2)))
    declared = {name: DesiredTopic(name) for name in lists}
    pinned = {
        name: replace(topic, placement=replace(topic.placement, brokers_only=frozenset({1})))
        for name, topic in declared.items()
        if name in {"t1", "t2"}
    }
    moved = provable_plan(Desired(DesiredCluster("c"), {**declared, **pinned}), observed)
    level = PriceLevel("bytes", 20, 20, {1: -10})
    plan = replace(moved, proof=Proof("bytes", 20, 20, {}, (level,)))
    verdict = prove_end(plan, Desired(DesiredCluster("c", balance=wide), declared), observed)
    assert verdict.wrong is None
    assert verdict.unproved == ("replicas balance",)
    assert not verdict.is_proved


@pytest.mark.long
def test_no_prices_prove_more_than_the_best_plan_within_the_bands_copies() -> None:
    sizes = [60, 40, 50, 60]
    now = [1, 1, 2, 3]
    best = min(
        sum(size for size, was, broker in zip(sizes, now, placed, strict=True) if was != broker)
        for placed in product((1, 2, 3), repeat=4)
        if all(49 <= sum(s for s, b in zip(sizes, placed, strict=True) if b == broker) <= 91 for broker in (1, 2, 3))
    )
    assert best == 40
    random = Random(5)
    for _ in range(100):
        prices = {b: random.randint(-30, 30) for b in (1, 2, 3)}
        level = replace(LEVEL, load_prices={"disk": prices}, lower_bound=best + 1)
        assert not prove_end(_with(level), DESIRED, OBSERVED).is_proved


@pytest.mark.long
@pytest.mark.parametrize("is_measured", [True, False], ids=["all measures", "disk from the snapshot"])
@pytest.mark.parametrize(
    "case",
    [
        LoadsCase("joining", brokers=6, racks=3, topics=8, partitions=6, joining=3),
        LoadsCase("drifted", brokers=9, racks=3, topics=10, partitions=6, is_drifted=True),
        LoadsCase("leaving", brokers=9, racks=3, topics=10, partitions=6, leaving=(8,)),
    ],
    ids=lambda case: case.name,
)
def test_the_planners_own_bound_is_proved_and_one_byte_more_is_not(case: LoadsCase, *, is_measured: bool) -> None:
    desired, observed, measured = case.build()
    loads = measured if is_measured else None
    if not is_measured:
        balance = Balance(disk=desired.cluster.balance.disk)
        desired = replace(desired, cluster=replace(desired.cluster, balance=balance))
    rules = topic_rules(desired, observed)
    placed = plan_placement(desired, observed, rules, compare(desired, observed, rules), loads=loads)
    plan = plan_of_placed(desired, observed, placed)
    verdict = prove_end(plan, desired, observed, loads)
    assert verdict.wrong is None
    assert verdict.gap_percent == plan.proof.gap_percent
    (level,) = plan.proof.levels
    assert level.lower_bound > 0
    bound = level.lower_bound + 1
    raised = replace(level, lower_bound=bound)
    plan = replace(plan, proof=replace(plan.proof, lower_bound=bound, levels=(raised,)))
    assert not prove_end(plan, desired, observed, loads).is_proved
