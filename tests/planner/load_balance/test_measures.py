"""Limits of rates, bytes that leaders take in, and capacity by measure, against what every legal placement gives."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest
from helpers.clusters.loads_clusters import LoadsCase
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible
from helpers.plans.planning import cluster_after, replicas_after
from helpers.plans.proving import plan_of_placed
from planner.load_balance.enumerated import Lists, bytes_copied, carried, placements, sets
from planner.load_balance.planning import planned_with, random_loads

from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    Balance,
    BalanceTarget,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Limits,
    Placement,
    Spread,
    Within,
)
from reconciler.model.loads import Loads, PartitionLoad
from reconciler.model.problem import InvalidInput, Location
from reconciler.model.topic_partition import TopicPartition
from reconciler.proof.check import prove_end

AT = Location("c/cluster.yaml", 7)
NETWORK_IN = 3  # the place in what `carried` returns
NARROW = Within(Fraction(1, 10))


def _limited(desired: Desired, balance: Balance, rates: Mapping[str, int | Fraction]) -> Desired:
    limits = Limits(rates=rates, at=dict.fromkeys(rates, AT))
    return replace(desired, cluster=replace(desired.cluster, balance=balance, limits=limits))


def _fewest(problem: Problem, every: Iterable[Lists], loads: Loads, most: int) -> int | None:
    """Return the fewest bytes of a placement in which no broker takes in more, None where there is none."""
    kept = (
        bytes_copied(problem, lists)
        for lists in every
        if max(carried(problem, loads, lists)[NETWORK_IN].values(), default=0) <= most
    )
    return min(kept, default=None)


@pytest.mark.long
@parts("seeds", range(0, 200, 8), deep=range(200))
def test_a_limit_is_kept_by_the_fewest_bytes_where_any_placement_keeps_it_else_told(seeds: range) -> None:
    seen = {"kept": 0, "moved for it": 0, "told": 0}
    for seed in seeds:
        desired, observed, loads, problem = random_loads(seed)
        every = placements(problem, sets, 8000)
        if not is_feasible(problem) or every is None or not problem.is_size_known:
            continue
        plain = replace(desired, cluster=replace(desired.cluster, brokers=_of_weight_one(desired), balance=Balance()))
        free = planned_with(plain, observed, loads)
        held = carried(problem, loads, replicas_after(observed, free))[NETWORK_IN]
        most = sum(held.values()) * Random(seed).choice([10, 11, 13]) // 10 // max(1, len(problem.capacity))
        if not most:
            continue
        placed = planned_with(_limited(plain, Balance(), {"networkIn": most}), observed, loads)
        fewest, lists = _fewest(problem, every, loads, most), replicas_after(observed, placed)
        above = max(carried(problem, loads, lists)[NETWORK_IN].values()) > most
        assert [each.code for each in placed.violations] == (["KR356"] if above else []), seed
        assert above == (fewest is None), seed
        if fewest is not None:
            assert placed.proof.lower_bound <= placed.proof.value == fewest, seed
            seen["kept"] += 1
            seen["moved for it"] += max(held.values()) > most
            if max(held.values()) <= most:
                assert placed.moves == free.moves, seed
        limited = _limited(plain, Balance(), {"networkIn": most})
        assert prove_end(plan_of_placed(limited, observed, placed), limited, observed, loads).wrong is None, seed
        seen["told"] += above
    assert min(seen.values()) > len(seeds) / 50, seen


def _of_weight_one(desired: Desired) -> Mapping[int, DesiredBroker]:
    return {one: replace(broker, capacity=1) for one, broker in desired.cluster.brokers.items()}


def _two_leaders() -> tuple[Desired, Cluster, Loads]:
    """Return three brokers; the first leads all four partitions, which all of them hold."""
    partitions = tuple(Partition(n, 1, (1, 2, 3), (1, 2, 3), sizes=(10, 10, 10)) for n in range(4))
    observed = Cluster("c", {one: Broker(one) for one in (1, 2, 3)}, {"t": Topic("t", partitions)})
    loads = {TopicPartition("t", n): PartitionLoad(rate, 0, 10) for n, rate in enumerate((60, 20, 40, 60))}
    return Desired(DesiredCluster("c"), {"t": DesiredTopic("t")}), observed, Loads(loads)


def _led(observed: Cluster, loads: Loads, lists: Mapping[TopicPartition, tuple[int, ...]]) -> dict[int, int]:
    held = dict.fromkeys(observed.brokers, 0)
    for key, replicas in lists.items():
        held[replicas[0]] += loads.of[key].bytes_in or 0
    return held


def test_what_leaders_take_in_is_evened_by_order_alone() -> None:
    desired, observed, loads = _two_leaders()
    asking = _limited(desired, Balance(leader_in=NARROW), {})
    placed = planned_with(asking, observed, loads)
    assert _led(observed, loads, replicas_after(observed, placed)) == {1: 60, 2: 60, 3: 60}
    assert not any(move.added for move in placed.moves)
    assert sorted(share.leader_bytes_in_per_second or 0 for share in placed.balance_after.values()) == [60, 60, 60]
    assert not planned_with(asking, cluster_after(observed, placed.moves, ()), loads).moves
    assert prove_end(plan_of_placed(asking, observed, placed), asking, observed, loads).wrong is None


def test_a_limit_of_what_leaders_take_in_moves_leaders_and_is_told_where_one_partition_is_more() -> None:
    desired, observed, loads = _two_leaders()
    kept = planned_with(_limited(desired, Balance(), {"leaderIn": 60}), observed, loads)
    assert max(_led(observed, loads, replicas_after(observed, kept)).values()) == 60
    assert not kept.violations
    above = planned_with(_limited(desired, Balance(), {"leaderIn": 50}), observed, loads)
    (told,) = above.violations
    assert (told.code, told.at) == ("KR356", AT)
    assert "would take in as leader 60 B/s, 10 bytes/s more than the 50 B/s that limits.leaderIn allows" in told.message


def test_a_limit_in_percent_is_of_each_brokers_own_rate_and_not_checked_where_that_is_not_written() -> None:
    desired, observed, loads = _two_leaders()
    rates = {1: DesiredBroker(1, rates={"networkIn": 100}), 2: DesiredBroker(2, rates={"networkIn": 1000})}
    written = replace(desired, cluster=replace(desired.cluster, brokers=rates))
    placed = planned_with(_limited(written, Balance(), {"leaderIn": Fraction(1, 5)}), observed, loads)
    assert _led(observed, loads, replicas_after(observed, placed))[1] <= 20
    (warning,) = [each for each in placed.warnings if each.code == "KR845"]
    assert "brokers 3 have none" in warning.message


def test_limits_of_rates_need_loads_and_are_kept_beside_a_balance_of_topics() -> None:
    desired, observed, loads = _two_leaders()
    with pytest.raises(InvalidInput, match=r"limits.leaderIn needs measured loads") as refused:
        planned_with(_limited(desired, Balance(), {"leaderIn": 60}), observed, None)
    assert refused.value.problems[0].at == AT
    placed = planned_with(_limited(desired, Balance(topics=Even()), {"leaderIn": 60}), observed, loads)
    assert not placed.violations


def test_a_limit_of_any_size_is_a_limit() -> None:
    desired, observed, loads = _two_leaders()
    heavy = {one: DesiredBroker(one, capacity=1000) for one in (1, 2, 3)}
    written = replace(desired, cluster=replace(desired.cluster, brokers=heavy))
    placed = planned_with(_limited(written, Balance(leader_in=NARROW), {"networkIn": (1 << 63) - 1}), observed, loads)
    assert not placed.violations
    assert placed.moves


@pytest.mark.long
def test_limits_near_the_mean_are_kept_on_many_partitions_beside_bands() -> None:
    case = LoadsCase("near", brokers=9, racks=3, topics=20, partitions=12, is_drifted=True)
    desired, observed, loads = case.build()
    whole = sum((load.bytes_in or 0) * 3 for load in loads.of.values()) // 9
    sent = sum((load.bytes_out or 0) + 2 * (load.bytes_in or 0) for load in loads.of.values()) // 9
    rates = {"networkIn": whole * 102 // 100, "networkOut": sent * 102 // 100}
    for balance in (Balance(), Balance(replicas=Even(), disk=Within(Fraction(1, 4)))):
        placed = planned_with(_limited(desired, balance, rates), observed, loads)
        assert not placed.violations
        for share in placed.balance_after.values():
            assert (share.bytes_in_per_second or 0) <= rates["networkIn"]
            assert (share.bytes_out_per_second or 0) <= rates["networkOut"]


@pytest.mark.parametrize("target", [Even(), Within(Fraction(1, 10))], ids=["even", "within"])
def test_each_measure_goes_by_its_own_capacity(target: BalanceTarget) -> None:
    partitions = tuple(Partition(n, 1, (1, 2), (1, 2), sizes=(10, 10)) for n in range(24))
    observed = Cluster("c", {one: Broker(one) for one in (1, 2, 3, 4)}, {"t": Topic("t", partitions)})
    weights = {"replicas": 3, "leaders": 1, "network": 2}
    brokers = {1: DesiredBroker(1, weights=weights)}
    balance = Balance(replicas=target, leaders=target)
    desired = Desired(DesiredCluster("c", brokers=brokers, balance=balance), {"t": DesiredTopic("t")})
    placed = planned_with(desired, observed, None)
    assert {one: (share.replicas, share.leaders) for one, share in placed.balance_after.items()} == {
        1: (24, 6),
        **dict.fromkeys((2, 3, 4), (8, 6)),
    }
    assert placed.grounds.brokers[1].weights == {"network": 2, "replicas": 3}
    assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None
    by_topic = replace(desired, cluster=replace(desired.cluster, balance=Balance(topics=target)))
    assert planned_with(by_topic, observed, None).balance_after == placed.balance_after


@pytest.mark.long
def test_all_measures_go_by_their_capacities_at_once() -> None:
    case = LoadsCase("mixed", brokers=6, racks=3, topics=30, partitions=12, is_drifted=True, band=Fraction(1, 10))
    desired, observed, loads = case.build()
    weights = {"replicas": 1, "leaders": 2, "disk": 2, "network": 2}
    brokers = {0: DesiredBroker(0, weights=weights), 1: DesiredBroker(1, capacity=2)}
    anywhere = Placement(racks_spread=Spread.IGNORE)
    topics = {name: replace(topic, placement=anywhere) for name, topic in desired.topics.items()}
    mixed = replace(desired, cluster=replace(desired.cluster, brokers=brokers), topics=topics)
    placed = planned_with(mixed, observed, loads)
    assert not [each for each in placed.warnings if each.code == "KR842"]
    of = {
        "replicas": {0: 1, 1: 2},
        "leaders": {0: 2, 1: 2},
        "bytes": {0: 2, 1: 2},
        "bytes_in_per_second": {0: 2, 1: 2},
        "bytes_out_per_second": {0: 2, 1: 2},
    }
    for measure, weight in of.items():
        held = {one: getattr(share, measure) for one, share in placed.balance_after.items()}
        unit = Fraction(sum(held.values()), sum(weight.get(one, 1) for one in held))
        for one, there in held.items():
            share = unit * weight.get(one, 1)
            assert share * Fraction(9, 10) - 1 <= there <= share * Fraction(11, 10) + 1, (measure, one)
    assert prove_end(plan_of_placed(mixed, observed, placed), mixed, observed, loads).wrong is None
