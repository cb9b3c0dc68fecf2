"""`limits.replicasPerBroker` is a rule of every placement, held against plain enumeration."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from random import Random
from types import MappingProxyType

import pytest
from helpers.clusters.random_clusters import random_cluster, shuffled
from helpers.clusters.small_cluster import small_cluster
from helpers.depth import parts
from helpers.plans.oracle import Problem, is_feasible, least_placement, most_of, problem_of, worth_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from helpers.plans.proving import plan_of_placed

from reconciler.model.change import CreateTopic
from reconciler.model.cluster import Cluster
from reconciler.model.desired import (
    Balance,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Even,
    Limits,
    Placement,
    Protection,
    Within,
)
from reconciler.model.move import Reason
from reconciler.model.problem import Location, PlacementInfeasible
from reconciler.planner import goal, objectives, sparse_flow, start
from reconciler.proof.check import prove_end

AT = Location("cluster.yaml", 30)
NOTHING = Balance()


@pytest.fixture(params=[False, True], ids=["at once", "row by row"])
def _every_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small clusters go the way of large ones, too."""
    if request.param:
        monkeypatch.setattr(sparse_flow, "FEW_ARCS", 0)
        monkeypatch.setattr(start, "SPARE_ROWS", 1)
        monkeypatch.setattr(goal, "CHUNK", 3)
        monkeypatch.setattr(objectives, "BROKER_WINDOW", 1)


def limited(desired: Desired, limit: int) -> Desired:
    limits = Limits(replicas_per_broker=limit, at={"replicasPerBroker": AT})
    return replace(desired, cluster=replace(desired.cluster, limits=limits))


@cache
def _drawn() -> list[tuple[int, Desired, Cluster, Problem, int]]:
    """Return random clusters whose other rules can hold, with a limit near what their brokers hold."""
    found = []
    for seed in range(500):
        desired, observed = random_cluster(seed)
        problem = problem_of(desired, observed)
        if is_feasible(problem) and problem.brokers:
            each = -(-sum(demand.need for demand in problem.demands) // len(problem.brokers))
            limit = max(1, each + Random(seed).randint(-1, 2))
            found.append((seed, limited(desired, limit), observed, problem, limit))
    return found


@pytest.mark.long
@pytest.mark.usefixtures("_every_path")
@parts("every", 15, deep=1)
def test_plans_are_as_good_as_enumeration_finds_proved_and_at_rest_or_refused(every: int) -> None:
    planned_ones, refused = 0, 0
    for seed, desired, observed, problem, limit in _drawn()[::every]:
        target, most = desired.cluster.balance.replicas, most_of(problem, limit)
        least = least_placement(problem, target, most)
        if least is None:
            with pytest.raises(PlacementInfeasible) as refusal:
                planned(desired, observed)
            assert [found.code for found in refusal.value.problems] == ["KR361"], seed
            refused += 1
            continue
        placed = planned(desired, observed)
        reached = replicas_after(observed, placed)
        found = worth_of(problem, target, reached)
        assert found.least_of(problem, target) == least.least_of(problem, target), seed
        counts = Counter(replica for replicas in reached.values() for replica in replicas)
        assert all(counts[broker_id] <= allowed for broker_id, allowed in most.items()), seed
        assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None, seed
        again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
        assert (len(again.moves), again.topic_changes) == (0, ()), seed
        assert planned(shuffled(desired, seed), observed) == placed, seed
        planned_ones += 1
    assert planned_ones >= 200 // every
    assert refused >= 30 // every


@pytest.mark.long
@parts("every", 10, deep=1)
def test_the_least_limit_that_a_refusal_names_is_one_that_fits_and_one_less_does_not(every: int) -> None:
    tried = 0
    for seed, desired, observed, problem, limit in _drawn()[::every]:
        try:
            planned(desired, observed)
        except PlacementInfeasible as refusal:
            named = int(str(refusal).split("Raise it to ")[1].split(",")[0])
            assert named > limit
            balance = desired.cluster.balance.replicas
            assert least_placement(problem, balance, most_of(problem, named)) is not None, seed
            assert least_placement(problem, balance, most_of(problem, named - 1)) is None, seed
            tried += 1
    assert tried >= 30 // every


@pytest.mark.long
def test_a_limit_that_nothing_reaches_changes_no_plan() -> None:
    for seed, desired, observed, _, _ in _drawn()[:20]:
        plain = replace(desired, cluster=replace(desired.cluster, limits=Limits()))
        assert planned(limited(desired, 1000), observed) == planned(plain, observed), seed


LISTS = ("t-0: 1 size 5", "t-1: 1 size 3", "t-2: 1 size 9", "t-3: 2 size 1")


def _desired(
    topic: DesiredTopic | None = None,
    limit: int = 2,
    brokers: Mapping[int, DesiredBroker] = MappingProxyType({}),
    balance: Balance = NOTHING,
) -> Desired:
    wanted = topic or DesiredTopic("t")
    return limited(Desired(DesiredCluster("c", brokers=brokers, balance=balance), {wanted.name: wanted}), limit)


def test_a_broker_over_the_limit_gives_the_smallest_replica_for_the_limits_sake() -> None:
    (move,) = planned(_desired(), small_cluster(*LISTS, brokers=(1, 2))).moves
    assert (move.topic_partition.partition, move.to_replicas) == (1, (2,))
    assert (move.reason, move.at) == (Reason.BALANCE, AT)


def test_new_topics_count() -> None:
    new = DesiredTopic("new", partitions=3, replication_factor=1)
    desired = _desired(limit=3)
    desired = replace(desired, topics={**desired.topics, "new": new})
    (change,) = planned(desired, small_cluster(*LISTS, brokers=(1, 2, 3))).topic_changes
    assert isinstance(change, CreateTopic)
    assert 1 not in {replica for replicas in change.assignment.values() for replica in replicas}


def test_a_refusal_names_the_line_and_what_would_do() -> None:
    with pytest.raises(PlacementInfeasible) as refusal:
        planned(_desired(limit=1), small_cluster(*LISTS, brokers=(1, 2)))
    (problem,) = refusal.value.problems
    assert (problem.code, problem.at) == ("KR361", AT)
    assert problem.message == (
        "no placement keeps limits.replicasPerBroker: 1 (cluster.yaml:30): 4 replicas are to be placed, and the 2 "
        "brokers that take any have room for 2. Raise it to 2, add a broker, or lower a replicationFactor."
    )


def test_replicas_that_other_rules_leave_no_place_are_counted() -> None:
    topic = DesiredTopic("t", placement=Placement(brokers_only=frozenset({1, 2})))
    with pytest.raises(PlacementInfeasible, match="racks, and who may hold what, leave 2 of 4 replicas without"):
        planned(_desired(topic, limit=1), small_cluster(*LISTS, brokers=(1, 2, 3, 4, 5)))


@pytest.mark.parametrize(
    "topic",
    [DesiredTopic("other"), DesiredTopic("t", protect=frozenset({Protection.MOVE}))],
    ids=["undeclared", "protected"],
)
def test_what_may_not_move_is_no_conflict_but_is_told(topic: DesiredTopic) -> None:
    observed = small_cluster(*LISTS, "other-0: 1 size 2", "other-1: 2 size 2", brokers=(1, 2, 3))
    desired = _desired(topic)
    desired = replace(desired, topics={**desired.topics, "other": DesiredTopic("other")})
    placed = planned(desired, observed)
    assert [(problem.code, problem.at) for problem in placed.warnings] == [("KR362", AT)]
    assert "(broker 1: 3)" in placed.warnings[0].message
    assert [(move.topic_partition.topic, move.from_replicas) for move in placed.moves] == [("other", (1,))]


def test_an_even_balance_that_the_limit_bends_says_so() -> None:
    brokers = {1: DesiredBroker(1, capacity=3)}
    observed = small_cluster(*(f"t-{n}: {1 + n % 2} size 1" for n in range(8)), brokers=(1, 2))
    placed = planned(_desired(limit=5, brokers=brokers, balance=Balance(replicas=Even())), observed)
    assert sorted(share.replicas for share in placed.balance_after.values()) == [3, 5]
    assert "limits.replicasPerBroker forbids more" in placed.warnings[0].message


@pytest.mark.long
def test_a_balance_of_loads_keeps_it_and_is_proved() -> None:
    sizes = [9, 8, 7, 1, 1, 1, 1, 1]
    observed = small_cluster(
        *(f"t-{n}: {1 if n < 3 else 2} size {size}" for n, size in enumerate(sizes)), brokers=(1, 2, 3)
    )
    desired = _desired(limit=3, balance=Balance(disk=Within(Fraction(1, 2))))
    placed = planned(desired, observed)
    counts = Counter(replica for replicas in replicas_after(observed, placed).values() for replica in replicas)
    assert max(counts.values()) <= 3
    assert prove_end(plan_of_placed(desired, observed, placed), desired, observed).wrong is None
    again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
    assert not again.moves
