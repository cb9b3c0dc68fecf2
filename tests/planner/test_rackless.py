"""Brokers without a rack beside others that have one: bytes move for racks only where the rule is broken anyway."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from random import Random

import pytest
from helpers.clusters.random_clusters import partly_racked, random_cluster
from helpers.depth import parts
from helpers.plans.oracle import is_feasible, least_placement, legal_sets, problem_of, worth_of
from helpers.plans.planning import cluster_after, planned, replicas_after
from helpers.plans.proving import provable_plan

from reconciler.model.change import CreateTopic
from reconciler.model.cluster import Broker, Cluster, Partition, Topic
from reconciler.model.desired import (
    BrokerState,
    Desired,
    DesiredBroker,
    DesiredCluster,
    DesiredTopic,
    Placement,
    Spread,
)
from reconciler.model.plan import Plan
from reconciler.model.stage import moves_of
from reconciler.proof.check import prove, prove_end
from reconciler.workflow.plan import plan_of

pytestmark = pytest.mark.long

GIB = 1 << 30
some_seeds = parts("seeds", range(0, 400, 10), deep=range(400))


def _case(seed: int) -> tuple[Desired, Cluster]:
    desired, observed = random_cluster(seed)
    return desired, partly_racked(observed, seed)


@cache
def _cases(seeds: range) -> Sequence[tuple[int, Desired, Cluster]]:
    return [(seed, *case) for seed in seeds if is_feasible(problem_of(*(case := _case(seed))))]


@some_seeds
def test_no_plan_beside_brokers_without_a_rack_copies_more_than_it_must(seeds: range) -> None:
    assert len(_cases(seeds)) >= len(seeds) / 4
    for seed, desired, observed in _cases(seeds):
        problem, target, placed = (
            problem_of(desired, observed),
            desired.cluster.balance.replicas,
            planned(desired, observed),
        )
        reached = replicas_after(observed, placed)
        least = least_placement(problem, target)
        assert least is not None
        assert worth_of(problem, target, reached).least_of(problem, target) == least.least_of(problem, target), seed
        assert sum(move.bytes for move in placed.moves) == least.bytes, seed
        for demand in problem.demands:
            replicas = reached[demand.topic_partition]
            assert tuple(sorted(replicas)) in legal_sets(demand, problem.rack_of), (seed, demand)
        again = planned(desired, cluster_after(observed, placed.moves, placed.topic_changes))
        assert not again.moves, seed


@some_seeds
def test_the_proof_of_such_a_plan_holds_at_its_end_and_in_between(seeds: range) -> None:
    for seed, desired, observed in _cases(seeds):
        wrong = prove_end(provable_plan(desired, observed), desired, observed).wrong
        assert wrong is None, (seed, wrong)
        wrong = prove(plan_of(desired, observed), desired, observed).wrong
        assert wrong is None, (seed, wrong)


def _completions(observed: Cluster) -> Iterator[Mapping[int, str]]:
    """Yield every way to put the brokers without a rack into a known rack or a new one."""
    known = {b: broker.rack for b, broker in observed.brokers.items() if broker.rack}
    nowhere = sorted(observed.brokers.keys() - known.keys())
    for names in product([*sorted(set(known.values())), "new"], repeat=len(nowhere)):
        yield {**known, **dict(zip(nowhere, names, strict=True))}


def _crowded(random: Random) -> Cluster:
    """Return a cluster whose replicas are wherever chance puts them, with some brokers in no rack."""
    ids = range(1, random.randint(4, 8) + 1)
    brokers = {b: Broker(b, random.choice("abc")) for b in ids}
    held = [tuple(random.sample(ids, random.choice([2, 3, 3, 4]))) for _ in range(6)]
    partitions = tuple(Partition(n, each[0], each, each, sizes=(GIB,) * len(each)) for n, each in enumerate(held))
    return partly_racked(Cluster("c", brokers, {"t": Topic("t", partitions)}), random.randint(0, 999))


@some_seeds
def test_bytes_move_for_racks_only_where_the_rule_is_broken_whatever_the_racks_are(seeds: range) -> None:
    moved = stayed = 0
    for seed in seeds:
        random = Random(seed)
        observed, spread = _crowded(random), random.choice([Spread.STRICT, Spread.PREFER])
        desired = Desired(DesiredCluster("c"), {"t": DesiredTopic("t", placement=Placement(racks_spread=spread))})
        if spread is Spread.STRICT and not is_feasible(problem_of(desired, observed)):
            continue
        moving = {move.topic_partition: move for move in planned(desired, observed).moves if move.bytes}
        for key, partition in observed.partitions():
            is_broken = all(_is_crowded(partition.replicas, rack_of) for rack_of in _completions(observed))
            if key in moving:
                assert is_broken, (seed, moving[key])
            moved, stayed = moved + (key in moving), stayed + (key not in moving and not is_broken)
    assert moved > len(seeds) / 2
    assert stayed > len(seeds) / 2


def _is_crowded(replicas: Sequence[int], rack_of: Mapping[int, str]) -> bool:
    """Whether a rack holds more than the contract lets it, were these the racks."""
    most = -(-len(replicas) // len({*rack_of.values()}))
    return max(Counter(rack_of[broker_id] for broker_id in replicas).values()) > most


def _plan(
    racks: Sequence[str | None], *replicas: tuple[int, ...], spread: Spread = Spread.STRICT, **state: BrokerState
) -> Plan:
    """Return the plan for brokers 1, 2, 3 … in these racks, with a partition of 1 GiB on each of these lists."""
    partitions = tuple(Partition(n, held[0], held, held, sizes=(GIB,) * len(held)) for n, held in enumerate(replicas))
    observed = Cluster("c", {b: Broker(b, rack) for b, rack in enumerate(racks, 1)}, {"t": Topic("t", partitions)})
    states = {int(name[1:]): DesiredBroker(int(name[1:]), one) for name, one in state.items()}
    topic = DesiredTopic("t", placement=Placement(racks_spread=spread))
    return plan_of(Desired(DesiredCluster("c", brokers=states), {"t": topic}), observed)


@pytest.mark.parametrize("spread", [Spread.STRICT, Spread.PREFER])
@pytest.mark.parametrize("racked", [1, 2, 3])
def test_nothing_moves_while_racks_are_given_to_one_broker_after_another(racked: int, spread: Spread) -> None:
    racks = [*"abc"[:racked], *[None] * (6 - racked)]
    assert not _plan(racks, (4, 5, 6), (1, 4, 5), (4, 2, 6), spread=spread).stages


def test_a_rack_that_holds_too_many_is_relieved_though_a_broker_has_none() -> None:
    (move,) = moves_of(_plan(["a", "a", "b", None], (1, 2), (1, 4), (3, 4)).stages)
    assert move.topic_partition.partition == 0


def test_a_replica_that_moves_leaves_its_rack_for_no_broker_without_one() -> None:
    plan = _plan(["a", "a", "b", "c", None], (1, 3, 4), _1=BrokerState.DRAINING)
    assert {*[*moves_of(plan.stages)][-1].to_replicas} == {2, 3, 4}


def test_a_new_topic_puts_no_two_replicas_on_brokers_without_a_rack() -> None:
    observed = Cluster("c", {b: Broker(b, rack) for b, rack in enumerate(["a", "b", "c", None, None], 1)})
    topic = DesiredTopic("t", partitions=20, replication_factor=3, placement=Placement(racks_spread=Spread.STRICT))
    (change,) = plan_of(Desired(DesiredCluster("c"), {"t": topic}), observed).topic_changes
    assert isinstance(change, CreateTopic)
    assert all(not {4, 5} <= {*replicas} for replicas in change.assignment.values())


def _said(plan: Plan) -> list[str]:
    return [problem.message for problem in plan.warnings if problem.code == "KR807"]


def test_a_plan_that_goes_by_racks_says_first_which_brokers_have_none() -> None:
    (message,) = _said(_plan(["a", "a", "b", None, None], (1, 2), (1, 4)))
    assert message == (
        "brokers 4, 5 in no rack, while others have one: the plan counts such a broker in no rack, and places "
        "1 partition (1.0 GiB) by rules of racks. Set broker.rack and restart it before that runs"
    )
    assert not _said(_plan(["a", "a", "b", None], (1, 3), (1, 4)))
    assert not _said(_plan(["a", "a", "b", "b"], (1, 2)))
    assert not _said(_plan([None, None, None], (1, 2), _1=BrokerState.DRAINING))
    assert not _said(_plan(["a", "a", None], (1, 3), spread=Spread.IGNORE, _1=BrokerState.DRAINING))


def test_replicas_that_leave_brokers_without_a_rack_because_racks_are_named_are_announced() -> None:
    partition = Partition(0, 1, (1, 3), (1, 3), sizes=(GIB, GIB))
    observed = Cluster(
        "c", {b: Broker(b, rack) for b, rack in enumerate(["a", "b", None], 1)}, {"t": Topic("t", (partition,))}
    )
    topic = DesiredTopic("t", placement=Placement(racks_only=frozenset("ab")))
    plan = plan_of(Desired(DesiredCluster("c"), {"t": topic}), observed)
    assert [move.to_replicas for move in moves_of(plan.stages)][-1] == (1, 2)
    assert "broker 3 in no rack" in _said(plan)[0]
