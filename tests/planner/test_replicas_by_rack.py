"""`racks.replicas`: so many replicas of each partition in each named rack, held against plain enumeration."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from helpers.clusters.random_clusters import random_cluster, shuffled
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, least_placement, problem_of, worth_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from helpers.plans.proving import plan_of_placed

from reconciler.diff.compare import compare
from reconciler.diff.rules import topic_rules
from reconciler.model.cluster import Cluster
from reconciler.model.desired import BrokerState, Desired, DesiredBroker, DesiredCluster, DesiredTopic, Placement
from reconciler.model.move import Reason
from reconciler.model.problem import Location, PlacementInfeasible
from reconciler.planner.explain import explain
from reconciler.proof.check import prove_end

pytestmark = pytest.mark.long

AT = {
    "": Location("t.yaml", 1),
    "replicationFactor": Location("t.yaml", 6),
    "placement.racks.replicas": Location("t.yaml", 8),
    "placement.racks.replicas.d": Location("t.yaml", 9),
}


@cache
def _drawn() -> list[tuple[int, Desired, Cluster]]:
    """Return random clusters where most topics say how many replicas each rack holds."""
    return [(seed, *_with_racks(Random(seed), *random_cluster(seed))) for seed in range(400)]


def _with_racks(random: Random, desired: Desired, observed: Cluster) -> tuple[Desired, Cluster]:
    racks = sorted({broker.rack or "" for broker in observed.brokers.values()})
    topics = {}
    for name, topic in desired.topics.items():
        there = observed.topics.get(name)
        factor = topic.replication_factor or (len(there.partitions[0].target_replicas) if there else 1)
        counts = Counter(random.choice(racks) for _ in range(factor))
        racked = replace(topic.placement, racks_spread=None, racks_replicas=tuple(sorted(counts.items())))
        is_changed = random.random() < 0.7 and topic.placement.assignment is None
        topics[name] = replace(topic, replication_factor=factor, placement=racked) if is_changed else topic
    return replace(desired, topics=topics), observed


def _feasible(every: int = 1) -> Iterator[tuple[int, Desired, Cluster]]:
    return (case for case in _drawn()[::every] if is_feasible(problem_of(*case[1:])))


@parts("every", 12, deep=1)
def test_plans_are_as_good_as_enumeration_finds_proved_and_at_rest(every: int) -> None:
    tried = 0
    for seed, desired, observed in _feasible(every):
        placed, problem, target = planned(desired, observed), problem_of(desired, observed), desired.cluster.balance
        found = worth_of(problem, target.replicas, replicas_after(observed, placed))
        least = least_placement(problem, target.replicas)
        assert least is not None
        assert found.least_of(problem, target.replicas) == least.least_of(problem, target.replicas), seed
        assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None, seed
        again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
        assert (len(again.moves), again.topic_changes) == (0, ()), seed
        assert planned(shuffled(desired, seed), observed) == placed, seed
        tried += 1
    assert tried >= 100 // every


@parts("every", 9, deep=1)
def test_each_rack_ends_with_its_number(every: int) -> None:
    looked_at = 0
    for seed, desired, observed in _feasible(every):
        for key, replicas in replicas_after(observed, planned(desired, observed)).items():
            topic, partition = desired.topics.get(key.topic), observed.partition(key)
            # A partition without a living replica in sync is left as it is.
            is_left = partition is not None and not any(map(observed.is_alive, partition.isr))
            if topic is not None and topic.placement.racks_replicas is not None and not (topic.protect or is_left):
                held = Counter(observed.brokers[replica].rack or "" for replica in replicas)
                assert tuple(sorted(held.items())) == topic.placement.racks_replicas, (seed, key)
                looked_at += 1
    assert looked_at >= 200 // every


def test_what_no_placement_keeps_is_refused() -> None:
    refused = 0
    for seed, desired, observed in _drawn():
        if not is_feasible(problem_of(desired, observed)):
            with pytest.raises(PlacementInfeasible) as refusal:
                planned(desired, observed)
            assert all(problem.code.startswith("KR3") for problem in refusal.value.problems), seed
            refused += 1
    assert refused >= 100


def _topic(*counts: tuple[str, int]) -> DesiredTopic:
    factor = sum(count for _, count in counts)
    return DesiredTopic("t", replication_factor=factor, placement=Placement(racks_replicas=counts), at=AT)


def test_a_partition_in_other_racks_breaks_the_rule_at_its_line() -> None:
    desired = Desired(DesiredCluster("c"), {"t": _topic(("a", 2), ("b", 1))})
    observed = small_cluster("t-0: 1,2,3", "t-1: 1,4,5")
    rules = topic_rules(desired, observed)
    (broken,) = compare(desired, observed, rules).broken_rules
    assert (broken.reason, broken.detail) == (Reason.RACKS, "racks a, b, c, not 2 in a and 1 in b")
    assert broken.at == Location("t.yaml", 8)
    (move,) = planned(desired, observed).moves
    assert move.to_replicas == (1, 2, 4)


def _refusal(topic: DesiredTopic, *draining: int) -> tuple[str, str]:
    brokers = {b: DesiredBroker(b, BrokerState.DRAINING, at=Location("c.yaml", b)) for b in draining}
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(Desired(DesiredCluster("c", brokers=brokers), {"t": topic}), small_cluster("t-0: 1,2,3"))
    (problem,) = refusal.value.problems
    return problem.code, problem.message


def test_too_few_brokers_in_a_rack_are_named_with_the_line() -> None:
    assert _refusal(_topic(("a", 2), ("b", 1)), 4) == (
        "KR301",
        (
            "t-0 cannot be placed: replicationFactor is 3 (t.yaml:6), broker 4 is declared draining (c.yaml:4), "
            "racks.replicas wants 2 in a and 1 in b (t.yaml:8). Keep broker 4 active; or want fewer in a rack."
        ),
    )


def test_a_rack_that_nobody_is_in_is_told_with_what_was_meant() -> None:
    code, message = _refusal(_topic(("d", 3)))
    assert code == "KR360"
    assert message == (
        "t-0 cannot be placed: racks.replicas names rack d (t.yaml:9), and no broker is in it: there are a, b, c."
    )
    near = replace(_topic(("rack-c", 3)), at={})
    observed = small_cluster("t-0: 1,2,3")
    observed = replace(
        observed, brokers={b: replace(broker, rack=f"rack{broker.rack}") for b, broker in observed.brokers.items()}
    )
    with pytest.raises(PlacementInfeasible, match=r"did you mean rackc\?"):
        planned(Desired(DesiredCluster("c"), {"t": near}), observed)


def test_an_explanation_knows_which_racks_are_full() -> None:
    desired = Desired(DesiredCluster("c"), {"t": _topic(("a", 2), ("b", 1))})
    observed = small_cluster("t-0: 1,2,3")
    placed = planned(desired, observed)
    found = explain(
        replace(plan_of_placed(desired, observed, placed), grounds=placed.grounds), placed.moves[0].topic_partition
    )
    (added,) = found.added
    assert (added.broker_id, [full.rack for full in added.full]) == (4, ["b"])
    assert not added.alternatives
