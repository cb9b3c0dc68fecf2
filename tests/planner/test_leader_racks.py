"""`racks.leader` is preferred: it orders replicas, and places what is copied or created anyway."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from helpers.clusters.random_clusters import random_cluster
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, legal_sets, problem_of
from helpers.plans.planning import cluster_after, planned, replicas_after

from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    Balance,
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Placement,
    Protection,
    Spread,
)
from reconciler.model.topic_partition import TopicPartition

pytestmark = pytest.mark.long

NOTHING = Balance()
LED_FROM_C = Placement(racks_spread=Spread.PREFER, racks_leader=frozenset({"c"}))


def _reached(
    observed: Cluster,
    topic: DesiredTopic,
    brokers: Mapping[int, DesiredBroker] = MappingProxyType({}),
    balance: Balance = NOTHING,
) -> list[tuple[int, ...]]:
    desired = Desired(DesiredCluster("c", brokers=brokers, balance=balance), {topic.name: topic})
    return [replicas for _, replicas in sorted(replicas_after(observed, planned(desired, observed)).items())]


def _led(seeds: range) -> Iterator[tuple[int, Desired, Cluster]]:
    """Yield random clusters whose topics are all to be led from one rack, where every rule can hold."""
    for seed in seeds:
        desired, observed = random_cluster(seed)
        rack = sorted({broker.rack or "" for broker in observed.brokers.values()})[seed % 2 - 1]
        # A topic that no file places is left as it is, and a rack for its leader would place it.
        topics = {
            name: replace(topic, placement=replace(topic.placement, racks_leader=frozenset({rack})))
            if topic.replication_factor is not None or topic.placement != Placement()
            else topic
            for name, topic in desired.topics.items()
        }
        if is_feasible(problem_of(desired, observed)):
            yield seed, replace(desired, topics=topics), observed


def _without(desired: Desired) -> Desired:
    topics = {
        name: replace(topic, placement=replace(topic.placement, racks_leader=None))
        for name, topic in desired.topics.items()
    }
    return replace(desired, topics=topics)


@parts("seeds", range(0, 400, 12), deep=range(400))
def test_it_never_copies_and_the_best_replica_leads(seeds: range) -> None:
    tried, led = 0, 0
    for seed, desired, observed in _led(seeds):
        placed, plain = planned(desired, observed), planned(_without(desired), observed)
        for of in (lambda move: move.bytes, lambda move: len(move.added)):
            assert sum(map(of, placed.moves)) == sum(map(of, plain.moves)), seed
        reached = replicas_after(observed, placed)
        for demand in problem_of(desired, observed).demands:
            replicas = reached[demand.topic_partition]
            if demand.settled is None and demand.is_declared and not demand.leading.isdisjoint(replicas):
                assert replicas[0] in demand.leading, (seed, demand)
                led += 1
        again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
        assert (len(again.moves), again.topic_changes) == (0, ()), seed
        tried += 1
    assert tried >= len(seeds) / 2
    assert led >= len(seeds) / 2


@parts("seeds", range(0, 400, 12), deep=range(400))
def test_a_new_partition_gets_a_replica_there_wherever_a_legal_set_has_one(seeds: range) -> None:
    created = 0
    for seed, desired, observed in _led(seeds):
        freely = replace(desired, cluster=replace(desired.cluster, balance=Balance()))
        reached, problem = replicas_after(observed, planned(freely, observed)), problem_of(freely, observed)
        for demand in problem.demands:
            is_asked = demand.leading != demand.leading_at_need
            if not demand.current and demand.settled is None and is_asked:
                could = any(demand.leading & set(legal) for legal in legal_sets(demand, problem.rack_of))
                assert could == bool(demand.leading & set(reached[demand.topic_partition])), (seed, demand)
                created += 1
    assert created >= len(seeds) / 8


def test_without_a_replica_there_nothing_is_copied() -> None:
    assert _reached(small_cluster("t-0: 1,2"), DesiredTopic("t", placement=LED_FROM_C)) == [(1, 2)]


def test_a_replica_that_is_there_leads() -> None:
    assert _reached(small_cluster("t-0: 1,3"), DesiredTopic("t", placement=LED_FROM_C)) == [(3, 1)]


def test_what_is_copied_anyway_goes_there() -> None:
    draining = {1: DesiredBroker(1, BrokerState.DRAINING)}
    reached = _reached(small_cluster("t-0: 1,2"), DesiredTopic("t", placement=LED_FROM_C), brokers=draining)
    assert [set(replicas) & {3, 6} != set() for replicas in reached] == [True]
    assert reached[0][0] in {3, 6}


def test_what_goes_is_a_replica_elsewhere() -> None:
    topic = DesiredTopic("t", replication_factor=2, placement=LED_FROM_C)
    assert all(3 in replicas for replicas in _reached(small_cluster("t-0: 1,2,3", "t-1: 1,2,3", "t-2: 1,2,3"), topic))


def test_where_a_rack_may_hold_several_one_is_enough() -> None:
    placement = replace(LED_FROM_C, racks_spread=Spread.IGNORE)
    topic = DesiredTopic("t", partitions=6, replication_factor=2, placement=placement)
    assert [len(set(replicas) & {3, 6}) for replicas in _reached(small_cluster(), topic)] == [1] * 6


def test_a_broker_in_maintenance_leads_last() -> None:
    topic = DesiredTopic("t", placement=LED_FROM_C)
    resting = {3: DesiredBroker(3, BrokerState.MAINTENANCE)}
    assert _reached(small_cluster("t-0: 3,2"), topic, brokers=resting) == [(2, 3)]


def test_a_topic_that_may_not_move_stays_in_its_order() -> None:
    topic = DesiredTopic("t", placement=LED_FROM_C, protect=frozenset({Protection.MOVE}))
    assert _reached(small_cluster("t-0: 1,3"), topic) == [(1, 3)]


def test_an_assignment_may_begin_elsewhere() -> None:
    topic = DesiredTopic("t", placement=replace(LED_FROM_C, assignment=((1, 3),)))
    assert _reached(small_cluster("t-0: 3,1"), topic) == [(1, 3)]


def test_leaders_are_even_among_the_preferred_ones() -> None:
    observed = small_cluster(*(f"t-{number}: 1,2,{3 + 3 * (number % 2)}" for number in range(4)))
    reached = _reached(observed, DesiredTopic("t", placement=LED_FROM_C), balance=Balance(leaders=Even()))
    assert sorted(replicas[0] for replicas in reached) == [3, 3, 6, 6]
    assert TopicPartition("t", 0) in dict(observed.partitions())
